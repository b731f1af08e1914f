//go:build unix

package runner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/sandbox"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// TestMain lets the test binary play the commands and runners that tests need as processes of their own.
func TestMain(m *testing.M) {
	sandbox.Main(os.Args)
	Main(os.Args)
	if len(os.Args) > 2 && os.Args[1] == "play" {
		play(os.Args[2], os.Args[3:])
		return
	}
	os.Exit(m.Run())
}

// rig is a runner on a tree of its own.
type rig struct {
	*Runner
	t    testing.TB
	dir  string
	seen []settle.Report // drained by await
	next int             // of seen, the first that nobody was given or passed over
}

func newRig(t testing.TB, o Options) *rig {
	t.Helper()
	if o.Root == "" {
		o.Root = t.TempDir()
	}
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	g := &rig{Runner: r, t: t, dir: r.dir}
	t.Cleanup(func() { g.end() })
	return g
}

// graceOf are settings of runs with the time between SIGTERM and SIGKILL.
func graceOf(d time.Duration) schemas.RunSettings {
	grace := schemas.Duration(d)
	return schemas.RunSettings{Grace: &grace}
}

// end closes the runner without grace.
func (g *rig) end() {
	g.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := g.Close(ctx); err != nil {
		g.t.Error(err)
	}
}

// until drains reports until one satisfies ok, and returns that; those behind it are for the next call.
func (g *rig) until(ok func(settle.Report) bool) settle.Report {
	g.t.Helper()
	timeout := time.After(2 * time.Minute)
	for {
		g.seen = append(g.seen, g.Drain()...)
		for g.next < len(g.seen) {
			g.next++
			if rep := g.seen[g.next-1]; ok(rep) {
				return rep
			}
		}
		select {
		case <-g.Notify():
		case <-timeout:
			g.t.Fatalf("nothing more is reported after %v", g.seen)
		}
	}
}

// await waits for the end of one effect.
func (g *rig) await(key string) settle.Report {
	g.t.Helper()
	return g.until(func(r settle.Report) bool { return r.Key == key && r.Kind.Ends() })
}

func (g *rig) awaitStart(key string) settle.Report {
	g.t.Helper()
	return g.until(func(r settle.Report) bool { return r.Key == key && r.Kind == settle.Started })
}

// do performs one effect and returns its record.
func (g *rig) do(e settle.Effect) *schemas.Run {
	g.t.Helper()
	g.Submit(e)
	return g.record(e.Key)
}

// record waits for the end of one effect and returns its record.
func (g *rig) record(key string) *schemas.Run {
	g.t.Helper()
	rep := g.await(key)
	if rep.Kind != settle.Finished {
		g.t.Fatalf("%s: not finished but %v: %s", key, rep.Kind, rep.Why)
	}
	return rep.Run
}

func (g *rig) write(name, text string) {
	g.t.Helper()
	path := filepath.Join(g.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		g.t.Fatal(err)
	}
	syscall.ForkLock.RLock() // a process that starts meanwhile would hold the file open, and it could not be executed
	err := os.WriteFile(path, []byte(text), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		g.t.Fatal(err)
	}
}

const theKey = "dags/checks/n-0123456789abcdef-1"

func effect(key string, argv ...string) settle.Effect {
	return settle.Effect{
		Key: key, Owner: schemas.Ref{Kind: "DAG", Name: "checks"}, Node: "n", NodeKey: "sha256:1", Seq: 1,
		Task: &settle.Command{Argv: argv},
	}
}

func sh(script string) settle.Effect { return effect(theKey, "sh", "-c", script) }

// What the effects are on record as is durable before anything of them runs.
func TestCommandsStartAfterTheRecordIsDurable(t *testing.T) {
	var g *rig
	asked := 0
	g = newRig(t, Options{Durable: func() error {
		if _, err := os.Stat(filepath.Join(g.dir, "ran")); err == nil {
			t.Error("the command ran first")
		}
		if asked++; asked == 1 {
			return nil
		}
		return errors.New("the disk is gone")
	}})
	g.do(sh("echo > ran"))
	if err := os.Remove(filepath.Join(g.dir, "ran")); err != nil {
		t.Fatal("the command did not run:", err)
	}
	g.Submit(sh("echo > ran"))
	if rep := g.await(theKey); rep.Kind != settle.Broken || !strings.Contains(rep.Err.Error(), "the disk is gone") {
		t.Errorf("reported as %+v", rep)
	}
	if _, err := os.Stat(filepath.Join(g.dir, "ran")); err == nil {
		t.Error("the command ran although the record is not durable")
	}
}

