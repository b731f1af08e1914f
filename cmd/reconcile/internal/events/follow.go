package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Unknown is an unknown number of missing events.
const Unknown = -1

// Follower reads the log from its beginning, and then the lines that this and other processes append, through rotation and
// truncation. It reads only on request. It is for one goroutine.
//
// It keeps the file open, so that a rotation loses nothing, and continues with the next one at its end. Events are missing
// only if the log is rotated twice between two calls; the counts at the beginning of the files tell how many.
type Follower struct {
	root   *os.Root
	filter Filter

	file  *os.File // nil before the first file
	info  fs.FileInfo
	at    int64 // read bytes of file
	text  []byte
	lines lineBuffer
	tally tally
	begun bool // a file was read, so lines before the next one may be missing

	found   []Event
	missing int64
}

// Follow returns a follower of the events that the filter selects. The caller must close it.
func Follow(root *os.Root, f Filter) *Follower {
	w := &Follower{root: root, filter: f}
	w.lines.do = w.line
	return w
}

// Close closes the file.
func (f *Follower) Close() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}

// Batch is the result of Next.
type Batch struct {
	// Missing is the number of events of any kind that the log had before Events, and no longer has; or Unknown.
	Missing int64
	Events  []Event
}

// Next returns the next Batch of events from the follower's log, oldest first. An empty batch means no events
// now.
func (f *Follower) Next() (Batch, error) {
	for {
		b, more, err := f.poll()
		switch {
		case err != nil:
			return Batch{}, fmt.Errorf("event log: %w", err)
		case len(b.Events) > 0 || b.Missing != 0 || !more:
			return b, nil
		}
	}
}

// poll continues to read the file, or the next one at its end. It checks for a next file before it reads, because lines
// written after a rotation are in the next one.
func (f *Follower) poll() (b Batch, more bool, err error) {
	over, err := f.over()
	if err != nil {
		return Batch{}, false, err
	}
	n, err := f.read()
	if err != nil {
		return Batch{}, false, err
	}
	b = Batch{f.missing, f.found}
	f.missing, f.found = 0, nil
	switch {
	case n > 0:
		return b, true, nil
	case over:
		more, err = f.advance()
	}
	return b, more, err
}

// over reports whether the file is complete: it was replaced by another one, or does not exist yet.
func (f *Follower) over() (bool, error) {
	if f.file == nil {
		return true, nil
	}
	info, err := f.root.Lstat(Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil // during a rotation
	case err != nil:
		return false, err
	case !os.SameFile(info, f.info):
		return info.Mode().IsRegular(), nil
	case info.Size() < f.at:
		f.lose(Unknown) // it was truncated
		f.begin(f.file, f.info)
		f.begun = false // already reported
		_, err = f.file.Seek(0, io.SeekStart)
	}
	return false, err
}

// read reads a piece of the file.
func (f *Follower) read() (int, error) {
	if f.file == nil {
		return 0, nil
	}
	if f.text == nil {
		f.text = make([]byte, lineLimit)
	}
	n, err := f.file.Read(f.text)
	f.at += int64(n)
	f.lines.add(f.text[:n])
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// line handles a whole line.
func (f *Follower) line(line []byte) {
	seen := f.tally.lines
	switch before := f.tally.count(line); {
	case before >= 0:
		if f.begun && before != seen {
			f.lose(max(before-seen, Unknown)) // fewer than before: the log was deleted
		}
		return
	case line == nil:
		return
	}
	if e, ok := decodeEvent(line); ok && f.filter.wants(e) {
		f.found = append(f.found, e)
	}
}

func (f *Follower) lose(n int64) {
	if f.missing == Unknown || n == Unknown {
		n = Unknown
	} else {
		n += f.missing
	}
	f.missing = n
}

// begin starts to read a file from its beginning.
func (f *Follower) begin(file *os.File, info fs.FileInfo) {
	f.file, f.info, f.at = file, info, 0
	f.lines.part, f.lines.long = nil, false
	f.tally.headed = false
}

// advance opens the next file; false if it does not exist yet. The end of its writer tore an incomplete last line.
func (f *Follower) advance() (bool, error) {
	for {
		file, info, again, err := f.successor()
		switch {
		case err != nil:
			return false, err
		case again:
			continue
		case file == nil:
			return false, nil
		}
		f.begun = f.file != nil
		if f.begun {
			f.lines.flush()
			_ = f.file.Close() // opened for reading only
		}
		f.begin(file, info)
		return true, nil
	}
}

// successor opens the file that follows the present one: the older of the two existing ones, unless it is the present one
// or was read before, and otherwise the newer one. again means that the log was rotated meanwhile.
func (f *Follower) successor() (file *os.File, info fs.FileInfo, again bool, err error) {
	old, oldInfo, err := openFile(f.root, oldPath)
	if err != nil {
		return nil, nil, false, err
	}
	present := old != nil && f.file != nil && os.SameFile(oldInfo, f.info)
	if old != nil && !present {
		if unread, err := f.unread(old); unread || err != nil {
			return old, oldInfo, false, err
		}
	}
	if old != nil {
		_ = old.Close() // opened for reading only
	}
	file, info, err = openFile(f.root, Path)
	if err != nil || file == nil || !present {
		return file, info, false, err
	}
	// If the present file is still in place, the newer one follows it.
	if now, err := f.root.Lstat(oldPath); err == nil && os.SameFile(now, f.info) {
		return file, info, false, nil
	}
	return nil, nil, true, file.Close()
}

// unread reports whether a rotated file follows the read one. It seeks to the file's beginning.
func (f *Follower) unread(old *os.File) (bool, error) {
	if f.file == nil {
		return true, nil
	}
	var t tally
	before := int64(0)
	lines := lineBuffer{do: func(line []byte) {
		if n := t.count(line); n >= 0 {
			before = n
		}
	}}
	err := readLines(io.LimitReader(old, lineLimit), &lines)
	if err == nil {
		_, err = old.Seek(0, io.SeekStart)
	}
	return before >= f.tally.lines, err
}

// tally counts the lines of the log up to a position in a file. The first line of a file may hold the number of lines
// before it.
type tally struct {
	lines  int64
	headed bool // the file's first line was seen
}

// count counts a line. It returns the number in a file's first line, or -1.
func (t *tally) count(line []byte) int64 {
	var head struct {
		Before *int64 `json:"before"`
	}
	first := !t.headed
	t.headed = true
	if !first || json.Unmarshal(line, &head) != nil || head.Before == nil {
		t.lines++
		return -1
	}
	t.lines = *head.Before
	return *head.Before
}
