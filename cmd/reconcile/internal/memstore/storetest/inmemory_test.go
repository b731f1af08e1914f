package storetest_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore/storetest"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
)

// inMemory is the shortest store that there is: it folds everything for each question. That it passes the suite shows that the
// suite asks for nothing but what the interface says.
type inMemory struct {
	env *storetest.Env

	mu      sync.Mutex
	specs   map[string]memory.Spec
	records map[string]schemas.MemoryRecord
	files   map[string][]byte
}

func TestInMemoryConforms(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Opened {
		m := &inMemory{specs: map[string]memory.Spec{}, records: map[string]schemas.MemoryRecord{}, files: map[string][]byte{}}
		m.env = &storetest.Env{Now: time.Date(2026, 2, 27, 12, 0, 0, 0, time.UTC), Digest: m.digest}
		m.env.WriteFile = func(path string, content []byte) { m.files[path] = content }
		return storetest.Opened{Store: m, Env: m.env}
	})
}

func (m *inMemory) digest(path string) string {
	if m.files[path] == nil {
		return schemas.AnchorAbsent
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(m.files[path]))
}

func (m *inMemory) facts() (*memory.Facts, []int) {
	var specs []memory.Spec
	var issues []int
	for _, s := range m.specs {
		specs, issues = append(specs, s), append(issues, s.Issue)
	}
	slices.Sort(issues)
	return memory.NewFacts(memory.Truth{Specs: specs, Records: m.records}), slices.Compact(issues)
}

// all are the observations in force and those archived, by issue and in the order of its file.
func (m *inMemory) all() (live, archived []schemas.Observation, err error) {
	facts, issues := m.facts()
	for _, issue := range issues {
		f, err := facts.Fold(issue, nil, nil)
		if err != nil {
			return nil, nil, err
		}
		live, archived = append(live, f.Observations...), append(archived, f.Archived...)
	}
	return live, archived, nil
}

func (m *inMemory) locked() func() {
	m.mu.Lock()
	return m.mu.Unlock
}

func (m *inMemory) Capture(_ context.Context, spec *schemas.ObservationSpec) (memstore.Captured, error) {
	defer m.locked()()
	text, err := json.Marshal(spec)
	if err != nil {
		return memstore.Captured{}, err
	}
	name := fmt.Sprintf("c%x", sha256.Sum256(text))[:40]
	doc, err := json.Marshal(map[string]any{"apiVersion": schemas.APIVersion, "kind": "Observation",
		"metadata": map[string]any{"name": name}, "spec": spec})
	if err != nil {
		return memstore.Captured{}, err
	}
	decoded := schemas.NewDecoder(controllers.Schemas(), 1<<20).Decode("x.json", doc)
	if decoded.Object == nil {
		return memstore.Captured{}, fmt.Errorf("%w: %v", memstore.ErrInvalid, decoded.Problems)
	}
	c := memstore.Captured{Name: name}
	if _, c.Known = m.specs[name]; c.Known {
		return c, nil
	}
	m.specs[name] = memory.Spec{Name: name, Digest: decoded.Object.Digest, ObservationSpec: schemas.SpecAs[*schemas.ObservationSpec](decoded.Object)}
	for _, e := range spec.Entries {
		if e.Repeats != "" {
			c.Repeats = append(c.Repeats, e.Repeats)
		}
	}
	live, _, err := m.all()
	for _, o := range live {
		if o.Source == name {
			c.Observations = append(c.Observations, o)
			c.Tokens += o.Tokens
		}
	}
	return c, err
}

func (m *inMemory) find(id string) (schemas.Observation, error) {
	if !schemas.IsObservationID(id) {
		return schemas.Observation{}, memstore.ErrInvalid
	}
	live, archived, err := m.all()
	for _, o := range slices.Concat(live, archived) {
		if o.ID == id {
			return o, nil
		}
	}
	return schemas.Observation{}, cmp.Or(err, memstore.ErrUnknown)
}

func (m *inMemory) ByID(_ context.Context, id string) (schemas.Observation, error) {
	defer m.locked()()
	return m.find(id)
}

