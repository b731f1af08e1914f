package memory

import (
	"maps"
	"slices"

	"reconcile.dev/reconcile/schemas"
)

// linksOf returns the links of a capture to older observations.
func linksOf(s Spec) (out schemas.MemoryLinks) {
	if !slices.ContainsFunc(s.Entries, func(e schemas.ObservationEntry) bool {
		return e.Repeats != "" || len(e.Supersedes) > 0
	}) {
		return out
	}
	for i, id := range idsOf(s) {
		e := &s.Entries[i]
		if e.Repeats != "" {
			out.Repeats = append(out.Repeats, e.Repeats)
		}
		if len(e.Supersedes) > 0 {
			if out.Supersedes == nil {
				out.Supersedes = map[string][]string{}
			}
			out.Supersedes[id] = sortedIDs(append(slices.Clone(e.Supersedes), out.Supersedes[id]...))
		}
	}
	slices.Sort(out.Repeats)
	return out
}

func (f *Facts) touchLinks(links schemas.MemoryLinks, at schemas.Stamp) {
	for _, id := range links.Repeats {
		f.touch(id, at)
	}
	for _, older := range links.Supersedes {
		for _, id := range older {
			f.touch(id, at)
		}
	}
}

// addLinks applies the links of captures to older observations. A replaced observation stays replaced when the newer
// one is removed: removing one states that it is wrong, not that an older one is right.
func (f *Facts) addLinks(all []schemas.MemoryLinks) {
	for _, links := range all {
		for _, id := range links.Repeats {
			f.repeats[id]++
		}
		for by, older := range links.Supersedes {
			for _, id := range older {
				if id != by && foldReplaces(by, f.superseded[id]) {
					f.superseded[id] = by
				}
			}
		}
	}
	f.breakCircles()
}

// breakCircles lets the newest of a circle of observations that replace each other stand.
func (f *Facts) breakCircles() {
	done := make(map[string]int, len(f.superseded)) // by id: in which walk it was met
	walk := 0
	for _, start := range slices.Sorted(maps.Keys(f.superseded)) {
		walk++
		id, ok := start, true
		for ok && done[id] == 0 {
			done[id] = walk
			id, ok = f.superseded[id], f.superseded[id] != ""
		}
		if ok && done[id] == walk {
			delete(f.superseded, f.newestInCircle(id))
		}
	}
}

func (f *Facts) newestInCircle(start string) string {
	newest := start
	for id := f.superseded[start]; id != start; id = f.superseded[id] {
		if foldReplaces(id, newest) {
			newest = id
		}
	}
	return newest
}

func laterCapture(a, b schemas.Stamp) schemas.Stamp {
	if b.After(a.Time) {
		return b
	}
	return a
}
