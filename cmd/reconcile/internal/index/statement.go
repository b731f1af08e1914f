package index

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/graph"
)

// Statement is a fact about nodes.
type Statement interface {
	// Kind is edge, provenance, conflict, review or trust.
	Kind() string
	// About are the names of the nodes.
	About() []string
	// Said returns the statement in words, By its author, and When its time; "" and zero if not recorded.
	Said() string
	By() string
	When() time.Time

	// check returns an error if the statement is invalid.
	check() error
	// key returns the fields that identify the statement: another one with the same key replaces it.
	key() []any
	// name sets the id unless id is "", and returns it.
	name(id string) string
	// addTo adds it to the statements of an input; p is the file.
	addTo(in *vectors.Input, p string) error
	// put adds it to the content of a file.
	put(f *factsFile)
}

// Verdicts are the verdicts of a review.
var Verdicts = []string{"approved", "rejected", "pending"}

// Relation states an edge. Its nodes may be symbols without their file ("state/:Tree.Entry").
type Relation struct {
	ID     string    `json:"id,omitempty"`
	From   string    `json:"from"`
	To     string    `json:"to"`
	Type   string    `json:"type"`
	Weight float32   `json:"weight,omitempty"` // above 0 up to 1; 1 if it is left out
	Note   string    `json:"note,omitempty"`
	Author string    `json:"by,omitempty"`
	At     time.Time `json:"at,omitzero"`
}

// Provenance states the origin of a node, and its verifier.
type Provenance struct {
	ID         string    `json:"id"`
	Node       string    `json:"node"`
	SourceType string    `json:"sourceType"`
	SourceID   string    `json:"sourceId"`
	Confidence float64   `json:"confidence"` // 0 to 1
	VerifiedAt time.Time `json:"verifiedAt,omitzero"`
	Verifier   string    `json:"verifier,omitempty"`
	Note       string    `json:"note,omitempty"`
}

// Conflict states that two nodes contradict each other, and its resolution.
type Conflict struct {
	ID         string    `json:"id"`
	A          string    `json:"a"`
	B          string    `json:"b"`
	Type       string    `json:"type"`
	DetectedAt time.Time `json:"detectedAt,omitzero"`
	Author     string    `json:"by,omitempty"`
	Note       string    `json:"note,omitempty"`
	Resolution string    `json:"resolution,omitempty"` // "": unresolved
	ResolvedAt time.Time `json:"resolvedAt,omitzero"`
	ResolvedBy string    `json:"resolvedBy,omitempty"`
}

// Review is a reviewer's verdict on a node.
type Review struct {
	ID      string `json:"id"`
	Node    string `json:"node"`
	Verdict string `json:"verdict"` // one of Verdicts
	// Digest is the digest of the node's text at the time of the review, 16 hexadecimal digits.
	Digest string    `json:"digest,omitempty"`
	Note   string    `json:"note,omitempty"`
	Author string    `json:"by,omitempty"`
	At     time.Time `json:"at,omitzero"`
}

// Trust sets the trust in a node from its time on.
type Trust struct {
	ID     string    `json:"id"`
	Node   string    `json:"node"`
	Level  float64   `json:"trust"` // 0 to 1
	Note   string    `json:"note,omitempty"`
	Author string    `json:"by,omitempty"`
	At     time.Time `json:"at,omitzero"`
}

// Kinds are the kinds of statements.
var Kinds = []string{"edge", "provenance", "conflict", "review", "trust"}

func (*Relation) Kind() string   { return "edge" }
func (*Provenance) Kind() string { return "provenance" }
func (*Conflict) Kind() string   { return "conflict" }
func (*Review) Kind() string     { return "review" }
func (*Trust) Kind() string      { return "trust" }

func (s *Relation) About() []string   { return []string{s.From, s.To} }
func (s *Provenance) About() []string { return []string{s.Node} }
func (s *Conflict) About() []string   { return []string{s.A, s.B} }
func (s *Review) About() []string     { return []string{s.Node} }
func (s *Trust) About() []string      { return []string{s.Node} }

func (s *Relation) By() string   { return s.Author }
func (s *Provenance) By() string { return s.Verifier }
func (s *Conflict) By() string   { return s.Author }
func (s *Review) By() string     { return s.Author }
func (s *Trust) By() string      { return s.Author }

func (s *Relation) When() time.Time   { return s.At }
func (s *Provenance) When() time.Time { return s.VerifiedAt }
func (s *Conflict) When() time.Time   { return s.DetectedAt }
func (s *Review) When() time.Time     { return s.At }
func (s *Trust) When() time.Time      { return s.At }

func (s *Relation) Said() string {
	said := fmt.Sprintf("%s %s %s", s.From, strings.ReplaceAll(s.Type, "_", " "), s.To)
	if s.Weight != 0 && s.Weight != 1 {
		said += fmt.Sprintf(" (%v)", s.Weight)
	}
	return said + notedFact(s.Note)
}

func (s *Provenance) Said() string {
	return fmt.Sprintf("%s comes from %s %s (%v)", s.Node, s.SourceType, s.SourceID, s.Confidence) + notedFact(s.Note)
}

func (s *Conflict) Said() string {
	said := fmt.Sprintf("%s and %s: %s", s.A, s.B, cmp.Or(s.Type, "conflict")) + notedFact(s.Note)
	if s.Resolution != "" {
		said += "; resolved: " + s.Resolution
	}
	return said
}

func (s *Review) Said() string { return s.Node + " " + s.Verdict + notedFact(s.Note) }
func (s *Trust) Said() string {
	return fmt.Sprintf("%s trusted %v", s.Node, s.Level) + notedFact(s.Note)
}