func (m *inMemory) ByIssue(_ context.Context, issue int) ([]schemas.Observation, error) {
	defer m.locked()()
	if issue < 0 {
		return nil, memstore.ErrInvalid
	}
	live, _, err := m.all()
	return slices.DeleteFunc(live, func(o schemas.Observation) bool { return o.IssueNumber != issue }), err
}

func (m *inMemory) stale(o *schemas.Observation) string {
	var why []string
	for _, a := range o.Anchors {
		switch now := m.digest(a.Path); {
		case a.Digest == "" || a.Digest == now:
		case now == schemas.AnchorAbsent:
			why = append(why, a.Path+" is gone since")
		case a.Digest == schemas.AnchorAbsent:
			why = append(why, a.Path+" exists since")
		default:
			why = append(why, a.Path+" changed since")
		}
	}
	return strings.Join(why, ", ")
}

func admits(c memstore.Choice, is bool) bool {
	return c == memstore.With || is == (c == memstore.Only)
}

func (m *inMemory) rows(f memstore.Filter, score func(*schemas.Observation) float64) ([]memstore.Row, error) {
	if f.Category != "" && !slices.Contains(schemas.Categories(), f.Category) {
		return nil, memstore.ErrInvalid
	}
	live, archived, err := m.all()
	var rows []memstore.Row
	for _, o := range slices.Concat(live, archived) {
		r := memstore.Row{ObservationIndex: o.Index(), Score: score(&o), Stale: m.stale(&o), Archived: o.Archived, SeenCount: o.SeenCount}
		at := o.Timestamp.Time
		if r.Score < 0 || f.Agent != "" && o.Agent != f.Agent || f.Issue != nil && o.IssueNumber != *f.Issue ||
			f.Category != "" && o.Category != f.Category || at.Before(f.Since) || !f.Until.IsZero() && !at.Before(f.Until) ||
			f.Stale && r.Stale == "" || !admits(f.Superseded, o.SupersededBy != "") || !admits(f.Archived, o.Archived) {
			continue
		}
		rows = append(rows, r)
	}
	return rows, err
}

func (m *inMemory) List(_ context.Context, f memstore.Filter) ([]memstore.Row, error) {
	defer m.locked()()
	return m.rows(f, func(*schemas.Observation) float64 { return 0 })
}

func (m *inMemory) Search(_ context.Context, q memstore.Query) ([]memstore.Row, error) {
	defer m.locked()()
	rows, err := m.rows(q.Filter, func(o *schemas.Observation) float64 {
		n := 0.0
		for word := range strings.FieldsSeq(strings.ToLower(q.Text)) {
			if strings.Contains(strings.ToLower(o.Content), word) {
				n++
			}
		}
		return cmp.Or(n, -1)
	})
	slices.SortStableFunc(rows, func(a, b memstore.Row) int { return cmp.Compare(b.Score, a.Score) })
	return rows[:min(len(rows), cmp.Or(q.Limit, memstore.DefaultLimit))], err
}

func (m *inMemory) note(ids []string, r schemas.MemoryRecord) error {
	for _, id := range ids {
		o, err := m.find(id)
		if err != nil {
			return err
		}
		r.Issue = o.IssueNumber
		if r.Type == schemas.RecordVerified {
			var anchors []schemas.Anchor
			for _, a := range o.Anchors {
				anchors = append(anchors, schemas.Anchor{Path: a.Path, Digest: m.digest(a.Path)})
			}
			r.Anchors = map[string][]schemas.Anchor{id: anchors}
		}
	}
	r.IDs, r.At = ids, schemas.StampOfTime(m.env.Now)
	name, _, err := memory.EncodeRecord(r)
	m.records[name] = r
	return err
}

func (m *inMemory) Remove(_ context.Context, ids []string, by, reason string) error {
	defer m.locked()()
	return m.note(ids, schemas.MemoryRecord{Type: schemas.RecordRemoved, By: by, Reason: reason})
}

func (m *inMemory) Verify(_ context.Context, ids []string, by string) error {
	defer m.locked()()
	return m.note(ids, schemas.MemoryRecord{Type: schemas.RecordVerified, By: by})
}

