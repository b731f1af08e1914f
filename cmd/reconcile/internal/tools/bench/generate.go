package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// generator makes a tree that is at its fixed point: objects of all kinds, with the statuses that reconcile gives them,
// committed. One session in a hundred is Active, and the nodes of its DAGs have run; the others are Paused, so that
// the tree is settled without running thousands of commands.
type generator struct {
	dir    string
	n      int
	seed   uint64
	binary string

	rnd *rand.Rand
}

// share says how many objects of a kind there are among a hundred, and how one is written.
type share struct {
	folder  string
	percent int
	write   func(g *generator, b *bytes.Buffer, i int)
}

// shares add up to a hundred.
func shares() []share {
	return []share{
		{"sessions", 2, (*generator).session},
		{"agents", 2, (*generator).agent},
		{"workflows", 1, (*generator).workflow},
		{"dags", 20, (*generator).dag},
		{"observations", 25, (*generator).observation},
		{"clarificationrequests", 20, (*generator).request},
		{"replies", 20, (*generator).reply},
		{"actions", 10, (*generator).action},
	}
}

// amount is the number of objects of a kind: at least one, so that references resolve.
func (g *generator) amount(folder string) int {
	rest := g.n
	for _, s := range shares() {
		n := max(1, g.n*s.percent/100)
		if s.folder == "observations" {
			continue // takes what rounding leaves
		}
		if s.folder == folder {
			return n
		}
		rest -= n
	}
	return max(1, rest)
}

func (g *generator) generate(ctx context.Context) error {
	if entries, err := os.ReadDir(g.dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s: not empty; remove it or name another folder", g.dir)
	}
	g.rnd = rand.New(rand.NewPCG(g.seed, uint64(g.n)))
	if err := g.writeSpecs(); err != nil {
		return err
	}
	if err := errors.Join(
		g.file("reconcile.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\nspec:\n  limits: {sessions: 1000}\n"),
		g.file(".gitignore", ".reconcile/\n*.lock\nvectors/*.snapshot\n")); err != nil {
		return err
	}
	if err := g.git(ctx, "init", "-q", "-b", "main"); err != nil {
		return err
	}
	if err := g.reconcile(ctx); err != nil {
		return err
	}
	for _, args := range [][]string{{"add", "-A"}, {"commit", "-q", "-m", "Generate a tree"}, {"repack", "-adq"}} {
		if err := g.git(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

func (g *generator) writeSpecs() error {
	for _, s := range shares() {
		if err := os.MkdirAll(filepath.Join(g.dir, "specs", s.folder), 0o777); err != nil {
			return err
		}
		for i := range g.amount(s.folder) {
			var b bytes.Buffer
			s.write(g, &b, i)
			if err := g.file(fmt.Sprintf("specs/%s/%s.yaml", s.folder, name(s.folder, i)), b.String()); err != nil {
				return err
			}
		}
	}
	return nil
}

// reconcile runs the binary, twice: the second run must find nothing to do.
func (g *generator) reconcile(ctx context.Context) error {
	for range 2 {
		cmd := exec.CommandContext(ctx, g.binary, "-C", g.dir, "--quiet")
		cmd.Env = environment()
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("reconcile the generated tree: %w\n%.2000s", err, out)
		}
	}
	return nil
}

// git runs git with an identity of its own and without housekeeping in the background.
func (g *generator) git(ctx context.Context, args ...string) error {
	if out, err := gitCommand(ctx, g.dir, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

func gitCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	config := []string{"-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0", "-c", "core.hooksPath=/dev/null"}
	cmd := exec.CommandContext(ctx, "git", append(config, args...)...)
	cmd.Dir, cmd.Env = dir, environment()
	return cmd
}

// environment is ours without what points git or reconcile elsewhere.
func environment() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "RECONCILE_") && !strings.HasPrefix(kv, "GIT_") {
			env = append(env, kv)
		}
	}
	return env
}

func (g *generator) file(path, content string) error {
	return os.WriteFile(filepath.Join(g.dir, filepath.FromSlash(path)), []byte(content), 0o666)
}

// name is the i-th name of a folder: "dag-00042" in dags.
func name(folder string, i int) string {
	short := map[string]string{"replies": "reply", "clarificationrequests": "request"}[folder]
	if short == "" {
		short = strings.TrimSuffix(folder, "s")
	}
	return fmt.Sprintf("%s-%05d", short, i)
}

// pick names one object of a folder, by chance.
func (g *generator) pick(folder string) string { return name(folder, g.rnd.IntN(g.amount(folder))) }

// head writes the envelope.
func head(b *bytes.Buffer, kind, name string) {
	fmt.Fprintf(b, "apiVersion: reconcile.dev/v1alpha1\nkind: %s\nmetadata:\n  name: %s\nspec:\n", kind, name)
}

