package chat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
	"reconcile.dev/reconcile/state/regular"
)

// Tool is a function that a model may call.
type Tool struct {
	Name, Description string
	parameters        []parameter
	run               func(f *Files, a *args) (string, error)
}

type parameter struct {
	name, kind, description string
	required                bool
}

// args are the arguments of all tools.
type args struct {
	Path, Text, Content string
	From, Lines         int
}

func (t *Tool) schema() object {
	properties, required := object{}, []string{}
	for _, p := range t.parameters {
		properties[p.name] = object{"type": p.kind, "description": p.description}
		if p.required {
			required = append(required, p.name)
		}
	}
	return object{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// Files are the files that a model may use: those below a folder, but for git's and reconcile's own. Symbolic links do not lead
// out of it.
type Files struct {
	Root  *os.Root
	Clean func(string) string // removes secrets from what the model reads
}

// Tools are the tools for what a model may do, one of the schemas.Tools constants.
func Tools(may string) []Tool {
	where := parameter{"path", "string", "A path below the folder, with slashes. Default: all of it.", false}
	file := parameter{"path", "string", "The path of the file below the folder, with slashes.", true}
	read := []Tool{
		{"list_files", "Lists the files below a folder of the project.", []parameter{where}, list},
		{"read_file", "Reads a text file of the project, with numbers of lines.", []parameter{file,
			{"from", "integer", "The first line. Default 1.", false}, {"lines", "integer", "How many lines. Default 500.", false}}, read},
		{"search_text", "Finds the lines of the project's files that contain a text, regardless of case.", []parameter{
			{"text", "string", "The text to find, not a pattern.", true}, where}, search},
	}
	switch may {
	case schemas.ToolsRead:
		return read
	case schemas.ToolsWrite:
		return append(read, Tool{"write_file", "Writes a text file of the project: a new one, or all of an existing one.",
			[]parameter{file, {"content", "string", "The whole content.", true}}, write})
	}
	return nil
}

// Run performs a call. A failure is a result that the model reads, too.
func (f *Files) Run(tools []Tool, c Call) Result {
	i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == c.Name })
	if i < 0 {
		return Result{Call: c, Text: "there is no tool of this name", Failed: true}
	}
	var a args
	if err := json.Unmarshal(c.Args, &a); err != nil {
		return Result{Call: c, Text: "the arguments are not a JSON object as the tool's schema says", Failed: true}
	}
	text, err := tools[i].run(f, &a)
	if err != nil {
		return Result{Call: c, Text: err.Error(), Failed: true}
	}
	return Result{Call: c, Text: text}
}

// Bounds of what a tool gives.
const (
	mostFiles   = 1000
	mostHits    = 100
	mostLines   = 500
	longestHit  = 300
	longestFile = 1 << 20
)

// toolName is a path that a model may use.
func toolName(p string) (string, error) {
	p = path.Clean(cmp.Or(p, "."))
	if !schemas.IsPath(p) {
		return "", fmt.Errorf("%q is not a path below the folder that you may use", p)
	}
	return p, nil
}

// errEnough ends a walk.
var errEnough = errors.New("enough")

// walk visits the files below a path, in order.
func (f *Files) walk(p string, visit func(name string) error) error {
	p, err := toolName(p)
	if err != nil {
		return err
	}
	err = fs.WalkDir(regular.FS(f.Root), p, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && file == p:
			return fmt.Errorf("%s cannot be read", p)
		case err != nil:
			return nil
		case file != "." && !schemas.IsPath(file) && d.IsDir():
			return fs.SkipDir
		case !d.Type().IsRegular() || !schemas.IsPath(file):
			return nil
		}
		return visit(file)
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

func list(f *Files, a *args) (string, error) {
	var names []string
	err := f.walk(a.Path, func(file string) error {
		if len(names) == mostFiles {
			names = append(names, "… (more files; list a folder below)")
			return errEnough
		}
		names = append(names, file)
		return nil
	})
	if err != nil {
		return "", err
	}
	return cmp.Or(strings.Join(names, "\n"), "no files"), nil
}

// text reads a text file without secrets.
func (f *Files) text(file string) (string, error) {
	file, err := toolName(file)
	if err != nil {
		return "", err
	}
	info, err := f.Root.Stat(file)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s cannot be read: there is no such file", file)
	case info.Size() > longestFile:
		return "", fmt.Errorf("%s is longer than %d bytes", file, longestFile)
	}
	data, err := regular.Read(f.Root, file)
	if err != nil {
		return "", fmt.Errorf("%s is not a file that can be read", file)
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return "", fmt.Errorf("%s is not text", file)
	}
	return f.Clean(string(data)), nil
}

func read(f *Files, a *args) (string, error) {
	text, err := f.text(a.Path)
	if err != nil {
		return "", err
	}
	lines := strings.SplitAfter(text, "\n")
	first := min(max(a.From, 1), len(lines))
	count := a.Lines
	if count <= 0 {
		count = mostLines
	}
	last := min(first-1+count, len(lines))
	var b strings.Builder
	for i, line := range lines[first-1 : last] {
		fmt.Fprintf(&b, "%d\t%s", first+i, line)
	}
	if last < len(lines) {
		fmt.Fprintf(&b, "… (%d more lines)\n", len(lines)-last)
	}
	return b.String(), nil
}

func search(f *Files, a *args) (string, error) {
	if strings.TrimSpace(a.Text) == "" {
		return "", errors.New("text is empty")
	}
	want := strings.ToLower(a.Text)
	var hits []string
	err := f.walk(a.Path, func(file string) error {
		text, err := f.text(file)
		if err != nil {
			return nil // it is not text, or too long
		}
		n := 0
		for line := range strings.Lines(text) {
			if n++; !strings.Contains(strings.ToLower(line), want) {
				continue
			}
			if len(hits) == mostHits {
				hits = append(hits, "… (more lines)")
				return errEnough
			}
			line = strings.TrimRight(line, "\r\n")
			if len(line) > longestHit {
				line = shorten.Bytes(line, longestHit) + "…"
			}
			hits = append(hits, fmt.Sprintf("%s:%d: %s", file, n, line))
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return cmp.Or(strings.Join(hits, "\n"), "no line has it"), nil
}

func write(f *Files, a *args) (string, error) {
	file, err := toolName(a.Path)
	switch {
	case err != nil:
		return "", err
	case file == ".":
		return "", errors.New("path is empty")
	case len(a.Content) > longestFile:
		return "", fmt.Errorf("the content is longer than %d bytes", longestFile)
	}
	if info, err := f.Root.Lstat(file); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", file)
	}
	if err := f.Root.MkdirAll(path.Dir(file), 0o755); err != nil {
		return "", fmt.Errorf("the folder of %s cannot be made", file)
	}
	if err := regular.Write(f.Root, file, []byte(a.Content), 0o644); err != nil {
		return "", fmt.Errorf("%s cannot be written", file)
	}
	return fmt.Sprintf("%s has %d bytes now", file, len(a.Content)), nil
}
