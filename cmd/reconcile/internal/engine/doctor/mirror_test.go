package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mirroredTree makes a healthy tree whose session and DAG are on record as shown on GitHub.
func mirroredTree(t *testing.T) (string, Patient) {
	t.Helper()
	dir, e := newTree(t)
	must(t, put(dir, "reconcile.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\n"+
		"spec: {github: {repo: octo/widgets, mirror: true}}\n"))
	must(t, put(dir, "state/github/issue-7.json", issueRecord("octo/widgets", 7, "session/health")))
	must(t, put(dir, "state/github/issue-42.json", issueRecord("octo/widgets", 42, "")))
	must(t, put(dir, "state/github/objects/sessions/health.json", objectRecord("session/health", 7)))
	must(t, put(dir, "state/github/keys.json", `{"version": 1, "keys": ["`+strings.Repeat("a", 64)+`"]}`))
	return dir, e
}

func issueRecord(repo string, n int, made string) string {
	return fmt.Sprintf(`{"version": 1, "repo": %q, "issue": %d, "made": %q, "labels": [], "handled": [],
		"comments": [{"key": "status/session/health", "id": 5, "digest": "sha256:00"}]}`, repo, n, made)
}

func objectRecord(object string, n int) string {
	return fmt.Sprintf(`{"version": 1, "repo": "octo/widgets", "object": %q, "issue": %d}`, object, n)
}

func TestMirror(t *testing.T) {
	t.Parallel()
	dir, e := mirroredTree(t)
	want(t, Check(t.Context(), e), "mirror", OK, "4 records of GitHub, which agree")
	for name, c := range map[string]struct {
		file, text string
		level      Level
		detail     string
		fixed      string // what a repair leaves; "" where it can do nothing
	}{
		"torn": {"issue-42.json", `{"version": 1, "re`, Error, "state/github/issue-42.json: ", "3 records of GitHub, which agree"},
		"conflict markers": {"objects/sessions/health.json", "<<<<<<< HEAD\n", Error, "objects/sessions/health.json: ",
			"3 records of GitHub, which agree"},
		"of another issue": {"issue-42.json", issueRecord("octo/widgets", 41, ""), Error, "it is about issue 41, not 42",
			"3 records of GitHub, which agree"},
		"of another repository": {"issue-42.json", issueRecord("octo/old", 42, ""), Error, "the settings name octo/widgets",
			"3 records of GitHub, which agree"},
		"keys that are none": {"keys.json", `{"version": 1, "keys": ["x"]}`, Error, "a key is not 64 hexadecimal digits", ""},
		"orphan": {"objects/dags/gone.json", objectRecord("dag/gone", 9), Warn, "is about dag/gone, which is not there any more",
			"4 records of GitHub, which agree"},
		"of a newer program": {"issue-42.json", `{"version": 2, "repo": "octo/widgets", "issue": 42}`, Warn, "newer version of reconcile", ""},
		"two issues":         {"issue-42.json", issueRecord("octo/widgets", 42, "session/health"), Warn, "#7 and #42 were made for session/health", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, e := mirroredTree(t)
			must(t, put(dir, "state/github/"+c.file, c.text))
			f := want(t, Check(t.Context(), e), "mirror", c.level, c.detail)
			if f.Fix == "" || strings.Contains(f.Detail, "\n") {
				t.Errorf("%+v says not what to do, or is no line", f)
			}
			fixed := Fix(t.Context(), e)
			if c.fixed != "" {
				want(t, fixed, "mirror", OK, c.fixed)
			} else if data, err := os.ReadFile(filepath.Join(dir, "state/github", c.file)); f.Fixable == (err == nil) || err == nil && string(data) != c.text {
				t.Errorf("fixable %t, and it leaves %q, %v", f.Fixable, data, err)
			}
		})
	}
	must(t, os.Remove(filepath.Join(dir, "state/github/keys.json")))
	if f := want(t, Check(t.Context(), e), "mirror", Warn, "keys.json is missing"); f.Fixable {
		t.Errorf("%+v: nobody can make the key again", f)
	}
	e.Environ = append(e.Environ, mirrorKey+"a key from elsewhere")
	want(t, Check(t.Context(), e), "mirror", OK, "3 records of GitHub, which agree")
}

// TestMirrorCountsCallsWithoutAnEnd: what a killed run had begun is nothing to repair: the next one looks.
func TestMirrorCountsCallsWithoutAnEnd(t *testing.T) {
	t.Parallel()
	dir, e := mirroredTree(t)
	must(t, put(dir, "state/github/issue-42.json", strings.NewReplacer(`"id": 5`, `"intended": "2026-02-27T10:00:00Z"`,
		`"labels": []`, `"labels": [], "adding": ["clarification:active"]`).Replace(issueRecord("octo/widgets", 42, ""))))
	must(t, put(dir, "state/github/objects/dags/checks.json", `{"version": 1, "repo": "octo/widgets", "object": "dag/checks", "intended": "2026-02-27T10:00:00Z"}`))
	want(t, Check(t.Context(), e), "mirror", OK, "5 records of GitHub; how 3 calls ended is looked up by the next run")
}

// TestMirrorRecordOfABrokenFile: an object whose file cannot be read may be any, so nothing is an orphan then.
func TestMirrorRecordOfABrokenFile(t *testing.T) {
	t.Parallel()
	dir, e := mirroredTree(t)
	must(t, put(dir, "specs/sessions/health.yaml", "kind: [\n"))
	must(t, put(dir, "specs/what.yaml", "kind: [\n"))
	want(t, Fix(t.Context(), e), "mirror", OK, "4 records of GitHub, which agree")
}
