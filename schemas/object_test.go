package schemas_test

import (
	"reflect"
	"sync"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// TestRelease: what was released is made anew and says the same, and what somebody holds stays as it is.
func TestRelease(t *testing.T) {
	path, src := example(t, "dag.yaml")
	o := schemas.NewDecoder(all, 0).Decode(path, src).Object
	nodes := func(o *schemas.Object) any { return len(o.Spec().(*schemas.DAGSpec).Nodes) }
	held, derived := o.Spec(), o.Derived(nodes)
	if o.Spec() != held {
		t.Error("the spec is decoded at every call")
	}
	o.Release()
	if again := o.Spec(); again == held || !reflect.DeepEqual(again, held) {
		t.Error("after Release the spec is the one that was let go of, or says something else")
	}
	if o.Derived(nodes) != derived {
		t.Error("after Release something else is derived")
	}
}

func TestReleaseWhileInUse(t *testing.T) {
	path, src := example(t, "session.yaml")
	o := schemas.NewDecoder(all, 0).Decode(path, src).Object
	want := o.Spec()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				if !reflect.DeepEqual(o.Spec(), want) {
					t.Error("the spec says something else")
				}
				o.Release()
			}
		})
	}
	wg.Wait()
}