func (s *Relation) key() []any   { return []any{s.From, s.To, s.Type, s.Author} }
func (s *Provenance) key() []any { return []any{s.Node, s.SourceType, s.SourceID, s.Verifier} }
func (s *Conflict) key() []any {
	ends := []string{s.A, s.B}
	slices.Sort(ends)
	return []any{ends[0], ends[1], s.Type, s.Author}
}

// Reviews and changes of trust are a history: each is a separate fact.
func (s *Review) key() []any { return []any{s.Node, s.Author, s.At.Unix()} }
func (s *Trust) key() []any  { return []any{s.Node, s.Author, s.At.Unix()} }

func (s *Relation) name(id string) string   { return renameTag(&s.ID, id) }
func (s *Provenance) name(id string) string { return renameTag(&s.ID, id) }
func (s *Conflict) name(id string) string   { return renameTag(&s.ID, id) }
func (s *Review) name(id string) string     { return renameTag(&s.ID, id) }
func (s *Trust) name(id string) string      { return renameTag(&s.ID, id) }

func (s *Relation) check() error {
	if err := checkTexts(1, "from and to", s.From, s.To, s.ID, s.Note, s.Author); err != nil {
		return err
	}
	if !(s.Weight >= 0 && s.Weight <= 1) {
		return fmt.Errorf("weight is %v; write above 0 up to 1", s.Weight)
	}
	_, err := graph.ParseEdgeType(s.Type)
	return err
}

func (s *Provenance) check() error {
	if !inUnit(s.Confidence) {
		return fmt.Errorf("confidence is %v; write 0 to 1", s.Confidence)
	}
	return checkTexts(1, "id and node", s.ID, s.Node, s.SourceType, s.SourceID, s.Verifier, s.Note)
}

func (s *Conflict) check() error {
	if s.A == s.B && s.A != "" {
		return errors.New("a and b are the same; name two nodes")
	}
	return checkTexts(2, "id, a and b", s.ID, s.A, s.B, s.Type, s.Author, s.Note, s.Resolution, s.ResolvedBy)
}

func (s *Review) check() error {
	if !slices.Contains(Verdicts, s.Verdict) {
		return fmt.Errorf("verdict is %.40q; write %s", s.Verdict, strings.Join(Verdicts, ", "))
	}
	return checkTexts(1, "id and node", s.ID, s.Node, s.Digest, s.Note, s.Author)
}

func (s *Trust) check() error {
	if !inUnit(s.Level) {
		return fmt.Errorf("trust is %v; write 0 to 1", s.Level)
	}
	return checkTexts(1, "id and node", s.ID, s.Node, s.Note, s.Author)
}

// checkTexts requires the first needed texts to be non-empty, and all to be short.
func checkTexts(needed int, names string, texts ...string) error {
	for i, s := range texts {
		if i <= needed && s == "" {
			return fmt.Errorf("%s must not be empty", names)
		}
		if len(s) > longest {
			return fmt.Errorf("a text has %d bytes, at most %d are read", len(s), longest)
		}
	}
	return nil
}

func (s *Relation) addTo(in *vectors.Input, p string) error {
	t, err := graph.ParseEdgeType(s.Type)
	in.Edges = append(in.Edges, graph.Edge{From: s.From, To: s.To, Type: t, Weight: s.Weight, Source: p})
	return err
}

func (s *Provenance) addTo(in *vectors.Input, p string) error {
	return vouch(in, p, graph.Provenance{
		ID: s.ID, Node: s.Node, SourceType: s.SourceType, SourceID: s.SourceID, Verifier: s.Verifier,
		Confidence: thousandths(s.Confidence), VerifiedAt: seconds(s.VerifiedAt),
	})
}

func (s *Conflict) addTo(in *vectors.Input, p string) error {
	in.Conflicts = append(in.Conflicts, graph.Conflict{
		ID: s.ID, A: s.A, B: s.B, Type: s.Type, Resolution: s.Resolution,
		DetectedAt: seconds(s.DetectedAt), ResolvedAt: seconds(s.ResolvedAt), Source: p,
	})
	return nil
}

// addTo adds a review as a provenance of the type review, whose confidence is 0 or 1.
func (s *Review) addTo(in *vectors.Input, p string) error {
	out := graph.Provenance{ID: s.ID, Node: s.Node, SourceType: s.Kind(), SourceID: s.Verdict}
	if s.Verdict == "approved" {
		out.Confidence = 1000
	}
	if s.Verdict != "pending" {
		out.Verifier, out.VerifiedAt = s.Author, seconds(s.At)
	}
	return vouch(in, p, out)
}

// addTo adds a change of trust as a provenance of the type trust.
func (s *Trust) addTo(in *vectors.Input, p string) error {
	return vouch(in, p, graph.Provenance{
		ID: s.ID, Node: s.Node, SourceType: s.Kind(), SourceID: s.Note, Verifier: s.Author,
		Confidence: thousandths(s.Level), VerifiedAt: seconds(s.At),
	})
}

func thousandths(x float64) uint16 { return uint16(math.Round(1000 * x)) }

func (s *Relation) put(f *factsFile)   { f.Edges = append(f.Edges, s) }
func (s *Provenance) put(f *factsFile) { f.Provenances = append(f.Provenances, s) }
func (s *Conflict) put(f *factsFile)   { f.Conflicts = append(f.Conflicts, s) }
func (s *Review) put(f *factsFile)     { f.Reviews = append(f.Reviews, s) }
func (s *Trust) put(f *factsFile)      { f.Trusts = append(f.Trusts, s) }
