package tools

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/manifests"
)

// catalogJSON is catalog.yaml, as cmd/reconcile/internal/tools/gen writes it, so that a start need not read YAML.
//
//go:embed catalog.json
var catalogJSON []byte

// Catalog returns the known tools, of each category and language the recommended one first.
var Catalog = sync.OnceValue(func() []Tool {
	var all []Tool
	if err := json.Unmarshal(catalogJSON, &all); err != nil {
		panic(fmt.Sprintf("catalogue of tools: %v", err)) // a test decodes it
	}
	return all
})

// Edition identifies what the program knows of tools: another edition may discover others.
var Edition = sync.OnceValue(func() string {
	sum := sha256.Sum256(append(slices.Clone(catalogJSON), languageTable...))
	return hex.EncodeToString(sum[:8])
})

// Facts describe a project.
type Facts struct {
	Folders map[string]*Folder // by path below the root, with slashes; "" is the root. Folders of others are not there.
	// Programs are those that exist, by the folder for which they were looked up and their name. A program that is installed for the whole
	// machine is there under the folder "".
	Programs map[Place]Program
	// Said is what programs said when they were asked for their versions.
	Said map[Question]string
	// Late says why others did not tell it in time.
	Late map[Question]string
	// Choices are tools that people chose, by language and category.
	Choices []Choice
}

// Place is a program's name, and the folder of the project for which it was looked up.
type Place struct{ Folder, Program string }

// Program is an installed program.
type Program struct {
	Path    string
	Version string // by a file beside it; "": unknown, so that it is asked
}

// Folder is a folder of a project.
type Folder struct {
	Files     []string          // names of its files, sorted
	Texts     map[string]string // of manifests, configurations with members, and files of CI, by name
	Languages map[string]int    // number of files by language, in this folder alone
	parsed    map[string]*manifests.Manifest
}

// Choice is a tool that a person chose, or an agent.
type Choice struct {
	Language string
	Category checks.Category
	Tool     string
	By       string // who says so, and in which object
	Inferred bool   // by an agent: it holds where the project itself says nothing
}

// ChoicesVar names the variable with the choices, as JSON, that a verification uses in place of those in the checkout.
const ChoicesVar = "RECONCILE_TOOL_CHOICES"

// IsTelling reports whether Discover reads the text of a file, by its name.
func IsTelling(name string) bool {
	switch name {
	case "package.json", "pyproject.toml", "setup.cfg", "tox.ini", "mypy.ini", ".mypy.ini", "go.mod", "Cargo.toml", "Gemfile", "composer.json", "tsconfig.json", "dotnet-tools.json", "Makefile", "GNUmakefile", "justfile":
		return true
	}
	return strings.HasSuffix(name, ".yml") || strings.HasSuffix(name, ".yaml") || strings.HasPrefix(name, "requirements") && strings.HasSuffix(name, ".txt")
}

