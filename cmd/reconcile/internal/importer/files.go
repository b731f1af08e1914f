package importer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"reconcile.dev/reconcile/state/regular"
)

// Sources are the supported sources of commands.
var Sources = []string{"make", "npm", "go", "just", "github"}

// fileSize is the maximum size of a file.
const fileSize = 4 << 20

// NothingError reports that a source has no commands.
type NothingError struct{ Looked string }

func (e *NothingError) Error() string { return e.Looked }

// Find finds the commands of one of Sources in a folder. The only program that it may run is just, which prints the content
// of a justfile.
func Find(ctx context.Context, dir, source string) (Found, error) {
	root, err := regular.Root(dir)
	if err != nil {
		return Found{}, &NothingError{fmt.Sprintf("there is no folder %s", dir)}
	}
	defer root.Close()
	found, looked, err := find(ctx, root, source)
	if err != nil {
		return found, err
	}
	found.settle()
	switch {
	case len(found.Commands) > 0:
		return found, nil
	case looked == "":
		return found, &NothingError{"the folder has no " + lookedFor[source]}
	}
	return found, &NothingError{fmt.Sprintf("%s has no %s%s", looked, nodesOf[source], found.why())}
}

// lookedFor describes the files of a source, nodesOf their commands.
var (
	lookedFor = map[string]string{"make": "GNUmakefile, makefile or Makefile", "npm": "package.json", "go": "go.mod, nor has one below it",
		"just": "justfile or .justfile", "github": ".github/workflows/*.yml or *.yaml"}
	nodesOf = map[string]string{"make": "target to run", "npm": "script to run", "go": "module", "just": "recipe that runs without arguments",
		"github": "step that runs a command without GitHub"}
)

func find(ctx context.Context, root *os.Root, source string) (found Found, looked string, err error) {
	var file *Source
	switch source {
	case "make":
		if file, err = firstFile(root, "GNUmakefile", "makefile", "Makefile"); file != nil {
			return Makefile(file.Path, file.Data), file.Path, nil
		}
	case "npm":
		if file, err = firstFile(root, "package.json"); file != nil {
			found, err = npm(file.Path, file.Data)
			return found, file.Path, err
		}
	case "just":
		if file, err = firstFile(root, justNames(root)...); file != nil {
			found, err = runJustDump(ctx, root.Name(), file)
			return found, file.Path, err
		}
	case "go":
		modules, err := modulesBelow(root)
		return goModules(modules), "", err
	case "github":
		files, err := workflowFiles(root)
		if err != nil || len(files) == 0 {
			return found, "", err
		}
		found, err = workflows(files)
		return found, workflowDir, err
	}
	return found, "", err
}

// firstFile reads the first existing file, or returns nil.
func firstFile(root *os.Root, names ...string) (*Source, error) {
	for _, name := range names {
		data, err := readFile(root, name)
		switch {
		case err != nil:
			return nil, err
		case data != nil:
			return &Source{name, data}, nil
		}
	}
	return nil, nil
}

// readFile reads a regular text file below the root, or returns nil if it does not exist.
func readFile(root *os.Root, name string) ([]byte, error) {
	info, err := root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look for %s: %w", name, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", name)
	case info.Size() > fileSize:
		return nil, fmt.Errorf("%s has %d bytes; commands are taken from files of at most %d", name, info.Size(), fileSize)
	}
	data, err := regular.Read(root, name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	case !utf8.Valid(data):
		return nil, fmt.Errorf("%s is no text in UTF-8", name)
	}
	return append([]byte{}, bytes.TrimPrefix(data, []byte("\uFEFF"))...), nil
}

const workflowDir = ".github/workflows"

func workflowFiles(root *os.Root) (files []Source, err error) {
	for _, e := range folderEntries(root, workflowDir) {
		if ext := path.Ext(e); ext != ".yml" && ext != ".yaml" {
			continue
		}
		name := path.Join(workflowDir, e)
		data, err := readFile(root, name)
		if err != nil {
			return nil, err
		}
		files = append(files, Source{name, data})
	}
	return files, nil
}

// folderEntries returns the sorted names in a folder; none if it cannot be read.
func folderEntries(root *os.Root, dir string) (names []string) {
	list, err := regular.List(root, dir)
	if err != nil {
		return nil
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// justNames returns the names of the existing justfiles, in any case.
func justNames(root *os.Root) []string {
	return slices.DeleteFunc(folderEntries(root, "."), func(name string) bool {
		return !strings.EqualFold(name, "justfile") && !strings.EqualFold(name, ".justfile")
	})
}

// runJustDump lists the recipes with just, or parses the justfile if just is not installed.
func runJustDump(ctx context.Context, dir string, file *Source) (Found, error) {
	program, err := exec.LookPath("just")
	if err != nil {
		return just(file.Path, file.Data, runtime.GOOS), nil
	}
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, program, "--color", "never", "--justfile", file.Path, "--dump", "--dump-format", "json")
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, &out, &complaint, time.Second
	if err := cmd.Run(); err != nil {
		return Found{}, fmt.Errorf("just cannot read %s: %w: %s", file.Path, err, strings.TrimSpace(complaint.String()))
	}
	return justDump(file.Path, out.Bytes())
}

func hasNoModule(folder string) bool {
	return strings.HasPrefix(folder, ".") || strings.HasPrefix(folder, "_") || slices.Contains([]string{"vendor", "testdata", "node_modules"}, folder)
}

func exists(root *os.Root, name string) bool {
	info, err := root.Stat(name)
	return err == nil && info.Mode().IsRegular()
}
