package state

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/lock"
	"reconcile.dev/reconcile/state/proc"
)

// Scenarios of agentx-spec 8.3 that are about locks, through Store.Fold, with real processes: this test binary is ours
// and, with a lock of a few lines, a program of another make.

// perWriter is how many records each writer adds to the ledger of issue 42.
const perWriter = 12

// writers are what the test binary can be, by kind. Each gets the folder of a tree and a name of its own, and prints
// the topic of each record that was acknowledged.
var writers = map[string]func(dir, name string) error{"fold": foldRecords, "peer": peerRecords, "hold": holdLock}

// hasty are locks whose waits are short, so that a crowd is through in a second. Their age is the real one.
var hasty = lock.Options{Backoff: 2 * time.Millisecond, Longest: 40 * time.Millisecond, Tries: 40}

func openHasty(dir string) (*Store, error) {
	s, err := Open(dir, Options{Kinds: testKinds, Now: time.Now, Agent: "writer"})
	if err == nil {
		s.locks = hasty
	}
	return s, err
}

// foldRecords adds records as this program does, and goes on when a lock was busy: what was asked is not dropped.
func foldRecords(dir, name string) error {
	s, err := openHasty(dir)
	if err != nil {
		return err
	}
	for i := 0; i < perWriter; {
		topic := fmt.Sprintf("%s-%d", name, i)
		err := s.Fold(context.Background(), ledger42, func(old []byte) ([]byte, error) { return addRecord(old, topic) })
		switch {
		case errors.Is(err, ErrBusy), errors.Is(err, ErrStolen):
		case err != nil:
			return err
		default:
			fmt.Println(topic)
			i++
		}
	}
	return nil
}

// peerRecords adds records as a simple program of another make does that keeps to the protocol of agentx-spec 4.4: an
// exclusive lock file, read, write beside, rename, remove the lock.
func peerRecords(dir, name string) error {
	at := filepath.Join(dir, ledger42)
	for i := 0; i < perWriter; {
		l, err := os.OpenFile(at+".lock", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if errors.Is(err, fs.ErrExist) {
			<-time.After(time.Millisecond)
			continue
		}
		if err != nil {
			return err
		}
		topic := fmt.Sprintf("%s-%d", name, i)
		_, err = fmt.Fprintf(l, `{"pid": %d, "timestamp": %q, "agent": "peer"}`, os.Getpid(), time.Now().UTC().Format(time.RFC3339))
		err = errors.Join(err, l.Close(), peerWrite(at, topic, name), os.Remove(at+".lock"))
		if err != nil {
			return err
		}
		fmt.Println(topic)
		i++
	}
	return nil
}

func peerWrite(at, topic, name string) error {
	old, err := os.ReadFile(at)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	next, err := addRecord(old, topic)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(at+"."+name, next, 0o644), os.Rename(at+"."+name, at))
}

// holdLock takes the lock, says so, and keeps it until it is killed.
func holdLock(dir, _ string) error {
	s, err := openHasty(dir)
	if err != nil {
		return err
	}
	l, err := lock.Acquire(context.Background(), s.root, ledger42, s.lockOptions())
	for errors.Is(err, ErrBusy) {
		l, err = lock.Acquire(context.Background(), s.root, ledger42, s.lockOptions())
	}
	if err != nil {
		return err
	}
	fmt.Println("holding")
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, l.Release())
}

// addRecord adds a record with the next free number, unless there is one of that topic.
func addRecord(old []byte, topic string) ([]byte, error) {
	l := schemas.Ledger{IssueNumber: 42}
	if old != nil {
		if err := json.Unmarshal(old, &l); err != nil {
			return nil, err
		}
	}
	if slices.ContainsFunc(l.Clarifications, func(c schemas.Clarification) bool { return c.Topic == topic }) {
		return old, nil
	}
	l.Clarifications = append(l.Clarifications, schemas.Clarification{
		ID: fmt.Sprintf("CLR-42-%03d", len(l.Clarifications)+1), From: "engineer", To: "architect", Topic: topic,
		Status: schemas.ClarificationPending, Round: 1, MaxRounds: 5, Thread: []schemas.ClarificationTurn{},
	})
	return Encode(l)
}

// crowd are writers at work.
type crowd struct {
	t   *testing.T
	dir string
	wg  sync.WaitGroup

	mu    sync.Mutex
	acked []string
}

