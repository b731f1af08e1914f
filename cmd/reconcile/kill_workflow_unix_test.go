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
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// liveHead is put in front of the agents that are killed: each leaves its run in ../effects, and in ../twice if another run under its key
// lives. It takes a while, so that kills meet it.
const liveHead = agentHead + `key=$(printf %s "$RECONCILE_RUN" | sed 's/-[0-9]*$//' | tr / _)
mkdir -p ../live
for other in ../live/"$key".*; do
  [ -e "$other" ] || continue
  case $(ps -o stat= -p "${other##*.}") in
  '' | Z*) ;; # it has ended, though nobody may have taken note
  *) echo "$RECONCILE_RUN" >> ../twice ;;
  esac
done
: > ../live/"$key".$$
trap 'rm -f ../live/"$key".$$' EXIT
sleep 0.1
`

// killedWorkflow is the tree of examples/issue-to-change that is started by a file.
type killedWorkflow struct {
	*testing.T
	dir, bin string
	env      []string
	kills    int
}

func newKilledWorkflow(t *testing.T) *killedWorkflow {
	k := &killedWorkflow{T: t, dir: filepath.Join(inMemory(t), "tree"), bin: self(t),
		env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1"}}
	if err := os.CopyFS(k.dir, os.DirFS("../../examples/issue-to-change")); err != nil {
		t.Fatal(err)
	}
	agent, err := os.ReadFile(filepath.Join(k.dir, "agents/small.sh"))
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, k.dir, map[string]string{"agents/small.sh": liveHead + string(agent), "specs/actions/go.yaml": startGo})
	return k
}

// run runs the tree, and kills the process after a time; 0: never. No other process of the run is killed.
func (k *killedWorkflow) run(after time.Duration) {
	k.Helper()
	recorded, before := recordedKeys(k.dir), effects(k.dir)
	cmd := exec.Command(k.bin, "-q")
	var out bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = k.dir, k.env, &out, &out
	cmd.WaitDelay = time.Second // what lives on may hold the output
	if err := cmd.Start(); err != nil {
		k.Fatal(err)
	}
	if after > 0 {
		killed := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		defer killed.Stop()
	}
	_ = cmd.Wait()
	switch {
	case cmd.ProcessState.ExitCode() < 0:
		k.kills++
	case cmd.ProcessState.ExitCode() != 0:
		k.Fatalf("exit %d: %s", cmd.ProcessState.ExitCode(), out.String())
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

// end is what the run of the workflow leaves: its files, and how its nodes and records stand, whatever the attempts.
func (k *killedWorkflow) end() string {
	k.Helper()
	var b strings.Builder
	for _, p := range []string{"SUMMARY.md", "greet.sh", "docs/requirements.md", "docs/design.md"} {
		data, err := os.ReadFile(filepath.Join(k.dir, p))
		fmt.Fprintf(&b, "%s: %s%v\n", p, data, err)
	}
	data, err := os.ReadFile(filepath.Join(k.dir, "state/dags/feature-42.json"))
	var st struct{ Status schemas.DAGStatus }
	if err != nil || json.Unmarshal(data, &st) != nil {
		k.Fatalf("no status: %v: %s", err, data)
	}
	for name, n := range st.Status.Nodes {
		fmt.Fprintf(&b, "%s %s %s\n", name, n.State, n.Key)
	}
	lines := strings.Split(b.String(), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
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

// TestWorkflowKilledTenTimes kills the run of a workflow with SIGKILL at ten random instants, one after the other: in the way to the
// question to a person, and after the answer. It ends as one that nothing happened to; no recorded result is made again, and of no key
// two runs live at once. The agents of a killed run live on until the next run ends them.
func TestWorkflowKilledTenTimes(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a workflow with many kills")
	}
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("the instants are those of the seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	undisturbed, killed := newKilledWorkflow(t), newKilledWorkflow(t)
	answer := map[string]string{"specs/actions/release.yaml": answerRelease}
	for range 2 {
		begun := time.Now()
		undisturbed.run(0)
		took := time.Since(begun)
		for want := killed.kills + 5; killed.kills < want; {
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
	if want, got := undisturbed.end(), killed.end(); got != want || !strings.Contains(got, "summary Succeeded") {
		t.Errorf("after %d kills:\n%s\nwithout:\n%s", killed.kills, got, want)
	}
	for _, k := range []*killedWorkflow{undisturbed, killed} {
		if twice, err := os.ReadFile(filepath.Join(k.dir, "../twice")); err == nil {
			t.Errorf("two runs of a key lived at once: %s", twice)
		}
	}
}
