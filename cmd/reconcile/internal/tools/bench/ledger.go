package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/lock"
)

// ledger: reading and writing ledgers, their lock, and monitoring all of them, compared with the figures of
// agentx-spec 7.1.
func (b *bench) ledger(ctx context.Context, _ []int) error {
	for _, measure := range []func(context.Context) error{b.ledgerFold, b.ledgerLock, b.ledgerMonitor, b.ledgerWriters} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return nil
}

func openStore(dir string) (*state.Store, error) {
	return state.Open(dir, state.Options{Kinds: controllers.Schemas(), Now: time.Now, Agent: "bench", Build: "bench"})
}

// inStore runs a measurement on a store of its own, in an empty tree.
func inStore(measure func(s *state.Store) error) error {
	dir, err := os.MkdirTemp("", "reconcile-bench-ledger")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := openStore(dir)
	if err != nil {
		return err
	}
	return errors.Join(measure(s), s.Close())
}

// sample calls f n times and returns the time of each call, after a tenth of n calls to warm up.
func sample(n int, f func(i int) error) ([]time.Duration, error) {
	times := make([]time.Duration, 0, n)
	for i := range n + n/10 {
		start := time.Now()
		if err := f(i); err != nil {
			return nil, err
		}
		if i >= n/10 {
			times = append(times, time.Since(start))
		}
	}
	return times, nil
}

// quantiles prints the median and the 99th percentile, which has the bound.
func (b *bench) quantiles(what, specified string, times []time.Duration, bound float64) {
	p50, p99 := quantile(times, 0.5), quantile(times, 0.99)
	b.row(what, short(p50), "spec "+specified, short(p99), ms(p99), bound, " ms")
}

// ledgerFold: a ledger of some records is read, one of them changes, and it is written, durably, under its lock.
func (b *bench) ledgerFold(ctx context.Context) error {
	return inStore(func(s *state.Store) error {
		p := s.LedgerPath(42)
		times, err := sample(100*b.runs, func(i int) error {
			if i%20 == 0 { // else it grows and grows
				if err := s.Root().Remove(p); err != nil && i > 0 {
					return err
				}
			}
			return s.Fold(ctx, p, func(old []byte) ([]byte, error) { return putRecord(old, p, fmt.Sprint("topic ", i%5)) })
		})
		if err != nil {
			return err
		}
		b.quantiles("ledger: read, write under lock (p50; p99)", "100 ms", times, 5)
		return nil
	})
}

// ledgerLock: the lock alone, without contention.
func (b *bench) ledgerLock(ctx context.Context) error {
	return inStore(func(s *state.Store) error {
		times, err := sample(100*b.runs, func(int) error {
			l, err := lock.Acquire(ctx, s.Root(), s.LedgerPath(42), lock.Options{Agent: "bench"})
			if err != nil {
				return err
			}
			return l.Release()
		})
		if err != nil {
			return err
		}
		b.quantiles("ledger: uncontended lock (p50; p99)", "1 s", times, 1)
		return nil
	})
}

// putRecord adds a record with the next number, or makes the thread of the one of that topic longer by a turn.
func putRecord(old []byte, p, topic string) ([]byte, error) {
	l := &state.Ledger{Issue: 42}
	if old != nil {
		var err error
		if l, err = state.ParseLedger(p, old); err != nil {
			return nil, err
		}
	}
	for _, c := range l.Records() {
		if c.Topic == topic {
			c.Thread = append(slices.Clone(c.Thread), c.Thread[0])
			c.Thread[len(c.Thread)-1].Body = fmt.Sprintf("turn %d", len(c.Thread))
			return clarify.Fold(old, l.Issue, []schemas.Clarification{c})
		}
	}
	c := record(l.Issue, l.Last+1, topic, schemas.ClarificationAnswered)
	return clarify.Fold(old, l.Issue, []schemas.Clarification{c})
}

// record is one with a thread of two rounds.
func record(issue, seq int, topic, status string) schemas.Clarification {
	at := time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC).Add(time.Duration(issue) * time.Minute)
	c := schemas.Clarification{
		ID: fmt.Sprintf("CLR-%d-%03d", issue, seq), From: "engineer", To: "architect", Topic: topic, Blocking: true,
		Status: status, Round: 2, MaxRounds: 5, Created: schemas.NewTime(at),
		StaleAfter: schemas.NewTime(at.Add(30 * time.Minute)), Request: fmt.Sprintf("request-%d-%d", issue, seq),
	}
	for i, body := range []string{
		"Should the service keep both PostgreSQL and SQLite behind one interface, or may it migrate to one of them?",
		"Keep both: the local mode has no server. Put the dialects behind the repository layer, as ADR-42 says.",
		"And which of them do the migration scripts target? The ADR names only the schema, not the tool.",
		"Both, from one source: write plain SQL that the two understand, and test each script on either.",
	} {
		c.Thread = append(c.Thread, schemas.ClarificationTurn{
			Round: 1 + i/2, From: []string{"engineer", "architect"}[i%2], Type: []string{"question", "answer"}[i%2], Body: body,
			Timestamp: schemas.NewTime(at.Add(time.Duration(i) * time.Minute)),
		})
	}
	return c
}

// Size of the tree whose ledgers are looked at.
const (
	manyLedgers = 10_000
	perLedger   = 5
)

