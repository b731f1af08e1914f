package state

import (
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// TestLoadSpecs: the objects and their problems are those of a whole load, nothing of the state is read, and the cache keeps all.
func TestLoadSpecs(t *testing.T) {
	dir, _ := cachedTree(t)
	whole := load(t, open(t, dir))
	compare := func(s *Store, decoded int64) *Tree {
		t.Helper()
		specs, err := s.LoadSpecs(t.Context())
		must(t, err)
		n := 0
		for _, k := range testKinds {
			for _, e := range whole.Entries(k.Name) {
				if e.Object == nil && !e.Broken() || strings.HasPrefix(e.StatusPath, "state/sessions/half") {
					continue
				}
				n++
				got := specs.Entry(e.Ref)
				if got == nil || !sameObject(got.Object, e.Object) || len(got.Problems) != len(e.Problems) {
					t.Fatalf("%s: %+v, want %+v", e.Ref, got, e)
				}
				if got.HasStatus() || got.RunCount() > 0 {
					t.Errorf("%s: it has a status or runs", e.Ref)
				}
			}
		}
		if n < 30 {
			t.Errorf("%d objects were compared", n)
		}
		if got := s.decoded.Load(); got != decoded {
			t.Errorf("%d files were decoded, want %d", got, decoded)
		}
		return specs
	}
	s := open(t, dir)
	compare(s, 0)

	put(t, dir, map[string]string{"specs/new.yaml": strings.ReplaceAll(sessionYAML, "health", "new")})
	if specs := compare(open(t, dir), 1); specs.Entry(schemas.SessionKind.Ref("new")) == nil {
		t.Error("a new session is not there")
	}
	after := open(t, dir)
	load(t, after)
	if n := after.decoded.Load(); n > 1 { // the new one may be racy
		t.Errorf("%d files were decoded again after the specs were read", n)
	}
}
