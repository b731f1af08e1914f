// Package versions asks programs for their versions, and keeps the answers in the local folder of a tree. A program is asked again when
// its file is another one.
//
// The programs are named by specs, perhaps of someone else. So only runs ask, and a spec has no influence on the arguments. The programs of
// projects that no one has allowed are not asked: that is the caller's part, see [Book.Ask].
package versions

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

const (
	ofTree  = ".reconcile/tools.json"
	tempDir = ".reconcile/tmp"
	most    = 4 // programs are asked at the same time

	askTime   = 10 * time.Second       // a program that a spec declares has this long for its answer,
	askGrace  = 500 * time.Millisecond // and what keeps its output open this long after it
	maxOutput = 64 << 10
	maxLine   = 200
)

// arguments are those that make a program print its version, where --version does not.
var arguments = map[string][]string{
	"ffmpeg": {"-version"}, "go": {"version"}, "helm": {"version", "--short"}, "hugo": {"version"}, "java": {"-version"}, "javac": {"-version"},
	"kubectl": {"version", "--client"}, "lua": {"-v"}, "openssl": {"version"}, "ssh": {"-V"}, "terraform": {"version"}, "unzip": {"-v"},
	"zig": {"version"},
}

// file is what identifies the file of a program; the zero value is a program that is not there.
type file struct {
	Path    string    `json:"path,omitempty"`
	Size    int64     `json:"size,omitempty"`
	Changed time.Time `json:"changed,omitzero"`
}

// answer is what a program said; Version is "" if it said nothing useful.
type answer struct {
	file
	Version string `json:"version,omitempty"`
}

// Book has the answers. It belongs to one goroutine.
type Book struct {
	dir    string // the root of the tree
	root   *os.Root
	path   string // of the file with the answers, and
	temp   string // where it is written first
	redact func([]byte) []byte

	onFile map[string]answer      // as the file has them
	asked  map[string]settle.Tool // by this process
	of     map[string]file        // that were asked
}

// Open reads the answers on file of the tree at root, in dir. redact removes secrets from what programs print.
func Open(dir string, root *os.Root, redact func([]byte) []byte) *Book {
	return OpenAt(dir, root, ofTree, tempDir, redact)
}

// OpenAt is Open for answers in another file below root, which is written in the folder temp first.
func OpenAt(dir string, root *os.Root, path, temp string, redact func([]byte) []byte) *Book {
	b := &Book{dir: dir, root: root, path: path, temp: temp, redact: redact, asked: map[string]settle.Tool{}, of: map[string]file{}}
	if data, err := regular.Read(root, path); err == nil {
		_ = json.Unmarshal(data, &b.onFile) // what is damaged is asked again
	}
	return b
}

// Changed reports whether a program must be asked again: its file is another one, or it did not report its version.
func (b *Book) Changed() bool {
	for name, was := range b.onFile {
		if is, _ := find(name); is != was.file || was.Version == "" {
			return true
		}
	}
	return false
}

// Foretell returns the kept version of a program, without asking it. known is false for one that was never asked.
func (b *Book) Foretell(name string) (is settle.Tool, known bool) {
	was, known := b.onFile[name]
	if !known {
		return settle.Tool{}, false
	}
	switch f, err := find(name); {
	case err != nil:
		return settle.Tool{Why: missing(err)}, true
	case f != was.file:
		return settle.Tool{Version: settle.ToolUnasked}, true
	}
	return settle.Tool{Version: was.Version, Why: "it did not tell its version"}, true
}

// Version is a program's answer about its version. It asks the program unless the answer for the same file is known.
func (b *Book) Version(ctx context.Context, name string) settle.Tool {
	f, err := find(name)
	if is, known := b.asked[name]; known && b.of[name] == f {
		return is
	}
	is := settle.Tool{}
	switch was := b.onFile[name]; {
	case err != nil:
		is.Why = missing(err)
	case was.file == f && was.Version != "":
		is.Version = was.Version
	default:
		args := arguments[name]
		if args == nil {
			args = []string{"--version"}
		}
		is, _ = b.ask(ctx, question{name, f.Path, args, b.dir, cleanEnviron()}, askTime)
	}
	b.asked[name], b.of[name] = is, f
	return is
}

