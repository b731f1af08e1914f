package memstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/controllers/tokens"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

func stampOf(ms int64) schemas.Stamp { return schemas.NewStamp(time.UnixMilli(ms)) }

// Recall implements [Store]. All observations are candidates (decision 16); the index decides, and only the issue files of
// what was chosen are read. What was shown is counted by a record, which is not synced: a recall that a loss of power
// swallows did not happen. One that cannot be counted is told of, and no error.
func (f *Files) Recall(ctx context.Context, r Request) (Recalled, error) {
	settings := f.settings().Memory
	budget := *settings.MaxTokens
	if r.Budget != nil {
		budget = *r.Budget
	}
	if !*settings.Enabled || budget <= 0 {
		return Recalled{}, nil
	}
	if err := checkAgent(r.Agent); err != nil {
		return Recalled{}, err
	}
	if err := checkIssue(r.Issue); err != nil {
		return Recalled{}, err
	}
	var out Recalled
	err := f.again(func() error {
		v, err := f.current()
		if err == nil {
			out, err = f.choose(v, r, budget, memory.NewWeights(settings.Weights))
		}
		return err
	})
	f.anchors.save()
	if err == nil && len(out.IDs) > 0 && !r.Dry {
		f.recordRecall(r, out)
	}
	if err == nil {
		err = ctx.Err()
	}
	return out, err
}

// recordRecall counts a recall. Where that is not possible whoever asked is told what they wanted to know nevertheless.
// Two that are equal in all else have other times.
func (f *Files) recordRecall(r Request, out Recalled) {
	rec := schemas.MemoryRecord{
		Type: schemas.RecordRecalled, Issue: r.Issue, By: cmp.Or(r.By, r.Agent), IDs: out.IDs,
		Tokens: out.Tokens, Displaced: out.Displaced,
	}
	err := fs.ErrExist
	for n := 0; n < atOnce && errors.Is(err, fs.ErrExist); n++ {
		rec.At = schemas.NewStamp(f.o.Now().Add(time.Duration(n) * time.Millisecond))
		if _, err = f.record(rec, false); r.Repeatable && errors.Is(err, fs.ErrExist) {
			return
		}
	}
	if err != nil {
		f.warn(fmt.Sprintf("what was recalled is not counted: %v", err))
	}
}

// atOnce bounds how many recalls that are equal in all else are counted of one millisecond.
const atOnce = 100

// choose is the index phase, and then the reading of what it chose.
func (f *Files) choose(v *view, r Request, budget int, w memory.Weights) (Recalled, error) {
	cands, err := f.candidates(v, r.Context)
	if err != nil {
		return Recalled{}, err
	}
	issues, specs := reading{store: f.store, dir: f.dir()}, reading{store: f.store, dir: path.Dir(f.specPath("x"))}
	defer issues.close()
	defer specs.close()
	var damaged error
	id := func(k *memory.Candidate) string {
		at := v.find(k.Row)
		row := v.row(at)
		return v.parts[at.part].borrowedID(&row)
	}
	now := new(moment)
	c := memory.Chooser{
		Agent: r.Agent, Issue: r.Issue, Budget: budget, Now: f.o.Now(), Weights: w,
		Stale: func(k *memory.Candidate) string {
			at := v.find(k.Row)
			row := v.row(at)
			if !row.anchored {
				return ""
			}
			b, err := v.parts[at.part].blob(&row)
			if err != nil {
				damaged = err
			}
			return f.stale(b.anchors, now)
		},
		ID: id,
		Load: func(k *memory.Candidate) *schemas.Observation {
			at := v.find(k.Row)
			row := v.row(at)
			checked, err := v.parts[at.part].id(&row)
			if err != nil {
				damaged = err
				return nil
			}
			return inFull(issues.read(issueName(k.Issue)), checked)
		},
		Size: f.anchors.sizer(f.settings().Folders.State),
	}
	shares := map[string]int{}
	c.Share = func(o *schemas.Observation) int { return share(o, &specs, shares) }
	found := c.Choose(cands)
	return Recalled{found.Text, found.IDs, found.Tokens, found.Displaced, len(cands)}, damaged
}

