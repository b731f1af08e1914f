package state

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

func newJournalView(name string, l *layout) *journalView {
	return &journalView{
		name: name, layout: l, keys: map[string]*Claim{}, owners: map[schemas.Ref]*journalOwner{},
		touched: map[schemas.Ref]bool{},
	}
}

func (v *journalView) apply(l line) {
	ref := v.layout.ownerOf(l.Key)
	v.lines++
	if ref == (schemas.Ref{}) {
		return
	}
	v.touched[ref] = true
	own := v.owners[ref]
	if own == nil {
		own = &journalOwner{results: map[string]*schemas.Run{}, claims: map[string]*Claim{}}
		v.owners[ref] = own
	}
	switch {
	case l.Op == opClaim && l.Run != nil:
		c := &Claim{Run: *l.Run, Process: v.name}
		c.Outcome = ""
		v.keys[l.Key], own.claims[l.Key] = c, c
	case l.Op == opStart && v.keys[l.Key] != nil:
		c := *v.keys[l.Key] // trees share the old one
		c.PID, c.Start = l.PID, l.Start
		if l.At != nil {
			c.StartedAt = *l.At
		}
		v.keys[l.Key], own.claims[l.Key] = &c, &c
	case l.Op == opTurn && v.keys[l.Key] != nil:
		c := *v.keys[l.Key]
		c.Turn = l.Turn
		if l.At != nil {
			c.Heard = *l.At
		}
		v.keys[l.Key], own.claims[l.Key] = &c, &c
	case l.Op == opFinish && l.Run != nil && l.Run.Done():
		own.addResult(l.Key, l.Run)
		fallthrough
	case l.Op == opRelease:
		delete(v.keys, l.Key)
		delete(own.claims, l.Key)
	}
}

// addResult adds a result; it replaces an earlier one of the same effect.
func (o *journalOwner) addResult(key string, r *schemas.Run) {
	if was := o.results[key]; was != nil {
		i := slices.Index(o.sorted, was)
		o.sorted = slices.Delete(o.sorted, i, i+1)
	}
	o.results[key] = r
	i, _ := slices.BinarySearchFunc(o.sorted, r, compareRuns)
	o.sorted = slices.Insert(o.sorted, i, r)
}

// results returns all results, sorted by key.
func (v *journalView) results() []*schemas.Run {
	var out []*schemas.Run
	for _, own := range v.owners {
		for _, r := range own.results {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *schemas.Run) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// open returns the lines of claims without a result, sorted by key.
func (v *journalView) open() []line {
	var out []line
	for _, k := range slices.Sorted(maps.Keys(v.keys)) {
		c := *v.keys[k]
		out = append(out, line{Op: opClaim, Key: k, Run: &c.Run})
		if c.PID != 0 {
			out = append(out, line{Op: opStart, Key: k, At: &c.StartedAt, PID: c.PID, Start: c.Start})
		}
		if c.Turn != nil {
			out = append(out, line{Op: opTurn, Key: k, At: &c.Heard, Turn: c.Turn})
		}
	}
	return out
}

func (v *journalView) touchAll(touched map[schemas.Ref]bool) {
	for ref := range v.owners {
		touched[ref] = true
	}
}

// read reads the complete lines after those that were read before.
func (v *journalView) read(f *os.File) {
	data, err := io.ReadAll(io.NewSectionReader(f, v.size, 1<<40))
	if err != nil {
		return // the former content stays
	}
	n := parseLines(data, v.apply)
	v.size += int64(n)
	rest := data[n:]
	v.problems = nil
	if end := strings.IndexByte(string(rest), '\n'); end >= 0 && end < len(rest)-1 && !v.alive {
		v.problems = []schemas.Problem{{
			Place:    schemas.Place{Path: journalDir + "/" + v.name + journalSuffix, Line: v.lines + 1},
			Severity: schemas.Warning, Code: "damaged-journal",
			Message: fmt.Sprintf("this line is damaged; %d bytes from here on are not used", len(rest)),
		}}
	}
}
