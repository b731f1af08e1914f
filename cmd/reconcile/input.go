package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/regular"
)

// stdinText is the argument for the text on standard input.
const stdinText = "-"

// textOf returns a text of the command line; "-" reads it from standard input.
func (a *app) textOf(word string) (string, error) {
	if !utf8.ValidString(word) {
		return "", badUsage("the text is not UTF-8")
	}
	if word != stdinText {
		return word, nil
	}
	const most = 64 << 10 // far more than any text may have: a longer one is refused, not cut
	text, err := io.ReadAll(io.LimitReader(a.stdin, most+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the text from standard input: %w", err)
	case len(text) > most:
		return "", badUsage("the text on standard input has more than %d bytes, at most 2000 characters are allowed", most)
	}
	if !utf8.Valid(text) {
		return "", badUsage("the text on standard input is not UTF-8")
	}
	return strings.TrimSpace(string(text)), nil
}

// textIn returns the text in a file that a flag names; "-" is standard input.
func (a *app) textIn(flag, file string) (string, error) {
	if file == stdinText {
		return a.textOf(file)
	}
	data, err := a.read(flag, file, actionTextLimit)
	if err != nil {
		return "", err
	}
	text, err := a.textOf(" " + string(data)) // a file with a dash does not mean standard input
	return strings.TrimPrefix(text, " "), err
}

// actionTextLimit bounds the text of an Action, in bytes.
const actionTextLimit = 70000

// answerIn reads an answer; YAML becomes JSON.
func (a *app) answerIn(file string) (string, error) {
	if ext := filepath.Ext(file); ext == ".yaml" || ext == ".yml" {
		return a.editIn(file)
	}
	return a.textIn("-f", file)
}

// editIn reads an edit, which is YAML or JSON, as JSON.
func (a *app) editIn(file string) (string, error) {
	text, err := a.textIn("-f", file)
	if err != nil {
		return "", err
	}
	data, err := schemas.JSONOfYAML(file, []byte(text))
	return string(data), err
}

// streamSize is the most that is read for a flag, in bytes, unless that has another limit.
const streamSize = 64 << 20

// read reads what a flag names to its end: a file or a pipe, as a shell makes one of <(COMMAND), relative to the user's folder,
// or standard input for "-". A text of more bytes than most is refused: a part of it is never taken for all of it.
func (a *app) read(flag, name string, most int64) ([]byte, error) {
	from := a.stdin
	if name != stdinText {
		f, err := a.open(name)
		if err != nil {
			return nil, badUsage("%s %s: %w; name a file or a pipe, or - for standard input", flag, name, regular.Cause(err))
		}
		defer f.Close()
		from = f
	}
	text, err := io.ReadAll(io.LimitReader(from, most+1))
	switch {
	case err != nil:
		err = badUsage("%s %s: %w", flag, name, regular.Cause(err))
	case int64(len(text)) > most:
		err = badUsage("%s %s: the text has more than %d bytes", flag, name, most)
	}
	return text, err
}

// open opens a file or a pipe. It says so if it waits for a program that writes to the pipe.
func (a *app) open(name string) (*os.File, error) {
	name = a.within(name)
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() && info.Mode()&fs.ModeNamedPipe == 0:
		return nil, errors.New("it is no file")
	}
	hint := time.AfterFunc(2*time.Second, func() {
		fmt.Fprintf(a.stderr, "waiting for a program that writes to the pipe %s\n", clean(name))
	})
	defer hint.Stop()
	return os.Open(name)
}

// contextText returns a text of the command line, or standard input.
func (a *app) contextText(ctx context.Context, word string) ops.Text {
	if word == stdinText {
		return a.textFrom(ctx, word)
	}
	return ops.StreamText("the context", strings.NewReader(word))
}

// textFrom returns a file of the command line, or standard input.
func (a *app) textFrom(ctx context.Context, file string) ops.Text {
	text := ops.FileText(file)
	if file == stdinText {
		if isTerminal(a.stdin) {
			a.note("reading standard input to its end, which is Ctrl-D at a terminal")
		}
		text = ops.StreamText("standard input", a.stdin)
	}
	text.Reader = untilDone{ctx, text.Reader}
	return text
}

// untilDone reads from a terminal or pipe until ctx ends, also while nothing comes.
type untilDone struct {
	ctx  context.Context
	from io.Reader
}

// Read implements [io.Reader]. A read that ctx ended goes on, into memory of its own.
func (r untilDone) Read(p []byte) (int, error) {
	type read struct {
		data []byte
		err  error
	}
	done := make(chan read, 1)
	go func() {
		buffer := make([]byte, len(p))
		n, err := r.from.Read(buffer)
		done <- read{buffer[:n], err}
	}()
	select {
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	case got := <-done:
		return copy(p, got.data), got.err
	}
}

// openEditor lets a person change a file.
func (a *app) openEditor(ctx context.Context, file string) error {
	words := strings.Fields(a.getenv("VISUAL"))
	if len(words) == 0 {
		words = strings.Fields(a.getenv("EDITOR"))
	}
	if len(words) == 0 {
		return badUsage("set EDITOR to the editor to use, for example EDITOR=vi")
	}
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], file)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, a.stdout, a.stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the editor %s: %w; nothing was written", words[0], err)
	}
	return nil
}
