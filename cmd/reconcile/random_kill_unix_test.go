//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/mutants"
)

// randomHead is what the programs of random DAGs begin with.
const randomHead = agentHead + `key=$(printf %s "$RECONCILE_RUN" | sed 's/-[0-9]*$//' | tr / _)
live=$RECONCILE_ROOT/../live; mkdir -p "$live" "$RECONCILE_ROOT/out" "$RECONCILE_ROOT/../seen"
for other in "$live/$key".*; do
  [ -e "$other" ] || continue
  case $(ps -o stat= -p "${other##*.}") in
  '' | Z*) ;;
  *) echo "$RECONCILE_RUN" >> "$live/../twice" ;;
  esac
done
: > "$live/$key.$$"
trap 'rm -f "$live/$key.$$"' EXIT
mark() { echo "$1 $RECONCILE_DAG $RECONCILE_NODE $$ $(date +%s%N)" >> "$RECONCILE_ROOT/../times"; }
work() { # file, mode, result, attempts that fail, what it was told
  mark begin
  sleep 0.0$((($$ % 7) + 1))
  printf '%s' "$5" > "$RECONCILE_ROOT/../seen/$RECONCILE_DAG-$RECONCILE_NODE"
  case $2 in
  fail) mark end; exit 3 ;;
  flaky) [ "$RECONCILE_ATTEMPT" -gt "$4" ] || { mark end; exit 3; } ;;
  slow) sleep 600 ;;
  esac
  [ -n "$list" ] && echo "$3" > "$1" || echo "{\"n\": $3}" > "$1"
  mark end
}
list=
`

// randomTree is a tree of random DAGs, which are edited, decided by people and killed while they run.
type randomTree struct {
	*killedTree
	r         *rand.Rand
	dags      []*randomDAG
	templates []*randomDAG
	log       []string
}

func (t *randomTree) note(format string, args ...any) {
	t.log = append(t.log, fmt.Sprintf(format, args...))
}

func newRandomTree(test *testing.T, bin string, r *rand.Rand) *randomTree {
	t := &randomTree{r: r, killedTree: &killedTree{T: test, dir: filepath.Join(inMemory(test), "tree"), bin: bin, home: test.TempDir()}}
	t.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.home, "GIT_CONFIG_NOSYSTEM=1"}
	files := map[string]string{"head.sh": randomHead, "specs/agents/boss.yaml": agentSpec("boss", "runner: {human: {}}"),
		"reconcile.yaml": fmt.Sprintf("apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\nspec: {limits: {concurrentTasks: %d}, runs: {grace: 200ms}}\n", 1+r.IntN(4))}
	for i := range 2 {
		files[fmt.Sprintf("specs/sessions/s%d.yaml", i)] = fmt.Sprintf("apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: s%d}\n"+
			"spec: {title: S, priority: %s, weight: %d, whenDone: %s}\n", i, one(r, "high", "normal", "background"), 1+r.IntN(3), one(r, "stay", "complete"))
		t.templates = append(t.templates, newRandomDAG(r, fmt.Sprintf("t%d", i), "", 3, nil))
	}
	for i := range 1 + r.IntN(3) {
		t.dags = append(t.dags, newRandomDAG(r, fmt.Sprintf("d%d", i), one(r, "s0", "s1"), 9, t.templates))
	}
	for _, d := range slices.Concat(t.templates, t.dags) {
		files["specs/dags/"+d.name+".yaml"] = d.object()
	}
	writeFiles(test, t.dir, files)
	return t
}

// start starts reconcile.
func (t *randomTree) start(args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.Command(t.bin, args...)
	var out bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = t.dir, t.env, &out, &out
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, &out
}

// end waits for a process to end, or kills it.
func (t *randomTree) finish(cmd *exec.Cmd, out *bytes.Buffer, after time.Duration) int {
	t.Helper()
	if after > 0 {
		killed := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		defer killed.Stop()
	} else {
		stuck := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
		defer stuck.Stop()
	}
	_ = cmd.Wait()
	code := cmd.ProcessState.ExitCode()
	if code < 0 {
		t.kills++
	}
	if code != 0 && code != 4 && code != -1 || code < 0 && after == 0 || strings.Contains(out.String(), "panic") {
		t.fail("%v: exit %d: %s", cmd.Args, code, out)
	}
	return code
}