// candidates are all observations that nothing replaced; the row of each is its document in the set.
func (f *Files) candidates(v *view, about string) ([]memory.Candidate, error) {
	overlap, terms, err := v.set.Overlap(about)
	if err != nil {
		return nil, err
	}
	recalls := f.unfoldedRecalls()
	cands := make([]memory.Candidate, 0, v.len())
	v.each(func(at place, r row) bool {
		if r.superseded {
			return true
		}
		p := &v.parts[at.part]
		k := memory.Candidate{
			Agent: p.word(r.agent), Issue: r.issue, Milli: r.ms, Tokens: r.tokens, Recalls: r.recalls, Row: p.first + at.row,
		}
		if len(recalls) > 0 {
			k.Recalls += recalls[p.borrowedID(&r)]
		}
		if terms > 0 {
			k.Overlap = float64(overlap[k.Row]) / float64(terms)
		}
		cands = append(cands, k)
		return true
	})
	return cands, err
}

// unfoldedRecalls counts the recalls that are recorded and not in the issue files yet.
func (f *Files) unfoldedRecalls() map[string]int {
	names, err := f.recordNames()
	if err != nil || len(names) == 0 {
		return nil
	}
	folded := f.folded()
	maps.DeleteFunc(names, func(name string, id state.Identity) bool {
		return folded[name] == id || !strings.HasPrefix(name, schemas.RecordRecalled+"-")
	})
	if folded == nil { // nothing is known: perhaps all are in the issue files
		return nil
	}
	out := map[string]int{}
	for _, r := range f.records(names) {
		for _, id := range r.IDs {
			out[id]++
		}
	}
	return out
}

// reading reads files of one folder; it is for one goroutine.
type reading struct {
	store  *state.Store
	dir    string
	folder *state.Folder
	name   string // of the file that was read last
	data   []byte
}

// read is the content of a file, valid until the next call; nil if it cannot be read.
func (r *reading) read(name string) []byte {
	if r.name == name && r.data != nil { // one capture's observations are often chosen together
		return r.data
	}
	if r.folder == nil {
		folder, err := r.store.OpenFolder(r.dir)
		if err != nil {
			return nil
		}
		r.folder = folder
	}
	var err error
	if r.data, err = r.folder.Read(name, fileLimit); err != nil {
		r.data = nil
	}
	r.name = name
	return r.data
}

func (r *reading) close() {
	if r.folder != nil {
		r.folder.Close()
	}
}

// share is an observation's part of the conversation that it was learned from, in tokens: the Observation tells how long
// that was. by remembers what Observations tell.
func share(o *schemas.Observation, specs *reading, by map[string]int) int {
	if schemas.CheckName(o.Source) != nil {
		return 0
	}
	part, ok := by[o.Source]
	if !ok {
		data := specs.read(o.Source + ".yaml")
		part = sourceTokens(data) / max(entriesIn(data), 1)
		by[o.Source] = part
	}
	return part
}

// entriesIn counts the entries in the file of an Observation, like sourceTokens.
func entriesIn(file []byte) int {
	return bytes.Count(file, []byte("\n    category: ")) + bytes.Count(file, []byte("\n  - category: ")) +
		bytes.Count(file, []byte("\n    - category: "))
}

// sourceTokens finds the field of that name in the file of an Observation, as captures write it: in YAML, two spaces deep.
// Texts stand deeper. This is for an estimate; whoever wrote the file otherwise has none.
func sourceTokens(file []byte) int {
	_, rest, ok := bytes.Cut(file, []byte("\n  sourceTokens: "))
	if !ok {
		return 0
	}
	digits, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.Atoi(string(bytes.TrimSpace(digits)))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// Sizes of files are counted up to these bounds; beyond them they are estimated by their length.
const (
	countWhole  = 64 << 10  // of one file
	countAtOnce = 256 << 10 // for one recall; what was counted is kept in the cache
	bytesEach   = 4         // a token has some four bytes
)

// sizer tells how many tokens files have, 0 for none that can be read.
func (a *anchors) sizer(stateDir string) func(path string) int {
	left := countAtOnce
	return func(p string) int {
		if d := a.digest(p, stateDir); d == "" || d == schemas.AnchorAbsent {
			return 0
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		k := a.known[p]
		if k.tokens == 0 {
			if k.tokens = a.count(p, int(k.id.Size), &left); k.tokens > 0 {
				a.known[p], a.change = k, true
			}
		}
		if k.tokens == 0 {
			return int(k.id.Size) / bytesEach
		}
		return k.tokens
	}
}

// count counts the tokens of a file; 0 if that would take too long.
func (a *anchors) count(p string, size int, left *int) int {
	if size > countWhole || size > *left {
		return 0
	}
	*left -= size
	data, _, err := a.store.ReadFile(p, countWhole)
	if err != nil {
		return 0
	}
	return tokens.Count(string(data))
}
