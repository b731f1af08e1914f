package memory

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// hidden is what must not leave an issue file that another program wrote, in JSON: a key, one that a control character
// tears apart, private text, a sequence that a terminal obeys.
const (
	hiddenKey   = "AKIAZ7QW3LX5T2KD9PHM"
	hiddenTexts = `key ` + hiddenKey + `, torn AKIAZ7QW\u00003LX5T2KD9PHM <private>ZZFOR</private>\u001b[31m`
)

// foreignFile is an issue file of another program with n observations.
func foreignFile(n int) []byte {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{"id":"obs-copilot-29-%d-aaaaaa","agent":"copilot %[2]s","issueNumber":29,
			"category":"key-fact","content":"Fact %[1]d: %[2]s","summary":"Short: %[2]s","tokens":9,
			"timestamp":"2026-02-27T10:00:0%[3]d.000Z","sessionId":"%[2]s",
			"anchors":[{"path":"src/%[4]s.go"},{"path":"src/a.go"}]}`, 1709035200000+i, hiddenTexts, i, hiddenKey))
	}
	return []byte(`{"version":1,"issueNumber":29,"observations":[` + strings.Join(all, ",") + `]}`)
}

// mustBeClean reports what is hidden in the text of anything.
func mustBeClean(t *testing.T, what string, v any) {
	t.Helper()
	text := fmt.Sprintf("%+v", v)
	for _, hidden := range []string{hiddenKey, "ZZFOR", "\x1b", "\x00"} {
		if strings.Contains(text, hidden) {
			t.Errorf("%s tells %q:\n%s", what, hidden, text)
		}
	}
}

// TestForeignTextIsCleaned: what another program wrote is kept as it is and leaves the file clean.
func TestForeignTextIsCleaned(t *testing.T) {
	facts := NewFacts(Truth{})
	f, err := facts.Fold(29, foreignFile(4), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(f.File, []byte(hiddenKey)) || !bytes.Contains(f.File, []byte("ZZFOR")) {
		t.Errorf("the file lost what another program wrote:\n%s", f.File)
	}
	m, err := Parse(f.File)
	if err != nil || len(m.Observations) != 4 {
		t.Fatalf("%+v, %v", m, err)
	}
	if got := m.Observations[0].Anchors; len(got) != 1 || got[0].Path != "src/a.go" {
		t.Errorf("anchors: %+v", got)
	}
	one, ok := Find(f.File, m.Observations[0].ID)
	if !ok {
		t.Fatal("it is not found")
	}
	mustBeClean(t, "Parse", m.Observations)
	mustBeClean(t, "Find", *one)
	mustBeClean(t, "the fold", f.Observations)
	mustBeClean(t, "the manifest", string(Manifest(f.Index())))
	c := Chooser{Issue: 29, Budget: 2000, Weights: Weights{Recency: 1},
		Load: func(list []*Candidate, take func(int, *schemas.Observation)) {
			for i, k := range list {
				take(i, &m.Observations[k.Row])
			}
		}}
	recalled := c.Choose([]Candidate{{Issue: 29, Row: 0}})
	if len(recalled.IDs) != 1 {
		t.Error("nothing was recalled")
	}
	mustBeClean(t, "the recall", recalled.Text)
}

// TestForeignTextIsMergedClean: compaction quotes other programs without their secrets; the archive keeps their bytes.
func TestForeignTextIsMergedClean(t *testing.T) {
	before, err := NewFacts(Truth{}).Fold(29, foreignFile(4), nil)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := NewFacts(Truth{}).Compact(&before)
	if !ok {
		t.Fatal("there is nothing to merge")
	}
	facts := NewFacts(Truth{Records: map[string]schemas.MemoryRecord{"compacted": r}})
	f, err := facts.Fold(29, before.File, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Observations) > 2 || len(f.Archived) != 4 {
		t.Fatalf("%d merged, %d archived", len(f.Observations), len(f.Archived))
	}
	mustBeClean(t, "the merged file", string(f.File))
	if !bytes.Contains(f.Archive, []byte(hiddenKey)) {
		t.Errorf("the archive lost what another program wrote:\n%s", f.Archive)
	}
	mustBeClean(t, "the archived", f.Archived)
}
