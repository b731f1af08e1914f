package memory

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/tokens"
	"reconcile.dev/reconcile/schemas"
)

// Compaction replaces observations by fewer. A record has the replaced ids, and the groups that become one (rule 1,
// in related.go). The merged text is computed from the originals whenever the issue is folded (merged.go), so that
// removing an original removes its part, and undoing needs only a record.

// compaction is a record of one that is in force.
type compaction struct {
	name string
	schemas.MemoryRecord
}

// compareCompactions orders compactions: one that builds upon another one comes after it.
func compareCompactions(a, b compaction) int {
	return cmp.Or(a.At.Compare(b.At.Time), cmp.Compare(len(a.IDs), len(b.IDs)), strings.Compare(a.name, b.name))
}

// grouped is what compactions of an issue do: which observations they replace, and which of them become one. Groups
// that share an observation are one, as when branches were compacted apart. Each is sorted, and so are they.
func (f *Facts) grouped(issue int) (replaced map[string]bool, groups [][]string) {
	replaced = map[string]bool{}
	chief := map[string]string{} // of each observation in a group, the representative of the group
	find := func(id string) string {
		for chief[id] != "" && chief[id] != id {
			id = chief[id]
		}
		return id
	}
	for _, c := range f.compactions[issue] {
		for _, id := range c.IDs {
			replaced[id] = true
		}
		for _, group := range groupsOf(&c.MemoryRecord) {
			for _, id := range group {
				replaced[id] = true
				to, from := find(group[0]), find(id)
				chief[to], chief[from] = to, to
			}
		}
	}
	members := map[string][]string{}
	for _, id := range slices.Sorted(maps.Keys(chief)) {
		root := find(id)
		members[root] = append(members[root], id)
	}
	groups = slices.Collect(maps.Values(members))
	slices.SortFunc(groups, slices.Compare)
	return replaced, groups
}

// groupsOf is what a record groups; one without groups makes one of all that it names.
func groupsOf(r *schemas.MemoryRecord) [][]string {
	if len(r.Groups) == 0 && len(r.IDs) > 0 {
		return [][]string{r.IDs}
	}
	return slices.DeleteFunc(slices.Clone(r.Groups), func(g []string) bool { return len(g) == 0 })
}

// Compact returns the record that compacts the folded observations of an issue: it merges groups of them, and archives
// superseded ones. Of n observations that are neither merged nor replaced, at most n/2 are left, including merged ones;
// superseded ones are only archived. ok is false if there is nothing to do. All processes that compact the same issue
// get the same record: its time is the newest one in its observations, or that of the last undo, and in any case later
// than all compactions before it, so that the last one is known.
func (f *Facts) Compact(of *Folded) (r schemas.MemoryRecord, ok bool) {
	r = schemas.MemoryRecord{Version: schemas.MemoryVersion, Type: schemas.RecordCompacted, Issue: of.Issue,
		At: f.undone[of.Issue], Groups: [][]string{}}
	if last, ok := f.compacted[of.Issue]; ok {
		r.At = laterCapture(r.At, schemas.StampOfTime(last.Add(time.Millisecond)))
	}
	originals := make(map[string]*schemas.Observation, len(of.Archived))
	for i := range of.Archived {
		originals[of.Archived[i].ID] = &of.Archived[i]
	}
	var units []*unit
	for i := range of.Observations {
		o := &of.Observations[i]
		switch {
		case o.SupersededBy == "":
			units = append(units, newUnit(o, originals))
		case len(o.Compacts) == 0:
			r.IDs = append(r.IDs, o.ID)
			r.At = laterCapture(laterCapture(r.At, o.Timestamp), o.VerifiedAt)
		}
	}
	for _, group := range relate(units) {
		var ids []string
		for _, u := range group {
			ids = append(ids, u.ids...)
			r.At = laterCapture(laterCapture(r.At, u.newest.Timestamp), u.newest.VerifiedAt)
		}
		r.Groups = append(r.Groups, sortedIDs(ids))
		r.IDs = append(r.IDs, ids...)
	}
	r.IDs = sortedIDs(r.IDs)
	slices.SortFunc(r.Groups, slices.Compare)
	return r, len(r.IDs) > 0
}

