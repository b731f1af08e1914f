package main

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/crashtest"
	"reconcile.dev/reconcile/controllers/memory"
)

// memoryTree has an observation by hand, an agent that learns, one that builds on it, and a conversation to capture.
var memoryTree = map[string]string{
	"agents/engineer.sh": agentHead + "cat > /dev/null; echo '## Decisions'; " +
		"echo '- Use the repository pattern for the database in docs/db.md, because it keeps SQL in one place.'\n",
	"agents/reviewer.sh": agentHead + "grep -q '^| Use the repository pattern' || exit 0\n" +
		"echo '## Key Facts'; echo '- The review took the pattern from memory.'\n",
	"docs/db.md":                  "# Database\n",
	"specs/agents/architect.yaml": agentSpec("architect", "runner: {human: {}}"),
	"specs/agents/engineer.yaml": agentSpec("engineer",
		"canClarify: [architect], runner: {command: {argv: [sh, agents/engineer.sh]}}"),
	"specs/agents/reviewer.yaml": agentSpec("reviewer", "runner: {command: {argv: [sh, agents/reviewer.sh]}}"),
	"specs/sessions/work.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: work}\n" +
		"spec: {issue: 29}\n",
	"specs/observations/files.yaml": filesSpec,
	"specs/dags/build.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: build}\nspec:\n" +
		"  session: work\n  nodes:\n    - {name: write, agent: engineer, prompt: Write the database layer.}\n" +
		"    - {name: review, needs: [write], agent: reviewer, prompt: Review the database layer.}\n",
	"talk.jsonl": `{"role": "assistant", "content": "## Decisions\n- Keep one file for each issue, because merges stay ` +
		`small.\n## Errors Encountered\n- The migration failed because another process held the lock."}` + "\n",
}

const (
	filesDecision = "Chose plain files for the storage of observations in docs/db.md."
	filesSpec     = `apiVersion: reconcile.dev/v1alpha1
kind: Observation
metadata: {name: files}
spec:
  agent: architect
  issue: 30
  timestamp: 2026-02-20T09:00:00Z
  entries:
    - {category: decision, content: ` + filesDecision + `, anchors: [docs/db.md]}
    - {category: decision, content: Chose plain files for the storage of ledgers too., anchors: [docs/db.md]}
    - {category: key-fact, content: Observations are stored as plain files.}
    - {category: error, content: The first draft lost observations when two processes wrote at once.}
    - {category: key-fact, content: The migration of the ledgers takes an hour on the staging host and must not be interrupted as a half written ledger is read by the next run.}
    - {category: key-fact, content: The migration of the ledgers takes an hour on the staging host and must not be interrupted as a half written ledger is read by the next run.}
    - {category: key-fact, content: The migration of the ledgers takes an hour on the staging host and must not be interrupted as a half written ledger is read by the next run.}
    - {category: key-fact, content: The migration of the ledgers takes an hour on the staging host and must not be interrupted as a half written ledger is read by the next run.}
    - {category: key-fact, content: The migration of the ledgers takes an hour on the staging host and must not be interrupted as a half written ledger is read by the next run.}
    - {category: key-fact, content: The migration of the ledgers takes an hour on the staging host and must not be interrupted as a half written ledger is read by the next run.}
`
)

// filesID is the id of the decision in filesSpec.
func filesID() string {
	at := time.Date(2026, 2, 20, 9, 0, 0, 0, time.UTC)
	return memory.NewID("architect", 30, at, "files", 0, filesDecision)
}

// afterMemoryRun is a strike at a command, given in a tree that has run. A second run of it would be a second act.
func afterMemoryRun(name string, cmd ...string) strike {
	return strike{name: name, files: memoryTree, before: [][]string{{"-q"}}, cmd: cmd, acts: true}
}

// afterMemoryChange is a strike at a run, after files were changed.
func afterMemoryChange(name string, change map[string]string) strike {
	return strike{name: name, files: memoryTree, before: [][]string{{"-q"}}, change: change}
}

var memoryStrikes = []strike{
	{name: "run", files: memoryTree},
	{name: "resolve", files: memoryTree,
		before: [][]string{{"-q"}, askArgs("architect", "Pool", "Who does the pooling?"),
			{"clarify", "answer", "CLR-42-001", "The driver does."}},
		cmd: []string{"clarify", "resolve", "CLR-42-001", "--from", "engineer", "Clear."}},
	{name: "half a year later", files: memoryTree, before: [][]string{{"-q"}}, now: "2026-09-01T10:00:00Z"},
	afterMemoryRun("capture", "memory", "capture", "--agent", "engineer", "--issue", "29", "talk.jsonl"),
	afterMemoryRun("recall", "memory", "recall", "--agent", "engineer", "--issue", "30"),
	afterMemoryRun("remove", "memory", "remove", filesID(), "--reason", "wrong"),
	afterMemoryRun("verify", "memory", "verify", filesID()),
	afterMemoryRun("compact", "memory", "compact", "--issue", "30"),
	afterMemoryRun("rebuild", "memory", "rebuild"),
	afterMemoryChange("gone", map[string]string{"specs/observations/files.yaml": ""}),
	afterMemoryChange("damaged", map[string]string{
		"state/memory/issue-30.json": "{}", "state/memory/manifest.json": `{"entries": []}`}),
}