func (t *randomTree) fail(format string, args ...any) {
	t.Helper()
	for _, d := range slices.Concat(t.templates, t.dags) {
		t.Log(d.object())
	}
	t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(t.log, "\n"))
}

// round runs one or two processes, kills them, and edits the tree meanwhile.
func (t *randomTree) round() {
	t.Helper()
	before, ran := recordedKeys(t.dir), effects(t.dir)
	type process struct {
		*exec.Cmd
		out *bytes.Buffer
	}
	var all []process
	for range 1 + t.r.IntN(3)/2 {
		cmd, out := t.start("-q")
		all = append(all, process{cmd, out})
	}
	if t.r.IntN(2) == 0 {
		time.Sleep(time.Duration(t.r.IntN(300)) * time.Millisecond)
		t.change()
	}
	for _, p := range all {
		after := time.Duration(0)
		if t.r.IntN(5) > 0 {
			after = time.Duration(1+t.r.IntN(700)) * time.Millisecond
		}
		code := t.finish(p.Cmd, p.out, after)
		t.note("run, after %s: exit %d", after, code)
	}
	for _, key := range before {
		if effects(t.dir)[key] != ran[key] {
			t.fail("%s was on record and ran again", key)
		}
	}
	if err := wholeRecords(t.dir); err != nil {
		t.fail("%v", err)
	}
}

// change edits a DAG.
func (t *randomTree) change() {
	d := one(t.r, t.dags...)
	n := one(t.r, d.nodes...)
	switch t.r.IntN(5) {
	case 0:
		d.add(t.r, t.templates)
	case 1:
		n.mode = one(t.r, "ok", "ok", "fail")
		if n.kind == "person" {
			n.mode = "ok"
		}
	case 2:
		if n.kind != "call" {
			n.lane = one(t.r, "critical", "background")
		}
	default:
		if n.kind != "person" { // an answer that waits would be taken for the new question
			n.n += 10
		}
	}
	t.note("change %s %s", d.name, n.name)
	path := filepath.Join(t.dir, "specs/dags", d.name+".yaml")
	if err := os.WriteFile(path+".new~", []byte(d.object()), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new~", path); err != nil {
		t.Fatal(err)
	}
}

// status reads the status of a DAG.
func (t *randomTree) status(d *randomDAG) *schemas.DAGStatus {
	data, err := os.ReadFile(filepath.Join(t.dir, "state/dags", d.name+".json"))
	var st struct{ Status schemas.DAGStatus }
	if err != nil || json.Unmarshal(data, &st) != nil {
		return new(schemas.DAGStatus)
	}
	return &st.Status
}

// decide lets people approve what waits for them, and reports whether anything did.
func (t *randomTree) decide() (any bool) {
	for _, d := range t.dags {
		for name, n := range t.status(d).Nodes.All() {
			if n.State != schemas.NodeBlocked {
				continue
			}
			any = true
			args := []string{"-q", "approve", "dag/" + d.name, name, "--no-run"}
			if node := d.node(name); node != nil && node.kind == "person" {
				args = append(args, "--answer", fmt.Sprintf(`{"n": %d}`, node.n))
			}
			cmd, out := t.start(args...)
			after := time.Duration(0)
			if t.r.IntN(4) == 0 {
				after = time.Duration(1+t.r.IntN(30)) * time.Millisecond
			}
			_ = out
			t.note("approve %s %s, after %s: exit %d", d.name, name, after, t.approved(cmd, out, after))
		}
	}
	return any
}

