// Package schemas defines the vocabulary: every kind of object in a tree, its defaults, its rules, and the decoding of
// bytes into objects with the positions of all fields.
//
// An object on disk is one YAML or JSON document (workflows also have a TOML form) in the Kubernetes envelope:
//
//	apiVersion: reconcile.dev/v1alpha1
//	kind: Session
//	metadata: {name: health}
//	spec: {…}
//
// A kind is described by a [Kind] value in the file of that kind (session.go has SessionKind). This package has no list
// of them: the table is controllers.Kinds, and callers of the decoder pass the kinds in.
//
// The published JSON Schemas (*.schema.json in this folder, generated from the Go types) define the shape of a
// document; [Spec.Check] checks rules beyond a schema; references and cycles between objects are checked with the whole
// tree, in package state. All three report [Problem] values with a position, all of them at once.
//
// The package does no I/O: its input is bytes and paths, its output values.
package schemas

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// APIVersion is the only version of the envelope that this program reads and writes.
const APIVersion = "reconcile.dev/v1alpha1"

// Kind describes one kind of object. Values are package variables of the file that defines the kind.
type Kind struct {
	Name    string   // "ClarificationRequest"
	Plural  string   // folder under specs/ and state/: "clarificationrequests"
	Aliases []string // further words that the command line accepts: "clr"
	Short   string   // one sentence, for explain and the docs

	// New returns an empty spec. Defaults are not yet applied.
	New func() Spec
	// NewStatus returns an empty status of this kind; nil for a kind that has none (Settings).
	NewStatus func() Status
	// StatusOptional is set if an object has a status only while something is wrong with it.
	StatusOptional bool

	// CheckAgainst reports problems of an object with respect to one that it refers to. It runs once the whole tree is
	// known, for each reference to an object that is itself valid. nil: no such check.
	CheckAgainst func(o, to *Object, r *Report)

	// Schema is the published JSON Schema. nil: the file <singular>.schema.json of this package.
	Schema []byte

	// FinalPhase is the phase of an object whose effect was applied: the objects that its spec refers to may be missing.
	// "": the kind has no such phase.
	FinalPhase string
	// Accepted reports, by its status, whether an object was accepted: if an object that it refers to is deleted later, a
	// controller decides the result, and the file is not invalid. nil: never.
	Accepted func(Status) bool

	// Row is the data of the higher packages about the kind, for the maker of the table (settle.Kind).
	Row any
}

// Singular returns the kind's name in lower case, as in references and on the command line: "clarificationrequest".
func (k Kind) Singular() string { return strings.ToLower(k.Name) }

// Ref returns the reference to the object of this kind that has a name.
func (k *Kind) Ref(name string) Ref { return Ref{Kind: k.Name, Name: name} }

// Ref names one object of a tree. Kind is the Go-cased name ("DAG"); the zero Ref names nothing.
type Ref struct {
	Kind string
	Name string
}

// String returns the ref as text, kind/name with a lower-case kind, as users write it: "dag/checks". The zero Ref is "".
func (r Ref) String() string {
	if r == (Ref{}) {
		return ""
	}
	return strings.ToLower(r.Kind) + "/" + r.Name
}

// Compare compares the ref with another one, by kind and then by name.
func (r Ref) Compare(o Ref) int {
	if c := strings.Compare(r.Kind, o.Kind); c != 0 {
		return c
	}
	return strings.Compare(r.Name, o.Name)
}

// Kinds is a table of kinds; lookups are linear, the table is short.
type Kinds []Kind

// Find returns the kind whose singular, plural or one of whose aliases is word, in any case; false without such a kind.
func (ks Kinds) Find(word string) (Kind, bool) {
	w := strings.ToLower(word)
	for _, k := range ks {
		if w == k.Singular() || w == k.Plural {
			return k, true
		}
		if slices.Contains(k.Aliases, w) {
			return k, true
		}
	}
	return Kind{}, false
}

