// Package scaffold makes the files that a tree begins with: settings, examples, the workflows for GitHub Actions, and what
// git needs to know.
package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/indexing"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// template is what every tree begins with, example is work to look at, actions are the workflows.
//
//go:embed all:template all:example all:actions
var embedded embed.FS

// File is a file of a tree; its path is below the root.
type File struct {
	Path string
	Data []byte
}

// Tree returns the files that every tree begins with.
func Tree() []File { return filesOf("template") }

// Example returns a session, agents, a workflow and a DAG that does a little work.
func Example() []File { return filesOf("example") }

// filesOf returns the embedded files below a folder.
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

// Write writes files in dir whose names are free, and reports each. Where one is taken nothing is written, unless missing
// says to write the others. A file with the very content may be there: a command that was killed can be repeated.
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

// CheckFree refuses files whose names are taken.
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

// sortFiles separates the files whose names are free from those that are taken; those with the very content are neither.
func sortFiles(root *os.Root, files []File) (free []File, taken []string, err error) {
	for _, f := range files {
		is, err := specs.Look(root, f.Path, f.Data)
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

// Ignored are the lines of .gitignore for what is local to a clone.
var Ignored = []string{"/.reconcile/", "/state/**/*.lock", indexing.IgnoreLine}

// AddLines adds lines to a text file of a folder, and reports whether it was written. lacks says which lines it lacks,
// given what it has.
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

// LacksIgnored returns those of the lines of [Ignored] that a .gitignore does not have.
func LacksIgnored(old string) []string {
	there := strings.Fields(old)
	return slices.DeleteFunc(slices.Clone(Ignored), func(l string) bool { return slices.Contains(there, l) })
}
