package state

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/durable"
)

// TestMain lets the test binary be a second process that works on a tree.
func TestMain(m *testing.M) {
	if dir := os.Getenv("STATE_TEST_HOLD"); dir != "" {
		if err := hold(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if kind := os.Getenv("STATE_TEST_WRITER"); kind != "" {
		if err := writers[kind](os.Getenv("STATE_TEST_DIR"), os.Getenv("STATE_TEST_NAME")); err != nil {
			fmt.Fprintln(os.Stderr, kind, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// hold claims three effects, starts two and finishes one, says so, and waits to be killed.
func hold(dir string) error {
	s, err := Open(dir, Options{Kinds: testKinds, Now: time.Now})
	if err != nil {
		return err
	}
	j, err := s.Journal()
	if err != nil {
		return err
	}
	if err := j.Claim([]schemas.Run{run(1), run(2), run(3)}); err != nil {
		return err
	}
	for i := 1; i <= 2; i++ {
		if err := j.Started(run(i).Key, time.Now(), os.Getpid()); err != nil {
			return err
		}
	}
	if err := j.Finish([]schemas.Run{finished(1)}); err != nil {
		return err
	}
	fmt.Println("ready")
	_, err = bufio.NewReader(os.Stdin).ReadString('\n')
	return err
}

func run(i int) schemas.Run {
	return schemas.Run{Key: fmt.Sprintf("dags/checks/build-0123456789abcdef-%d", i), Owner: "dag/checks", Node: "build",
		NodeKey: "sha256:01", Seq: i}
}

func finished(i int) schemas.Run {
	r := run(i)
	r.Outcome = schemas.OutcomeSucceeded
	cost := 0.0345
	r.Turn = &schemas.Turn{Profile: "claude", Runner: schemas.RunnerCommand, Model: "m-1", SessionID: "s-1", StopReason: "end_turn",
		Usage:     &schemas.Usage{Requests: 2, InputTokens: 1200, OutputTokens: 30, CachedInputTokens: 1000, ContextUsed: 700, ContextWindow: 200000},
		UsageFrom: schemas.UsageFromAgent, CostUSD: &cost,
		Failure: &schemas.TurnFailure{Class: schemas.FailureLimit, Message: "slow down", Status: 429, Until: schemas.NewTime(time.Date(2026, 2, 27, 14, 5, 0, 0, time.UTC))}}
	r.Unknown = json.RawMessage(`{"cost":"0.10 USD","usage":{"tokens":7}}`) // a newer version wrote it
	r.FinishedAt = schemas.NewTime(time.Date(2026, 2, 27, 10, i, 0, 0, time.UTC))
	return r
}

// holder is a process that runs hold.
func holder(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "STATE_TEST_HOLD="+dir)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the holder said %q (%v)", line, err)
	}
	return cmd
}

func journal(t testing.TB, s *Store) *Journal {
	t.Helper()
	j, err := s.Journal()
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func keys(e *Entry) (runs, claims []string) {
	if e == nil {
		return nil, nil
	}
	for _, r := range e.Runs() {
		runs = append(runs, fmt.Sprint(r.Seq))
	}
	for _, c := range e.Claims {
		claims = append(claims, fmt.Sprint(c.Seq))
	}
	return runs, claims
}

func expect(t *testing.T, e *Entry, runs, claims string) {
	t.Helper()
	r, c := keys(e)
	if strings.Join(r, " ") != runs || strings.Join(c, " ") != claims {
		t.Errorf("runs %v and claims %v, want %q and %q", r, c, runs, claims)
	}
}

func TestRecordElsewhere(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	holder(t, dir)
	tree := load(t, s)
	expect(t, tree.Entry(checks), "1", "2 3")
	must(t, s.RecordElsewhere(t.Context()))
	if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(s.RunPath(run(1).Key)))); err != nil {
		t.Error("the result of the other process is not a file:", err)
	}
	tree, _ = refresh(t, s, tree)
	expect(t, tree.Entry(checks), "1", "2 3")
	if got := s.Journals(); len(got) != 1 || got[0].Results != 1 || got[0].Claims != 2 {
		t.Errorf("the journal has %+v", got)
	}
}

// TestOrphanThatStarted: an agent that was started just before its process was killed counts as started.
func TestOrphanThatStarted(t *testing.T) {
	s := open(t, t.TempDir())
	agent, known := Claim{Run: run(3)}, Claim{Run: run(3)}
	agent.Agent, known.Agent = "engineer", "engineer"
	known.StartedAt = schemas.NewTime(time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC))
	if o := s.orphan(agent); !o.StartedAt.IsZero() {
		t.Errorf("one without a token started at %s", o.StartedAt)
	}
	must(t, durable.WriteFile(s.root, WorkDir, TokenFile(agent.Key), nil))
	if o := s.orphan(agent); o.StartedAt.IsZero() {
		t.Error("one with a token did not start")
	}
	if o := s.orphan(known); o.StartedAt != known.StartedAt {
		t.Errorf("started at %s", o.StartedAt)
	}
	if o := s.orphan(Claim{Run: run(3)}); !o.StartedAt.IsZero() {
		t.Errorf("a command has no token, and started at %s", o.StartedAt)
	}
	must(t, s.ForgetOrphans(t.Context(), []Orphan{{agent}}, nil))
	if _, err := s.root.Lstat(TokenFile(agent.Key)); !os.IsNotExist(err) {
		t.Errorf("the token of one that is forgotten: %v", err)
	}
}

func TestJournalOfAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	cmd := holder(t, dir)
	tree := load(t, s)
	expect(t, tree.Entry(checks), "1", "2 3")
	if c := tree.Entry(checks).Claims[0]; c.PID != cmd.Process.Pid || c.StartedAt.IsZero() {
		t.Errorf("the claim does not tell what runs: %+v", c)
	}
	if orphans, err := s.Recover(t.Context()); err != nil || len(orphans) != 0 {
		t.Fatalf("a live process's claims were taken for orphans: %v, %v", orphans, err)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()

	tree, refs := refresh(t, s, tree)
	if len(refs) != 1 {
		t.Errorf("the death of the process was noticed for %v", refs)
	}
	expect(t, tree.Entry(checks), "1", "")
	orphans, err := s.Recover(t.Context())
	must(t, err)
	if len(orphans) != 2 || orphans[0].PID != cmd.Process.Pid || orphans[1].PID != 0 {
		t.Fatalf("orphans %+v", orphans)
	}
	if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(s.RunPath(run(1).Key)))); err != nil {
		t.Error("the result is not a file:", err)
	}
	must(t, s.ForgetOrphans(t.Context(), orphans[:1], nil))
	if again, err := s.Recover(t.Context()); err != nil || len(again) != 2 {
		t.Errorf("a journal with a claim that nobody buried was removed: %v, %v", again, err)
	}
	must(t, s.ForgetOrphans(t.Context(), orphans, nil))
	if again, err := s.Recover(t.Context()); err != nil || len(again) != 0 || len(s.journalNames()) != 0 {
		t.Errorf("orphans %v, journals %v, %v", again, s.journalNames(), err)
	}
	tree, _ = refresh(t, s, tree)
	expect(t, tree.Entry(checks), "1", "")
}

