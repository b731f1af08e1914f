package allowlist_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/allowlist"
	"reconcile.dev/reconcile/schemas"
)

func open(t *testing.T, dir string) *allowlist.List {
	t.Helper()
	l, err := allowlist.Open(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestParallelAdds: of many processes that allow something at once, none loses what another one allowed.
func TestParallelAdds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "reconcile")
	var group sync.WaitGroup
	const n = 20
	for i := range n {
		l := open(t, dir)
		group.Go(func() {
			if err := l.Add([]schemas.Destination{{URL: "https://" + strconv.Itoa(i) + ".example.com"}}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	l := open(t, dir)
	for i := range n {
		if !l.Allows(schemas.Destination{URL: "https://" + strconv.Itoa(i) + ".example.com"}) {
			t.Errorf("%d was lost", i)
		}
	}
}

// TestDamagedList: a list that cannot be read allows nothing, is named, and is not overwritten.
func TestDamagedList(t *testing.T) {
	dir := t.TempDir()
	p := filepath.Join(dir, "allowed.json")
	if err := os.WriteFile(p, []byte(`{"version": 1, "allowed": [`), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := allowlist.Open(dir, "")
	if err == nil || !strings.Contains(err.Error(), p) {
		t.Errorf("opened, with the error %v", err)
	}
	if l.Allows(schemas.Destination{URL: "https://example.com"}) {
		t.Error("it allows something")
	}
	if err := l.Add([]schemas.Destination{{URL: "https://example.com"}}); err == nil {
		t.Error("it was overwritten")
	}
}

// TestSameAddress: two ways to write an address are one, another path or scheme is another.
func TestSameAddress(t *testing.T) {
	l, err := allowlist.Open("", "https://API.example.com/v1/")
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]bool{
		"https://api.example.com/v1": true, "HTTPS://api.example.com/v1/": true, "https://api.example.com/v2": false,
		"http://api.example.com/v1": false, "https://api.example.com": false, "https://api.example.com.evil.org/v1": false,
		"https://api.example.com:8443/v1": false,
	} {
		if got := l.Allows(schemas.Destination{URL: schemas.CanonicalAddress(address)}); got != want {
			t.Errorf("%s: allowed %v, want %v", address, got, want)
		}
	}
}
