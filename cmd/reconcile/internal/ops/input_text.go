package ops

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/state/regular"
)

// Text is a named text of a request. It is read only after the rest of the request was checked.
type Text struct {
	Name string
	io.Reader
}

// textLimit bounds a conversation or summary, in bytes: far more than any session has.
const textLimit = 256 << 20

// StreamText is a text that is read to the end of a stream.
func StreamText(name string, from io.Reader) Text {
	return Text{name, &textReader{name: name, from: from}}
}

// FileText returns the Text that reads a file, whose name is relative to the folder of the process. The file is opened
// at the first read.
func FileText(file string) Text { return Text{file, &textReader{name: file}} }

// textReader reads a text up to the limit.
type textReader struct {
	name string
	from io.Reader // nil: the file of that name
	file *os.File
	size int
}

// Read implements [io.Reader].
func (r *textReader) Read(p []byte) (n int, err error) {
	if r.from == nil {
		if err := r.open(); err != nil {
			return 0, err
		}
	}
	n, err = r.from.Read(p)
	r.size += n
	switch {
	case r.size > textLimit:
		err = badRequest("%s has more than %s: capture it in parts", r.name, render.Bytes(textLimit))
	case err != nil && err != io.EOF:
		err = fmt.Errorf("read %s: %w", r.name, regular.Cause(err))
	}
	if err != nil && r.file != nil {
		_ = r.file.Close() // opened for reading only
	}
	return n, err
}

func (r *textReader) open() error {
	f, err := os.Open(r.name)
	if err != nil {
		return badRequest("%s: %v; name a file, or - for standard input", r.name, regular.Cause(err))
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		_ = f.Close()
		return badRequest("%s is a folder; name a file, or - for standard input", r.name)
	}
	r.from, r.file = f, f
	return nil
}

func rewind(f *os.File, at int64) error {
	_, err := f.Seek(at, io.SeekStart)
	return err
}

// readBounded reads a regular file, but not the content of one that is too large.
func readBounded(name string, limit int) ([]byte, error) {
	f, info, err := regular.OpenPath(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > int64(limit) {
		return make([]byte, limit+1), nil // the decoder reports the error
	}
	return io.ReadAll(f)
}

// inputContext reads the description of the agent's next task.
func inputContext(from Text) (string, error) {
	const most = 64 << 10
	if from.Reader == nil {
		return "", nil
	}
	text, err := io.ReadAll(io.LimitReader(from, most+1))
	switch {
	case err != nil:
		return "", err
	case len(text) > most:
		return "", badRequest("%s has more than %d bytes", from.Name, most)
	case !utf8.Valid(text):
		return "", badRequest("%s is not UTF-8", from.Name)
	}
	return strings.TrimSpace(string(text)), nil
}