// toolCall is a task that the runner does not know.
type toolCall struct{}

func (toolCall) OutputPaths() []string    { return nil }
func (toolCall) MissingOutputs() []string { return nil }

func TestUnknownTaskIsReported(t *testing.T) {
	g := newRig(t, Options{})
	e := sh("echo")
	e.Task = toolCall{}
	g.Submit(e)
	if rep := g.await(theKey); rep.Kind != settle.Broken || !strings.Contains(rep.Err.Error(), "runner.toolCall cannot be performed") {
		t.Errorf("reported as %+v", rep)
	}
}

func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		name, script, outcome, message, output string
		code                                   int
	}{
		{"success", "echo hello", schemas.OutcomeSucceeded, "", "hello\n", 0},
		{"silence", ":", schemas.OutcomeSucceeded, "", "", 0},
		{"failure", "echo bad >&2; exit 3", schemas.OutcomeFailed, "exit code 3", "bad\n", 3},
		{"signal", "kill -SEGV $$", schemas.OutcomeFailed, "ended by SIGSEGV", "", 139},
		{"kill", "kill -KILL $$", schemas.OutcomeFailed,
			"ended by SIGKILL from outside; perhaps the system was out of memory", "", 137},
		{"both streams in order", "echo a; echo b >&2; echo c", schemas.OutcomeSucceeded, "", "a\nb\nc\n", 0},
		{"no newline at the end", "printf end", schemas.OutcomeSucceeded, "", "end", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := newRig(t, Options{}).do(sh(c.script))
			if run.Outcome != c.outcome || run.Output != c.output || run.Message != c.message {
				t.Errorf("got %s %q %q", run.Outcome, run.Message, run.Output)
			}
			if run.ExitCode == nil || *run.ExitCode != c.code {
				t.Errorf("exit code %v, want %d", run.ExitCode, c.code)
			}
		})
	}
}

func TestRecord(t *testing.T) {
	now := time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC)
	clock := func() time.Time { now = now.Add(time.Second); return now }
	g := newRig(t, Options{Now: clock})
	e := sh("echo x")
	e.Agent = "engineer"
	run := g.do(e)
	want := e.Claim()
	want.Outcome, want.Output, want.Log = schemas.OutcomeSucceeded, "x\n", ".reconcile/logs/"+theKey+".log"
	got := *run
	got.ExitCode, got.StartedAt, got.FinishedAt = nil, schemas.Time{}, schemas.Time{}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if !run.FinishedAt.After(run.StartedAt.Time) || run.StartedAt.Year() != 2026 {
		t.Errorf("started %v, finished %v", run.StartedAt, run.FinishedAt)
	}
	if log, err := os.ReadFile(filepath.Join(g.dir, run.Log)); err != nil || string(log) != "x\n" {
		t.Errorf("log: %q, %v", log, err)
	}
}

// TestSilenceBeginsAfterTools: an agent that was looked at between the end of its tool and its next message has not been silent for the time of the tool.
func TestSilenceBeginsAfterTools(t *testing.T) {
	a := &attempt{task: &settle.Command{Silence: time.Minute}, dialogue: &dialogue{}}
	now := time.Now()
	a.heard.Store(now.UnixNano())
	a.dialogue.busy.Store(true)
	if a.isSilent(now.Add(time.Hour)) {
		t.Error("it is silent while its tool runs")
	}
	a.dialogue.busy.Store(false)
	if a.isSilent(now.Add(time.Hour + 59*time.Second)) {
		t.Error("the time of its tool counts as silence")
	}
	if !a.isSilent(now.Add(time.Hour + time.Minute)) {
		t.Error("it is never silent after a tool")
	}
}

func TestSilenceLeavesNoFile(t *testing.T) {
	g := newRig(t, Options{})
	if run := g.do(sh(":")); run.Log != "" {
		t.Errorf("log %q of a run without output", run.Log)
	}
	g.end()
	var files []string
	filepath.WalkDir(g.dir, func(path string, d os.DirEntry, err error) error {
		if fi, _ := d.Info(); !d.IsDir() && fi.Size() > 0 {
			files = append(files, path)
		}
		return err
	})
	if len(files) > 0 {
		t.Errorf("left: %v", files)
	}
}

