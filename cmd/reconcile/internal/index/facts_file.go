package index

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"

	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors"
)

// FactsLimit is the maximum size of a file of facts, in bytes.
const FactsLimit = 4 << 20

const (
	mostFacts = 10_000 // of each kind
	longest   = 2000   // bytes of a text
)

// factsFile is the content of a file in the folder graph/ of the state.
type factsFile struct {
	Edges       []*Relation   `json:"edges,omitempty"`
	Provenances []*Provenance `json:"provenances,omitempty"`
	Conflicts   []*Conflict   `json:"conflicts,omitempty"`
	Reviews     []*Review     `json:"reviews,omitempty"`
	Trusts      []*Trust      `json:"trusts,omitempty"`
	// Again counts how often the same fact was stated and retracted before.
	Again int `json:"again,omitempty"`
}

// facts adds the files of facts, each as an input.
func (s *survey) facts() error {
	dir := state.FactsDir(s.files.objects[1])
	there := map[string]state.Identity{}
	err := s.lookInto(dir, func(name string, id state.Identity) {
		if path.Ext(name) == ".json" {
			there[name] = id
		}
	})
	for _, name := range liveFacts(slices.Sorted(maps.Keys(there))) {
		switch p, id := dir+"/"+name, there[name]; {
		case id.Size > FactsLimit:
			s.warn(fmt.Errorf("%s states nothing: it has %d bytes, at most %d are read; split it", p, id.Size, FactsLimit))
		default:
			s.addInput("facts:", p, id, FactsLimit)
		}
	}
	return err
}

// stated reads a file of facts. A damaged file has no facts, and causes a warning. whole is false if the file changed since
// it was found.
func (s *survey) stated(in *vectors.Input, f file) (whole bool) {
	p := f.path
	data, _, err := s.files.store.ReadFile(p, FactsLimit)
	whole = err == nil && f.holds(data)
	var all []Statement
	if err == nil {
		all, err = ParseFacts(data)
	}
	for i := 0; i < len(all) && err == nil; i++ {
		err = all[i].addTo(in, p)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		in.Edges, in.Provenances, in.Conflicts = nil, nil, nil
		s.warn(statesNothing(p, err))
	}
	return whole
}

func statesNothing(p string, err error) error {
	return fmt.Errorf("%s states nothing: %w; mend it, or remove it", p, err)
}

// ParseFacts parses a file of facts: see the package comment.
func ParseFacts(data []byte) ([]Statement, error) {
	var f factsFile
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err == io.EOF {
		return nil, errors.New("it is empty; write an object with edges, provenances, conflicts, reviews or trusts")
	} else if err != nil {
		return nil, fmt.Errorf("want an object with edges, provenances, conflicts, reviews or trusts: %w", state.InJSON(data, err))
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something follows the object")
	}
	var all []Statement
	err := errors.Join(appendChecked(&all, "edges", f.Edges), appendChecked(&all, "provenances", f.Provenances),
		appendChecked(&all, "conflicts", f.Conflicts), appendChecked(&all, "reviews", f.Reviews), appendChecked(&all, "trusts", f.Trusts))
	return all, err
}

// appendChecked appends the statements of a list after checking them; name is the list's name in errors.
func appendChecked[S interface {
	comparable
	Statement
}](to *[]Statement, name string, list []S) error {
	var none S
	if len(list) > mostFacts {
		return fmt.Errorf("it states %d %s, at most %d are read; split it", len(list), name, mostFacts)
	}
	if i := slices.Index(list, none); i >= 0 {
		return fmt.Errorf("%s[%d] is null", name, i)
	}
	for i, s := range list {
		if err := s.check(); err != nil {
			return fmt.Errorf("%s[%d]: %w", name, i, err)
		}
		*to = append(*to, s)
	}
	return nil
}

func notedFact(note string) string {
	if note == "" {
		return ""
	}
	return ": " + note
}
