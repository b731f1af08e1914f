package mirroring

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
)

// TestInboxStarts: a workflow starts for any issue on which somebody who may writes so. Nobody else is told anything there, and other
// commands there are nothing to this program.
func TestInboxStarts(t *testing.T) {
	t.Parallel()
	k := newTalk()
	dir := newTree(t, k)
	p := filepath.Join(dir, "specs/workflows/feature.yaml")
	if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
		t.Fatal(err)
	}
	const workflow = "apiVersion: reconcile.dev/v1alpha1\nkind: Workflow\nmetadata: {name: feature}\nspec: {steps: [{id: ask, agent: ada}]}\n"
	if err := os.WriteFile(p, []byte(workflow), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{50, 51, 52} {
		k.issues[n] = &github.Issue{Number: n, Title: "Greet people", Body: "By name.", Author: github.User{Login: "ann", ID: 2}, Open: true}
	}
	late := k.write(52, "octo", "OWNER", "/start feature a day too early")
	k.clock = k.clock.Add(startsWithin + 2*time.Hour)
	said := k.write(50, "ann", "NONE", "Politely, please.")
	stranger := k.write(50, "mallory", "NONE", "/start feature")
	good := k.write(50, "octo", "OWNER", "/start feature for the release")
	wrong := k.write(51, "octo", "OWNER", "/start faeture")
	other := k.write(51, "octo", "OWNER", "/status")
	copied := k.write(51, "ci[bot]", "OWNER", "/start feature")
	if err := process(t, dir, k, always); err != nil {
		t.Fatal(err)
	}
	checkTold(t, dir, k, map[int64]string{late: "", said: "", stranger: "", good: "eyes", wrong: "confused", other: "", copied: ""})
	files := heardFiles(t, dir)
	if len(files) != 1 {
		t.Fatalf("files %q", slices.Collect(maps.Keys(files)))
	}
	for path, text := range files {
		for _, want := range []string{`"issue":50`, `"target":"workflow/feature"`, `"text":"# Greet people\n\nBy name."`, `"text":"Politely, please."`,
			`"by":"github:octo"`, `"reason":"for the release"`} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %s: %s", path, want, text)
			}
		}
	}
	replies := k.replies(t, dir)
	if len(replies) != 1 || !strings.Contains(slices.Collect(maps.Values(replies))[0], "`feature`") {
		t.Errorf("replies %q", replies)
	}
}

// TestStartsAreConditional: within an hour the request for starts is the same one, so that GitHub need not count it.
func TestStartsAreConditional(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC)
	if a, b := startsSince(now), startsSince(now.Add(59*time.Minute)); !a.Equal(b) || now.Sub(a) < startsWithin || now.Sub(a) > startsWithin+time.Hour {
		t.Errorf("since %v, then %v", a, b)
	}
}
