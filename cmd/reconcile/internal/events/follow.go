package events

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Unknown is the number of events that are missing where nobody can tell.
const Unknown = -1

// Follower reads the log from its beginning, and what is added to it later: from its own or other processes, through
// rotation and truncation. It looks only when it is asked to. Its methods belong to one goroutine.
//
// It holds the file that it reads open, so that nothing is lost when that file is put aside, and goes on with the next
// one when it has read all of it. Events are missing only when the log is rotated twice between two looks; from the
// numbers at the beginnings of the files it knows how many.
type Follower struct {
	root   *os.Root
	filter Filter

	file  *os.File // nil before the first
	info  fs.FileInfo
	at    int64 // bytes of file that were read
	text  []byte
	lines lineBuffer
	tally tally
	begun bool // a file was read: lines before the next one can be missing

	found   []Event
	missing int64
}

// Follow returns a follower of the events that the filter wants. It must be closed.
func Follow(root *os.Root, f Filter) *Follower {
	w := &Follower{root: root, filter: f}
	w.lines.do = w.line
	return w
}

// Close lets go of the file.
func (f *Follower) Close() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}

// Batch is what a look found.
type Batch struct {
	// Missing counts the events of whatever kind that the log had before Events, and has no more; Unknown if nobody can
	// tell how many.
	Missing int64
	Events  []Event
}

// Next returns the next events that the filter wants, oldest first. An empty batch says that there are none now.
func (f *Follower) Next() (Batch, error) {
	for {
		b, more, err := f.look()
		switch {
		case err != nil:
			return Batch{}, fmt.Errorf("event log: %w", err)
		case len(b.Events) > 0 || b.Missing != 0 || !more:
			return b, nil
		}
	}
}

// look reads on in the file, and goes to the next one where it has all of it. Whether there is a next one is seen
// before the end: what is written after the file was put aside is in the next one.
func (f *Follower) look() (b Batch, more bool, err error) {
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

// over reports whether nothing is added any more to the file: there is another one in its place, or no file yet.
func (f *Follower) over() (bool, error) {
	if f.file == nil {
		return true, nil
	}
	info, err := f.root.Lstat(Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil // between two files
	case err != nil:
		return false, err
	case !os.SameFile(info, f.info):
		return info.Mode().IsRegular(), nil
	case info.Size() < f.at:
		f.lose(Unknown) // somebody truncated it
		f.begin(f.file, f.info)
		f.begun = false // that is told already
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

// line takes a whole line in.
func (f *Follower) line(line []byte) {
	seen := f.tally.lines
	switch before := f.tally.count(line); {
	case before >= 0:
		if f.begun && before != seen {
			f.lose(max(before-seen, Unknown)) // fewer than there were: somebody began it anew
		}
		return
	case line == nil:
		return
	}
	if e, ok := decode(line); ok && f.filter.Wants(e) {
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

// begin goes on with the beginning of a file.
func (f *Follower) begin(file *os.File, info fs.FileInfo) {
	f.file, f.info, f.at = file, info, 0
	f.lines.part, f.lines.long = nil, false
	f.tally.headed = false
}

// advance goes on to the next file; false if there is none yet. What is left of a line was torn by the end of its
// writer.
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
			_ = f.file.Close() // it was only read
		}
		f.begin(file, info)
		return true, nil
	}
}

// successor opens the file that follows the present one: the older of the two that there are, if it is not the present
// one nor one that was read before, and else the newer. again means that the log was rotated meanwhile.
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
		_ = old.Close() // it was only looked at
	}
	file, info, err = openFile(f.root, Path)
	if err != nil || file == nil || !present {
		return file, info, false, err
	}
	// While the present one is still in its place, the newer one is what follows it.
	if now, err := f.root.Lstat(oldPath); err == nil && os.SameFile(now, f.info) {
		return file, info, false, nil
	}
	return nil, nil, true, file.Close()
}

// unread reports whether a file that was put aside comes after what was read. It leaves it at its beginning.
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
