package tools

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"reconcile.dev/reconcile/controllers/manifests"

	"reconcile.dev/reconcile/schemas/treepath"
)

// Programs is the folder, below the root of a project, for the programs of ecosystems that have no environment for each project.
const Programs = ".reconcile/tools"

// Installation is how a tool gets into the environment of a project. Manifests and lock files stay as they are.
type Installation struct {
	Tool    string `json:"tool"`
	Version string `json:"version,omitempty"` // exactly; "": the newest
	Folder  string `json:"folder"`            // of the project in the repository; "" is the root
	Manager string `json:"manager"`
	Env     string `json:"env"` // the only folder below the root that it may change
	// Commands run one after the other in Folder; {env} and {folder} are absolute paths, here and in Set, which are their variables.
	Commands [][]string `json:"commands"`
	Set      []string   `json:"-"`
	// Kept are the files of Folder that a package manager may change, which are as before afterwards.
	Kept []string `json:"-"`
}

// Shown is one of its commands with paths below the root.
func (in Installation) Shown(argv []string) string {
	return strings.NewReplacer("{env}", in.Env, "{folder}", ".").Replace(strings.Join(argv, " "))
}

// nodeKept are the manifests and lock files that package managers of node change.
var nodeKept = []string{"package.json", "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "pnpm-workspace.yaml", "yarn.lock", "bun.lock", "bun.lockb"}

// MayKeep reports whether an installation restores a file, and MayReplace whether it replaces a folder: paths below the root of a project, as
// a record of it that anybody may have written names them.
func MayKeep(file string) bool {
	return treepath.Of(file) == treepath.User && slices.Contains(nodeKept, path.Base(file))
}

// MayReplace is described with [MayKeep].
func MayReplace(folder string) bool {
	return folder == Programs || treepath.Of(folder) == treepath.User && slices.Contains([]string{"node_modules", ".venv", "venv"}, path.Base(folder))
}

// Wanted is a tool of an allow-list or a request: its name, and the version where it is given.
type Wanted struct{ Tool, Version string }

// ParseWanted reads NAME or NAME@VERSION, and refuses tools that the catalogue does not have, and invalid versions.
func ParseWanted(text string) (w Wanted, err error) {
	w.Tool = text
	if at := strings.LastIndexByte(text, '@'); at > 0 {
		w.Tool, w.Version = text[:at], text[at+1:]
		if !exactVersion().MatchString(w.Version) {
			return w, fmt.Errorf("%q: %q is no version, as 1.2.3", text, w.Version)
		}
	}
	if _, known := entry(w.Tool); !known {
		return w, fmt.Errorf("no tool is called %q", w.Tool)
	}
	return w, nil
}

var exactVersion = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^v?\d+(\.\d+)*([-+.]?[0-9A-Za-z]+)*$`) })

// Permitted reports whether an allow-list has a tool, in that version. A request without a version gets that of the list, or else the one given,
// which the project itself names.
func (w Wanted) Permitted(list []Wanted, named string) (Wanted, bool) {
	for _, l := range list {
		if l.Tool == w.Tool && l.Version != "" && (w.Version == "" || w.Version == l.Version) {
			return l, true
		}
	}
	if w.Version == "" {
		w.Version = named
	}
	return w, slices.Contains(list, Wanted{Tool: w.Tool})
}

// NamedVersion is the version of a tool that the lock file or the manifest of a folder names exactly; "" for none. texts are their contents, by name.
func NamedVersion(tool string, texts map[string]string) string {
	t, known := entry(tool)
	if !known {
		return ""
	}
	declared := ""
	for name, text := range texts {
		m, err := manifests.Parse(name, []byte(text))
		if err != nil || t.Packages[m.Ecosystem] == "" {
			continue
		}
		wanted := manifests.Normal(m.Ecosystem, t.Packages[m.Ecosystem])
		for _, d := range m.Dependencies {
			v := strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(d.Version, "=="), "="))
			if manifests.Normal(m.Ecosystem, d.Name) != wanted || !exactVersion().MatchString(v) {
				continue
			}
			if m.Lock {
				return v
			}
			declared = v
		}
	}
	return declared
}

// Site describes the folder for the installation of a tool.
type Site struct {
	Folder string
	Files  []string          // names of its files and folders
	Texts  map[string]string // of the manifests and lock files there, by name
	Has    map[string]bool   // programs of the machine that exist, such as npm
	// Loose are the packages of node_modules that nothing depends on, as NAME@VERSION: npm would remove them.
	Loose   []string
	Windows bool
}

// InstallFor is the installation of a tool into the environment of a folder.
func InstallFor(w Wanted, s Site) (in Installation, err error) {
	t, known := entry(w.Tool)
	if !known {
		return in, fmt.Errorf("no tool is called %q", w.Tool)
	}
	in = Installation{Tool: w.Tool, Version: w.Version, Folder: s.Folder, Env: Programs}
	with := func(what, sign, otherwise string) string {
		if w.Version == "" {
			return what + otherwise
		}
		return what + sign + w.Version
	}
	var missing []string
	for _, m := range []string{"npm", "uv", "pip", "go", "cargo", "dotnet"} {
		what := t.Install[m]
		if what == "" {
			continue
		}
		program := map[string]string{"pip": "python3"}[m]
		if m == "npm" {
			program = cmp.Or(NodeManager(s.Files, s.Texts["package.json"]), "npm")
		} else if program == "" {
			program = m
		}
		if in.Manager = m; !s.Has[program] {
			missing = append(missing, program)
			continue
		}
		switch m {
		case "npm":
			in.Manager, in.Env = program, path.Join(s.Folder, "node_modules")
			in.Kept = nodeKept
			in.Commands = [][]string{slices.Concat(nodeCommands[program], []string{with(what, "@", "")})}
			if program == "npm" {
				in.Commands[0] = append(in.Commands[0], slices.DeleteFunc(slices.Clone(s.Loose), func(l string) bool { return strings.HasPrefix(l, what+"@") })...)
			}
		case "uv", "pip":
			in.python(s, m, with(what, "==", ""))
		case "go":
			version := w.Version
			if version != "" && version[0] != 'v' {
				version = "v" + version
			}
			in.Commands, in.Set = [][]string{{"go", "install", what + "@" + cmp.Or(version, "latest")}}, []string{"GOBIN={env}/bin", "GOFLAGS="}
		case "cargo":
			in.Commands = [][]string{{"cargo", "install", "--locked", "--root", "{env}", with(what, "@", "")}}
		case "dotnet":
			in.Commands = [][]string{{"dotnet", "tool", "update", what, "--tool-path", "{env}/bin"}}
			if w.Version != "" {
				in.Commands[0] = append(in.Commands[0], "--version", w.Version)
			}
		}
		return in, nil
	}
	if len(missing) > 0 {
		return in, fmt.Errorf("%s needs %s, which is not installed", t.Name, strings.Join(missing, " or "))
	}
	return in, errors.New("it is not known how to install " + t.Name + " into a project; install it by hand, see " + t.Source)
}

// python installs into the virtual environment of the folder, which is made where there is none.
func (in *Installation) python(s Site, manager, what string) {
	name, bin := ".venv", "bin/python"
	if !slices.Contains(s.Files, name) && slices.Contains(s.Files, "venv") {
		name = "venv"
	}
	if s.Windows {
		bin = "Scripts/python.exe"
	}
	in.Env = path.Join(s.Folder, name)
	install, create := []string{"{env}/" + bin, "-m", "pip", "install", "--only-binary=:all:", "--disable-pip-version-check", what}, []string{"python3", "-m", "venv", "{env}"}
	if manager == "uv" {
		install, create = []string{"uv", "pip", "install", "--python", "{env}/" + bin, "--only-binary", ":all:", what}, []string{"uv", "venv", "{env}"}
	}
	if !slices.Contains(s.Files, name) {
		in.Commands = append(in.Commands, create)
	}
	in.Commands = append(in.Commands, install)
}

// nodeCommands install a package without running its scripts. pnpm and yarn write manifests and lock files, which are put back.
var nodeCommands = map[string][]string{
	"npm":  {"npm", "install", "--prefix", "{folder}", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund"},
	"pnpm": {"pnpm", "add", "--save-dev", "--ignore-scripts"},
	"yarn": {"yarn", "add", "--dev", "--ignore-scripts"},
	"bun":  {"bun", "add", "--dev", "--no-save", "--ignore-scripts"},
}

// NodeManager is the package manager of node that a folder names, in packageManager of its package.json or else by a lock file; "" where it names none.
func NodeManager(files []string, packageJSON string) string {
	if m, err := manifests.Parse("package.json", []byte(packageJSON)); err == nil && nodeCommands[m.Manager] != nil {
		return m.Manager
	}
	for _, m := range []struct{ file, program string }{{"pnpm-lock.yaml", "pnpm"}, {"yarn.lock", "yarn"}, {"bun.lock", "bun"}, {"bun.lockb", "bun"},
		{"package-lock.json", "npm"}, {"npm-shrinkwrap.json", "npm"}} {
		if slices.Contains(files, m.file) {
			return m.program
		}
	}
	return ""
}

// Named returns a tool as if it were found in the root of the project, for one that is to be installed where nothing names it; ok is false where it
// is for none of the project's languages.
func (f Facts) Named(tool string) (d Discovered, ok bool) {
	t, _ := entry(tool)
	languages := f.spread()[""]
	for _, l := range t.Languages {
		if languages[l] > 0 {
			return Discovered{Tool: tool, Category: t.Roles[0].Category, Language: l, Program: f.Programs[Place{"", t.Program}].Path}, true
		}
	}
	return d, false
}

// Answers says whether an installed program is the wanted version, by the version that it prints; "" as version wants any with a number.
func Answers(said, version string) bool {
	if version == "" {
		return number(said) != ""
	}
	return strings.Contains(said, strings.TrimPrefix(version, "v"))
}

// LoosePackages are the packages at the top of a node_modules that nothing depends on, as NAME@VERSION, by its
// .package-lock.json and the package.json next to it. npm removes them with each installation that does not name them.
func LoosePackages(hidden, manifest []byte) (out []string) {
	type packaged struct {
		Version                                                               string
		Link                                                                  bool
		Dependencies, DevDependencies, OptionalDependencies, PeerDependencies map[string]string
	}
	var lock struct{ Packages map[string]packaged }
	var own packaged
	if json.Unmarshal(hidden, &lock) != nil || len(manifest) > 0 && json.Unmarshal(manifest, &own) != nil {
		return nil
	}
	needed := map[string]bool{}
	for _, e := range append(slices.Collect(maps.Values(lock.Packages)), own) {
		for _, m := range []map[string]string{e.Dependencies, e.DevDependencies, e.OptionalDependencies, e.PeerDependencies} {
			for name := range m {
				needed[name] = true
			}
		}
	}
	for at, e := range lock.Packages {
		name, top := strings.CutPrefix(at, "node_modules/")
		if top && !e.Link && e.Version != "" && !needed[name] && !strings.Contains(name, "/node_modules/") {
			out = append(out, name+"@"+e.Version)
		}
	}
	slices.Sort(out)
	return out
}

// Installed returns a tool with the program that was installed for a folder, and the version that it prints.
func Installed(in Installation, program, said string) (out []Discovered) {
	t, _ := entry(in.Tool)
	version := number(said)
	for _, r := range t.Roles {
		if r.fits(version) {
			out = append(out, Discovered{Tool: in.Tool, Category: r.Category, Language: t.Languages[0], Folder: in.Folder, Program: program,
				Version: version, Role: r})
		}
	}
	return out
}

// VersionArguments are the program of a tool, and the arguments with which it prints its version.
func VersionArguments(tool string) []string {
	t, _ := entry(tool)
	return append([]string{t.Program}, strings.Fields(t.question("").Arguments)...)
}

// entry is a tool of the catalogue, by its name.
func entry(name string) (t Tool, known bool) {
	i := slices.IndexFunc(Catalog(), func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return t, false
	}
	return Catalog()[i], true
}

// installCommand is the command that installs a tool, by the first package manager that offers it.
func installCommand(t Tool) []string {
	for _, m := range []struct {
		name string
		argv []string
	}{{"npm", []string{"npm", "install", "--no-save"}}, {"uv", []string{"uv", "pip", "install"}}, {"pip", []string{"pip", "install"}},
		{"go", []string{"go", "install"}}, {"cargo", []string{"cargo", "install"}}, {"dotnet", []string{"dotnet", "tool", "install"}}, {"gem", []string{"gem", "install"}}} {
		if what := t.Install[m.name]; what != "" {
			if m.name == "go" {
				what += "@latest"
			}
			return append(slices.Clone(m.argv), what)
		}
	}
	return nil
}
