// Package events keeps the event log of a tree: what changed its phase, condition or state, one JSON line each, in
// .reconcile/events.jsonl. The log is local and disposable. It is bounded: a full file becomes events.jsonl.1, in place
// of the one before.
package events

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"reconcile.dev/reconcile/schemas"
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

// Event is one line of the log.
type Event struct {
	Time    schemas.Time `json:"time"`
	Ref     string       `json:"ref"`            // "dag/checks"
	Node    string       `json:"node,omitempty"` // of a DAG
	Type    string       `json:"type"`           // Normal or Warning
	Reason  string       `json:"reason"`
	Message string       `json:"message,omitempty"`
}

// Append adds events. The caller holds the lock of the tree: two processes that put a full file aside at once would
// lose one of them. Nothing is synced; an event that a power loss takes is no loss of state.
func Append(root *os.Root, events []Event) error {
	if len(events) == 0 {
		return nil
	}
	if err := makeRoom(root); err != nil {
		return err
	}
	f, err := root.OpenFile(Path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("event log: %w", err)
	}
	_, err = f.Write(encode(events))
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

func makeRoom(root *os.Root) error {
	info, err := root.Lstat(Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = root.MkdirAll(folder, 0o755)
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("event log: %s is not a regular file; remove it", Path)
	case err == nil && info.Size() >= fileLimit:
		err = root.Rename(Path, oldPath)
	}
	if err != nil {
		return fmt.Errorf("event log: %w", err)
	}
	return nil
}

// Filter says which events are wanted; its zero value wants all.
type Filter struct {
	Ref   string    // of this object only
	Since time.Time // not older than this
}

func (f Filter) wants(e Event) bool {
	return (f.Ref == "" || f.Ref == e.Ref) && !e.Time.Before(f.Since)
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
	info, err := root.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, nil
	}
	file, err := root.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return scan(io.LimitReader(file, 2*fileLimit), f)
}

func scan(r io.Reader, f Filter) ([]Event, error) {
	var out []Event
	lines := bufio.NewReaderSize(r, lineLimit+1)
	for {
		line, err := lines.ReadSlice('\n')
		if e, ok := decode(line); ok && err == nil && f.wants(e) {
			out = append(out, e)
		}
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func decode(line []byte) (Event, bool) {
	line = bytes.TrimSpace(line)
	var e Event
	if len(line) == 0 || json.Unmarshal(line, &e) != nil {
		return Event{}, false
	}
	return e, e.Ref != "" && e.Reason != ""
}