func TestProgramsThatCannotBeRun(t *testing.T) {
	g := newRig(t, Options{})
	g.write("plain.txt", "no program")
	if err := os.Chmod(filepath.Join(g.dir, "plain.txt"), 0o644); err != nil {
		t.Fatal(err)
	}
	g.write("noshebang", "text")
	g.write("badinterpreter", "#!/does/not/exist\n")
	for _, c := range []struct {
		message string
		argv    []string
	}{
		{"no program is given", nil},
		{"no program is given", []string{""}},
		{"was not found in PATH: ", []string{"no-such-program"}},
		{"for a shell command use script", []string{"echo a | cat"}},
		{"make it executable (chmod +x)", []string{"./plain.txt"}},
		{"no script with #! in its first line", []string{"./noshebang"}},
		{"or the interpreter in its first line does not", []string{"./badinterpreter"}},
		{"does not exist", []string{"./missing"}},
		{"too long; hand large values over in files", []string{"echo", strings.Repeat("x", 4<<20)}},
	} {
		run := g.do(effect(theKey, c.argv...))
		if run.Outcome != schemas.OutcomeFailed || !strings.Contains(run.Message, c.message) || run.ExitCode != nil {
			t.Errorf("%.60q: got %s %q", c.argv, run.Outcome, run.Message)
		}
	}
}

func TestBadKeys(t *testing.T) {
	g := newRig(t, Options{})
	for _, key := range []string{"../x", "/x", "a//b", "a\nb", "a/../b", strings.Repeat("k", 1001)} {
		if run := g.do(effect(key, "true")); run.Outcome != schemas.OutcomeFailed ||
			!strings.Contains(run.Message, "cannot be the key of an effect") {
			t.Errorf("%.20q: %s %q", key, run.Outcome, run.Message)
		}
	}
}

func TestSubmitTwiceRunsOnce(t *testing.T) {
	g := newRig(t, Options{Slots: 1})
	e := sh("echo once >> runs; read x < gate")
	gate := g.fifo("gate")
	g.Submit(e)
	g.awaitStart(theKey)
	g.Submit(e)
	if n := g.Backlog(); n != 0 {
		t.Errorf("backlog %d", n)
	}
	gate.release()
	g.record(theKey)
	if b, _ := os.ReadFile(filepath.Join(g.dir, "runs")); string(b) != "once\n" {
		t.Errorf("ran: %q", b)
	}
}

func TestQueuedEffects(t *testing.T) {
	g := newRig(t, Options{Slots: 1})
	gate := g.fifo("gate")
	g.Submit(effect("a", "sh", "-c", "read x < gate"))
	g.awaitStart("a")
	for _, key := range []string{"d", "c", "b"} {
		g.Submit(effect(key, "true"))
	}
	first := effect("z", "true")
	first.Rank = -1
	g.Submit(first)
	if got := fmt.Sprint(g.keys()); got != "[a b c d z]" || g.Backlog() != 4 {
		t.Errorf("snapshot %s, backlog %d", got, g.Backlog())
	}
	g.Cancel("c", "not wanted")
	g.Cancel("unknown", "not wanted")
	if rep := g.await("c"); rep.Kind != settle.Released || rep.Why != "not wanted" {
		t.Errorf("got %+v", rep)
	}
	gate.release()
	g.await("d")
	var order []string
	for _, rep := range g.seen {
		if rep.Kind == settle.Started {
			order = append(order, rep.Key)
		}
	}
	if got := fmt.Sprint(order); got != "[a z b d]" {
		t.Errorf("order %s", got)
	}
}

func (g *rig) keys() (keys []string) {
	for _, s := range g.snapshot() {
		keys = append(keys, s.Key)
	}
	return keys
}

func TestForeignPlacesCount(t *testing.T) {
	g := newRig(t, Options{})
	e := sh(":")
	e.Groups = []settle.Group{{Name: "session/health", Limit: 2}}
	g.SetLimits(g.runs.Load(), 0, map[string]int{"session/health": 2})
	g.Submit(e)
	if s := g.snapshot(); len(s) != 1 || s[0].Running {
		t.Fatalf("it runs beyond the limit: %+v", s)
	}
	g.SetLimits(g.runs.Load(), 0, map[string]int{"session/health": 1})
	g.record(theKey)
}

