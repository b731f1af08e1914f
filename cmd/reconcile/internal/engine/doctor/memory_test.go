package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

const seen = `apiVersion: reconcile.dev/v1alpha1
kind: Observation
metadata: {name: seen}
spec:
  agent: engineer
  issue: 42
  timestamp: 2026-02-27T10:00:00Z
  entries: [{category: decision, content: One adapter.}]
`

// remembering is a tree whose memory has one observation.
func remembering(t *testing.T) (string, Patient) {
	t.Helper()
	dir, e := newTree(t)
	must(t, put(dir, "specs/observations/seen.yaml", seen))
	e.Remember = func(ctx context.Context, s *state.Store, tr *state.Tree) error { return remember(dir, tr) }
	s, err := e.Open(true)
	must(t, err)
	defer s.Close()
	tr, err := s.Load(t.Context())
	must(t, err)
	must(t, remember(dir, tr))
	return dir, e
}

// remember writes the memory that the observations of a tree make: of issue 42, which all of them are about.
func remember(dir string, t *state.Tree) error {
	truth := memory.Truth{Exists: func(string) bool { return false }}
	for _, e := range t.Entries(schemas.ObservationKind.Name) {
		if spec := schemas.SpecAs[*schemas.ObservationSpec](e.Object); spec != nil {
			truth.Specs = append(truth.Specs, memory.Spec{Name: e.Name, Digest: e.Object.Digest, ObservationSpec: spec})
		}
	}
	folded, err := memory.NewFacts(truth).Fold(42, nil, nil)
	if err != nil {
		return err
	}
	var entries []schemas.ObservationIndex
	for i := range folded.Observations {
		entries = append(entries, folded.Observations[i].Index())
	}
	if err := put(dir, "state/memory/issue-42.json", string(folded.File)); err != nil {
		return err
	}
	return put(dir, "state/memory/manifest.json", string(memory.Manifest(entries)))
}

func TestMemory(t *testing.T) {
	const issue, manifest = "state/memory/issue-42.json", "state/memory/manifest.json"
	const spec = "specs/observations/seen.yaml"
	one := func(path, text string) map[string]string { return map[string]string{path: text} }
	for name, c := range map[string]struct {
		files   map[string]string // written; empty: removed
		level   Level
		says    string
		fixable bool
	}{
		"healthy":          {nil, OK, "1 observation of 1 issue", false},
		"damaged issue":    {one(issue, "{"), Error, issue, true},
		"conflict markers": {one(issue, "<<<<<<< ours\n"), Error, "conflict markers", true},
		"a newer program": {one(issue, `{"version": 2, "issueNumber": 42, "observations": []}`), Warn,
			"version is 2", false},
		"damaged archive":    {one("state/memory/archive/issue-42-archived.json", "[]"), Error, "issue-42-archived", true},
		"damaged record":     {one("state/memory/records/removed-42-1-abcdef.json", "{"), Error, "removed-42-1", true},
		"no manifest":        {one(manifest, ""), Warn, "is missing", true},
		"another manifest":   {one(manifest, string(memory.Manifest(nil))), Warn, "does not say what", true},
		"not taken in":       {one("specs/more.yaml", strings.Replace(seen, "seen", "more", 1)), OK, "takes in more", false},
		"edited":             {one(spec, strings.Replace(seen, "One", "Two", 1)), Warn, "edited after", false},
		"gone":               {one(spec, ""), OK, "the next run forgets seen", false},
		"turned off":         {one("reconcile.yaml", settingsOff), OK, "turned off", false},
		"litter is no issue": {one("state/memory/notes.json", "{"), OK, "1 observation", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir, e := remembering(t)
			for p, text := range c.files {
				if text == "" {
					must(t, os.Remove(filepath.Join(dir, p)))
				} else {
					must(t, put(dir, p, text))
				}
			}
			if f := want(t, Check(t.Context(), e), "memory", c.level, c.says); f.Fixable != c.fixable {
				t.Errorf("%+v", f)
			}
		})
	}
}

const settingsOff = "apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\n" +
	"spec: {memory: {enabled: false}}\n"

func TestFixMemory(t *testing.T) {
	dir, e := remembering(t)
	must(t, put(dir, "specs/more.yaml", strings.ReplaceAll(seen, "seen", "more")))
	must(t, os.Remove(filepath.Join(dir, "state/memory/manifest.json")))
	fs := Fix(t.Context(), e)
	want(t, fs, "memory", OK, "repaired: state/memory/manifest.json is missing")
	want(t, fs, "memory", OK, "2 observations of 1 issue")
	e.Remember = nil
	must(t, os.Remove(filepath.Join(dir, "state/memory/manifest.json")))
	want(t, Fix(t.Context(), e), "memory", Warn, "the repair failed: this program cannot")
}
