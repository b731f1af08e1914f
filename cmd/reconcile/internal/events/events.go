// Package events carries what happens to a tree to those who want to know, and keeps a log of it.
//
// A [Bus] carries events within a process. The log holds one JSON line for each event, in .reconcile/events.jsonl:
// what changed its phase, condition or state, and what was asked, answered and settled. It is local and disposable. It
// is bounded: a full file becomes events.jsonl.1, in place of the one before. A file begins with a line that counts the
// lines of all files before it, {"before":20817}, so that a [Follower] knows how much it has missed.
package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/regular"
)

// Where the log is, below the root of the tree.
const (
	folder  = ".reconcile"
	Path    = ".reconcile/events.jsonl"
	oldPath = Path + ".1"
)

// Bounds of the log.
const (
	fileLimit    = 4 << 20 // bytes of a file before it is put aside
	lineLimit    = 64 << 10
	messageLimit = 1000 // characters
)

// The types of an event, as in Kubernetes.
const (
	Normal  = "Normal"
	Warning = "Warning"
)

// Types lists the types of events that a [Filter] can ask for: Normal and Warning, which every event has one of, and
// those of the events about clarifications and the memory.
func Types() []string {
	return []string{
		Normal, Warning, controllers.ClarificationRequested, controllers.ClarificationAnswered,
		controllers.ClarificationStale, controllers.ClarificationResolved, controllers.ClarificationEscalated,
		controllers.MemoryStored, controllers.MemoryRecalled,
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
	Clarification *controllers.Clarified `json:"clarification,omitempty"`
	// Memory is the payload of an event about the memory; nil for all others.
	Memory *controllers.Remembered `json:"memory,omitempty"`
}

// Append adds events. The caller holds the lock of the tree: two processes that put a full file aside at once would
// lose one of them. Nothing is synced; an event that a power loss takes is no loss of state.
func Append(root *os.Root, events []Event) error {
	if len(events) == 0 {
		return nil
	}
	head, err := makeRoom(root)
	if err != nil {
		return fmt.Errorf("event log: %w", err)
	}
	f, _, err := regular.OpenFile(root, Path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("event log: %w", err)
	}
	_, err = f.Write(slices.Concat(head, encode(events)))
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("event log: %w", err)
	}
	return nil
}

// encode writes the lines, after a line feed that ends what a killed process may have left torn.
func encode(events []Event) []byte {
	b := []byte{'\n'}
	for _, e := range events {
		if r := []rune(e.Message); len(r) > messageLimit {
			e.Message = string(r[:messageLimit]) + "…"
		}
		line, err := json.Marshal(e)
		if err != nil || len(line) > lineLimit {
			continue // a struct of strings always marshals; overlong names are not worth a line
		}
		b = append(append(b, line...), '\n')
	}
	return b
}

// makeRoom puts a full file aside. It returns the first line of the next one where there is none.
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

// Filter says which events are wanted; its zero value wants all.
type Filter struct {
	Ref   string    // of this object only
	Type  string    // of this type only, one of [Types]
	Since time.Time // not older than this
}

// Wants reports whether an event is wanted.
func (f Filter) Wants(e Event) bool {
	return (f.Ref == "" || f.Ref == e.Ref) && !e.Time.Before(f.Since) && (f.Type == "" || e.is(f.Type))
}

// is reports whether the event is of a type.
func (e *Event) is(typ string) bool {
	return typ == e.Type || e.Clarification != nil && typ == e.Clarification.Type || e.Memory != nil && typ == e.Memory.Type
}

// Read returns the events that the filter wants, oldest first. Lines that are no events are left out: a process that
// was killed may have torn one.
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
	return scan(io.LimitReader(file, 2*fileLimit), f)
}

// openFile opens a file of the log. Where there is none, or something that is no file, it returns nil.
func openFile(root *os.Root, path string) (*os.File, fs.FileInfo, error) {
	info, err := root.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, nil, nil
	}
	file, info, err := regular.Open(root, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil // it was put aside just now
	}
	return file, info, err
}

func scan(r io.Reader, f Filter) ([]Event, error) {
	var out []Event
	err := readLines(r, &lineBuffer{do: func(line []byte) {
		if e, ok := decode(line); ok && f.Wants(e) {
			out = append(out, e)
		}
	}})
	return out, err
}

func decode(line []byte) (Event, bool) {
	var e Event
	if json.Unmarshal(line, &e) != nil {
		return Event{}, false
	}
	return e, e.Ref != "" && e.Reason != ""
}
