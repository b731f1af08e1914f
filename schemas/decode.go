package schemas

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	quick "github.com/segmentio/encoding/json"
)

// DefaultFileSize is the default maximum size of a file that a [Decoder] reads, in bytes.
const DefaultFileSize = 1 << 20

// Decoder turns files into objects. It is safe for concurrent use.
type Decoder struct {
	kinds   Kinds
	maxSize int
	state   string    // the folder of observed state; empty: the default
	stores  sync.Pool // of *valueStore

	// schemas are by kind. Each is compiled for the first object of its kind, since compiling all takes milliseconds.
	schemas map[string]func() (*kindSchema, error)
}

// NewDecoder returns a decoder for the given kinds; maxSize is the largest file in bytes, 0 means DefaultFileSize.
func NewDecoder(kinds Kinds, maxSize int) *Decoder {
	orDefault(&maxSize, DefaultFileSize)
	d := &Decoder{kinds: kinds, maxSize: maxSize, schemas: make(map[string]func() (*kindSchema, error), len(kinds))}
	d.stores.New = func() any { return new(valueStore) }
	for _, k := range kinds {
		d.schemas[k.Name] = sync.OnceValues(func() (*kindSchema, error) { return compile(k) })
	}
	return d
}

// DecoderFor returns the decoder of a tree with these settings: it reads files up to limits.fileSize, and refuses specs
// that write into folders.state.
func DecoderFor(kinds Kinds, s *SettingsSpec) *Decoder {
	d := NewDecoder(kinds, s.Limits.FileSize)
	d.state = s.Folders.State
	return d
}

// Decoded is what one file holds.
type Decoded struct {
	Ref      Ref       // the object's name, wherever it can be told, even if the object is broken
	At       Place     // where metadata.name stands (or the file), for "also defined here"
	Object   *Object   // nil if any problem is an Error
	Problems []Problem // all of them, sorted by position

	// Refs are the references of the sound part of a broken object; nil where there is an Object, which has its own.
	Refs []Reference
	// Sound is the usable part of broken settings, with defaults for the rest: a mistake in one field must not enable
	// what other fields disable. Nil for other kinds, and if no part is usable.
	Sound Spec
}

// Decode parses the source of the spec file at path, and returns it decoded: its object, refs, place and problems. The path
// (slash path below the root) decides the format by its extension: .yaml, .yml, .json or, for workflows, .toml.
func (d *Decoder) Decode(path string, src []byte) Decoded {
	s := newSource(path)
	s.state = d.state
	s.store = d.stores.Get().(*valueStore)
	defer func() {
		s.store.empty()
		d.stores.Put(s.store)
	}()
	out := Decoded{At: Place{Path: path}}
	if root := s.parse(src, d.maxSize); root != nil {
		out.Object, out.Refs, out.Sound = d.object(s, root)
		if s.ref != (Ref{}) {
			out.At.Line, out.At.Column = root.position([]any{"metadata", "name"})
		} else {
			s.ref = refOfPath(path, d.kinds)
		}
	} else {
		s.ref = s.guessRef(src, d.kinds)
	}
	if line := ConflictLine(s.text); line > 0 && s.failed() {
		s.conflict(line)
		out.Object, out.Refs, out.Sound = nil, nil, nil
	}
	out.Ref, out.Problems = s.ref, s.finish()
	return out
}

// object makes the object of a parsed document; if it is invalid, it returns the references of the valid rest, and the
// usable part of settings.
func (d *Decoder) object(s *source, root *value) (*Object, []Reference, Spec) {
	var hurt damage
	if len(s.problems) > 0 {
		hurt.scan(root, root, nil)
	}
	k, ok := s.envelope(root, d.kinds)
	if !ok {
		return nil, nil, nil
	}
	published, err := d.schemas[k.Name]()
	if err != nil {
		s.fail("schema", 0, 0, "", "%v", err)
		return nil, nil, nil
	}
	s.judge(root, published, &hurt)
	spec := root.get("spec")
	if spec == nil || spec.form != object || hurt.whole {
		return nil, nil, nil
	}
	// It stays in memory as long as the object: no larger than it is.
	s.store.scratch = spec.canonical(s.store.scratch[:0], hurt.skip)
	canonical := bytes.Clone(s.store.scratch)
	typed, plain := s.check(root, k, canonical, &hurt)
	if typed == nil {
		return nil, nil, nil
	}
	refs := references(root, typed)
	if s.failed() {
		refs = slices.DeleteFunc(refs, func(r Reference) bool { return CheckName(r.To.Name) != nil })
		return nil, refs, s.sound(k, canonical)
	}
	sum := sha256.Sum256(canonical)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	o := NewObject(k, metadata(root), s.path, digest, canonical, refs)
	o.plain = plain // what it is decoded to again is not searched for secrets again
	return o, nil, nil
}

