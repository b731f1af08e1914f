//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/mutants"
)

// liveHead is put in front of the agents that are killed: each leaves its run in ../effects, and in ../twice if another run in its workspace
// lives, or one under its key if it has none. It takes a while, so that kills meet it. Where ../strikes has the
// number of its start, it has reconcile killed before it goes on.
const liveHead = agentHead + `live=$RECONCILE_ROOT/../live; mkdir -p "$live"
start=$(grep -c . "$live/../effects")
case $PWD in
"$RECONCILE_ROOT"*) key=$(printf %s "$RECONCILE_RUN" | sed 's/-[0-9]*$//' | tr / _) ;;
*) key=${PWD##*/} ;;
esac
for other in "$live/$key".*; do
  [ -e "$other" ] || continue
  case $(ps -o stat= -p "${other##*.}") in
  '' | Z*) ;; # it has ended, though nobody may have taken note
  *) echo "$RECONCILE_RUN" >> "$live/../twice" ;;
  esac
done
: > "$live/$key.$$"
strike() {
  [ -e "$live/../strikes/$start.$1" ] || return
  echo "$start.$1" > "$live/../strike"
  while [ -e "$live/../strikes/$start.$1" ]; do sleep 0.01; done
}
trap 'rm -f "$live/$key.$$"; strike end' EXIT
strike begin
` + takesLong

// takesLong is the line of a program that takes a while.
const takesLong = "sleep 0.1\n"

// killedTree is a tree whose runs are killed.
type killedTree struct {
	*testing.T
	dir, bin, home string
	env            []string
	kills          int
	dag            string   // whose nodes count at the end
	makes          []string // the files that the nodes make
}

// newKilledTree makes a tree of files, in the DAG of which the nodes make some.
func newKilledTree(t *testing.T, files map[string]string, dag string, makes ...string) *killedTree {
	k := &killedTree{T: t, dir: filepath.Join(inMemory(t), "tree"), bin: self(t), dag: dag, makes: makes,
		home: onDisk(t)}
	k.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + k.home, "GIT_CONFIG_NOSYSTEM=1"}
	writeFiles(t, k.dir, files)
	return k
}

// onDisk is a folder that is not in memory, also where TMPDIR is: confined programs that may write a folder there may write no other one, and those of
// trees in memory note what they do beside the tree.
func onDisk(t *testing.T) string {
	dir, err := os.MkdirTemp("/tmp", "home")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// run runs the tree, and kills the process after a time; 0: never. No other process of the run is killed.
func (k *killedTree) run(after time.Duration) {
	k.Helper()
	recorded, before := recordedKeys(k.dir), effects(k.dir)
	cmd := exec.Command(k.bin, "-q")
	out, err := os.CreateTemp(k.home, "out") // a file: what lives on keeps nobody waiting for its end
	if err != nil {
		k.Fatal(err)
	}
	defer out.Close()
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = k.dir, k.env, out, out
	if err := cmd.Start(); err != nil {
		k.Fatal(err)
	}
	if after > 0 {
		killed := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		defer killed.Stop()
	}
	if _, err := os.Stat(filepath.Join(k.dir, "../strikes")); err == nil {
		defer k.strikes(cmd.Process)()
	}
	_ = cmd.Wait()
	switch {
	case cmd.ProcessState.ExitCode() < 0:
		k.kills++
	case cmd.ProcessState.ExitCode() != 0:
		said, _ := os.ReadFile(out.Name())
		k.Fatalf("exit %d: %s", cmd.ProcessState.ExitCode(), said)
	}
	after2 := effects(k.dir)
	for _, key := range recorded {
		if after2[key] != before[key] {
			k.Fatalf("%s was on record and ran again", key)
		}
	}
	if err := wholeRecords(k.dir); err != nil {
		k.Fatal(err)
	}
}

// strikes kills a process when a program asks for that, and returns what ends this.
func (k *killedTree) strikes(p *os.Process) (end func()) {
	k.Helper()
	name := filepath.Join(k.dir, "../strike")
	_ = os.Remove(name) // from the run before
	err := syscall.Mkfifo(name, 0o600)
	if err != nil {
		k.Fatal(err)
	}
	asked, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		k.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(asked); lines.Scan(); {
			_ = p.Kill()
			_ = os.Remove(filepath.Join(k.dir, "../strikes", lines.Text()))
		}
	}()
	return func() {
		_ = asked.Close()
		<-done
	}
}

