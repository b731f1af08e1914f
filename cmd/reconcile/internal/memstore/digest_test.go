package memstore_test

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestWrongDigestIsPutRight: a digit of a digest that rotted stalls nothing, whether or not something was compacted, removed
// or recalled; what was edited stays refused.
func TestWrongDigestIsPutRight(t *testing.T) {
	x := newTree(t)
	first := x.capture(spec("engineer", 1, noon, "The adapter retries three times", "Locks have an order"))
	x.capture(spec("engineer", 1, noon.Add(time.Hour), "Colours are blue"))
	if err := x.Remove(t.Context(), []string{first.Observations[1].ID}, "me", "wrong"); err != nil {
		t.Fatal(err)
	}
	x.settle()
	const p = "state/memory/issue-1.json"
	whole := x.read(p)
	wrong := turned(t, whole, first.Name)
	x.write(p, wrong)
	y := openTree(t, x.dir)
	if got := y.settle(); len(got.Edited) != 0 || !got.Wrote {
		t.Errorf("%+v", got)
	}
	if !bytes.Equal(x.read(p), whole) {
		t.Errorf("the file is not what it was:\n%s", x.read(p))
	}
	if got := y.settle(); got.Wrote || len(got.Edited) != 0 {
		t.Errorf("again: %+v", got)
	}

	// Another content makes it an edit, which does nothing.
	edited := bytes.Replace(wrong, []byte("retries three"), []byte("retries seven"), 2)
	x.write(p, edited)
	if got := openTree(t, x.dir).settle(); len(got.Edited) != 1 || got.Edited[first.Name] == "" {
		t.Errorf("an edit: %+v", got)
	}
}

// turned is an issue file with one digit of the digest of a capture turned into another.
func turned(t *testing.T, data []byte, name string) []byte {
	t.Helper()
	before, after, ok := strings.Cut(string(data), `"`+name+`": "sha256:`)
	if !ok {
		t.Fatalf("no digest of %s in\n%s", name, data)
	}
	digit := "0"
	if after[0] == '0' {
		digit = "1"
	}
	return []byte(before + `"` + name + `": "sha256:` + digit + after[1:])
}
