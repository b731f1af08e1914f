// Package scaffold provides the initial files of a tree: settings, examples, the workflows for GitHub Actions, and
// git's ignore and attribute lines.
package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/indexing"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// template has the files of every tree, example has sample work, actions has the workflows.
//
//go:embed all:template all:example all:actions
var embedded embed.FS

// File is a file of a tree; its path is relative to the root.
type File struct {
	Path string
	Data []byte
}

// Tree returns the initial files of every tree.
func Tree() []File { return filesOf("template") }

// Example returns the files of the example in the scaffold: a session, agents, a workflow and a small DAG.
func Example() []File { return filesOf("example") }

// filesOf returns the embedded files of a folder.
func filesOf(dir string) (files []File) {
	err := fs.WalkDir(embedded, dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := embedded.ReadFile(name)
		files = append(files, File{strings.TrimPrefix(name, dir+"/"), data})
		return err
	})
	if err != nil {
		panic(err) // they are part of the program
	}
	return files
}

// Open opens a folder.
func Open(dir string) (*os.Root, error) {
	root, err := regular.Root(dir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, regular.Cause(err))
	}
	return root, nil
}

// Write writes those of the files in dir whose names are free, and reports each. If a name is taken it writes nothing,
// unless missing is set. A file with the same content may exist, so that an interrupted command can be repeated.
func Write(dir string, files []File, missing bool, wrote func(path string)) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder of the tree: %w", err)
	}
	root, err := Open(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	free, taken, err := sortFiles(root, files)
	if err != nil {
		return err
	}
	if len(taken) > 0 && !missing {
		return takenError(dir, taken, "use --missing to add only the others")
	}
	for _, f := range free {
		if err := durable.WriteFile(root, specs.Scratch, f.Path, f.Data); err != nil {
			return err
		}
		wrote(filepath.Join(dir, filepath.FromSlash(f.Path)))
	}
	return nil
}

// CheckFree returns an error if names of the files are taken.
func CheckFree(dir string, files []File) error {
	root, err := Open(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	_, taken, err := sortFiles(root, files)
	if err == nil && len(taken) > 0 {
		return takenError(dir, taken, "move or remove them, and run the command again")
	}
	return err
}

func takenError(dir string, taken []string, do string) error {
	return fmt.Errorf("%s has files of these names already, nothing was written: %s; %s", dir, strings.Join(taken, ", "), do)
}

// sortFiles separates files with free names from those whose names are taken; files that exist with the same content
// are in neither list.
func sortFiles(root *os.Root, files []File) (free []File, taken []string, err error) {
	for _, f := range files {
		is, err := specs.PresenceOf(root, f.Path, f.Data)
		if err != nil {
			return nil, nil, err
		}
		switch is {
		case specs.Free:
			free = append(free, f)
		case specs.Taken:
			taken = append(taken, f.Path)
		}
	}
	return free, taken, nil
}

// ignored are the lines of .gitignore for files that are local to a clone.
var ignored = []string{"/.reconcile/", "/state/**/*.lock", indexing.IgnoreLine}

// AddLines adds the lines that a text file lacks to its end, and reports whether it wrote the file. lacks returns the
// missing lines for the file's content.
func AddLines(root *os.Root, name string, lacks func(old string) []string) (wrote bool, err error) {
	old, err := regular.Read(root, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("read %s: %w", name, regular.Cause(err))
	}
	text := string(old)
	lines := lacks(text)
	if len(lines) == 0 {
		return false, nil
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	text += strings.Join(lines, "\n") + "\n"
	return true, durable.WriteFile(root, specs.Scratch, name, []byte(text))
}

// LacksIgnored returns the lines of [Ignored] that a .gitignore lacks.
func LacksIgnored(old string) []string {
	there := strings.Fields(old)
	return slices.DeleteFunc(slices.Clone(ignored), func(l string) bool { return slices.Contains(there, l) })
}

// ReleaseMark is the placeholder in the action for the release to install.
const ReleaseMark = `"VERSION"`

// releaseForm matches a version that always means the same: not a branch, "latest", or a build with local changes.
var releaseForm = form(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// fileForm matches the other values that the action accepts: the URL of a release file with its checksum, or a path in
// the repository.
var fileForm = form(`^(https://[!-~]+#sha256=[0-9a-f]{64}|\./[0-9A-Za-z._/-]+)$`)

// form compiles an expression at its first use: most commands use none.
func form(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// IsVersion reports whether s has the form of a release version, which always means the same.
func IsVersion(s string) bool { return releaseForm().MatchString(s) }

// IsRelease reports whether s is a version, or has the form of a file of a release: its URL with a checksum, or a path
// in the repository.
func IsRelease(s string) bool { return IsVersion(s) || fileForm().MatchString(s) }

// Workflows returns the workflows for GitHub Actions, and their shared action, which installs a release; "" keeps the
// placeholder.
func Workflows(release string) []File {
	files := filesOf("actions")
	for i := range files {
		if release != "" {
			files[i].Data = bytes.ReplaceAll(files[i].Data, []byte(ReleaseMark), []byte(yamlText(release)))
		}
	}
	return files
}

// yamlText quotes a release, file or path as a YAML value: a # after a space would begin a comment, and none contains a
// quote.
func yamlText(s string) string {
	if IsVersion(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}
