package vectors

import (
	"errors"
	"slices"
	"testing"

	"reconcile.dev/reconcile/schemas/sections/sectionstest"
)

// What another version wrote is refused, also where its sums are right and known to be: the index is then built anew.
func TestOtherVersionIsRefused(t *testing.T) {
	t.Parallel()
	snapshot, delta := sample(t)
	o := Options{Dims: 4, Sound: true}
	if _, err := Open(snapshot, delta, o); err != nil {
		t.Fatal(err)
	}
	older := func(data []byte, section int) []byte {
		data = slices.Clone(data)
		if section >= 0 {
			f, err := format.Open(data)
			if err != nil {
				t.Fatal(err)
			}
			f.Get(section)[8]--
			sectionstest.Reseal(f.Get(section))
		} else {
			data[8]--
		}
		sectionstest.Reseal(data)
		return data
	}
	for _, c := range []struct {
		what            string
		snapshot, delta []byte
		want            error
	}{
		{"the snapshot", older(snapshot, -1), nil, ErrOtherVersion},
		{"the delta", snapshot, older(delta, -1), ErrDamaged},
		{"the graph", older(snapshot, sectionGraph), nil, ErrDamaged},
		{"the words", older(snapshot, sectionWords), nil, ErrDamaged},
	} {
		if _, err := Open(c.snapshot, c.delta, o); !errors.Is(err, c.want) {
			t.Errorf("%s of an older version: %v", c.what, err)
		}
	}
}
