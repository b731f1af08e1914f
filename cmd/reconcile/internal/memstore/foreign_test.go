package memstore_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/schemas"
)

// TestForeignSecretsStayInTheirFile: whatever another program wrote into an issue file, nobody is told secrets, private
// text or control characters of it; the file itself keeps them, and an audit finds them.
func TestForeignSecretsStayInTheirFile(t *testing.T) {
	const key = "AKIAZ7QW3LX5T2KD9PHM"
	x := newTree(t)
	x.write("state/memory/issue-29.json", fmt.Appendf(nil, `{"version":1,"issueNumber":29,"observations":[%s,%s]}`,
		foreignObservation(1, "The adapter's key is "+key),
		foreignObservation(2, `The adapter <private>ZZFOR</private>\u001b[31m`)))
	x.settle()
	x.mustNotTell(key, "ZZFOR", "\x1b")
	kept := x.read("state/memory/issue-29.json")
	if !bytes.Contains(kept, []byte(key)) || !bytes.Contains(kept, []byte("ZZFOR")) {
		t.Errorf("the file lost bytes of another program:\n%s", kept)
	}
	var raw strings.Builder
	err := x.Each(t.Context(), func(o *schemas.Observation) error {
		raw.WriteString(o.Content)
		return nil
	})
	if err != nil || !strings.Contains(raw.String(), key) {
		t.Errorf("an audit sees %q, %v", raw.String(), err)
	}
	x.capture(spec("engineer", 29, noon, olds()...))
	if _, err := x.Compact(t.Context(), 29); err != nil {
		t.Fatal(err)
	}
	x.mustNotTell(key, "ZZFOR", "\x1b")
	y := openTree(t, x.dir) // by the cache
	y.mustNotTell(key, "ZZFOR", "\x1b")
}

func foreignObservation(n int, text string) string {
	return fmt.Sprintf(`{"id":"obs-copilot-29-%d-aaaaaa","agent":"copilot","issueNumber":29,"category":"error",
		"content":"%s","summary":"%[2]s","tokens":9,"timestamp":"2026-02-27T10:00:00.000Z","sessionId":""}`,
		1772186400000+n, text)
}

// mustNotTell asks in every way.
func (x *tree) mustNotTell(hidden ...string) {
	x.t.Helper()
	told := string(x.read(manifestPath))
	all := memstore.Filter{Archived: memstore.With, Superseded: memstore.With}
	listed, err := x.List(x.t.Context(), all)
	if err != nil || len(listed) == 0 {
		x.t.Fatalf("listed %d, %v", len(listed), err)
	}
	found, err := x.Search(x.t.Context(), memstore.Query{Text: "adapter", Filter: all})
	if err != nil || len(found) == 0 {
		x.t.Fatalf("found %d, %v", len(found), err)
	}
	told += fmt.Sprintf("%+v %+v", listed, found)
	for _, id := range ids(listed) {
		o, err := x.ByID(x.t.Context(), id)
		if err != nil {
			x.t.Fatal(err)
		}
		told += fmt.Sprintf("%+v", o)
	}
	r, err := x.Recall(x.t.Context(), memstore.Request{Agent: "engineer", Issue: 29, Context: "adapter", Dry: true})
	if err != nil || len(r.IDs) == 0 {
		x.t.Fatalf("recalled %q, %v", r.IDs, err)
	}
	told += r.Text
	for _, h := range hidden {
		if strings.Contains(told, h) {
			x.t.Errorf("%q is told:\n%s", h, told)
		}
	}
}