func (g *generator) session(b *bytes.Buffer, i int) {
	head(b, "Session", name("sessions", i))
	phase := "Paused"
	if i%100 == 0 {
		phase = "Active"
	}
	fmt.Fprintf(b, "  title: %s\n  description: >-\n    %s\n  owner: team-%d\n  issue: %d\n  phase: %s\n  priority: %s\n",
		g.words(6), g.words(35), i, i+1, phase, []string{"high", "normal", "low"}[i%3])
}

// agent writes an agent that may ask the next one. Persons answer, so that nothing is run.
func (g *generator) agent(b *bytes.Buffer, i int) {
	head(b, "Agent", name("agents", i))
	fmt.Fprintf(b, "  role: %s\n  description: >-\n    %s\n  concurrency: %d\n  canClarify: [%s]\n  runner:\n    human:\n",
		[]string{"architect", "engineer", "tester", "reviewer"}[i%4], g.words(30), 1+i%3, g.nextAgent(i))
	fmt.Fprintf(b, "      contact: %s\n", g.words(5))
}

func (g *generator) workflow(b *bytes.Buffer, i int) {
	head(b, "Workflow", name("workflows", i))
	fmt.Fprintf(b, "  title: %s\n  steps:\n", g.words(5))
	for s := range 3 + i%3 {
		fmt.Fprintf(b, "    - id: step-%d\n      title: %s\n      agent: %s\n", s, g.words(8), g.pick("agents"))
		if s > 0 {
			fmt.Fprintf(b, "      needs: [step-%d]\n", s-1)
		}
	}
}

func (g *generator) dag(b *bytes.Buffer, i int) {
	head(b, "DAG", name("dags", i))
	fmt.Fprintf(b, "  session: %s\n  description: %s\n  policy: {maxConcurrency: 4, retry: {limit: 1, backoff: 1s}}\n  nodes:\n",
		name("sessions", i%g.amount("sessions")), g.words(12))
	for n := range 3 + g.rnd.IntN(3) {
		fmt.Fprintf(b, "    - name: node_%d\n      run: [\"true\", %q]\n", n, g.words(4))
		if n > 0 {
			fmt.Fprintf(b, "      needs: [node_%d]\n", g.rnd.IntN(n))
		}
	}
}

func (g *generator) observation(b *bytes.Buffer, i int) {
	head(b, "Observation", name("observations", i))
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Minute)
	fmt.Fprintf(b, "  agent: %s\n  issue: %d\n  session: %s\n  timestamp: %q\n  entries:\n",
		g.pick("agents"), 1+i%97, g.pick("sessions"), at.Format(time.RFC3339))
	for e := range 1 + i%3 {
		fmt.Fprintf(b, "    - category: %s\n      content: %s\n", []string{"decision", "key-fact", "error"}[e], g.words(14))
	}
}

func (g *generator) request(b *bytes.Buffer, i int) {
	head(b, "ClarificationRequest", name("clarificationrequests", i))
	from := i % g.amount("agents")
	fmt.Fprintf(b, "  issue: %d\n  from: %s\n  to: %s\n  topic: %s\n  question: >-\n    %s?\n  blocking: %v\n", 1+i%97,
		name("agents", from), g.nextAgent(from), g.words(5), g.words(40), i%4 == 0)
}

// nextAgent names the agent after the given one. In a tree too small for two there is a name that does not exist.
func (g *generator) nextAgent(i int) string { return name("agents", (i+1)%max(2, g.amount("agents"))) }

// reply writes the answer of a person, so that no time limit is over between one run and the next.
func (g *generator) reply(b *bytes.Buffer, i int) {
	head(b, "Reply", name("replies", i))
	fmt.Fprintf(b, "  clarification: %s\n  type: answer\n  from: person-%d\n  body: >-\n    %s.\n",
		name("clarificationrequests", i%g.amount("clarificationrequests")), i%7, g.words(45))
}

// action writes verbs that are applied at once and leave a paused DAG as it is.
func (g *generator) action(b *bytes.Buffer, i int) {
	head(b, "Action", name("actions", i))
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Minute)
	fmt.Fprintf(b, "  target: dag/%s\n  verb: %s\n  by: team-%d\n  reason: %s\n  at: %q\n",
		name("dags", i%g.amount("dags")), []string{"pause", "resume"}[i%2], i, g.words(20), at.Format(time.RFC3339))
}

// vocabulary has the words of the texts.
var vocabulary = strings.Fields(`adapter agent answer archive batch branch build cache change check clock commit condition
	conflict daemon deadline decision digest document engine entry error event failure field file folder graph history
	index input interval issue journal key layer ledger limit lock log merge message migration module node object
	observation order output owner package path pattern phase plan policy process prompt property queue reason record
	release repository request result retry review role schema scope session signal snapshot source spec state status
	step store string summary symbol table target task test thread timeout token trace tree trigger value verb version
	watcher window worker writer`)

// words is a text of n words.
func (g *generator) words(n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = vocabulary[g.rnd.IntN(len(vocabulary))]
	}
	return strings.Join(out, " ")
}