// end is what the runs leave: files, and how the nodes stand, whatever the attempts.
func (k *killedTree) end() string {
	k.Helper()
	var b strings.Builder
	for _, p := range k.makes {
		data, err := os.ReadFile(filepath.Join(k.dir, p))
		fmt.Fprintf(&b, "%s: %s%v\n", p, data, err)
	}
	for name, n := range k.nodes() {
		fmt.Fprintf(&b, "%s %s %s\n", name, n.State, n.Key)
	}
	lines := strings.Split(b.String(), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// nodes are the statuses of the DAG's nodes.
func (k *killedTree) nodes() iter.Seq2[string, *schemas.NodeStatus] {
	k.Helper()
	data, err := os.ReadFile(filepath.Join(k.dir, "state/dags", k.dag+".json"))
	var st struct{ Status schemas.DAGStatus }
	if err != nil || json.Unmarshal(data, &st) != nil {
		k.Fatalf("no status: %v: %s", err, data)
	}
	return st.Status.Nodes.All()
}

// wholeRecords checks that no key has two records of a success.
func wholeRecords(root string) error {
	all := recordedKeys(root)
	slices.Sort(all)
	for i := 1; i < len(all); i++ {
		if all[i] == all[i-1] {
			return fmt.Errorf("%s is on record twice", all[i])
		}
	}
	return nil
}

// killedTenTimes kills the runs of a tree with SIGKILL at ten random instants, one after the other: in the way to what a person has to
// answer, and after the answer. It ends as one that nothing happened to; no recorded result is made again, and of no key two runs live at
// once. What a killed run has started lives on until the next run ends it.
func killedTenTimes(t *testing.T, undisturbed, killed *killedTree, answer map[string]string) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("the instants are those of the seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 2 {
		begun := time.Now()
		undisturbed.run(0)
		took := time.Since(begun)
		for want := killed.kills + mutants.Size(5, 5, 25); killed.kills < want; {
			before := killed.kills
			killed.run(time.Millisecond + time.Duration(random.Int64N(int64(took))))
			if killed.kills == before { // it came to its end before: what is left is killed at its beginning
				killed.run(time.Millisecond)
			}
		}
		killed.run(0)
		writeFiles(t, undisturbed.dir, answer)
		writeFiles(t, killed.dir, answer)
	}
	if want, got := undisturbed.end(), killed.end(); got != want {
		t.Errorf("after %d kills:\n%s\nwithout:\n%s", killed.kills, got, want)
	}
	for _, k := range []*killedTree{undisturbed, killed} {
		if twice, err := os.ReadFile(filepath.Join(k.dir, "../twice")); err == nil {
			t.Errorf("two runs of a key lived at once: %s", twice)
		}
	}
}

// TestWorkflowKilledTenTimes kills the run of a workflow, with the question to a person.
func TestWorkflowKilledTenTimes(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a workflow with many kills")
	}
	t.Parallel()
	files := folderFiles(t, "../../examples/issue-to-change", liveHead)
	files["specs/actions/go.yaml"] = startGo
	tree := func() *killedTree {
		return newKilledTree(t, files, "feature-42", "SUMMARY.md", "greet.sh", "docs/requirements.md", "docs/design.md")
	}
	undisturbed, killed := tree(), tree()
	killedTenTimes(t, undisturbed, killed, map[string]string{"specs/actions/release.yaml": answerRelease})
	if end := killed.end(); !strings.Contains(end, "summary Succeeded") {
		t.Error(end)
	}
}

// TestExpandedDAGKilledTenTimes kills the run of a DAG with all that makes several nodes or runs of one: matrices, a loop, a call and
// final nodes. While it works, an architect accepts a change of its plan.
func TestExpandedDAGKilledTenTimes(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a DAG with many kills")
	}
	t.Parallel()
	tree := func() *killedTree { return newKilledTree(t, expandedFiles(liveHead), "change", expandedMakes...) }
	undisturbed, killed := tree(), tree()
	killedTenTimes(t, undisturbed, killed, map[string]string{"specs/actions/sign.yaml": answerSign})
	end := killed.end()
	for _, node := range []string{"each_b", "build_mac", "judge", "ship_copy", "tests", "sell", "tell"} {
		if !strings.Contains(end, "\n"+node+" Succeeded") {
			t.Errorf("%s has not succeeded:\n%s", node, end)
		}
	}
	if strings.Contains(end, "\nold ") {
		t.Errorf("the change of the plan did not remove the node old:\n%s", end)
	}
}