// TestCrashMemory strikes runs and commands that write into the memory; see TestCrashClarify. Nothing that was captured is
// lost, and nothing is there twice.
func TestCrashMemory(t *testing.T) {
	ways := blows(t, 113, 101, 211, 223)
	for _, s := range memoryStrikes {
		if s.name == "run" { // an agent that could not be reminded has worked without, and learned something else
			s.run(t, slices.DeleteFunc(slices.Clone(ways), func(b blow) bool { return b.mode == crashtest.Fail }))
			continue
		}
		s.run(t, ways)
	}
}

// TestPowerLossMemory looks for names and contents of a capture that a power loss could take back after it was reported, and
// for a name that it could leave before what it rests on: the issue file's without the Observation. Nothing need survive
// of the manifest, which is made again.
func TestPowerLossMemory(t *testing.T) {
	t.Parallel()
	capture := afterMemoryRun("capture", "memory", "capture", "--agent", "engineer", "--issue", "29", "talk.jsonl")
	spec, err := capture.fixture(t)(t, blow{mode: crashtest.None})()
	if err != nil {
		t.Fatal(err)
	}
	r, err := crashtest.Run(t.Context(), spec)
	if err != nil || r.Exit != 0 {
		t.Fatalf("%v, exit %d\n%s", err, r.Exit, r.Stderr)
	}
	for _, finding := range crashtest.Lint(r.Calls, func(path string) bool {
		return strings.HasPrefix(path, ".reconcile/") || strings.HasSuffix(path, ".lock") || path == "state/memory/manifest.json"
	}) {
		t.Error(finding)
	}
	var order []string
	for _, c := range r.Calls {
		switch {
		case c.Err != 0:
		case c.Op == crashtest.Rename && strings.HasPrefix(c.To, "specs/observations/"):
			order = append(order, "name the Observation")
		case c.Op == crashtest.Sync && c.Path == "specs/observations":
			order = append(order, "sync its folder")
		case c.Op == crashtest.Rename && c.To == "state/memory/issue-29.json":
			order = append(order, "name the issue file")
		}
	}
	if want := []string{"name the Observation", "sync its folder", "name the issue file"}; !slices.Equal(order, want) {
		t.Errorf("%q, want %q", order, want)
	}
}

// changed are the files of a strike's tree as they are changed after what was run before.
func (k strike) changed(t *testing.T, dir string) {
	t.Helper()
	write := maps.Clone(k.change)
	for p, text := range write {
		if text == "" {
			if err := os.Remove(dir + "/" + p); err != nil {
				t.Fatal(err)
			}
			delete(write, p)
		}
	}
	writeFiles(t, dir, write)
}

// TestCaptureThatLosesTheManifest: a capture whose lock of the manifest is lost while it is held, as when the clock jumps or
// another program takes it for abandoned, ends with 75; what it learned is kept, and the next run goes on.
func TestCaptureThatLosesTheManifest(t *testing.T) {
	t.Parallel()
	const lock = "state/memory/manifest.json.lock"
	capture := afterMemoryRun("capture", "memory", "capture", "--agent", "engineer", "--issue", "29", "talk.jsonl")
	spec, err := capture.fixture(t)(t, blow{mode: crashtest.Fail})()
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(spec.Root, lock)
	taken, lost := false, false
	spec.Skip = func(c crashtest.Call) bool {
		if taken && !lost && strings.HasSuffix(c.Path, ".tmp") { // it writes the new manifest, and stands still meanwhile
			lost = true
			if err := errors.Join(os.Remove(at), os.WriteFile(at, []byte("{}"), 0o666)); err != nil {
				t.Error(err)
			}
		}
		taken = taken || c.To == lock
		return true
	}
	r, err := crashtest.Run(t.Context(), spec)
	if err != nil || r.Exit != exitBusy || !lost {
		t.Errorf("%v, lost %v, exit %d, want %d\n%s", err, lost, r.Exit, exitBusy, r.Stderr)
	}
	if err := os.Remove(at); err != nil {
		t.Error(err)
	}
	for _, args := range [][]string{{"-q"}, {"memory", "list", "--issue", "29"}} {
		spec.Cmd = append(spec.Cmd[:1:1], args...)
		if out, err := rerun(spec); err != nil || args[0] == "memory" && bytes.Count(out, []byte("Keep one file for each")) != 1 {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}
