package state

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/lock"
)

// A crowd of real processes writes one ledger: this test binary is ours and, with a lock of a few lines, a program of
// another make.

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
