package main

import (
	"bytes"
	"context"
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
	data, err := readUpTo(a.env().CallerPath(file), actionTextLimit+1)
	switch {
	case err != nil:
		return "", badUsage("%s: %v", flag, err)
	case len(data) > actionTextLimit:
		return "", badUsage("%s %s: the text has more than %d bytes", flag, file, actionTextLimit)
	}
	text, err := a.textOf(" " + string(data)) // a file with a dash does not mean standard input
	return strings.TrimPrefix(text, " "), err
}

// readUpTo reads a file, or the beginning of one that has more bytes than most, or no end.
func readUpTo(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// readInput reads specs from a file or a pipe that the command line names, or from standard input for "-".
func (a *app) readInput(name string) (ops.SpecText, error) {
	if name == "-" {
		text, err := readStream(a.stdin)
		return ops.SpecText{Name: "stdin" + formatOf(text), Text: text}, err
	}
	at := name
	if !filepath.IsAbs(name) {
		at = filepath.Join(a.global.dir, name)
	}
	info, err := os.Stat(at)
	switch {
	case err != nil:
		return ops.SpecText{}, badUsage("-f %s: %w; name a file or a pipe, or - for standard input", name, regular.Cause(err))
	case info.Mode().IsRegular():
		text, err := regular.ReadPath(at)
		return ops.SpecText{Name: name, Text: text}, err
	case info.Mode()&fs.ModeNamedPipe != 0:
		text, err := a.readPipe(at)
		if filepath.Ext(name) == "" {
			name += formatOf(text)
		}
		return ops.SpecText{Name: name, Text: text}, err
	}
	return ops.SpecText{}, badUsage("-f %s: it is no file; name a file or a pipe, or - for standard input", name)
}

// readPipe reads a pipe to its end, as a shell makes one of <(COMMAND).
func (a *app) readPipe(name string) ([]byte, error) {
	hint := time.AfterFunc(2*time.Second, func() {
		fmt.Fprintf(a.stderr, "waiting for a program that writes to the pipe %s\n", clean(name))
	})
	f, err := os.Open(name)
	hint.Stop()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readStream(f)
}

// streamSize is the most that is read of a pipe or standard input, in bytes. Each document in it may be as large as a
// file.
const streamSize = 64 << 20

// readStream reads to the end, or fails: a part of what was given is never taken for all of it.
func readStream(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, streamSize+1))
	if len(text) > streamSize {
		return nil, badUsage("at most %d bytes are read from a pipe; nothing was done; give files", streamSize)
	}
	return text, err
}

// formatOf is the extension of the format that a text without a name has: JSON starts with a brace and a string or a
// comment, everything else is YAML.
func formatOf(text []byte) string {
	rest, brace := bytes.CutPrefix(bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\uFEFF"))), []byte("{"))
	if rest = bytes.TrimSpace(rest); brace && len(rest) > 0 && (rest[0] == '"' || rest[0] == '/') {
		return ".json"
	}
	return ".yaml"
}

// proposal reads the text that a flag names; it is never nil.
func (a *app) proposal(flag, p string) (text []byte, err error) {
	if p == "-" {
		text, err = readStream(a.stdin)
	} else {
		text, err = regular.ReadPath(a.within(p))
	}
	if err != nil {
		return nil, badUsage("%s: %v", flag, err)
	}
	return append([]byte{}, text...), nil
}

// answerIn reads an answer; YAML becomes JSON.
func (a *app) answerIn(file string) (string, error) {
	text, err := a.textIn("-f", file)
	if ext := filepath.Ext(file); err == nil && (ext == ".yaml" || ext == ".yml") {
		data, err := schemas.JSONOfYAML(file, []byte(text))
		return string(data), err
	}
	return text, err
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

// readFacts reads a file, or stdin, up to the size limit of facts.
func (a *app) readFacts(name string) ([]byte, error) {
	from := a.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, badUsage("%s: %w; name a file, or - for standard input", name, regular.Cause(err))
		}
		defer f.Close()
		from = f
	}
	data, err := io.ReadAll(io.LimitReader(from, ops.FactsLimit+1))
	if err == nil && len(data) > ops.FactsLimit {
		err = fmt.Errorf("%s has more than %d bytes; split it", name, ops.FactsLimit)
	}
	return data, err
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

// actionTextLimit bounds the text of an Action, in bytes.
const actionTextLimit = 70000
