package events

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// lineBuffer splits its input into lines. It skips blank ones, and keeps the beginning of an incomplete one.
type lineBuffer struct {
	// do is called with each line, without its end; with nil for a line longer than any event.
	do   func(line []byte)
	part []byte
	long bool
}

func (b *lineBuffer) add(text []byte) {
	for {
		i := bytes.IndexByte(text, '\n')
		if i < 0 {
			b.keep(text)
			return
		}
		b.keep(text[:i])
		b.flush()
		text = text[i+1:]
	}
}

func (b *lineBuffer) keep(text []byte) {
	if b.long = b.long || len(b.part)+len(text) > lineLimit; b.long {
		b.part = b.part[:0]
		return
	}
	b.part = append(b.part, text...)
}

// flush ends an incomplete line, if any.
func (b *lineBuffer) flush() {
	line := bytes.TrimSpace(b.part)
	switch {
	case b.long:
		b.do(nil)
	case len(line) > 0:
		b.do(line)
	}
	b.part, b.long = b.part[:0], false
}

// readLines writes all of r to a buffer, which keeps an incomplete last line.
func readLines(r io.Reader, b *lineBuffer) error {
	text := make([]byte, 32<<10)
	for {
		n, err := r.Read(text)
		b.add(text[:n])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// countLines returns the number of lines of the log up to the end of a file, 0 if it does not exist. A torn last line
// counts.
func countLines(root *os.Root, path string) (int64, error) {
	file, _, err := openFile(root, path)
	if file == nil {
		return 0, err
	}
	defer file.Close()
	var t tally
	lines := lineBuffer{do: func(line []byte) { t.count(line) }}
	if err := readLines(file, &lines); err != nil {
		return 0, err
	}
	lines.flush()
	return t.lines, nil
}

func scanLines(r io.Reader, f Filter) ([]Event, error) {
	var out []Event
	err := readLines(r, &lineBuffer{do: func(line []byte) {
		if e, ok := decodeEvent(line); ok && f.wants(e) {
			out = append(out, e)
		}
	}})
	return out, err
}
