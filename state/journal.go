package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/gofrs/flock"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/filelock"
	"reconcile.dev/reconcile/state/proc"
)

// A journal holds the statements of one process about effects: that it claims one, that one was started, how one
// ended. Each process has its own file under .reconcile/journal/, with a line of JSON for each statement, which begins
// with 16 hex digits of a hash of the rest of the line. The first line with a wrong hash, and the lines after it, were
// not written completely and were never acknowledged. The process holds a lock on the file during its lifetime; the
// kernel releases it when the process dies.
//
// Results are on disk when Finish, or Sync after Record, returns, and before this process writes anything else that may
// depend on them; that costs one sync for many results. Checkpoint writes them as files.

// checksumSize is the length of the hash and the space at the start of a line.
const checksumSize = 17

func appendLine(to []byte, l line) ([]byte, error) {
	b, err := encodeLine(l)
	if err != nil {
		return nil, fmt.Errorf("journal: %s of %s: %w", l.Op, l.Key, err)
	}
	to = fmt.Appendf(to, "%016x ", xxhash.Sum64(b))
	return append(append(to, b...), '\n'), nil
}

// parseLines calls take for every complete line of data and returns their total length in bytes.
func parseLines(data []byte, take func(line)) (size int) {
	for {
		end := bytes.IndexByte(data[size:], '\n')
		if end < checksumSize {
			return size
		}
		text := data[size : size+end]
		want, err := strconv.ParseUint(string(text[:checksumSize-1]), 16, 64)
		if err != nil || want != xxhash.Sum64(text[checksumSize:]) {
			return size
		}
		l, err := decodeLine(text[checksumSize:])
		if err != nil {
			return size
		}
		take(l)
		size += end + 1
	}
}

// Journal opens the own journal of this process, or creates and locks its file. Every call returns the same one until it is
// closed.
func (s *Store) Journal() (*Journal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.own.Load(); j != nil {
		return j, nil
	}
	if err := s.ensureLocal(journalDir); err != nil {
		return nil, err
	}
	name := s.journalName()
	j := &Journal{store: s, name: name, view: newJournalView(name, s.layout())}
	var err error
	if j.file, j.lock, err = j.create(nil); err != nil {
		return nil, err
	}
	j.view.alive = true
	s.own.Store(j)
	return j, nil
}

// ID returns the name of this process in the claims of its journal (Claim.Process).
func (j *Journal) ID() string { return j.name }

// journalName returns an unused name for a journal.
func (s *Store) journalName() string {
	for n := 0; ; n++ {
		name := fmt.Sprintf("%d-%x-%d", os.Getpid(), s.opts.Now().UnixNano(), n)
		if _, err := s.root.Lstat(journalDir + "/" + name + journalSuffix); errors.Is(err, fs.ErrNotExist) {
			return name
		}
	}
}

// Holder returns the pid in the claim's Process: that of the reconcile process that claimed the effect; 0 if it is not
// known.
func (c *Claim) Holder() int {
	pid, _, _ := strings.Cut(c.Process, "-")
	n, err := strconv.Atoi(pid)
	if err != nil {
		return 0
	}
	return n
}

func (j *Journal) path() string { return journalDir + "/" + j.name + journalSuffix }

// create creates the journal file with the given content, locked before it is visible under its name.
func (j *Journal) create(content []byte) (*os.File, *flock.Flock, error) {
	temp := journalDir + "/" + j.name + journalNew
	_ = j.store.root.Remove(temp)
	f, err := j.store.root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, nil, fmt.Errorf("make the journal: %w", err)
	}
	l, err := filelock.Wait(f)
	if err == nil && len(content) > 0 {
		if _, err = f.Write(content); err == nil {
			err = f.Sync()
		}
	}
	if err == nil {
		err = j.store.root.Rename(temp, j.path())
	}
	if err == nil {
		err = durable.SyncDir(j.store.root, journalDir)
	}
	if err != nil {
		_ = j.store.root.Remove(temp)
		return nil, nil, errors.Join(fmt.Errorf("make the journal %s: %w", j.path(), err), closeLocked(f, l))
	}
	return f, l, nil
}

// closeLocked closes a file and releases its lock, which may be nil.
func closeLocked(f *os.File, l *flock.Flock) error {
	if l == nil {
		return f.Close()
	}
	return errors.Join(f.Close(), l.Unlock())
}

