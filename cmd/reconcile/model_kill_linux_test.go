package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/modeltest"
	"reconcile.dev/reconcile/state/mutants"
)

const modelKillSettings = `apiVersion: reconcile.dev/v1alpha1
kind: Settings
metadata: {name: settings}
spec:
  runs: {grace: 1s}
  profiles:
    struck:
      argv: [metered-agent, "-kill=%[2]s", -once=%[1]s/struck, -alone=%[1]s/alone, "-work=work.txt,%[1]s/work", -session=s-1, "2", stream]
      output: jsonl
      baseURLVar: ANTHROPIC_BASE_URL
      keyVar: ANTHROPIC_API_KEY
      proxy: {upstream: "%[3]s"}
      events:
        - when: {type: session}
          session: id
        - when: {type: done}
          end: success
          text: type
        - when: {type: failed}
          end: failure
          error: {message: message}
`

// modelKillAgents are the runners whose turns are struck, but ACP.
var modelKillAgents = map[string]string{
	"command": "  runner: {command: {profile: struck, env: {ANTHROPIC_BASE_URL: '%s'}}}\n",
	"metered": "  runner: {command: {profile: struck}, keyFrom: {env: ANTHROPIC_API_KEY}}\n",
	"http":    "  model: m\n  runner: {http: {baseURL: '%s', wire: anthropic, tools: write}}\n",
}

const modelKillHead = `apiVersion: reconcile.dev/v1alpha1
kind: Agent
metadata: {name: engineer}
spec:
  workspace: clone
  sandbox: {level: none} # the agent leaves its marks beside the tree
`

// modelSite is a tree with one node, whose agent works in a clone with a model.
type modelSite struct {
	*testing.T
	dir, runner string
	env         []string
	running     atomic.Pointer[os.Process]
	models      *modeltest.Server
}

// TestKilledModels kills the agent, its supervisor, and reconcile itself, at each line of a program with a profile, with a key of its own and through the
// metering proxy, and at each event of an answer to the runner of endpoints. The next run ends well: with one success on record, that
// landed once, with all that the agent had done, without a second agent beside one that lives, and without a process that stays. A run
// after that asks no model. A sample of the points is struck, or all with RECONCILE_SWEEP=all.
func TestKilledModels(t *testing.T) {
	env := append(crashEnv(t)[:3:3], "PATH="+filepath.Dir(self(t))+":"+os.Getenv("PATH"), "ANTHROPIC_API_KEY=sk-ant-canary-91f2a44b7e0c")
	for runner := range modelKillAgents {
		for _, who := range []string{"self", "parent", "reconcile"} {
			if runner == "http" && who == "parent" {
				continue // it has no program
			}
			t.Run(runner+" "+who, func(t *testing.T) {
				t.Parallel()
				step := mutants.Size(9, 7, 1)
				for n := 1; ; n += step {
					missed := false
					t.Run(fmt.Sprint(n), func(t *testing.T) { missed = killModelAt(t, env, runner, who, n) })
					if t.Failed() || missed {
						if n <= 5 && !t.Failed() {
							t.Errorf("only %d points", n-1)
						}
						return
					}
				}
			})
		}
	}
}

// killModelAt reports whether there is no such point.
func killModelAt(t *testing.T, env []string, runner, who string, n int) (missed bool) {
	s := newModelSite(t, env, runner, who, n)
	out, err := s.run()
	if _, struck := os.Stat(filepath.Join(s.dir, "../struck")); struck != nil {
		if err != nil {
			t.Fatalf("nothing was struck: %v\n%s", err, out)
		}
		return true
	}
	if who == "reconcile" {
		if err == nil {
			t.Fatalf("reconcile survived\n%s", out)
		}
		out, err = s.run()
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkKilled(t, s.dir)
	s.checkLanded()
	asked := len(s.models.Requests())
	if out, err = s.run(); err != nil || len(s.models.Requests()) != asked {
		t.Errorf("a further run: %v, %d requests before, %d after\n%s", err, asked, len(s.models.Requests()), out)
	}
	return false
}

func newModelSite(t *testing.T, env []string, runner, who string, n int) *modelSite {
	s := &modelSite{T: t, dir: filepath.Join(t.TempDir(), "tree"), runner: runner}
	models, end := modeltest.StartDeciding(func(body string) modeltest.Answer {
		if strings.Contains(body, "write_file") && !strings.Contains(body, "tool_result") {
			return modeltest.Answer{Tool: "write_file", Args: map[string]any{"path": "work.txt", "content": "done\n"}, Input: 10, Output: 5}
		}
		return modeltest.Answer{Text: "Done.", Input: 10, Output: 5}
	})
	t.Cleanup(end)
	s.models, s.env = models, append(env[:len(env):len(env)], "RECONCILE_ALLOW="+models.URL)
	kill := fmt.Sprint(who, ":", n)
	if runner == "http" {
		kill = ""
		var events atomic.Int64
		models.OnEvent(func() bool { return events.Add(1) == int64(n) && s.strike(who) })
	}
	writeFiles(t, s.dir, killTree)
	agent := modelKillHead + strings.Replace(modelKillAgents[runner], "%s", models.URL, 1)
	writeFiles(t, s.dir, map[string]string{"specs/agents/engineer.yaml": agent,
		"reconcile.yaml": fmt.Sprintf(modelKillSettings, filepath.Dir(s.dir), kill, models.URL)})
	s.git("init", "-q", "-b", "main")
	s.git("add", ".")
	s.git("commit", "-qm", "Specs")
	return s
}

// strike ends the connection of the runner that asks, or the runner.
func (s *modelSite) strike(who string) (cut bool) {
	writeFiles(s.T, filepath.Dir(s.dir), map[string]string{"struck": ""})
	if who == "reconcile" {
		if err := s.running.Load().Kill(); err != nil {
			s.Error(err)
		}
	}
	return true
}

func (s *modelSite) run() (string, error) {
	cmd := exec.Command(self(s.T), "run")
	out := new(strings.Builder)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, s.env, out, out
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.running.Store(cmd.Process)
	err := cmd.Wait()
	return out.String(), err
}

func (s *modelSite) git(args ...string) string {
	s.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("git %s: %v\n%s", args, err, out)
	}
	return string(out)
}

// checkLanded checks that the work landed once, and whole.
func (s *modelSite) checkLanded() {
	if landed := s.git("log", "--format=%H", "--", "work.txt"); strings.Count(landed, "\n") != 1 {
		s.Errorf("landed: %q", landed)
	}
	want := "done\n"
	if s.runner != "http" {
		data, err := os.ReadFile(filepath.Join(s.dir, "../work"))
		if err != nil {
			s.Fatal(err)
		}
		want = string(data)
	}
	if got := s.git("show", "HEAD:work.txt"); got != want {
		s.Errorf("the work is\n%s, of it landed\n%s", want, got)
	}
}
