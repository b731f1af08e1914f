package memstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"
	"time"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/vectors/lexical"
)

// Recall implements [Store]. Candidates are the observations of the issue, those about a file that the context names, and
// those that share a term with it. The index selects, and only the issue files of the selection are read. A record counts
// the recall; it is not synced: a power failure may lose the count. A failure to count is a warning, not an error.
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

// recordRecall counts a recall. A failure is only a warning. Equal recalls get different times.
func (f *Files) recordRecall(r Request, out Recalled) {
	rec := schemas.MemoryRecord{
		Type: schemas.RecordRecalled, Issue: r.Issue, By: cmp.Or(r.By, r.Agent), IDs: out.IDs,
		Tokens: out.Tokens, Displaced: out.Displaced,
	}
	err := fs.ErrExist
	for n := 0; n < atOnce && errors.Is(err, fs.ErrExist); n++ {
		rec.At = schemas.StampOfTime(f.o.Now().Add(time.Duration(n) * time.Millisecond))
		if _, err = f.record(rec, false); r.Repeatable && errors.Is(err, fs.ErrExist) {
			return
		}
	}
	if err != nil {
		f.warn(fmt.Sprintf("what was recalled is not counted: %v", err))
	}
}

// atOnce is the maximum number of equal recalls that are counted in one millisecond.
const atOnce = 100

// choose runs the index phase, and then reads the selected observations.
func (f *Files) choose(v *memoryView, r Request, budget int, w memory.Weights) (Recalled, error) {
	room, _ := f.candidateRoom.Get().(*[]memory.Candidate)
	if room == nil {
		room = new([]memory.Candidate)
	}
	defer f.candidateRoom.Put(room)
	cands, err := f.candidates(v, r, *room)
	*room = cands
	if err != nil {
		return Recalled{}, err
	}
	l := loader{files: f, v: v}
	now := new(digestSnapshot)
	c := memory.Chooser{
		Issue: r.Issue, Budget: budget, Now: f.o.Now(), Weights: w,
		Stale: func(k *memory.Candidate) string {
			at := v.find(k.Row)
			row := v.row(at)
			if !row.anchored {
				return ""
			}
			b, err := v.parts[at.part].table.blob(&row)
			if err != nil {
				l.damage(err)
			}
			return f.stale(b.anchors, now)
		},
		ID: func(k *memory.Candidate) string {
			at := v.find(k.Row)
			row := v.row(at)
			return v.parts[at.part].table.borrowedID(&row)
		},
		Load:  l.load,
		Size:  f.anchors.sizer(f.settings().Folders.State),
		Share: f.share,
	}
	found := c.Choose(cands)
	return Recalled{found.Text, found.IDs, found.Tokens, found.Displaced, len(cands), found.Least}, l.damaged
}

// loader reads the selected observations of a view.
type loader struct {
	files *Files
	v     *memoryView

	mu      sync.Mutex
	damaged error
}

func (l *loader) damage(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.damaged = err
}

// load is the Load of [memory.Chooser]: it reads each issue file once, on all processors.
func (l *loader) load(list []*memory.Candidate, take func(int, *schemas.Observation)) {
	of := map[int][]int{} // numbers in the list, by issue
	for i, k := range list {
		of[k.Issue] = append(of[k.Issue], i)
	}
	readEach(l.files, l.files.dir(), slices.Collect(maps.Keys(of)), issueName, func(issue int, data []byte) {
		for _, i := range of[issue] {
			if o := l.find(data, list[i]); o != nil {
				take(i, o)
			}
		}
	})
}

// find returns a candidate from the content of its issue file; nil if it is missing.
func (l *loader) find(data []byte, k *memory.Candidate) *schemas.Observation {
	at := l.v.find(k.Row)
	row := l.v.row(at)
	id, err := l.v.parts[at.part].table.id(&row)
	if err != nil {
		l.damage(err)
		return nil
	}
	before := 0.0
	if o := l.v.owners[k.Issue]; o.rows > 0 {
		before = float64(at.row-o.first) / float64(o.rows)
	}
	if o, ok := memory.FindNear(data, id, before); ok {
		return o
	}
	return inFull(data, id)
}

// candidates appends the current observations that relate to the request to room; the row of each is its document in the
// set.
func (f *Files) candidates(v *memoryView, r Request, room []memory.Candidate) ([]memory.Candidate, error) {
	overlap, terms, related, err := v.set.Overlap(r.Context)
	if err != nil {
		return nil, err
	}
	named := namedIn(r.Context)
	recalls := f.unfoldedRecalls()
	words := float64(max(terms, 1))
	cands := slices.Grow(room[:0], v.len())
	for i := range v.parts {
		p := &v.parts[i]
		own := slices.Index(p.table.words, r.Agent)
		for at := range p.table.len() {
			if p.dead.Has(at) {
				continue
			}
			row := p.table.row(at)
			if row.superseded {
				continue
			}
			if of := r.Issue > 0 && row.issue == r.Issue; !of && !related.Has(p.first+at) && !named.anyAnchor(p.table, &row) {
				continue
			}
			k := memory.Candidate{
				Issue: row.issue, Own: row.agent == own, Milli: row.ms, Tokens: row.tokens, Recalls: row.recalls, Row: p.first + at,
			}
			if len(recalls) > 0 {
				k.Recalls += recalls[p.table.borrowedID(&row)]
			}
			k.Overlap = float64(overlap[k.Row]) / words
			cands = append(cands, k)
		}
	}
	return cands, nil
}

// namedFiles are the terms of a context, if it names files; else nil.
type namedFiles map[string]bool

func namedIn(context string) namedFiles {
	var out namedFiles
	for _, term := range lexical.Terms(context) {
		if out == nil {
			out = namedFiles{}
		}
		out[term] = true
	}
	return out
}

// anyAnchor reports whether an observation refers to a named file, by its path or base name.
func (n namedFiles) anyAnchor(t *table, r *row) bool {
	if n == nil || !r.anchored {
		return false
	}
	b, err := t.blob(r)
	return err == nil && slices.ContainsFunc(b.anchors, func(a schemas.Anchor) bool {
		terms := lexical.Terms(path.Base(a.Path))
		return len(terms) > 0 && n[terms[len(terms)-1]] // the last term is the whole name
	})
}

// Tokens of files are counted up to these sizes; larger files are estimated by their length.
const (
	countWhole  = 64 << 10  // of one file
	countAtOnce = 256 << 10 // for one recall; counts are cached
	bytesEach   = 4         // a token has some four bytes
)

// over calls fn for the views that a filter selects: the issue files, the archives. Anchored files are judged by the
// digests in now.
func (f *Files) over(ctx context.Context, filter Filter, now *digestSnapshot, fn func(a *rowFilter, archived bool) error) error {
	if filter.Archived != Only {
		err := f.again(func() error {
			v, err := f.current()
			if err != nil {
				return err
			}
			f.checkManifest(ctx, v)
			return fn(f.newRowFilter(v, filter, now), false)
		})
		if err != nil {
			return err
		}
	}
	if filter.Archived == Without {
		return ctx.Err()
	}
	v, err := f.archived()
	if err == nil {
		err = fn(f.newRowFilter(v, filter, now), true)
	}
	return errors.Join(err, ctx.Err())
}