// Named returns the kind with this name, in the same case, as in a [Ref]; false without such a kind.
func (ks Kinds) Named(name string) (Kind, bool) {
	for _, k := range ks {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}

func (ks Kinds) names() []string {
	names := make([]string, len(ks))
	for i, k := range ks {
		names[i] = k.Name
	}
	return names
}

// ParseRef parses a reference of the form kind/name, "dag/checks" (also "dags/checks", "DAG/checks"), to one of the kinds.
// The error names the expected form.
func (ks Kinds) ParseRef(s string) (Ref, error) {
	word, name, ok := strings.Cut(s, "/")
	if !ok || name == "" {
		return Ref{}, fmt.Errorf("%q is not kind/name, for example dag/checks", s)
	}
	k, ok := ks.Find(word)
	if !ok {
		return Ref{}, fmt.Errorf("%q: no kind is called %q%s", s, word, ks.suggest(word))
	}
	if err := CheckName(name); err != nil {
		return Ref{}, fmt.Errorf("%q: %w", s, err)
	}
	return Ref{Kind: k.Name, Name: name}, nil
}

// Words returns the singular and the plural of each of the kinds.
func (ks Kinds) Words() []string {
	var words []string
	for _, k := range ks {
		words = append(words, k.Singular(), k.Plural)
	}
	return words
}

func (ks Kinds) suggest(word string) string {
	var words []string
	for _, k := range ks {
		words = append(words, k.Singular())
	}
	if near := GuessWord(word, words); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return "; kinds: " + strings.Join(words, ", ")
}

// Metadata is the envelope's metadata.
type Metadata struct {
	// Name is unique within the kind, also when case is ignored: ^[a-z0-9][a-z0-9._-]{0,62}$.
	Name string `json:"name" jsonschema:"minLength=1,maxLength=63"`
	// Labels are short key/value pairs to select objects by.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations are free key/value pairs that no controller reads.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Spec is what the user declares: a pointer to one of the *Spec structs of this package.
type Spec interface {
	// Default fills in every optional field that was left out.
	Default()
	// Check reports what the JSON Schema cannot say. It runs after Default, and only on a spec of the right shape.
	Check(r *Report)
	// References lists the other objects that this spec names.
	References() []Reference
}

// Reference is one mention of another object. A hard reference must resolve, or the object is invalid; a soft one that
// does not is reported as a warning.
type Reference struct {
	Field []any // path below spec: strings and indices, as in Report.At
	To    Ref
	Hard  bool
	// Line and Column are the place of the mention in the file, as in Place; 0 in a spec that was not decoded from
	// one.
	Line, Column int32
}

// Object is one valid spec. It is immutable once it is in a tree.
type Object struct {
	Ref
	Metadata Metadata
	Digest   string      // "sha256:<hex>" over the canonical JSON of the spec as written, without defaults
	Path     string      // slash path below the root: "specs/sessions/health.yaml"
	Refs     []Reference // Spec().References(), known without decoding

	declared  *Object // the object as written; nil for one that is
	canonical []byte  // canonical JSON of the spec as written
	newSpec   func() Spec
	optional  bool // the status, see ExpectsStatus
	plain     bool // defaults are known to change nothing
	typed     atomic.Pointer[typed]
	marks     atomic.Uint32 // answers of Mentions: two bits each, "known" and "yes"
}

// typed is the decoded form of an object's canonical form, and the data derived from it.
type typed struct {
	spec    Spec
	derive  sync.Once
	derived any
}

// NewObject returns an object of kind k with its metadata, path, digest, refs and canonical spec. canonical is the canonical
// JSON of the spec as written; the typed spec is decoded from it, and defaulted, when Spec is called, so that a tree holds
// in full only the objects that are read.
func NewObject(k Kind, m Metadata, path, digest string, canonical []byte, refs []Reference) *Object {
	return &Object{
		Ref: Ref{Kind: k.Name, Name: m.Name}, Metadata: m, Digest: digest, Path: path, Refs: refs,
		canonical: canonical, newSpec: k.New, optional: k.StatusOptional || k.NewStatus == nil,
	}
}

// ExpectsStatus reports whether the object has a status at all times once a run has seen it.
func (o *Object) ExpectsStatus() bool { return !o.optional }

// Spec returns the decoded, typed spec of the object, with defaults. Callers must not change it.
func (o *Object) Spec() Spec { return o.decoded().spec }

// decoded returns what the canonical form is decoded to, which is kept until Release.
func (o *Object) decoded() *typed {
	if t := o.typed.Load(); t != nil {
		return t
	}
	s, err := decodeSpec(o.newSpec, o.canonical, nil)
	if err != nil {
		// The canonical form was validated before it got here; only a bug or a damaged cache gets to this line,
		// and the cache is checked by digest.
		panic(fmt.Sprintf("schemas: %s: canonical spec does not decode: %v", o.Ref, err))
	}
	if !o.plain {
		applyDefaults(s, o.Name)
	}
	t := &typed{spec: s}
	if !o.typed.CompareAndSwap(nil, t) {
		if first := o.typed.Load(); first != nil {
			return first
		}
	}
	return t
}

// Release releases the memory of the object's typed spec and of the data derived from it. Both are made again, with equal
// content, by the next call that needs them; callers that hold them keep them.
func (o *Object) Release() {
	if o.declared == nil {
		o.typed.Store(nil)
	}
}

// WithSpec returns an object that has another spec than the one that was written, which follows from it. digest is that of all that
// the spec follows from, refs are its references.
func (o *Object) WithSpec(s Spec, digest string, refs []Reference) *Object {
	out := &Object{Ref: o.Ref, Metadata: o.Metadata, Digest: digest, Path: o.Path, Refs: refs, declared: o.Declared(),
		canonical: o.canonical, newSpec: o.newSpec, optional: o.optional}
	out.typed.Store(&typed{spec: s})
	return out
}

// Declared returns the object as it was written.
func (o *Object) Declared() *Object {
	if o.declared != nil {
		return o.declared
	}
	return o
}

// redactor is a spec whose Default only takes out secrets and private text; redact does it, and reports whether there were any.
type redactor interface{ redact() (found bool) }

// applyDefaults fills in all defaults, also those that depend on the object's name. plain says that this is known to change nothing.
func applyDefaults(s Spec, name string) (plain bool) {
	if r, ok := s.(redactor); ok {
		return !r.redact()
	}
	if n, ok := s.(interface{ defaultFor(name string) }); ok {
		n.defaultFor(name)
	}
	s.Default()
	return false
}

// Derived returns the result of derive for the object. It is computed once and kept until Release; every call must
// pass the same function, which must be pure.
func (o *Object) Derived(derive func(*Object) any) any {
	t := o.decoded()
	t.derive.Do(func() { t.derived = derive(o) })
	return t.derived
}

// Canonical returns the canonical JSON of the object's spec, as it was written. Callers must not change it.
func (o *Object) Canonical() []byte { return o.canonical }

// Mark is something that a spec may mention, see [Object.Mentions].
type Mark int

const (
	MarkInputs    Mark = iota // declared inputs of a node
	MarkOutputs               // declared outputs of a node
	MarkTools                 // declared tools of a node
	MarkExpansion             // what makes a DAG one that is expanded
)

// markTexts are the texts that stand in the canonical form of every spec with a mark.
var markTexts = [...][][]byte{
	MarkInputs:    {[]byte(`"inputs":[`)},
	MarkOutputs:   {[]byte(`"outputs":{`)},
	MarkTools:     {[]byte(`"tools":[`)},
	MarkExpansion: {[]byte(`"params":{`), []byte(`"matrix":{`), []byte(`"finally":[`), []byte(`"dag":"`)},
}

// Mentions reports whether the spec as written may have what a mark represents, without decoding it. The object keeps the
// answer.
func (o *Object) Mentions(m Mark) bool {
	known, yes := uint32(1)<<(2*m), uint32(2)<<(2*m)
	marks := o.marks.Load()
	if marks&known == 0 {
		marks |= known
		if slices.ContainsFunc(markTexts[m], func(text []byte) bool { return bytes.Contains(o.canonical, text) }) {
			marks |= yes
		}
		o.marks.Or(marks)
	}
	return marks&yes != 0
}

// SpecAs returns o's spec as the given type, or the zero value when o is nil or of another kind.
func SpecAs[T Spec](o *Object) T {
	var zero T
	if o == nil {
		return zero
	}
	s, _ := o.Spec().(T)
	return s
}

// softRefs makes a soft reference of each name of a list field.
func softRefs(kind string, names []string, field ...any) []Reference {
	if len(names) == 0 {
		return nil
	}
	out := make([]Reference, len(names))
	for i, n := range names {
		out[i] = Reference{Field: append(slices.Clone(field), i), To: Ref{Kind: kind, Name: n}}
	}
	return out
}

// TextIn finds a field in the canonical JSON of a spec, without decoding it: the last one of that name whose value is a text
// without escapes. Within a text, no quotation mark stands without a backslash before it.
func TextIn(canonical []byte, field string) string {
	key := []byte(`"` + field + `":"`)
	i := bytes.LastIndex(canonical, key)
	if i < 0 {
		return ""
	}
	rest := canonical[i+len(key):]
	return string(rest[:max(0, bytes.IndexByte(rest, '"'))])
}