func TestCheckpoint(t *testing.T) {
	dir := t.TempDir()
	s, other := open(t, dir), open(t, dir)
	tree, seen := load(t, s), load(t, other)
	j := journal(t, s)
	must(t, j.Claim([]schemas.Run{run(1), run(2)}))
	must(t, j.Started(run(2).Key, time.Now(), os.Getpid()))
	must(t, j.Finish([]schemas.Run{finished(1)}))
	if _, err := s.Recover(t.Context()); err != nil { // must not swallow what the journal says anew
		t.Fatal(err)
	}
	for range 3 {
		tree, _ = refresh(t, s, tree)
		seen, _ = refresh(t, other, seen)
		expect(t, tree.Entry(checks), "1", "2")
		expect(t, seen.Entry(checks), "1", "2")
		must(t, j.Checkpoint(t.Context()))
	}
	must(t, j.Release([]string{run(2).Key}))
	tree, _ = refresh(t, s, tree)
	expect(t, tree.Entry(checks), "1", "")
	must(t, j.Close())
	must(t, j.Close())
	if names := s.journalNames(); len(names) != 0 {
		t.Errorf("a closed journal is left: %v", names)
	}
	if err := j.Claim([]schemas.Run{run(3)}); err == nil {
		t.Error("a closed journal took a claim")
	}
	expect(t, load(t, open(t, dir)).Entry(checks), "1", "")
}