// Discover decides which tools a project uses: by their configuration files (high), by the dependencies in manifests (medium), and by files of CI or
// because they are installed (low). A tool is found once for the folder that has its configuration, and for folders below only where these have one
// of their own. Of merely installed tools only the first of a category and language counts, and only where no better one was found.
func Discover(f Facts) []Discovered {
	d := &discovery{facts: f, spread: f.spread(), found: map[string][]string{}}
	for folder := range f.Folders {
		d.folders = append(d.folders, folder)
	}
	slices.SortFunc(d.folders, func(a, b string) int {
		if n := strings.Count(a, "/") - strings.Count(b, "/"); n != 0 && a != "" && b != "" {
			return n
		}
		return strings.Compare(a, b)
	})
	d.names = f.names()
	telling := d.telling()
	for _, t := range Catalog() {
		t.Configs = slices.DeleteFunc(slices.Clone(t.Configs), func(entry string) bool {
			file, _, _ := strings.Cut(entry, "#")
			return !strings.ContainsAny(file, `*?[\`) && !d.names[path.Base(file)]
		})
		if d.language(t, "") == "" || len(t.Configs) == 0 && len(t.Packages) == 0 && len(t.Marks) == 0 {
			continue
		}
		for _, folder := range telling {
			if len(t.Configs) > 0 || len(t.Marks) > 0 || len(f.Folders[folder].Texts) > 0 || f.Folders[path.Join(folder, settingsFolder)] != nil {
				d.configured(t, folder)
			}
		}
	}
	for _, t := range Catalog() {
		d.mentioned(t)
	}
	for _, t := range Catalog() {
		d.installed(t)
	}
	d.out = slices.DeleteFunc(d.out, d.replaced)
	d.choose()
	slices.SortStableFunc(d.out, func(a, b Discovered) int {
		if n := slices.Index(checks.Categories(), a.Category) - slices.Index(checks.Categories(), b.Category); n != 0 {
			return n
		}
		return strings.Compare(a.Folder, b.Folder)
	})
	return d.out
}

// settingsFolder is a folder whose manifests are about the folder above.
const settingsFolder = ".config"

type discovery struct {
	facts   Facts
	folders []string
	names   map[string]bool           // of files, without their folders
	spread  map[string]map[string]int // number of files by language, in each folder and below it
	found   map[string][]string       // folders in which a tool was found, by its name
	out     []Discovered
}

// telling are the folders that may say something of a tool: those with a manifest, a configuration or a mark, and, since a configuration may lie in
// a folder below, those above them; in the order of folders.
func (d *discovery) telling() []string {
	told, patterns := map[string]bool{}, []string{}
	for _, t := range Catalog() {
		for _, entry := range slices.Concat(t.Configs, t.Marks) {
			file, _, _ := strings.Cut(entry, "#")
			if file = path.Base(file); strings.ContainsAny(file, `*?[\`) {
				patterns = append(patterns, file)
			} else if d.names[file] {
				told[file] = true
			}
		}
	}
	for name := range d.names {
		told[name] = told[name] || slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
	}
	above := map[string]bool{}
	for folder, x := range d.facts.Folders {
		if len(x.Texts) > 0 || slices.ContainsFunc(x.Files, func(name string) bool { return told[name] }) {
			for above[folder] = true; folder != ""; above[folder] = true {
				folder = checks.Folder(folder)
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(d.folders), func(folder string) bool { return !above[folder] })
}

// names are those of all files, without their folders.
func (f Facts) names() map[string]bool {
	out := map[string]bool{}
	for _, x := range f.Folders {
		for _, name := range x.Files {
			out[name] = true
		}
	}
	return out
}

// spread counts the files of each language in and below the folders.
func (f Facts) spread() map[string]map[string]int {
	out := map[string]map[string]int{}
	for folder, x := range f.Folders {
		for at := folder; ; at = checks.Folder(at) {
			if out[at] == nil {
				out[at] = map[string]int{}
			}
			for l, n := range x.Languages {
				out[at][l] += n
			}
			if at == "" {
				break
			}
		}
	}
	return out
}

// language is the tool's language with the most files in and below a folder; "" without any.
func (d *discovery) language(t Tool, folder string) (best string) {
	for _, l := range t.Languages {
		if n := d.spread[folder][l]; n > 0 && (best == "" || n > d.spread[folder][best]) {
			best = l
		}
	}
	return best
}

// configured finds a tool by its configuration or its dependency in a folder.
func (d *discovery) configured(t Tool, folder string) {
	x := d.facts.Folders[folder]
	language := d.language(t, folder)
	if language == "" || d.covered(t, folder) && (t.Deep || t.Workspace && d.inWorkspace(folder)) {
		return
	}
	for _, c := range t.Configs {
		if file := d.has(folder, c); file != "" {
			why := "configured in " + file
			if strings.Contains(c, "#") {
				_, member, _ := strings.Cut(c, "#")
				why += " (" + member + ")"
			}
			d.add(t, folder, language, High, path.Join(folder, file), why)
			return
		}
	}
	if d.covered(t, folder) {
		return
	}
	for _, in := range []string{"", settingsFolder} {
		if of := d.facts.Folders[path.Join(folder, in)]; of != nil {
			if m := of.dependencies(t); len(m) > 0 {
				file := path.Join(in, m[0])
				d.add(t, folder, language, Medium, path.Join(folder, file), "a dependency in "+file)
				return
			}
		}
	}
	for _, mark := range t.Marks {
		if slices.Contains(x.Files, mark) {
			d.add(t, folder, language, Medium, path.Join(folder, mark), "used by "+mark)
			return
		}
	}
}

// covered reports whether a tool was found for a folder or one above it.
func (d *discovery) covered(t Tool, folder string) bool {
	return slices.ContainsFunc(d.found[t.Name], func(at string) bool { return below(at, folder) })
}

// mentioned finds a tool by a file of CI, a Makefile or a script of package.json that runs it.
func (d *discovery) mentioned(t Tool) {
	command := regexp.QuoteMeta(t.Program)
	if flag, is := strings.CutPrefix(t.Name, "node "); is {
		command += `(?:\s[^&|;\n]*)?\s` + regexp.QuoteMeta(flag)
	} else if sub, is := strings.CutPrefix(t.Name, t.Program+" "); is {
		command += `\s+` + regexp.QuoteMeta(sub)
	}
	if slices.Contains([]string{"go", "cargo", "python3", "ruby", "mvn", "gradle", "mix", "dotnet", "dart", "dune", "swift", "zig", "terraform"}, t.Program) {
		return // these programs do more than this
	}
	if slices.ContainsFunc(t.Roles, func(r Role) bool { return strings.Contains(strings.Join(r.Check, " "), "{config") }) {
		return // it needs its configuration
	}
	word := regexp.MustCompile(`(?m)(?:^|[\s"'/@&;|])` + command + `(?:@|==|$|[\s"'])`)
	for _, folder := range d.folders {
		x := d.facts.Folders[folder]
		ci := folder == ".github/workflows" || folder == ""
		for _, name := range slices.Sorted(maps.Keys(x.Texts)) {
			text := x.Texts[name]
			if m := x.manifest(name); m != nil && name == "package.json" {
				text = strings.Join(slices.Sorted(maps.Values(m.Scripts)), "\n")
			}
			runs := name == "Makefile" || name == "GNUmakefile" || name == "justfile" || name == "package.json"
			if !runs && !(ci && (folder == ".github/workflows" || strings.HasPrefix(name, ".gitlab-ci"))) || !word.MatchString(text) {
				continue
			}
			at := folder
			if folder == ".github/workflows" {
				at = ""
			}
			if language := d.language(t, at); language != "" && !d.covered(t, at) {
				d.add(t, at, language, Low, path.Join(folder, name), "run by "+path.Join(folder, name))
			}
		}
	}
}

// installed finds a tool that is merely there, for categories and languages without a better one.
func (d *discovery) installed(t Tool) {
	language := d.language(t, "")
	if language == "" || t.Opted || slices.ContainsFunc(t.Unless, func(file string) bool { return d.names[file] }) {
		return
	}
	if _, ok := d.facts.Programs[Place{"", t.Program}]; !ok {
		return
	}
	for _, r := range t.Roles {
		taken := slices.ContainsFunc(d.out, func(o Discovered) bool {
			return o.Category == r.Category && o.Language == language && r.Category != checks.Deep
		})
		if taken || r.Category == checks.TestFramework && !d.hasTests(r) {
			continue
		}
		d.addRole(t, r, "", language, Low, "", "installed, and nothing else is configured")
	}
}

// replaced reports whether another tool, which the project names, counts in place of one.
func (d *discovery) replaced(t Discovered) bool {
	return slices.ContainsFunc(Catalog(), func(other Tool) bool {
		return slices.Contains(other.Replaces, t.Tool) && slices.ContainsFunc(d.out, func(o Discovered) bool {
			return o.Tool == other.Name && o.Category == t.Category && o.Confidence != Low && o.Folder == t.Folder
		})
	})
}

// hasTests reports whether the project has files with tests of a role.
func (d *discovery) hasTests(r Role) bool {
	for name := range d.names {
		if r.IsTest(name) {
			return true
		}
	}
	return false
}

func (d *discovery) add(t Tool, folder, language string, c Confidence, config, why string) {
	for _, r := range t.Roles {
		d.addRole(t, r, folder, language, c, config, why)
	}
}

// addRole adds a tool in one category. One for packages of Go runs in the modules below a folder that is in none: it checks nothing from outside of them.
func (d *discovery) addRole(t Tool, r Role, folder, language string, c Confidence, config, why string) {
	folders := []string{folder}
	if modules := d.modulesBelow(folder); r.ByPackage() && len(modules) > 0 {
		folders = modules
	}
	for _, at := range folders {
		d.addTo(t, r, at, language, c, config, why)
	}
}

// modulesBelow are the folders of the modules of Go below one that is in none.
func (d *discovery) modulesBelow(folder string) (out []string) {
	for at := folder; ; at = checks.Folder(at) {
		if d.has(at, "go.mod") != "" {
			return nil
		}
		if at == "" {
			break
		}
	}
	for _, f := range d.folders {
		if below(folder, f) && d.has(f, "go.mod") != "" {
			out = append(out, f)
		}
	}
	return out
}

// addTo adds a tool in one category to a folder, unless the version of the program has another entry for that.
func (d *discovery) addTo(t Tool, r Role, folder, language string, c Confidence, config, why string) {
	p := d.program(t, folder)
	if r = r.by(p.Path, t); t.Wrapper != "" && r.Check[0] == t.Wrapper {
		why += ", by " + t.Wrapper
	}
	p.Version = cmp.Or(p.Version, number(d.facts.Said[t.question(p.Path)]))
	if !r.fits(p.Version) || len(r.Where) > 0 && !slices.ContainsFunc(r.Where, func(entry string) bool { return d.has(folder, entry) != "" }) {
		return
	}
	x := Discovered{Tool: t.Name, Category: r.Category, Language: language, Folder: folder, Confidence: c, Tier: 1, Why: why, Config: config, Program: p.Path,
		Version: p.Version, Unversioned: d.facts.Late[t.question(p.Path)], Role: r}
	if slices.Contains(d.found[t.Name], folder) &&
		slices.ContainsFunc(d.out, func(o Discovered) bool { return o.Tool == x.Tool && o.Category == x.Category && o.Folder == x.Folder }) {
		return
	}
	if slices.ContainsFunc(r.Scoped, func(entry string) bool { return d.has(folder, entry) != "" }) {
		x.Role.Whole = []string{}
	}
	j := Job{Tool: x}
	x.Check = j.fill(r.Check, nil)
	x.Fix = j.fill(r.Fix, nil)
	x.Install = installCommand(t)
	if own, where, found := d.ownCommand(t, r, folder); len(own) > 0 {
		x.Own, x.OwnFound, x.Check = own, found, own
		x.Why += "; " + where + " is what runs"
	} else if script := d.script(folder, t.Program); script != "" {
		x.Why += "; " + script + " runs it"
	}
	d.out, d.found[t.Name] = append(d.out, x), append(d.found[t.Name], folder)
}

// program is the program of a tool for a folder: that of the project, of a folder above, or of the machine.
func (d *discovery) program(t Tool, folder string) Program {
	for at := folder; ; at = checks.Folder(at) {
		if p, ok := d.facts.Programs[Place{at, t.Program}]; ok || at == "" {
			return p
		}
	}
}

// by is the role with commands for the program at a path, which may be the wrapper of the tool.
func (r Role) by(program string, t Tool) Role {
	name := path.Base(strings.ReplaceAll(program, "\\", "/"))
	if t.Wrapper == "" || strings.TrimSuffix(name, path.Ext(name)) != t.Wrapper {
		return r
	}
	for _, argv := range []*[]string{&r.Check, &r.Fix, &r.One, &r.Coverage} {
		if len(*argv) > 0 {
			*argv = append([]string{t.Wrapper}, (*argv)[1:]...)
		}
	}
	return r
}

// script names the script of a package.json that runs a program.
func (d *discovery) script(folder, program string) string {
	m := d.facts.Folders[folder].manifest("package.json")
	if m == nil {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(m.Scripts)) {
		if slices.Contains(strings.Fields(m.Scripts[name]), program) {
			return "its script " + name
		}
	}
	return ""
}

// choose lets the choices of people win: a chosen tool is sure, and other tools of its category and language are left out. What agents chose
// holds only where nothing better than an installed program was found.
func (d *discovery) choose() {
	for _, c := range d.facts.Choices {
		i := slices.IndexFunc(Catalog(), func(t Tool) bool { return t.Name == c.Tool })
		same := func(o Discovered) bool { return o.Language == c.Language && o.Category == c.Category }
		sure := slices.ContainsFunc(d.out, func(o Discovered) bool { return same(o) && o.Confidence != Low })
		if i < 0 || d.spread[""][c.Language] == 0 || c.Inferred && sure {
			continue
		}
		as := Discovered{Confidence: High, Tier: 3, Why: "chosen by " + c.By}
		if c.Inferred {
			as = Discovered{Confidence: Medium, Tier: 2, Why: "recommended by " + c.By}
		}
		d.out = slices.DeleteFunc(d.out, func(o Discovered) bool { return same(o) && o.Tool != c.Tool })
		if !slices.ContainsFunc(d.out, same) {
			for _, r := range Catalog()[i].Roles {
				if r.Category == c.Category {
					d.addRole(Catalog()[i], r, "", c.Language, as.Confidence, "", as.Why)
				}
			}
		}
		for k := range d.out {
			if o := &d.out[k]; same(*o) {
				o.Confidence, o.Tier, o.Why = as.Confidence, as.Tier, as.Why
			}
		}
	}
}

// has returns the path, below a folder, of the file that a configuration entry names: a file, a path below, a pattern, or a file with a member; ""
// for none.
func (d *discovery) has(folder, entry string) string {
	file, member, withMember := strings.Cut(entry, "#")
	below, name := path.Split(file)
	at := folder
	if below != "" {
		at = path.Join(folder, below)
	}
	x := d.facts.Folders[at]
	if x == nil {
		return ""
	}
	for _, f := range x.named(name) {
		if !withMember || hasMember(f, x.Texts[f], member) {
			return below + f
		}
	}
	return ""
}

// named lists the files of a folder whose names a pattern matches.
func (x *Folder) named(pattern string) []string {
	if !strings.ContainsAny(pattern, `*?[\`) {
		if i, found := slices.BinarySearch(x.Files, pattern); found {
			return x.Files[i : i+1]
		}
		return nil
	}
	var out []string
	for _, f := range x.Files {
		if matches(pattern, f) {
			out = append(out, f)
		}
	}
	return out
}

// matches is path.Match for a name, without its errors and faster for the usual patterns *NAME and NAME*.
func matches(pattern, name string) bool {
	switch i := strings.IndexAny(pattern, `*?[\`); {
	case i < 0:
		return pattern == name
	case i == 0 && !strings.ContainsAny(pattern[1:], `*?[\`) && pattern[0] == '*':
		return strings.HasSuffix(name, pattern[1:])
	case i == len(pattern)-1 && pattern[i] == '*':
		return strings.HasPrefix(name, pattern[:i])
	}
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

// hasMember reports whether a document has a member, by its path. One in the form of INI has sections, and SECTION.KEY is a key in one.
func hasMember(name, text, member string) bool {
	var doc map[string]any
	switch path.Ext(name) {
	case ".json":
		if json.Unmarshal([]byte(text), &doc) != nil {
			return name == "tsconfig.json" && strings.Contains(text, strconv.Quote(member)) // it may have comments
		}
	case ".toml":
		if toml.Unmarshal([]byte(text), &doc) != nil {
			return false
		}
	default:
		member, key, withKey := strings.Cut(member, ".")
		in := false
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "[") {
				in = line == "["+member+"]" || !withKey && (strings.HasPrefix(line, "["+member+"-") || strings.HasPrefix(line, "["+member+"."))
			}
			name, _, _ := strings.Cut(line, "=")
			if in && (!withKey || strings.TrimSpace(name) == key) {
				return true
			}
		}
		return false
	}
	at := any(doc)
	for part := range strings.SplitSeq(member, ".") {
		m, ok := at.(map[string]any)
		if !ok {
			return false
		}
		if at, ok = m[part]; !ok {
			return false
		}
	}
	return true
}

// dependencies are the manifests of a folder that name a tool's package.
func (x *Folder) dependencies(t Tool) (files []string) {
	for _, f := range x.Files {
		m := x.manifest(f)
		if m == nil || t.Packages[m.Ecosystem] == "" {
			continue
		}
		wanted := manifests.Normal(m.Ecosystem, t.Packages[m.Ecosystem])
		if slices.ContainsFunc(m.Dependencies, func(d manifests.Dependency) bool {
			return matchesPackage(manifests.Normal(m.Ecosystem, d.Name), wanted)
		}) {
			files = append(files, f)
		}
	}
	return files
}

// manifest is a manifest of the folder that was read; nil for another file, and one with errors.
func (x *Folder) manifest(name string) *manifests.Manifest {
	text, ok := x.Texts[name]
	if !ok || !manifests.Known(name) || manifests.IsLock(name) {
		return nil
	}
	m, known := x.parsed[name]
	if !known {
		var err error
		if m, err = manifests.Parse(name, []byte(text)); err != nil {
			m = nil
		}
		if x.parsed == nil {
			x.parsed = map[string]*manifests.Manifest{}
		}
		x.parsed[name] = m
	}
	return m
}

func matchesPackage(declared, wanted string) bool {
	return strings.EqualFold(declared, wanted) || strings.HasPrefix(declared, wanted+"/")
}
