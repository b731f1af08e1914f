package vectors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// What another version wrote is refused, also where its sums are right and known to be: the index is then built anew.
func TestOtherVersionIsRefused(t *testing.T) {
	t.Parallel()
	snapshot, _ := sample(t)
	if _, err := Open(snapshot, nil, Options{Dims: 4, Sound: true}); err != nil {
		t.Fatal(err)
	}
	of := map[string]int{"the snapshot": len(magic), "the graph": bytes.Index(snapshot, []byte("rcngra\x00")) + 7}
	for what, at := range of {
		older := slices.Clone(snapshot)
		older[at]--
		end := tableAt + rowSize*int(binary.LittleEndian.Uint32(older[12:]))
		binary.LittleEndian.PutUint64(older[end:], xxhash.Sum64(older[:end]))
		if _, err := Open(older, nil, Options{Dims: 4, Sound: true}); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s of an older version: %v", what, err)
		}
	}
}
