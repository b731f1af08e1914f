package mirror

import (
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Objects are the sessions, DAGs and requests that each issue stands for, sorted. made is as in Options; what has no issue
// yet is left out.
func Objects(t *state.Tree, made func(schemas.Ref) int) map[int][]schemas.Ref {
	p := &projection{t: t}
	out := map[int][]schemas.Ref{}
	for _, k := range []schemas.Kind{schemas.SessionKind, schemas.DAGKind, schemas.ClarificationRequestKind} {
		for _, e := range t.Entries(k.Name) {
			if e.Object == nil {
				continue
			}
			h, ok := p.homeOf(e)
			if ok && h.number == 0 && made != nil {
				h.number = made(h.made)
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