// writeLedgers makes ledgers of resolved questions; in every tenth one is open.
func writeLedgers(dir string) error {
	for issue := 1; issue <= manyLedgers; issue++ {
		l := schemas.Ledger{IssueNumber: issue}
		for seq := 1; seq <= perLedger; seq++ {
			status := schemas.ClarificationResolved
			if issue%10 == 0 && seq == perLedger {
				status = schemas.ClarificationPending
			}
			l.Clarifications = append(l.Clarifications, record(issue, seq, fmt.Sprintf("topic %d", seq), status))
		}
		data, err := state.Encode(l)
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(dir, "state", "clarifications", fmt.Sprintf("issue-%d.json", issue)), string(data)); err != nil {
			return err
		}
	}
	return nil
}

// ledgerMonitor: the stale, stuck and deadlocked questions in all ledgers, found by a new process, without and with a
// cache.
func (b *bench) ledgerMonitor(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "reconcile-bench-ledgers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := writeLedgers(dir); err != nil {
		return err
	}
	look := func() (usage, error) {
		start := time.Now()
		err := monitor(ctx, dir)
		return usage{wall: time.Since(start)}, err
	}
	cold, err := alternate(max(1, b.runs/2), func() (usage, error) {
		if err := os.RemoveAll(filepath.Join(dir, ".reconcile")); err != nil {
			return usage{}, err
		}
		return look()
	})
	if err != nil {
		return err
	}
	warm, err := alternate(b.runs, look)
	if err != nil {
		return err
	}
	of := fmt.Sprintf("ledger: monitor of %d with %d records, ", manyLedgers, manyLedgers*perLedger)
	b.row(of+"cold", short(cold[0].wall), "spec 500 ms/10", trim(ms(cold[0].wall))+" ms", ms(cold[0].wall), 500, " ms")
	b.row(of+"unchanged", short(warm[0].wall), "spec 500 ms/10", trim(ms(warm[0].wall))+" ms", ms(warm[0].wall), 50, " ms")
	return nil
}

// monitor opens a tree, looks at all its ledgers, and closes it.
func monitor(ctx context.Context, dir string) error {
	s, err := openStore(dir)
	if err != nil {
		return err
	}
	t, err := s.Load(ctx)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	var open []schemas.Clarification
	for _, l := range t.Ledgers() {
		if l.Open > 0 {
			open = append(open, l.Records()...)
		}
	}
	found := clarify.Monitor(open, func(agent string) int { return len(agent) }, time.Now())
	if len(found.Stale) != manyLedgers/10 {
		err = fmt.Errorf("%d stale questions, want %d", len(found.Stale), manyLedgers/10)
	}
	return errors.Join(err, s.Close())
}

// Writers of one ledger, and how many records they add to it together.
const (
	manyWriters = 8
	toWrite     = 160
)

// ledgerWriters: eight processes add records to one ledger, compared with one process that adds as many.
func (b *bench) ledgerWriters(ctx context.Context) error {
	got, err := alternate(max(1, b.runs/2),
		func() (usage, error) { return writeTogether(ctx, 1) },
		func() (usage, error) { return writeTogether(ctx, manyWriters) })
	if err != nil {
		return err
	}
	each := func(u usage) string { return fmt.Sprintf("%.0f/s", toWrite/u.wall.Seconds()) }
	slower := float64(got[1].wall) / float64(got[0].wall)
	b.row(fmt.Sprintf("ledger: %d processes, beside one (time)", manyWriters), each(got[1]), each(got[0]),
		fmt.Sprintf("%.2f", slower), slower, 2, "")
	return nil
}

// writeTogether has n processes add records to one ledger, and checks that each record is there.
func writeTogether(ctx context.Context, n int) (usage, error) {
	dir, err := os.MkdirTemp("", "reconcile-bench-writers")
	if err != nil {
		return usage{}, err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return usage{}, err
	}
	start := time.Now()
	errs := make(chan error)
	for i := range n {
		go func() {
			_, err := process(exec.CommandContext(ctx, self, "fold", dir, fmt.Sprint(i), fmt.Sprint(toWrite/n)))
			errs <- err
		}()
	}
	for range n {
		err = errors.Join(err, <-errs)
	}
	u := usage{wall: time.Since(start)}
	if err != nil {
		return u, err
	}
	data, err := os.ReadFile(filepath.Join(dir, "state", "clarifications", "issue-42.json"))
	if err != nil {
		return u, err
	}
	l, err := state.ParseLedger("issue-42.json", data)
	if err != nil {
		return u, err
	}
	if kept := len(l.Records()); kept != toWrite || l.Last != toWrite {
		err = fmt.Errorf("%d writers: %d records of %d are in the ledger, and the last number is %d", n, kept, toWrite, l.Last)
	}
	return u, err
}

// foldAll is the command bench fold: add records to the ledger of issue 42, each one durably.
func foldAll(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("usage: bench fold DIR NAME COUNT")
	}
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	s, err := openStore(args[0])
	if err != nil {
		return err
	}
	p := s.LedgerPath(42)
	for i := 0; i < n && err == nil; i++ {
		topic := fmt.Sprintf("topic %s-%d", args[1], i)
		err = s.Fold(ctx, p, func(old []byte) ([]byte, error) { return putRecord(old, p, topic) })
	}
	return errors.Join(err, s.Close())
}