// TestRecordsStand has a record come in from elsewhere while this process holds another one of the same run: the file
// stays as it is. One that cannot be used is written over.
func TestRecordsStand(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	load(t, s)
	j := journal(t, s)
	must(t, j.Claim([]schemas.Run{run(1), run(2)}))
	must(t, j.Finish([]schemas.Run{finished(1), finished(2)}))
	theirs := finished(1)
	theirs.Outcome = schemas.OutcomeFailed
	data, err := EncodeRun(&theirs)
	must(t, err)
	for key, text := range map[string]string{run(1).Key: string(data), run(2).Key: "{"} {
		p := filepath.Join(dir, s.RunPath(key))
		must(t, os.MkdirAll(filepath.Dir(p), 0o755))
		must(t, os.WriteFile(p, []byte(text), 0o644))
	}
	must(t, j.Close())
	runs := load(t, open(t, dir)).Entry(checks).Runs()
	if len(runs) != 2 || runs[0].Outcome != schemas.OutcomeFailed || runs[1].Outcome != schemas.OutcomeSucceeded {
		t.Errorf("on record: %+v", runs)
	}
}

// TestTornJournal cuts a journal at every byte: what stands before the cut in whole lines is read, and nothing else.
func TestTornJournal(t *testing.T) {
	lines := []line{}
	for i := 1; i <= 3; i++ {
		c, f := run(i), finished(i)
		lines = append(lines, line{Op: opClaim, Key: c.Key, Run: &c}, line{Op: opStart, Key: c.Key, PID: i}, line{Op: opFinish, Key: f.Key, Run: &f})
	}
	var whole []byte
	ends := []int{0}
	for _, l := range lines {
		var err error
		whole, err = appendLine(whole, l)
		must(t, err)
		ends = append(ends, len(whole))
	}
	for cut := range len(whole) + 1 {
		n, want := 0, 0
		size := parseLines(whole[:cut], func(l line) {
			if !reflect.DeepEqual(l, lines[n]) {
				t.Fatalf("cut at %d: line %d is %+v", cut, n, l)
			}
			n++
		})
		for want+1 < len(ends) && ends[want+1] <= cut {
			want++
		}
		if n != want || size != ends[want] {
			t.Fatalf("cut at %d: %d lines of %d bytes, want %d of %d", cut, n, size, want, ends[want])
		}
	}
}

// TestDamagedJournal flips a bit: the lines before stand, the rest is reported and not used.
func TestDamagedJournal(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	cmd := holder(t, dir)
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	p := filepath.Join(dir, journalDir, s.journalNames()[0]+journalSuffix)
	data, err := os.ReadFile(p)
	must(t, err)
	data[bytes.IndexByte(data, '\n')+30] ^= 1
	must(t, os.WriteFile(p, data, 0o644))
	tree := load(t, s)
	if ps := tree.Problems(); len(ps) != 1 || ps[0].Code != "damaged-journal" || ps[0].Line != 2 {
		t.Errorf("problems %v", ps)
	}
	if orphans, err := s.Recover(t.Context()); err != nil || len(orphans) != 1 {
		t.Errorf("orphans %v, %v", orphans, err)
	}
}

// FuzzJournal checks that any content of a journal is read without a panic, and that what was read is whole.
func FuzzJournal(f *testing.F) {
	var whole []byte
	for i := 1; i <= 2; i++ {
		c, r := run(i), finished(i)
		for _, l := range []line{{Op: opClaim, Key: c.Key, Run: &c}, {Op: opStart, Key: c.Key, PID: 1}, {Op: opFinish, Key: r.Key, Run: &r}, {Op: opRelease, Key: r.Key}} {
			whole, _ = appendLine(whole, l)
		}
	}
	f.Add(whole)
	f.Add([]byte("0000000000000000 {}\n"))
	l := &layout{kinds: testKinds, specs: "specs", state: "state"}
	f.Fuzz(func(t *testing.T, data []byte) {
		v := newJournalView("x", l)
		n := parseLines(data, v.apply)
		if n > len(data) || n > 0 && data[n-1] != '\n' {
			t.Fatalf("%d of %d bytes", n, len(data))
		}
		if again := parseLines(data[:n], func(line) {}); again != n {
			t.Fatalf("%d bytes, then %d", n, again)
		}
		v.results()
		v.open()
	})
}
