package ops

import (
	"fmt"
	"io"
	"os"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/state/regular"
)

// Text is a text of a request. It is read when the rest of the request is known to be right.
type Text struct {
	Name string
	Read func() ([]byte, error)
}

// textLimit bounds what is read as a conversation or summary: far more than any session has.
const textLimit = 256 << 20

// StreamText is a text that is read to the end of a stream.
func StreamText(name string, from io.Reader) Text {
	return Text{name, func() ([]byte, error) { return readText(name, from) }}
}

// FileText is the text of a file, named from where the process runs.
func FileText(file string) Text {
	return Text{file, func() ([]byte, error) {
		f, err := os.Open(file)
		if err != nil {
			return nil, badRequest("%s: %v; name a file, or - for standard input", file, regular.Cause(err))
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return nil, badRequest("%s is a folder; name a file, or - for standard input", file)
		}
		return readText(file, f)
	}}
}

func readText(name string, from io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, textLimit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, regular.Cause(err))
	case len(data) > textLimit:
		return nil, badRequest("%s has more than %s: capture it in parts", name, render.Bytes(textLimit))
	}
	return data, nil
}