// write appends lines and applies them to the view. If durable, the next Sync syncs them.
func (j *Journal) write(lines []line, durable bool) error {
	if len(lines) == 0 {
		return nil
	}
	var b []byte
	for _, l := range lines {
		var err error
		if b, err = appendLine(b, l); err != nil {
			return err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return fmt.Errorf("journal %s: %w", j.path(), os.ErrClosed)
	}
	if err := j.append(b); err != nil {
		return fmt.Errorf("journal %s: %w", j.path(), err)
	}
	j.unsynced = j.unsynced || durable
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	for _, l := range lines {
		j.view.apply(l)
	}
	return nil
}

// append writes b completely, or truncates the file to its former size.
func (j *Journal) append(b []byte) error {
	at, err := j.file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if _, err = j.file.Write(b); err != nil {
		return errors.Join(err, j.file.Truncate(at))
	}
	return nil
}

// Claim writes a line to the journal for each of the runs, which claims it: this process is going to perform its effect.
// None of them may start before a sync ([Store.SyncJournal]) has returned.
func (j *Journal) Claim(runs []schemas.Run) error {
	lines, now := runLines(opClaim, runs), schemas.NewTime(j.store.opts.Now())
	for i := range lines {
		lines[i].At = &now
	}
	return j.write(lines, true)
}

// Finish records the results of finished runs in the journal and syncs it. The results are on disk when it returns.
func (j *Journal) Finish(runs []schemas.Run) error { return errors.Join(j.Record(runs), j.Sync()) }

// Record writes the results of finished runs to the journal without a sync. They are on disk when Sync, or Store's Write or
// Fold returns.
func (j *Journal) Record(runs []schemas.Run) error {
	lines := runLines(opFinish, runs)
	if err := j.write(lines, true); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.drafts.addLines(j.store, lines)
	return nil
}

// Sync makes all that was written to the journal durable, with a sync of its file.
func (j *Journal) Sync() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.unsynced || j.file == nil {
		return nil
	}
	if err := durable.SyncData(j.file); err != nil {
		return fmt.Errorf("journal %s: %w", j.path(), err)
	}
	j.unsynced = false
	return nil
}

// SyncJournal syncs the store's own journal: it makes the claims and results of this process durable. It may be called from
// any goroutine, and returns at once if nothing is unsynced.
func (s *Store) SyncJournal() error {
	if j := s.own.Load(); j != nil {
		return j.Sync()
	}
	return nil
}

func runLines(op string, runs []schemas.Run) []line {
	lines := make([]line, len(runs))
	for i := range runs {
		r := runs[i]
		r.APIVersion, r.Kind = schemas.APIVersion, runKind
		r.Metadata.Name = runName(r.Key)
		lines[i] = line{Op: op, Key: r.Key, Run: &r}
	}
	return lines
}

// Started writes to the journal that the claimed effect with the given key was started, as the process group pid. It is not
// synced: after a power loss no process is left, and after a crash the kernel still has the data.
func (j *Journal) Started(key string, at time.Time, pid int) error {
	t := schemas.NewTime(at)
	return j.write([]line{{Op: opStart, Key: key, At: &t, PID: pid, Start: proc.Start(pid)}}, false)
}

// Progressed writes the state of a running agent's turn to the journal; it replaces the state before.
func (j *Journal) Progressed(key string, at time.Time, turn *schemas.Turn) error {
	t := schemas.NewTime(at)
	return j.write([]line{{Op: opTurn, Key: key, At: &t, Turn: turn}}, false)
}

// Release writes a line to the journal for each of the keys, which releases the claim of that key without a result.
func (j *Journal) Release(keys []string) error {
	lines := make([]line, len(keys))
	for i, k := range keys {
		lines[i] = line{Op: opRelease, Key: k}
	}
	return j.write(lines, false)
}

// Checkpoint makes a checkpoint of the journal: it durably writes all results as files under state/runs, and drops them from
// the journal.
func (j *Journal) Checkpoint(ctx context.Context) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	return j.checkpoint(ctx)
}

// checkpoint needs both locks.
func (j *Journal) checkpoint(ctx context.Context) error {
	done := j.view.results()
	if j.file == nil || len(done) == 0 && j.view.lines == len(j.view.open()) {
		return nil // a checkpoint saves nothing
	}
	if err := j.store.writeRuns(ctx, done, &j.drafts); err != nil {
		return fmt.Errorf("checkpoint the journal: %w", err)
	}
	return j.rewrite()
}

// rewrite keeps only the open claims, and the effects that the process waits for.
func (j *Journal) rewrite() error {
	var b []byte
	view := newJournalView(j.name, j.view.layout)
	view.alive, view.touched = true, j.view.touched
	for _, l := range j.view.open() {
		var err error
		if b, err = appendLine(b, l); err != nil {
			return err
		}
		view.apply(l)
	}
	if len(b) == 0 {
		if err := j.file.Truncate(0); err != nil {
			return fmt.Errorf("empty the journal %s: %w", j.path(), err)
		}
		j.view = view
		return nil
	}
	f, l, err := j.create(b)
	if err != nil {
		return err
	}
	old, oldLock := j.file, j.lock
	j.file, j.lock, j.view = f, l, view
	return closeLocked(old, oldLock)
}

// Close checkpoints and closes the journal, and removes its file if no claims are open. If claims are open, the file stays:
// the next Recover of a process finds them.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	if j.file == nil {
		return nil
	}
	err := j.checkpoint(context.Background())
	if err == nil && len(j.view.keys) == 0 {
		err = j.store.root.Remove(j.path())
	}
	err = errors.Join(err, closeLocked(j.file, j.lock))
	j.file, j.lock = nil, nil
	j.store.own.Store(nil)
	return err
}
