package index

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"time"

	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/graph"
)

// Bounds of a file of facts.
const (
	factsLimit = 4 << 20 // bytes
	mostFacts  = 10_000  // of each kind
	longest    = 2000    // bytes of a text
)

// factsFile is the content of a file in graph/ among the state.
type factsFile struct {
	Edges       []statedEdge       `json:"edges"`
	Provenances []statedProvenance `json:"provenances"`
	Conflicts   []statedConflict   `json:"conflicts"`
}

type statedEdge struct {
	From   string  `json:"from"`
	To     string  `json:"to"`
	Type   string  `json:"type"`
	Weight float32 `json:"weight"` // above 0 up to 1; 1 if it is left out
}

type statedProvenance struct {
	ID         string    `json:"id"`
	Node       string    `json:"node"`
	SourceType string    `json:"sourceType"`
	SourceID   string    `json:"sourceId"`
	Confidence float64   `json:"confidence"` // 0 to 1
	VerifiedAt time.Time `json:"verifiedAt"`
	Verifier   string    `json:"verifier"`
}

type statedConflict struct {
	ID         string    `json:"id"`
	A          string    `json:"a"`
	B          string    `json:"b"`
	Type       string    `json:"type"`
	DetectedAt time.Time `json:"detectedAt"`
	Resolution string    `json:"resolution"`
	ResolvedAt time.Time `json:"resolvedAt"`
}

// facts are the files of facts, each an input.
func (s *survey) facts() error {
	dir := s.objects[1] + "/graph"
	return s.lookInto(dir, func(name string, id state.Identity) {
		switch p := dir + "/" + name; {
		case path.Ext(name) != ".json":
		case id.Size > factsLimit:
			s.warn(fmt.Errorf("%s states nothing: it has %d bytes, at most %d are read; split it", p, id.Size, factsLimit))
		default:
			s.takeInput("facts:", p, id, factsLimit)
		}
	})
}

// lookInto goes through the regular files of a folder, which need not be there.
func (s *survey) lookInto(dir string, each func(name string, id state.Identity)) error {
	err := s.store.LookInto(dir, func(name []byte, id state.Identity) {
		if id.IsFile() {
			each(string(name), id)
		}
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// stated reads a file of facts. One that is damaged states nothing, and is told of.
func (s *survey) stated(in *vectors.Input, p string) {
	data, _, err := s.store.ReadFile(p, factsLimit)
	if err == nil {
		err = parseFacts(data, in, p)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		in.Edges, in.Provenances, in.Conflicts = nil, nil, nil
		s.warn(fmt.Errorf("%s states nothing: %w; mend it, or remove it", p, err))
	}
}

// parseFacts reads the facts of the file at p into an input.
func parseFacts(data []byte, in *vectors.Input, p string) error {
	var f factsFile
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return fmt.Errorf("want an object with edges, provenances or conflicts: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the object")
	}
	if n := max(len(f.Edges), len(f.Provenances), len(f.Conflicts)); n > mostFacts {
		return fmt.Errorf("it states %d of a kind, at most %d are read; split it", n, mostFacts)
	}
	for i, e := range f.Edges {
		edge, err := e.edge(p)
		if err != nil {
			return fmt.Errorf("edges[%d]: %w", i, err)
		}
		in.Edges = append(in.Edges, edge)
	}
	for i, x := range f.Provenances {
		if err := checkTexts(1, "id and node", x.ID, x.Node, x.SourceType, x.SourceID, x.Verifier); err != nil {
			return fmt.Errorf("provenances[%d]: %w", i, err)
		}
		if !(x.Confidence >= 0 && x.Confidence <= 1) {
			return fmt.Errorf("provenances[%d]: confidence is %v; write 0 to 1", i, x.Confidence)
		}
		in.Provenances = append(in.Provenances, graph.Provenance{
			ID: x.ID, Node: x.Node, SourceType: x.SourceType, SourceID: x.SourceID, Verifier: x.Verifier,
			Confidence: uint16(math.Round(1000 * x.Confidence)), VerifiedAt: seconds(x.VerifiedAt), Source: p,
		})
	}
	for i, x := range f.Conflicts {
		if err := checkTexts(2, "id, a and b", x.ID, x.A, x.B, x.Type, x.Resolution); err != nil {
			return fmt.Errorf("conflicts[%d]: %w", i, err)
		}
		in.Conflicts = append(in.Conflicts, graph.Conflict{
			ID: x.ID, A: x.A, B: x.B, Type: x.Type, Resolution: x.Resolution,
			DetectedAt: seconds(x.DetectedAt), ResolvedAt: seconds(x.ResolvedAt), Source: p,
		})
	}
	return nil
}

func (e *statedEdge) edge(p string) (graph.Edge, error) {
	if err := checkTexts(1, "from and to", e.From, e.To); err != nil {
		return graph.Edge{}, err
	}
	t, err := graph.ParseEdgeType(e.Type)
	if err != nil {
		return graph.Edge{}, err
	}
	if !(e.Weight >= 0 && e.Weight <= 1) {
		return graph.Edge{}, fmt.Errorf("weight is %v; write above 0 up to 1", e.Weight)
	}
	return graph.Edge{From: e.From, To: e.To, Type: t, Weight: e.Weight, Source: p}, nil
}

// checkTexts wants the texts up to a place to be there, and all to be short.
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

// seconds are Unix seconds; 0 for no time.
func seconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