// start starts a writer and returns its process and the lines that it prints; "" when it has ended.
func (c *crowd) start(kind, name string) (*exec.Cmd, <-chan string) {
	c.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "STATE_TEST_WRITER="+kind, "STATE_TEST_DIR="+c.dir, "STATE_TEST_NAME="+name)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(c.t, err)
	_, err = cmd.StdinPipe() // open until Wait
	must(c.t, err)
	must(c.t, cmd.Start())
	lines := make(chan string, perWriter)
	c.wg.Go(func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			c.ack(s.Text())
			lines <- s.Text()
		}
		if err := cmd.Wait(); err != nil && kind != "hold" {
			c.t.Errorf("%s %s: %v", kind, name, err)
		}
	})
	return cmd, lines
}

func (c *crowd) ack(topic string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if topic != "holding" {
		c.acked = append(c.acked, topic)
	}
}

// watch reads the ledger without a lock until all writers are done: it must never be torn, empty or shorter than it was.
func (c *crowd) watch() {
	done := make(chan struct{})
	go func() { c.wg.Wait(); close(done) }()
	last := 0
	for {
		data, err := os.ReadFile(filepath.Join(c.dir, ledger42))
		switch {
		case errors.Is(err, fs.ErrNotExist) && last == 0:
		case err != nil:
			c.t.Error(err)
		default:
			l, err := ParseLedger(ledger42, data)
			if err != nil || l.Last < last {
				c.t.Fatalf("after %d records a reader saw %q: %v", last, data, err)
			}
			last = l.Last
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

// check checks that what was acknowledged is there, once and whole, with ids without a gap, and that nothing is left over.
func (c *crowd) check(want int) {
	c.t.Helper()
	data, err := os.ReadFile(filepath.Join(c.dir, ledger42))
	must(c.t, err)
	l, err := ParseLedger(ledger42, data)
	must(c.t, err)
	times := map[string]int{}
	for i, r := range l.Records() {
		times[r.Topic]++
		if id := fmt.Sprintf("CLR-42-%03d", i+1); r.ID != id {
			c.t.Errorf("record %d is %s", i+1, r.ID)
		}
	}
	for _, topic := range c.acked {
		if times[topic] != 1 {
			c.t.Errorf("%s is there %d times", topic, times[topic])
		}
	}
	if len(c.acked) != want || len(times) != want || len(l.Records()) != want {
		c.t.Errorf("%d acknowledged, %d records, want %d", len(c.acked), len(l.Records()), want)
	}
	c.clean()
}

// clean checks that no lock and no temporary file is left.
func (c *crowd) clean() {
	c.t.Helper()
	left, err := filepath.Glob(filepath.Join(c.dir, ledger42) + ".*")
	temps, err2 := filepath.Glob(filepath.Join(c.dir, tmpDir, "*"))
	if err = errors.Join(err, err2); err != nil || len(left)+len(temps) > 0 {
		c.t.Errorf("left over: %v %v, %v", left, temps, err)
	}
}

func newCrowd(t *testing.T) *crowd {
	dir := t.TempDir()
	put(t, dir, map[string]string{"state/clarifications/.keep": ""})
	return &crowd{t: t, dir: dir}
}

func TestScenario_ConcurrentWriters(t *testing.T) {
	c := newCrowd(t)
	for i := range 3 {
		c.start("fold", fmt.Sprintf("w%d", i))
	}
	c.watch()
	c.check(3 * perWriter)
}

// TestScenario_ForeignWriters has eight of ours and two of another make write one ledger, while one of ours dies with
// the lock in its hands.
func TestScenario_ForeignWriters(t *testing.T) {
	if proc.Self().Tag == "" {
		t.Skip("this system does not tell processes apart")
	}
	c := newCrowd(t)
	for i := range 8 {
		c.start("fold", fmt.Sprintf("w%d", i))
	}
	for i := range 2 {
		c.start("peer", fmt.Sprintf("p%d", i))
	}
	victim, lines := c.start("hold", "victim")
	if line := <-lines; line != "holding" {
		t.Fatalf("the victim said %q", line)
	}
	must(t, victim.Process.Kill())
	c.watch()
	c.check(10 * perWriter)
}

// fold adds a record to the ledger of dir as this program does.
func (c *crowd) fold(s *Store, topic string) error {
	return s.Fold(c.t.Context(), ledger42, func(old []byte) ([]byte, error) { return addRecord(old, topic) })
}

// TestScenario_LockAcquireRelease checks what one fold does with the lock file, and what the log tells of it.
func TestScenario_LockAcquireRelease(t *testing.T) {
	c := newCrowd(t)
	var log bytes.Buffer
	debug := &slog.HandlerOptions{Level: slog.LevelDebug}
	s, err := Open(c.dir, Options{Kinds: testKinds, Now: time.Now, Agent: "hub", Log: slog.New(slog.NewJSONHandler(&log, debug))})
	must(t, err)
	defer s.Close()
	calls, held := 0, 0
	must(t, s.Fold(t.Context(), ledger42, func(old []byte) ([]byte, error) {
		var body struct {
			PID       int
			Timestamp time.Time
			Agent     string
		}
		if calls++; calls == 1 { // the first look takes no lock; another program comes between
			must(t, peerWrite(filepath.Join(c.dir, ledger42), "theirs", "peer"))
		}
		if data, err := os.ReadFile(filepath.Join(c.dir, ledger42+".lock")); err == nil {
			must(t, json.Unmarshal(data, &body))
			if held++; body.PID != os.Getpid() || body.Agent != "hub" || body.Timestamp.IsZero() {
				t.Errorf("lock file %s", data)
			}
		}
		return addRecord(old, "ours")
	}))
	if calls != 2 || held != 1 {
		t.Errorf("the fold ran %d times, %d times under the lock", calls, held)
	}
	c.ack("theirs")
	c.ack("ours")
	c.check(2)
	var told []string
	for line := range strings.Lines(log.String()) {
		var entry struct {
			Msg, FilePath, Agent string
			DurationMs           *float64
		}
		must(t, json.Unmarshal([]byte(line), &entry))
		if entry.FilePath != ledger42 || entry.Agent != "hub" || entry.DurationMs == nil || *entry.DurationMs < 0 {
			t.Errorf("log: %s", line)
		}
		told = append(told, entry.Msg)
	}
	if !slices.Equal(told, []string{"lock acquired", "lock released"}) {
		t.Errorf("log: %s", log.String())
	}
}

// TestScenario_StaleLockCleanup checks that the lock of another program is taken once it is older than 30 seconds, not
// before, and that of one of ours as soon as that is dead.
func TestScenario_StaleLockCleanup(t *testing.T) {
	foreign := func(age time.Duration) (*crowd, error) {
		c := newCrowd(t)
		at := time.Now().Add(-age)
		p := filepath.Join(c.dir, ledger42+".lock")
		put(t, c.dir, map[string]string{ledger42 + ".lock": fmt.Sprintf(`{"pid": 1, "timestamp": %q, "agent": "peer"}`, at.UTC().Format(time.RFC3339))})
		must(t, os.Chtimes(p, at, at))
		s, err := openHasty(c.dir)
		must(t, err)
		defer s.Close()
		s.locks.Tries = 3
		return c, c.fold(s, "ours")
	}
	if c, err := foreign(31 * time.Second); err != nil {
		t.Error(err)
	} else {
		c.ack("ours")
		c.check(1)
	}
	c, err := foreign(20 * time.Second)
	if _, serr := os.Stat(filepath.Join(c.dir, ledger42)); !errors.Is(err, ErrBusy) || !errors.Is(serr, fs.ErrNotExist) {
		t.Errorf("a young lock: %v, %v", err, serr)
	}
	if proc.Self().Tag == "" {
		t.Skip("this system does not tell processes apart")
	}
	c = newCrowd(t)
	victim, lines := c.start("hold", "victim")
	<-lines
	must(t, victim.Process.Kill())
	c.wg.Wait()
	s := open(t, c.dir)
	s.locks.Tries = 1 // at once
	must(t, c.fold(s, "ours"))
	c.ack("ours")
	c.check(1)
}

// TestScenario_LockTimeout checks that a lock that is held is asked for five times, and that then nothing was changed.
func TestScenario_LockTimeout(t *testing.T) {
	c := newCrowd(t)
	text := ledgerOf(42, "pending")
	body := fmt.Sprintf(`{"pid": 1, "timestamp": %q, "agent": "peer"}`, time.Now().UTC().Format(time.RFC3339))
	put(t, c.dir, map[string]string{ledger42: text, ledger42 + ".lock": body})
	s := open(t, c.dir)
	var waits []time.Duration
	s.locks.Rand = func() float64 { return 0.5 }
	s.locks.Sleep = func(_ context.Context, d time.Duration) error {
		waits = append(waits, d)
		return nil
	}
	err := c.fold(s, "ours")
	var busy *lock.BusyError
	if !errors.As(err, &busy) || !errors.Is(err, ErrBusy) || busy.Agent != "peer" || busy.PID != 1 || !strings.Contains(err.Error(), ledger42) {
		t.Errorf("error %v", err)
	}
	var total time.Duration
	for _, d := range waits {
		total += d
	}
	if len(waits) != 4 || waits[0] != 200*time.Millisecond || total > 5*time.Second {
		t.Errorf("waits %v", waits)
	}
	for p, want := range map[string]string{ledger42: text, ledger42 + ".lock": body} {
		if got, err := os.ReadFile(filepath.Join(c.dir, p)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", p, got, err)
		}
	}
}