// Ask is Version for programs that are known by their paths, several at the same time, each for at most limit and all until ctx ends. said has the
// versions that were told, late why others are not known; those are asked again the next time.
// They run in their own folders, and with this searchPath, so that nothing of a project influences them.
func (b *Book) Ask(ctx context.Context, all []tools.Question, searchPath string, limit time.Duration) (said, late map[tools.Question]string) {
	environ := []string{"PATH=" + searchPath}
	for _, kv := range cleanEnviron() {
		if !strings.HasPrefix(kv, "PATH=") {
			environ = append(environ, kv)
		}
	}
	answers := make([]settle.Tool, len(all))
	tooLate := make([]bool, len(all))
	var g sync.WaitGroup
	slots := make(chan struct{}, most)
	for i, p := range all {
		name := p.Path + " " + p.Arguments
		f, err := find(p.Path)
		b.of[name] = f
		if was := b.onFile[name]; err != nil || was.file == f {
			answers[i].Version = was.Version // also one that told nothing is not asked again
			continue
		}
		slots <- struct{}{}
		g.Go(func() {
			defer func() { <-slots }()
			answers[i], tooLate[i] = b.ask(ctx, question{filepath.Base(p.Path), p.Path, strings.Fields(p.Arguments), filepath.Dir(p.Path), environ}, limit)
		})
	}
	g.Wait()
	said, late = map[tools.Question]string{}, map[tools.Question]string{}
	for i, p := range all {
		if tooLate[i] {
			late[p] = answers[i].Why
			continue
		}
		b.asked[p.Path+" "+p.Arguments] = answers[i]
		if answers[i].Version != "" {
			said[p] = answers[i].Version
		}
	}
	return said, late
}

// Save keeps the answers that this process has, and no others.
func (b *Book) Save() error {
	all := make(map[string]answer, len(b.asked))
	same := len(b.asked) == len(b.onFile)
	for name, is := range b.asked {
		all[name] = answer{b.of[name], is.Version}
		same = same && b.onFile[name] == all[name]
	}
	if same {
		return nil
	}
	data, err := json.MarshalIndent(all, "", "  ")
	if err == nil {
		err = durable.Replace(b.root, b.temp, b.path, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("keep the versions of tools: %w", err)
	}
	b.onFile = all
	return nil
}

// find finds the file of a program on the PATH.
func find(name string) (file, error) {
	p, err := exec.LookPath(name)
	if err != nil {
		return file{}, err
	}
	fi, err := os.Stat(p)
	if err != nil {
		return file{}, err
	}
	return file{p, fi.Size(), fi.ModTime().UTC()}, nil
}

func missing(err error) string {
	if errors.Is(err, exec.ErrNotFound) {
		return "it is not found; install it, or put its folder on the PATH of reconcile"
	}
	return err.Error()
}

// question is how a program is asked for its version.
type question struct {
	name, path string
	args       []string
	dir        string
	environ    []string
}

// ask runs a program for its version: the first line that it prints with a number. late says that it did not end within the limit.
func (b *Book) ask(ctx context.Context, q question, limit time.Duration) (is settle.Tool, late bool) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out := &head{}
	cmd := exec.CommandContext(limited, q.path, q.args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = q.dir, q.environ, askGrace
	cmd.Stdout, cmd.Stderr = out, out
	endTogether(cmd)
	err := cmd.Run()
	line := versionLine(q.name, b.redact(out.kept.Bytes()))
	command := q.name + " " + strings.Join(q.args, " ")
	switch {
	case err != nil && ctx.Err() != nil:
		return settle.Tool{Why: "no time was left to ask"}, true
	case err != nil && limited.Err() != nil:
		return settle.Tool{Why: fmt.Sprintf("no answer in %g s", limit.Seconds())}, true
	case err != nil:
		return settle.Tool{Why: fmt.Sprintf("%s failed: %s", command, cmp.Or(line, err.Error()))}, false
	case line == "":
		return settle.Tool{Why: command + " prints nothing"}, false
	}
	return settle.Tool{Version: line}, false
}

// cleanEnviron is what programs see: what nodes see of the environment of reconcile.
func cleanEnviron() (out []string) {
	for _, name := range []string{"PATH", "HOME", "LANG", "SystemRoot", "USERPROFILE"} {
		if v := os.Getenv(name); v != "" {
			out = append(out, name+"="+v)
		}
	}
	return out
}

// versionLine is the beginning of the first line with the name of a program and a digit, since one may also tell the version of its Java; or else of the first
// with a digit, or of the first that is not blank.
func versionLine(name string, text []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	numbered := false
	for l := range strings.Lines(string(text)) {
		if !strings.ContainsAny(l, "0123456789") {
			continue
		}
		if first, _, _ := strings.Cut(l, " "); strings.EqualFold(first, name) {
			line = l
			break
		}
		if !numbered {
			line, numbered = l, true
		}
	}
	line = strings.TrimSpace(line)
	return strings.ToValidUTF8(line[:min(len(line), maxLine)], "")
}

// head keeps the beginning of an output.
type head struct{ kept bytes.Buffer }

var _ io.Writer = (*head)(nil)

func (h *head) Write(p []byte) (int, error) {
	h.kept.Write(p[:min(len(p), maxOutput-h.kept.Len())])
	return len(p), nil
}