func TestClose(t *testing.T) {
	g := newRig(t, Options{Slots: 1, Runs: graceOf(time.Minute)})
	g.fifo("gate")
	g.Submit(effect("runs", "sh", "-c", "echo started; read x < gate"))
	g.awaitStart("runs")
	g.Submit(effect("waits", "true"))
	if err := g.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	g.Submit(effect("late", "true"))
	got := map[string]settle.ReportKind{}
	for _, rep := range g.Drain() {
		got[rep.Key] = rep.Kind
	}
	want := map[string]settle.ReportKind{
		"runs": settle.Released, "waits": settle.Released, "late": settle.Released,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if err := g.Close(context.Background()); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

// Whatever is cancelled whenever: each effect has one end, and nothing of a closed runner is left in this process.
func TestEachEffectEndsOnce(t *testing.T) {
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	g := newRig(t, Options{Slots: 4, Runs: graceOf(10 * time.Second)})
	gate := g.fifo("gate") // nobody opens it: what reads from it runs out of time
	rnd := rand.New(rand.NewPCG(1, 2))
	const n = 200
	for i := range n {
		e := effect("k"+strconv.Itoa(i), "sh", "-c", []string{":", "echo out", "exit 1", "exec cat gate"}[rnd.IntN(4)])
		e.Command().Timeout = time.Duration(1+rnd.IntN(20)) * time.Millisecond
		e.Groups = []settle.Group{{Name: "g" + strconv.Itoa(i%3), Limit: 1 + i%2}}
		g.Submit(e)
		if rnd.IntN(3) == 0 {
			g.Cancel("k"+strconv.Itoa(rnd.IntN(i+1)), "chance")
		}
	}
	g.await("k97") // nearly the last in order
	g.end()
	gate.file.Close()
	ends := map[string]int{}
	for _, rep := range append(g.seen, g.Drain()...) {
		if rep.Kind != settle.Started {
			ends[rep.Key]++
		}
	}
	for i := range n {
		if key := "k" + strconv.Itoa(i); ends[key] != 1 {
			t.Errorf("%s ended %d times", key, ends[key])
		}
	}
	// Goroutines that have done their work may need a moment to be gone, and longer if the system lets them wait.
	for end := time.Now().Add(2 * time.Minute); runtime.NumGoroutine() > goroutines && time.Now().Before(end); {
		runtime.Gosched()
	}
	if now := runtime.NumGoroutine(); now > goroutines {
		t.Errorf("%d goroutines, %d before", now, goroutines)
	}
	if now := openFiles(t); now > files {
		t.Errorf("%d open files, %d before", now, files)
	}
}

func BenchmarkTrue(b *testing.B) {
	g := newRig(b, Options{Slots: 2})
	for i := range b.N {
		g.Submit(effect("dags/checks/n-"+strconv.Itoa(i)+"-1", "true"))
	}
	for n := 0; n < b.N; {
		<-g.Notify()
		for _, rep := range g.Drain() {
			if rep.Kind == settle.Finished {
				n++
			}
		}
	}
}

// BenchmarkQueue is the cost of submitting and choosing among many effects, 1,000 at a time.
func BenchmarkQueue(b *testing.B) {
	for b.Loop() {
		r := &Runner{o: Options{Slots: 2, Now: time.Now}, jobs: map[string]*job{}, used: map[string]int{}, limits: map[string]int{}}
		for i := range 1000 {
			e := effect(strconv.Itoa(i))
			e.Groups = []settle.Group{{Name: "g" + strconv.Itoa(i%10), Limit: 1}}
			r.enqueue(newJob(e, time.Time{}))
		}
		for j := r.next(); j != nil; j = r.next() {
			r.running--
			r.take(j.effect.Groups, -1)
		}
	}
}

// TestOwnFailureIsNoRecord breaks what reconcile needs for a run; that says nothing about the command.
func TestOwnFailureIsNoRecord(t *testing.T) {
	for _, inTheWay := range []string{".reconcile/leased", ".reconcile/work"} {
		t.Run(inTheWay, func(t *testing.T) {
			g := newRig(t, Options{})
			g.write(inTheWay, "in the way")
			e := sh("echo ran >> ran")
			e.Command().Needs = map[string]settle.Need{"other": {}}
			g.Submit(e)
			r := g.await(e.Key)
			if r.Kind != settle.Broken || r.Run != nil || r.Err == nil || !strings.Contains(r.Err.Error(), ".reconcile") {
				t.Errorf("report %+v; want Broken, and an error that names the file", r)
			}
			if _, err := os.Stat(filepath.Join(g.dir, "ran")); err == nil {
				t.Error("it ran")
			}
		})
	}
}