// sound decodes the usable part of broken settings: the fields without a problem. canonical is the readable part of the
// spec. With an error in the folders no part is usable: the tree would be looked for elsewhere, and all of it done again.
func (s *source) sound(k Kind, canonical []byte) Spec {
	var fields map[string]any
	if k.Name != SettingsKind.Name || json.Unmarshal(canonical, &fields) != nil {
		return nil
	}
	for _, p := range s.problems {
		if p.Severity == Error && (p.Field == "spec.folders" || strings.HasPrefix(p.Field, "spec.folders.")) {
			return nil
		}
		if p.Severity == Error {
			withoutFinding(fields, strings.TrimPrefix(p.Field, "spec."))
		}
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return nil
	}
	spec, err := decodeSpec(k.New, text, nil)
	if err != nil {
		return nil
	}
	spec.Default()
	return spec
}

// withoutFinding deletes the field at a dotted path: of a list all of it.
func withoutFinding(fields map[string]any, path string) {
	name, rest, deeper := strings.Cut(path, ".")
	name, _, list := strings.Cut(name, "[")
	if inner, ok := fields[name].(map[string]any); ok && deeper && !list {
		withoutFinding(inner, rest)
		return
	}
	delete(fields, name)
}

// references are those of a spec, with their positions.
func references(root *value, spec Spec) []Reference {
	refs := spec.References()
	for i, r := range refs {
		line, column := root.position(append([]any{"spec"}, r.Field...))
		refs[i].Line, refs[i].Column = int32(line), int32(column)
	}
	return refs
}

// check decodes the spec, sets its defaults, and reports violations of its own rules in the undamaged parts.
func (s *source) check(root *value, k Kind, canonical []byte, hurt *damage) (spec Spec, plain bool) {
	spec, err := decodeSpec(k.New, canonical, s.store.nodes[:0])
	if err != nil {
		if !s.failed() { // else that is why
			line, col := root.position([]any{"spec"})
			s.fail("wrong-value", line, col, "spec", "cannot be read: %v", err)
		}
		return nil, false
	}
	plain = applyDefaults(spec, root.get("metadata").str("name"))
	r := Report{state: s.state}
	spec.Check(&r)
	for _, f := range r.findings {
		if at := append([]any{"spec"}, f.Field...); !hurt.covers(f, at) {
			s.finding(root, f, at)
		}
	}
	return spec, plain
}

// finding turns a finding into a problem.
func (s *source) finding(root *value, f *Finding, at []any) {
	line, col := root.position(at)
	p := s.fail(f.Code, line, col, pathText(at), "%s", f.Message)
	p.Severity, p.Suggestion = f.Severity, f.Suggestion
	for _, r := range f.Related {
		line, col := root.position(append([]any{"spec"}, r.Field...))
		p.also(line, col, r.Note)
	}
}

// damage records the unusable parts of a document, so that the rest of it can still be checked without problems
// that only follow from reported ones.
type damage struct {
	skip   map[*value]bool // values to leave out
	at     map[string]bool // paths that are broken
	above  map[string]bool // their ancestors
	naming bool            // the name of some task is broken: needs cannot be judged
	whole  bool            // nothing is left to check
}

// note marks a path as broken.
func (d *damage) note(path []any) {
	if d.at == nil {
		d.at, d.above, d.skip = map[string]bool{}, map[string]bool{}, map[*value]bool{}
	}
	d.at[pathText(path)] = true
	for i := range path {
		d.above[pathText(path[:i])] = true
	}
	last := path[len(path)-1]
	d.naming = d.naming || len(path) == 4 && (last == "name" || last == "id")
	d.whole = d.whole || len(path) == 1 && last == "spec"
}

// cut marks a path as broken and leaves out the field that it is in.
func (d *damage) cut(root *value, path []any) {
	d.note(path)
	for len(path) > 1 {
		if _, ok := path[len(path)-1].(string); ok {
			break
		}
		path = path[:len(path)-1]
	}
	d.whole = d.whole || len(path) <= 1
	if v := root.at(path); v != nil {
		d.skip[v] = true
	}
}

// scan marks everything that could not be parsed.
func (d *damage) scan(root, v *value, path []any) {
	if v.bad {
		if len(path) == 0 {
			d.whole = true
			return
		}
		d.cut(root, path)
		return
	}
	for i := range v.fields {
		d.scan(root, v.fields[i].value, append(path[:len(path):len(path)], v.fields[i].name))
	}
	for i := range v.items {
		d.scan(root, v.items[i], append(path[:len(path):len(path)], i))
	}
}

// covers reports whether a finding at a path may only follow from the damage.
func (d *damage) covers(f *Finding, path []any) bool {
	if d.at == nil {
		return false
	}
	if d.above[pathText(path)] || d.naming && f.Code == "unknown-need" {
		return true
	}
	for i := range path {
		if d.at[pathText(path[:i+1])] {
			return true
		}
	}
	return false
}

// decodeSpec decodes the canonical form of a spec, without defaults. The spec's strings are parts of it, and the nodes of a DAG are in
// room, if they fit.
func decodeSpec(newSpec func() Spec, canonical []byte, room []Node) (Spec, error) {
	s := newSpec()
	if dag, ok := s.(*DAGSpec); ok {
		dag.Nodes = roomForNodes(canonical, room)
	}
	_, err := quick.Parse(canonical, s, quick.ZeroCopy)
	return s, err
}
