package state

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/state/lock"
	"reconcile.dev/reconcile/state/proc"
)

// Scenarios of agentx-spec 8.3 that are about locks, through Store.Fold, with real processes.

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

// TestSweepLedgers checks that the lock of a killed process goes though its ledger needs no fold, and no other lock.
func TestSweepLedgers(t *testing.T) {
	if proc.Self().Tag == "" {
		t.Skip("this system does not tell processes apart")
	}
	c := newCrowd(t)
	s := open(t, c.dir)
	must(t, s.SweepLedgers(t.Context()))
	must(t, open(t, t.TempDir()).SweepLedgers(t.Context()))
	victim, lines := c.start("hold", "victim")
	<-lines
	must(t, victim.Process.Kill())
	c.wg.Wait()
	body := fmt.Sprintf(`{"pid": 1, "timestamp": %q, "agent": "peer"}`, time.Now().UTC().Format(time.RFC3339))
	const foreign = "state/clarifications/issue-7.json.lock"
	put(t, c.dir, map[string]string{foreign: body})
	must(t, s.SweepLedgers(t.Context()))
	c.clean()
	if got, err := os.ReadFile(filepath.Join(c.dir, foreign)); err != nil || string(got) != body {
		t.Errorf("the lock of another program: %q, %v", got, err)
	}
}
