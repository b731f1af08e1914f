package importer

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"reconcile.dev/reconcile/state/regular"
)

// goModule is a Go module below the root.
type goModule struct {
	dir string // slash path; "." is the root
	sum bool   // whether it has a go.sum
}

// goModules returns the commands of modules: build, vet and test of each.
func goModules(modules []goModule) (found Found) {
	for _, m := range modules {
		where, prefix := "", ""
		if m.dir != "." {
			where, prefix = m.dir, m.dir+"_"
		}
		inputs := []string{escapeGlob(path.Join(m.dir, "**/*.go"), m.dir), escapeGlob(path.Join(m.dir, "go.mod"), m.dir)}
		if m.sum {
			inputs = append(inputs, escapeGlob(path.Join(m.dir, "go.sum"), m.dir))
		}
		for _, verb := range []string{"build", "vet", "test"} {
			found.Commands = append(found.Commands, Command{ID: m.dir + " " + verb, Name: prefix + verb, Run: []string{"go", verb, "./..."},
				Inputs: inputs, Dir: where, From: path.Join(m.dir, "go.mod")})
		}
	}
	return found
}

// escapeGlob escapes pattern characters in the folder that a pattern begins with.
func escapeGlob(pattern, dir string) string {
	if dir == "." {
		return pattern
	}
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`).Replace(dir) + strings.TrimPrefix(pattern, dir)
}

// goWork returns the folders in the use directives of a go.work.
func goWork(src []byte) (dirs []string) {
	block := false
	for line := range strings.Lines(string(src)) {
		line, _, _ = strings.Cut(line, "//")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case block && words[0] == ")":
			block = false
		case block:
			dirs = append(dirs, strings.Trim(words[0], "\"`"))
		case words[0] == "use" && len(words) > 1 && words[1] == "(", words[0] == "use(":
			block = true
		case words[0] == "use" && len(words) > 1:
			dirs = append(dirs, strings.Trim(words[1], "\"`"))
		}
	}
	return dirs
}

// modulesBelow returns the Go modules: those of go.work if it exists, else all below the root.
func modulesBelow(root *os.Root) (modules []goModule, err error) {
	work, err := readFile(root, "go.work")
	if err != nil {
		return nil, err
	}
	if work != nil {
		for _, dir := range goWork(work) {
			if dir = path.Clean(dir); fs.ValidPath(dir) && exists(root, path.Join(dir, "go.mod")) {
				modules = append(modules, goModule{dir, exists(root, path.Join(dir, "go.sum"))})
			}
		}
		return modules, nil
	}
	err = fs.WalkDir(regular.FS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // a folder that cannot be read has no module
		case d.IsDir() && name != "." && hasNoModule(d.Name()):
			return fs.SkipDir
		case d.Type().IsRegular() && d.Name() == "go.mod":
			dir := path.Dir(name)
			modules = append(modules, goModule{dir, exists(root, path.Join(dir, "go.sum"))})
		}
		return nil
	})
	slices.SortFunc(modules, func(a, b goModule) int { return strings.Compare(a.dir, b.dir) })
	return modules, err
}