func (t *randomTree) approved(cmd *exec.Cmd, out *bytes.Buffer, after time.Duration) int {
	if after > 0 {
		killed := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		defer killed.Stop()
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code > 0 {
		t.note("approve: %s", out.String())
	}
	return cmd.ProcessState.ExitCode()
}

// verify compares the tree with what the oracle says.
func (t *randomTree) verify() {
	t.Helper()
	for _, d := range t.dags {
		st := t.status(d)
		o := newOracle(d, t.templates, st)
		for _, f := range o.flat {
			if o.is[f.name].State != endSucceeded || f.join || f.kind == "person" || f.final {
				continue
			}
			seen, _ := os.ReadFile(filepath.Join(t.dir, "../seen", d.name+"-"+f.name))
			if string(seen) != o.seen(f) {
				o.fault("%s was told %q, want %q", f.name, seen, o.seen(f))
			}
		}
		t.attempts(o)
		if len(o.wrong) > 0 {
			text, _ := json.MarshalIndent(st, "", " ")
			t.Log(string(text))
			t.fail("after %d kills:\n%s", t.kills, strings.Join(o.wrong, "\n"))
		}
	}
	if twice, err := os.ReadFile(filepath.Join(t.dir, "../twice")); err == nil {
		t.fail("two runs of a key lived at once: %s", twice)
	}
	t.overlaps()
}

// attempts compares the records of failures with the limits.
func (t *randomTree) attempts(o *oracle) {
	for _, f := range o.flat {
		is, failures, successes := o.is[f.name], 0, 0
		files, _ := filepath.Glob(filepath.Join(t.dir, "state/runs/dags", o.dag.name, f.name+"-*.json"))
		for _, p := range files {
			var run schemas.Run
			data, _ := os.ReadFile(p)
			if json.Unmarshal(data, &run) != nil || run.Node != f.name || run.NodeKey != is.Key {
				continue
			}
			switch run.Outcome {
			case schemas.OutcomeFailed, schemas.OutcomeTimedOut:
				failures++
			case schemas.OutcomeSucceeded:
				successes++
			}
		}
		switch {
		case is.State == endSucceeded && !f.join && f.kind != "person" && successes != 1:
			o.fault("%s has %d records of a success", f.name, successes)
		case is.State == endFailed && !f.join && failures != f.retry+1 && is.Reason != "WhenFailed":
			o.fault("%s has failed %d times, and its limit is %d", f.name, failures, f.retry)
		}
	}
}

// overlaps compares when programs ran with what must not run at once.
func (t *randomTree) overlaps() {
	type span struct {
		dag, node string
		from, to  int
	}
	var spans []*span
	open := map[string]*span{}
	data, _ := os.ReadFile(filepath.Join(t.dir, "../times"))
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) != 5 {
			continue
		}
		at, _ := strconv.Atoi(f[4])
		id := f[1] + f[2] + f[3]
		if f[0] == "begin" {
			open[id] = &span{f[1], f[2], at, 0}
		} else if s := open[id]; s != nil {
			s.to = at
			spans = append(spans, s)
		}
	}
	for i, a := range spans {
		for _, b := range spans[:i] {
			if a.from >= b.to || b.from >= a.to {
				continue
			}
			if a.dag == b.dag && a.node == b.node || t.touches(a.dag, a.node) && t.touches(b.dag, b.node) {
				t.fail("%s %s and %s %s ran at once, from %d to %d and from %d to %d", a.dag, a.node, b.dag, b.node, a.from, a.to, b.from, b.to)
			}
		}
	}
}

func (t *randomTree) touches(dag, node string) bool {
	for _, d := range t.dags {
		if d.name == dag {
			name, _, _ := strings.Cut(node, "_")
			n := d.node(name)
			return n != nil && n.kind != "call" && n.touches != ""
		}
	}
	return false
}

// TestRandomDAGsKilled runs random trees, kills their processes at random instants, edits them meanwhile, and compares how they end with
// what an oracle says.
func TestRandomDAGsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("runs many DAGs with kills")
	}
	bin, first := self(t), uint64(0)
	if s := os.Getenv("RECONCILE_SEED"); s != "" {
		first, _ = strconv.ParseUint(s, 10, 64)
	}
	for seed := first; seed < first+uint64(mutants.Size(2, 4, 100)); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			tree := newRandomTree(t, bin, rand.New(rand.NewPCG(seed, 17)))
			for range 2 + tree.r.IntN(5) {
				tree.round()
				tree.decide()
			}
			for left := 40; ; left-- {
				cmd, out := tree.start("-q")
				tree.finish(cmd, out, 0)
				if !tree.decide() {
					break
				} else if left == 0 {
					tree.fail("people are asked for ever")
				}
			}
			cmd, out := tree.start("-q")
			tree.finish(cmd, out, 0)
			tree.verify()
		})
	}
}
