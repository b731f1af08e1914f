// Package events distributes the events of a tree, and keeps a log of them.
//
// A [Bus] distributes events within a process. The log holds one JSON line for each event, in .reconcile/events.jsonl:
// changes of a phase, condition or state, and the turns of clarifications. It is local and disposable, and bounded: a full
// file replaces events.jsonl.1. A file starts with a line that counts the lines of all files before it, {"before":20817},
// so that a [Follower] knows how many it has missed.
package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
	"reconcile.dev/reconcile/state/regular"
)

// The path of the log, below the root of the tree.
const (
	folder  = ".reconcile"
	Path    = ".reconcile/events.jsonl"
	oldPath = Path + ".1"
)

// Limits of the log.
const (
	fileLimit    = 4 << 20 // bytes of a file before it is rotated
	lineLimit    = 64 << 10
	messageLimit = 1000 // characters
)

// The types of an event, as in Kubernetes.
const (
	Normal  = "Normal"
	Warning = "Warning"
)

// Types lists the types that a [Filter] accepts: Normal and Warning (every event has one of them), and those of the events
// about clarifications and the memory.
func Types() []string {
	return []string{
		Normal, Warning, settle.ClarificationRequested, settle.ClarificationAnswered,
		settle.ClarificationStale, settle.ClarificationResolved, settle.ClarificationEscalated,
		settle.MemoryStored, settle.MemoryRecalled,
	}
}

// Event is one line of the log.
type Event struct {
	Time    schemas.Time `json:"time"`
	Ref     string       `json:"ref"`            // "dag/checks"
	Node    string       `json:"node,omitempty"` // of a DAG
	Type    string       `json:"type"`           // Normal or Warning
	Reason  string       `json:"reason"`
	Message string       `json:"message,omitempty"`
	// Clarification is the payload of an event about a question; nil for all others.
	Clarification *settle.Clarified `json:"clarification,omitempty"`
	// Memory is the payload of an event about the memory; nil for all others.
	Memory *settle.Remembered `json:"memory,omitempty"`
}

// Append appends events, as [Writer.Append] does.
func Append(root *os.Root, events []Event) error {
	w := Writer{Root: root}
	return errors.Join(w.Append(events), w.Close())
}

// Writer appends to the event log of a tree. It keeps the file open between its calls. It belongs to one goroutine.
type Writer struct {
	Root *os.Root // of the tree

	dir  *os.Root // folder
	file *os.File // nil: not open
	is   fs.FileInfo
}

// Append appends events. The caller holds the lock of the tree: two processes that rotate a full file at once would lose
// one. It does not sync; a power failure may lose events but no state.
func (w *Writer) Append(events []Event) error {
	if len(events) == 0 {
		return nil
	}
	var head []byte
	if !w.current() {
		var err error
		if head, err = w.open(); err != nil {
			return fmt.Errorf("event log: %w", err)
		}
	}
	if _, err := w.file.Write(slices.Concat(head, encodeEvent(events))); err != nil {
		return fmt.Errorf("event log: %w", err)
	}
	return nil
}

// current reports whether the open file is the log, and has room.
func (w *Writer) current() bool {
	if w.file == nil {
		return false
	}
	is, err := w.dir.Lstat(path.Base(Path))
	return err == nil && os.SameFile(is, w.is) && is.Size() > 0 && is.Size() < fileLimit
}

// open opens the log, and returns the first line of a new one.
func (w *Writer) open() (head []byte, err error) {
	if err = w.Close(); err != nil {
		return nil, err
	}
	if head, err = makeRoom(w.Root); err != nil {
		return nil, err
	}
	if w.dir, err = w.Root.OpenRoot(folder); err != nil {
		return nil, err
	}
	w.file, w.is, err = regular.OpenFile(w.dir, path.Base(Path), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	return head, err
}

// Close closes the file. A later Append opens it again.
func (w *Writer) Close() (err error) {
	if w.file != nil {
		err = w.file.Close()
	}
	if w.dir != nil {
		err = errors.Join(err, w.dir.Close())
	}
	w.file, w.dir = nil, nil
	return err
}

// encodeEvent encodes the lines, after a line feed that terminates a torn line of a killed process.
func encodeEvent(events []Event) []byte {
	b := []byte{'\n'}
	for _, e := range events {
		e.Message = shorten.Text(e.Message, messageLimit+1)
		line, err := json.Marshal(e)
		if err != nil || len(line) > lineLimit {
			continue // a struct of strings always marshals; overlong names are dropped
		}
		b = append(append(b, line...), '\n')
	}
	return b
}

// makeRoom rotates a full file. It returns the first line of the next one if that does not exist.
func makeRoom(root *os.Root) ([]byte, error) {
	info, err := root.Lstat(Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = root.MkdirAll(folder, 0o755)
	case err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file; remove it", Path)
	case err == nil && info.Size() == 0:
	case err == nil && info.Size() < fileLimit:
		return nil, nil
	case err == nil:
		err = root.Rename(Path, oldPath)
	}
	if err != nil {
		return nil, err
	}
	before, err := countLines(root, oldPath)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "{\"before\":%d}\n", before), nil
}

// Filter selects events; its zero value selects all.
type Filter struct {
	Ref   string    // of this object only
	Type  string    // of this type only, one of [Types]
	Since time.Time // not older than this
}

// wants reports whether the filter wants an event, by its Ref, Since and Type.
func (f Filter) wants(e Event) bool {
	return (f.Ref == "" || f.Ref == e.Ref) && !e.Time.Before(f.Since) && (f.Type == "" || e.is(f.Type))
}

// is reports whether the event is of a type.
func (e *Event) is(typ string) bool {
	return typ == e.Type || e.Clarification != nil && typ == e.Clarification.Type || e.Memory != nil && typ == e.Memory.Type
}

// Read reads the events from the files of the event log that the filter wants, oldest first. It skips lines that are
// not events: a killed process may have torn one.
func Read(root *os.Root, f Filter) ([]Event, error) {
	var all []Event
	for _, path := range []string{oldPath, Path} {
		part, err := readFile(root, path, f)
		if err != nil {
			return nil, fmt.Errorf("event log: %w", err)
		}
		all = append(all, part...)
	}
	return all, nil
}

func readFile(root *os.Root, path string, f Filter) ([]Event, error) {
	file, _, err := openFile(root, path)
	if file == nil {
		return nil, err
	}
	defer file.Close()
	return scanLines(io.LimitReader(file, 2*fileLimit), f)
}

// openFile opens a file of the log. If it does not exist, or is not a regular file, it returns nil.
func openFile(root *os.Root, path string) (*os.File, fs.FileInfo, error) {
	info, err := root.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, nil, nil
	}
	file, info, err := regular.Open(root, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil // just rotated
	}
	return file, info, err
}

func decodeEvent(line []byte) (Event, bool) {
	var e Event
	if json.Unmarshal(line, &e) != nil {
		return Event{}, false
	}
	return e, e.Ref != "" && e.Reason != ""
}
