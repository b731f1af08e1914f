package mirror

import (
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Objects returns the refs of the mirrored objects of a tree by the number of their issue, sorted. Objects without an
// issue are left out. Of the options only Kinds and Made are read.
func Objects(t *state.Tree, o Options) map[int][]schemas.Ref {
	p := &projection{t: t, o: o}
	out := map[int][]schemas.Ref{}
	for _, k := range o.Kinds {
		for _, e := range t.Entries(k.Kind) {
			if e.Object == nil {
				continue
			}
			h, ok := p.homeOf(e)
			if ok && h.number == 0 && o.Made != nil {
				h.number = o.Made(h.made)
			}
			if ok && h.number > 0 {
				out[h.number] = append(out[h.number], e.Ref)
			}
		}
	}
	for _, refs := range out {
		slices.SortFunc(refs, schemas.Ref.Compare)
	}
	return out
}

// Labels are all labels of the mirror.
func Labels() []Label {
	return []Label{
		{labelActive, "0969da", "Agents have an open question about this"},
		{labelEscalated, "cf222e", "Agents need a person to decide a question about this"},
		{labelStale, "9a6700", "An answer to a question about this is overdue"},
		{MadeLabel, "57606a", "Made by reconcile for one of its objects"},
	}
}