func (m *inMemory) Recall(_ context.Context, r memstore.Request) (memstore.Recalled, error) {
	defer m.locked()()
	if schemas.CheckName(r.Agent) != nil || r.Issue < 0 {
		return memstore.Recalled{}, memstore.ErrInvalid
	}
	live, _, err := m.all()
	live = slices.DeleteFunc(live, func(o schemas.Observation) bool { return o.SupersededBy != "" })
	settings := new(schemas.SettingsSpec)
	settings.Default()
	c := memory.Chooser{Issue: r.Issue, Budget: *settings.Memory.MaxTokens, Now: m.env.Now,
		Weights: memory.NewWeights(settings.Memory.Weights),
		Stale:   func(k *memory.Candidate) string { return m.stale(&live[k.Row]) },
		ID:      func(k *memory.Candidate) string { return live[k.Row].ID },
		Load: func(list []*memory.Candidate, take func(int, *schemas.Observation)) {
			for i, k := range list {
				take(i, &live[k.Row])
			}
		}}
	if r.Budget != nil {
		c.Budget = *r.Budget
	}
	var cands []memory.Candidate
	for i, o := range live {
		if o.IssueNumber != r.Issue && overlap(r.Context, o.Content) == 0 {
			continue
		}
		cands = append(cands, memory.Candidate{Own: o.Agent == r.Agent, Issue: o.IssueNumber, Milli: o.Timestamp.UnixMilli(),
			Tokens: o.Tokens, Recalls: o.RecallCount, Overlap: overlap(r.Context, o.Summary), Row: i})
	}
	found := c.Choose(cands)
	if len(found.IDs) > 0 && !r.Dry {
		err = cmp.Or(err, m.note(found.IDs, schemas.MemoryRecord{Type: schemas.RecordRecalled, By: r.Agent}))
	}
	return memstore.Recalled{Text: found.Text, IDs: found.IDs, Tokens: found.Tokens, Total: len(cands)}, err
}

func overlap(context, summary string) float64 {
	words := bytes.Fields(bytes.ToLower([]byte(context)))
	n := 0
	for _, w := range words {
		if strings.Contains(strings.ToLower(summary), string(w)) {
			n++
		}
	}
	return float64(n) / float64(max(len(words), 1))
}

func (m *inMemory) regroup(issue int, record func(*memory.Facts, *memory.Folded) (schemas.MemoryRecord, bool)) (c memstore.Compacted, err error) {
	facts, _ := m.facts()
	f, err := facts.Fold(issue, nil, nil)
	if err != nil {
		return c, err
	}
	r, ok := record(facts, &f)
	if !ok {
		return c, memstore.ErrNothing
	}
	name, _, err := memory.EncodeRecord(r)
	m.records[name] = r
	facts, _ = m.facts()
	after, err2 := facts.Fold(issue, nil, nil)
	return memstore.Compacted{Issue: issue, Before: len(f.Observations), After: len(after.Observations), Archived: len(after.Archived),
		Record: name}, cmp.Or(err, err2)
}

func (m *inMemory) Compact(_ context.Context, issue int) (memstore.Compacted, error) {
	defer m.locked()()
	return m.regroup(issue, func(f *memory.Facts, of *memory.Folded) (schemas.MemoryRecord, bool) { return f.Compact(of) })
}

func (m *inMemory) Undo(_ context.Context, issue int) (memstore.Compacted, error) {
	defer m.locked()()
	return m.regroup(issue, func(f *memory.Facts, _ *memory.Folded) (schemas.MemoryRecord, bool) {
		return f.Undo(issue, schemas.StampOfTime(m.env.Now), "", "")
	})
}

func (m *inMemory) Stats(context.Context) (schemas.MemoryStats, error) {
	defer m.locked()()
	st := schemas.MemoryStats{ByAgent: map[string]int{}, ByCategory: map[string]int{}}
	live, _, err := m.all()
	_, issues := m.facts()
	st.TotalObservations, st.IssueCount = len(live), len(issues)
	for i, o := range live {
		st.ByAgent[o.Agent]++
		st.ByCategory[o.Category]++
		st.TotalTokens += o.Tokens
		if i == 0 || o.Timestamp.Before(st.OldestTimestamp.Time) {
			st.OldestTimestamp = o.Timestamp
		}
		if o.Timestamp.After(st.NewestTimestamp.Time) {
			st.NewestTimestamp = o.Timestamp
		}
	}
	return st, err
}
