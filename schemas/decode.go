package schemas

// Decoder turns files into objects. It is safe for concurrent use.
type Decoder struct{ kinds Kinds }

// NewDecoder returns a decoder for the given kinds; maxSize is the largest file in bytes.
func NewDecoder(kinds Kinds, maxSize int) *Decoder { return &Decoder{kinds: kinds} }

// Decoded is what one file holds.
type Decoded struct {
	Ref      Ref       // the object's name, wherever it can be told, even if the object is broken
	At       Place     // where metadata.name stands (or the file), for "also defined here"
	Object   *Object   // nil if any problem is an Error
	Problems []Problem // all of them, sorted by position
}

// Decode reads one spec file; path (slash path below the root) decides the format by its extension: .yaml, .yml, .json
// or, for workflows, .toml. It never panics and never stops at the first problem.
func (d *Decoder) Decode(path string, src []byte) Decoded { panic("stub") }

// Locate finds where a field stands in a file that Decode read, for problems that show only when the whole tree is
// known. field is a path below the root of the document: "spec", "nodes", 3, "needs", 0. Where the field does not exist,
// the nearest ancestor that does is meant. source is the line's text.
func Locate(path string, src []byte, field ...any) (at Place, source string) { panic("stub") }
