package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gofrs/flock"

	"reconcile.dev/reconcile/schemas"
)

// killTree has one node, whose agent works over ACP. It is killed, or reconcile is, at one of its messages.
var killTree = map[string]string{
	"specs/sessions/s.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: s}\nspec: {owner: ada}\n",
	"specs/dags/work.yaml": `apiVersion: reconcile.dev/v1alpha1
kind: DAG
metadata: {name: work}
spec:
  session: s
  nodes:
    - {name: n, agent: engineer, prompt: Do it., retry: {limit: 2, backoff: 1ms}}
`,
}

const killAgent = `apiVersion: reconcile.dev/v1alpha1
kind: Agent
metadata: {name: engineer}
spec:
  sandbox: {level: none} # the agent leaves its marks beside the tree
  runner:
    acp: {argv: [acp-agent, -resume, -calls=../calls, -alone=../alone, -once=../struck, "-kill=%s:%d", "usage:1:100", "text:do", "tool:t:pending", "tool:t:completed", "ask:a:ls", "text:done"]}
`

// TestKilledTurns kills the agent, its supervisor, and reconcile itself, at each message of a turn. The next run ends well: with one success
// on record, without a second agent beside one that lives, without a process that stays, and in the session that was known
// before the prompt was sent.
func TestKilledTurns(t *testing.T) {
	env := append(crashEnv(t)[:3:3], "PATH="+filepath.Dir(self(t))+":"+os.Getenv("PATH"))
	for _, who := range []string{"self", "parent", "reconcile"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			n := 0
			for struck := true; struck && !t.Failed(); {
				n++
				t.Run(fmt.Sprint(n), func(t *testing.T) { struck = killAt(t, env, who, n) })
			}
			if n <= 14 {
				t.Errorf("only %d messages", n-1)
			}
		})
	}
}

// killAt reports whether there is such a message.
func killAt(t *testing.T, env []string, who string, n int) (struck bool) {
	dir := filepath.Join(t.TempDir(), "tree")
	writeFiles(t, dir, killTree)
	writeFiles(t, dir, map[string]string{"specs/agents/engineer.yaml": fmt.Sprintf(killAgent, who, n)})
	run := func() ([]byte, error) {
		cmd := exec.Command(self(t), "run")
		cmd.Dir, cmd.Env = dir, env
		return cmd.CombinedOutput()
	}
	out, err := run()
	if _, missed := os.Stat(filepath.Join(dir, "../struck")); missed != nil {
		if err != nil {
			t.Fatalf("nothing was struck: %v\n%s", err, out)
		}
		return false
	}
	if err == nil && who == "reconcile" {
		t.Fatalf("reconcile survived\n%s", out)
	}
	before := calls(t, dir)
	if who == "reconcile" {
		if out, err = run(); err != nil {
			t.Fatalf("the next run: %v\n%s", err, out)
		}
	} else if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkKilled(t, dir)
	again := strings.TrimPrefix(calls(t, dir), before)
	if who == "reconcile" && strings.Contains(before, "session/prompt") && !strings.Contains(again, "session/resume") {
		t.Errorf("before: %safterwards: %s", before, again)
	}
	if out, err = run(); err != nil || strings.Contains(calls(t, dir), before+again+"initialize") {
		t.Errorf("a further run: %v\n%s", err, out)
	}
	return true
}

func calls(t *testing.T, dir string) string {
	data, err := os.ReadFile(filepath.Join(dir, "../calls"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// checkKilled checks the records, and that no agent lives.
func checkKilled(t *testing.T, dir string) {
	successes := 0
	err := filepath.WalkDir(filepath.Join(dir, "state/runs"), func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		var r schemas.Run
		if err == nil {
			err = json.Unmarshal(data, &r)
		}
		if r.Outcome == schemas.OutcomeSucceeded && r.Lands == "" {
			successes++
		}
		return err
	})
	if err != nil || successes != 1 {
		t.Errorf("%d successes on record, %v", successes, err)
	}
	if two, err := os.ReadFile(filepath.Join(dir, "../alone.two")); err == nil {
		t.Errorf("two agents at once: %s", two)
	}
	if free, err := flock.New(filepath.Join(dir, "../alone")).TryLock(); err != nil || !free {
		t.Errorf("an agent lives: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".reconcile/work/*")); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}
