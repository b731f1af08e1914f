package sessions

import (
	"fmt"
	"testing"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// BenchmarkSlots assigns slots to 10,000 sessions of as many owners.
func BenchmarkSlots(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var entries []*state.Entry
			for i := range n {
				name := fmt.Sprintf("s%05d", i)
				spec := fmt.Appendf(nil, `{"owner":%q,"phase":"Active"}`, name)
				o := schemas.NewObject(schemas.SessionKind, schemas.Metadata{Name: name}, "specs/sessions/"+name+".yaml", name, spec, nil)
				o.Spec()
				entries = append(entries, &state.Entry{Ref: schemas.SessionKind.Ref(name), Object: o})
			}
			t := state.NewTree(nil, nil, nil, entries...)
			b.ReportAllocs()
			for b.Loop() {
				assignSlots(t, new(dagSums))
			}
		})
	}
}
