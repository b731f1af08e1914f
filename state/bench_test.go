package state

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// generate makes a tree of n objects with statuses in dir: deterministic, and of the sizes that objects have in use.
func generate(t testing.TB, dir string, n int) {
	t.Helper()
	at := schemas.NewTime(time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC))
	ready := []schemas.Condition{{Type: schemas.Ready, Status: schemas.True, Reason: "Succeeded",
		Message: "4 of 4 nodes succeeded", LastTransitionTime: at}}
	history := []schemas.HistoryEntry{{At: at, Reason: "Succeeded", Message: "all nodes succeeded"}}
	made := map[string]bool{}
	write := func(p string, data []byte) {
		p = filepath.Join(dir, p)
		if d := filepath.Dir(p); !made[d] {
			made[d] = true
			if err := os.MkdirAll(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(p, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("specs/agents/engineer.yaml", []byte("apiVersion: "+schemas.APIVersion+
		"\nkind: Agent\nmetadata: {name: engineer}\nspec: {runner: {human: {}}}\n"))
	sessions := max(n/50, 1)
	for i := range n {
		common := schemas.Common{ObservedDigest: fmt.Sprintf("sha256:%064x", i), Phase: "Succeeded", Conditions: ready, History: history}
		var k schemas.Kind
		var name, spec string
		var status schemas.Status
		switch {
		case i < sessions:
			k, name = schemas.SessionKind, fmt.Sprintf("session-%d", i)
			spec = "  title: The body of work number " + strconv.Itoa(i) + "\n  owner: team-" + strconv.Itoa(i) + "\n  maxConcurrentTasks: 8\n"
			status = &schemas.SessionStatus{Common: common}
		case i%2 == 0:
			k, name = schemas.DAGKind, fmt.Sprintf("dag-%d", i)
			spec = fmt.Sprintf(benchDAG, i%sessions)
			nodes := map[string]schemas.NodeStatus{}
			for _, node := range []string{"build", "test", "lint", "pack"} {
				nodes[node] = schemas.NodeStatus{State: schemas.NodeSucceeded, Key: fmt.Sprintf("sha256:%064x", i), Attempts: 1,
					StartedAt: at, FinishedAt: at, ExitCode: new(int)}
			}
			status = &schemas.DAGStatus{Common: common, Nodes: schemas.NodeStatusesOf(nodes), Layers: [][]string{{"build"}, {"test", "lint"}, {"pack"}}}
		default:
			k, name = schemas.ObservationKind, fmt.Sprintf("observation-%d", i)
			spec = fmt.Sprintf(benchObservation, i%sessions, i)
			status = &schemas.ObservationStatus{Common: common}
		}
		write(fmt.Sprintf("specs/%s/%s.yaml", k.Plural, name), fmt.Appendf(nil,
			"apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\nspec:\n%s", schemas.APIVersion, k.Name, name, spec))
		b, err := EncodeStatus(schemas.Ref{Kind: k.Name, Name: name}, status)
		if err != nil {
			t.Fatal(err)
		}
		write("state/"+k.Plural+"/"+name+".json", b)
	}
}

const benchDAG = `  session: session-%d
  nodes:
    - name: build
      run: ["go", "build", "./..."]
    - name: test
      needs: [build]
      run: ["go", "test", "./..."]
    - name: lint
      needs: [build]
      script: staticcheck ./... > report.txt
    - name: pack
      needs: [test, lint]
      run: ["tar", "-czf", "out.tgz", "bin"]
`

const benchObservation = `  agent: engineer
  session: session-%d
  timestamp: "2026-02-27T10:00:00Z"
  entries:
    - category: decision
      content: Chose the repository pattern with one adapter per environment, for the reason number %d.
      anchors: [src/db/adapter.go]
    - category: key-fact
      content: The tests need a database, which the script in tools/ starts and stops.
`

// benchTree is the tree of a benchmark. BENCH_N sets its size, and BENCH_DIR a folder in which it is made only once.
func benchTree(b *testing.B) (dir string, n int) {
	b.Helper()
	n, err := strconv.Atoi(os.Getenv("BENCH_N"))
	if err != nil {
		n = 2000
	}
	if dir = os.Getenv("BENCH_DIR"); dir == "" {
		dir = b.TempDir()
	}
	if _, err := os.Stat(filepath.Join(dir, "specs")); err != nil {
		generate(b, dir, n)
	}
	return dir, n
}

func perObject(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/object")
}

func BenchmarkLoadCold(b *testing.B) {
	dir, n := benchTree(b)
	for b.Loop() {
		if err := os.RemoveAll(filepath.Join(dir, localDir)); err != nil {
			b.Fatal(err)
		}
		load(b, open(b, dir))
	}
	perObject(b, n)
}

func BenchmarkLoadWarm(b *testing.B) {
	dir, n := benchTree(b)
	load(b, open(b, dir))
	load(b, open(b, dir)) // what was racy at the first is not now
	for b.Loop() {
		load(b, open(b, dir))
	}
	perObject(b, n)
}

func BenchmarkFresh(b *testing.B) {
	dir, n := benchTree(b)
	s := open(b, dir)
	load(b, s)
	if err := s.Settle(Summary{}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, ok := open(b, dir).Fresh(); !ok {
			b.Fatal("not fresh")
		}
	}
	perObject(b, n)
}

// ledgersTree is a tree of 10,000 ledgers of five records with a thread of some length each. In every tenth one is open.
func ledgersTree(b *testing.B) string {
	dir := b.TempDir()
	body := strings.Repeat("Keep both behind the repository layer. ", 3)
	for issue := range 10_000 {
		states := []string{"resolved", "resolved", "resolved", "resolved", "resolved"}
		if issue%10 == 0 {
			states[4] = "pending"
		}
		text := strings.ReplaceAll(ledgerOf(issue, states...), "Which?", body)
		put(b, dir, map[string]string{fmt.Sprintf("state/clarifications/issue-%d.json", issue): text})
	}
	return dir
}

// lookAtLedgers decodes what a look at all that is open needs.
func lookAtLedgers(b *testing.B, dir string) {
	s := open(b, dir)
	defer s.Close()
	n := 0
	for _, l := range load(b, s).Ledgers() {
		if l.Open > 0 {
			n += len(l.Records())
		}
	}
	if n != 5000 {
		b.Fatalf("%d records", n)
	}
}

func BenchmarkLedgersCold(b *testing.B) {
	dir := ledgersTree(b)
	for b.Loop() {
		if err := os.RemoveAll(filepath.Join(dir, localDir)); err != nil {
			b.Fatal(err)
		}
		lookAtLedgers(b, dir)
	}
}

func BenchmarkLedgersWarm(b *testing.B) {
	dir := ledgersTree(b)
	settleFiles(b, dir)
	for b.Loop() {
		lookAtLedgers(b, dir)
	}
}

// BenchmarkGitStatus is what the others are measured against.
func BenchmarkGitStatus(b *testing.B) {
	dir, n := benchTree(b)
	git := func(args ...string) {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	git("add", ".")
	git("-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "x")
	git("status", "--porcelain")
	for b.Loop() {
		git("status", "--porcelain")
	}
	perObject(b, n)
}
