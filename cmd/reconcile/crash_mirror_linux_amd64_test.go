package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/crashtest"
	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/githubtest"
)

// TestCrashMirror kills, tears or fails file-changing calls of a run that mirrors, against the GitHub of tests. What is left
// is whole, and after one more run everything stands on GitHub, and once.
func TestCrashMirror(t *testing.T) {
	ways := blows(t, 23, 19, 41, 0)
	githubtest.Start(t) // or it is skipped
	for _, b := range ways {
		b.run(t, "mirror", func(t *testing.T) (int, error) {
			m := &mirrorStrikes{T: t, bin: self(t), env: append(crashEnv(t), "GITHUB_TOKEN="+githubtest.Token(githubtest.Bot))}
			fixture := func() (crashtest.Spec, error) { return m.fixture(b) }
			return crashtest.EveryNth(t.Context(), b.every, fixture, m.after)
		})
	}
}

// mirrorStrikes makes trees with a repository on GitHub each.
type mirrorStrikes struct {
	*testing.T
	bin string
	env []string
	rig *githubtest.Rig // of the last tree
}

func (m *mirrorStrikes) fixture(b blow) (crashtest.Spec, error) {
	rig, err := githubtest.New()
	if err != nil {
		return crashtest.Spec{}, err
	}
	m.Cleanup(rig.Close)
	m.rig = rig
	dir := m.TempDir()
	issue := rig.Issue(m, githubtest.Mona, "Health endpoint")
	const head = "apiVersion: reconcile.dev/v1alpha1\nkind: %s\nmetadata: {name: %s}\nspec: %s\n"
	writeFiles(m.T, dir, map[string]string{
		"reconcile.yaml": fmt.Sprintf(head, "Settings", "settings", fmt.Sprintf("{github: {repo: %s, mirror: true, baseURL: %q, pace: 0s}}",
			rig.Repo, rig.URL)),
		"specs/health.yaml": fmt.Sprintf(head, "Session", "health", fmt.Sprintf("{issue: %d}", issue)),
		"specs/alone.yaml":  fmt.Sprintf(head, "Session", "alone", "{title: Alone}"),
	})
	return crashtest.Spec{Cmd: []string{m.bin}, Dir: dir, Root: dir, Env: append(slices.Clip(m.env), egress.AllowVariable+"="+rig.URL), Mode: b.mode, Errno: b.errno}, nil
}

// after runs once more, and looks at what stands on GitHub.
func (m *mirrorStrikes) after(s crashtest.Spec, _ crashtest.Result) error {
	if err := parses(s.Root); err != nil {
		return fmt.Errorf("after the crash: %w", err)
	}
	if out, err := rerun(s); err != nil || strings.Contains(string(out), "mirror to GitHub") {
		return fmt.Errorf("the next run: %w\n%s", err, out)
	}
	if err := parses(s.Root); err != nil {
		return fmt.Errorf("after the next run: %w", err)
	}
	var issues []struct{ Number, Comments int }
	if err := m.rig.Do(githubtest.Mona, "GET", "/repos/"+m.rig.Repo+"/issues?state=all", nil, &issues); err != nil {
		return err
	}
	if len(issues) != 2 || issues[0].Comments != 1 || issues[1].Comments != 1 {
		return fmt.Errorf("not two issues with a comment each: %+v", issues)
	}
	if found, err := filepath.Glob(filepath.Join(s.Root, "state/github/*.lock*")); err != nil || len(found) > 0 {
		return fmt.Errorf("litter is left: %v, %q", err, found)
	}
	m.rig.Journal()
	if out, err := rerun(s); err != nil {
		return fmt.Errorf("the run after: %w\n%s", err, out)
	}
	for _, r := range m.rig.Journal() {
		if r.Method != "GET" {
			return fmt.Errorf("a run without news calls %s %s", r.Method, r.Path)
		}
	}
	for _, v := range m.rig.Violations() {
		return fmt.Errorf("%s", v)
	}
	return nil
}