// Shorten returns the record that compacts a folded issue, see [Facts.Compact], if it saves tokens, or else a record
// that only archives superseded observations. The latter merges nothing, and ok is false without any.
func (f *Facts) Shorten(of *Folded) (r schemas.MemoryRecord, ok bool) {
	if r, ok = f.Compact(of); !ok || compactionSaves(of, &r) {
		return r, ok
	}
	only := Folded{Issue: of.Issue, Archived: of.Archived}
	for i := range of.Observations {
		if of.Observations[i].SupersededBy != "" {
			only.Observations = append(only.Observations, of.Observations[i])
		}
	}
	return f.Compact(&only)
}

// compactionSaves reports whether the result of a compaction has fewer tokens than the originals.
func compactionSaves(of *Folded, r *schemas.MemoryRecord) bool {
	all := make(map[string]*schemas.Observation, len(of.Observations)+len(of.Archived))
	for i := range of.Archived {
		all[of.Archived[i].ID] = &of.Archived[i]
	}
	replaced := make(map[string]bool, len(r.IDs))
	for _, id := range r.IDs {
		replaced[id] = true
	}
	before, after := 0, 0
	for i := range of.Observations {
		o := &of.Observations[i]
		all[o.ID] = o
		if replaced[o.ID] || slices.ContainsFunc(o.Compacts, func(id string) bool { return replaced[id] }) {
			before += o.Tokens
		}
	}
	for _, group := range r.Groups {
		for _, o := range combine(group, func(id string) *schemas.Observation { return all[id] }) {
			after += tokens.Count(o.Content)
		}
	}
	return after < before
}

// Undo returns the record that undoes the last active compaction of an issue; ok is false if it has none. by and
// reason name who undoes it and why.
func (f *Facts) Undo(issue int, at schemas.Stamp, by, reason string) (r schemas.MemoryRecord, ok bool) {
	all := f.compactions[issue]
	if len(all) == 0 {
		return r, false
	}
	last := all[len(all)-1]
	return schemas.MemoryRecord{Version: schemas.MemoryVersion, Type: schemas.RecordUncompacted, Issue: issue, At: at,
		By: by, Reason: reason, IDs: last.IDs, Record: last.name}, true
}

// Head has the fields of an issue that decide whether it is due for compaction.
type Head struct {
	Issue int
	// Fresh is how many observations are neither merged nor superseded.
	Fresh int
	// Newest is the newest time of a capture or verification, Undone when a compaction was undone last.
	Newest, Undone schemas.Stamp
}

// Due lists the issues to compact, sorted: those with at least two fresh observations and without changes for that
// many days; none for 0 days. A compaction that a person undid is not repeated until something new was learned.
func Due(heads []Head, now time.Time, days int) (issues []int) {
	if days <= 0 {
		return nil
	}
	limit := now.Add(-time.Duration(days) * 24 * time.Hour)
	for _, h := range heads {
		untouched := h.Newest.Before(limit) && (h.Undone.IsZero() || h.Undone.Before(h.Newest.Time))
		if h.Fresh >= 2 && untouched {
			issues = append(issues, h.Issue)
		}
	}
	slices.Sort(issues)
	return issues
}

// newUnit looks up the originals of a merged observation.
func newUnit(o *schemas.Observation, originals map[string]*schemas.Observation) *unit {
	u := &unit{ids: []string{o.ID}, newest: o, size: statementSize(o), words: wordsOf(o.Summary + " " + o.Content)}
	for _, a := range o.Anchors {
		u.anchors = append(u.anchors, a.Path)
	}
	slices.Sort(u.anchors)
	if len(o.Compacts) == 0 {
		return u
	}
	u.ids, u.merged, u.size = o.Compacts, true, 0
	for _, id := range o.Compacts {
		if original := originals[id]; original != nil && original.SupersededBy == "" {
			u.size += statementSize(original)
		}
	}
	return u
}

// singles are the units that no compaction made and that are in no group yet.
func singles(units []*unit) (out []*unit) {
	for _, u := range units {
		if !u.merged && len(u.group.units) == 1 {
			out = append(out, u)
		}
	}
	return out
}
