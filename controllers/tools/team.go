package tools

import (
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/checks"
)

// ownNames are the scripts and targets with which teams check their code.
var ownNames = []string{"lint", "test", "typecheck", "type-check", "format", "format:check", "check"}

// ownCommand is the command of the team that runs a tool on the whole folder, and its place: a script of package.json to
// which the arguments of the format can be appended, or a target of a Makefile that contains them. It has to be that tool
// alone, so that nothing hides its exit code and its output; found is the exit code for findings where it is another one.
func (d *discovery) ownCommand(t Tool, r Role, folder string) (argv []string, where string, found int) {
	x := d.facts.Folders[folder]
	if len(r.Check) == 0 || r.List || x == nil {
		return nil, "", 0
	}
	if m := x.manifest("package.json"); m != nil {
		run := nodeRuns[d.nodeManager(folder)]
		for _, name := range ownNames {
			if m.Scripts["pre"+name]+m.Scripts["post"+name] != "" {
				continue
			}
			if more, ok := r.appended(t.Program, m.Scripts[name]); ok {
				run = slices.Clone(run)
				run[slices.Index(run, "")] = name
				return append(run, more...), "its script " + name, 0
			}
		}
	}
	for _, file := range []string{"GNUmakefile", "Makefile"} {
		for _, name := range ownNames {
			if more, ok := r.appended(t.Program, recipe(x.Texts[file], name)); ok && len(more) == 0 {
				return []string{"make", "-s", "-f", file, name}, "its target " + name + " of " + file, 2
			}
		}
	}
	return nil, "", 0
}

// nodeRuns run a script, in place of the empty text, print what it prints, and pass on the arguments that follow (tried with npm 9, pnpm 11, yarn 1 and 4, bun 1).
var nodeRuns = map[string][]string{
	"npm": {"npm", "run", "-s", "", "--"}, "pnpm": {"pnpm", "--silent", "run", ""}, "yarn": {"yarn", "run", "--silent", ""}, "bun": {"bun", "run", "--silent", ""},
}

// nodeManager is the package manager that runs the scripts of a folder: the one that it names, or the nearest folder above it that names one.
func (d *discovery) nodeManager(folder string) string {
	for at := folder; ; at = checks.Folder(at) {
		if x := d.facts.Folders[at]; x != nil {
			if m := NodeManager(x.Files, x.Texts["package.json"]); m != "" {
				return m
			}
		}
		if at == "" {
			return "npm"
		}
	}
}

// appended are the arguments that a command of the team lacks for its output to be read; ok is false where it is not this tool alone, writes, or
// prints in another form.
func (r Role) appended(program, command string) (more []string, ok bool) {
	words := strings.Fields(command)
	if len(words) > 0 && words[0] == "npx" {
		words = words[1:]
	}
	if len(words) == 0 || words[0] != program || strings.ContainsAny(command, "|&;<>$`\\\"'()#*?[{~!\n") {
		return nil, false
	}
	words = words[1:]
	wanted := r.Check[1:]
	for len(wanted) > 0 && (!strings.HasPrefix(wanted[0], "-") && !strings.HasPrefix(wanted[0], "{") || wanted[0] == "--build") { // its subcommand
		if len(words) == 0 || words[0] != wanted[0] {
			return nil, false
		}
		words, wanted = words[1:], wanted[1:]
	}
	for _, w := range words {
		if flag, _, _ := strings.Cut(w, "="); slices.Contains(otherForms, flag) || w == "--" {
			return nil, false
		}
	}
	for i := 0; i < len(wanted); i++ {
		group := wanted[i : i+1]
		if strings.HasPrefix(wanted[i], "-") {
			for i+1 < len(wanted) && !strings.HasPrefix(wanted[i+1], "-") && !strings.HasPrefix(wanted[i+1], "{") {
				i++
				group = append(slices.Clone(group), wanted[i])
			}
		} else if strings.HasPrefix(wanted[i], "{") {
			continue // it names its files itself
		}
		flag, _, _ := strings.Cut(group[0], "=")
		at := slices.IndexFunc(words, func(w string) bool { name, _, _ := strings.Cut(w, "="); return name == flag })
		switch {
		case at < 0:
			more = append(more, group...)
		case !slices.Equal(words[at:min(at+len(group), len(words))], group):
			return nil, false
		}
	}
	return more, true
}

// otherForms are flags with which a tool writes files, waits, prints in another form, hides its exit code, or believes a
// cache that takes a file of the same time and size for the same.
var otherForms = []string{"--fix", "--write", "-w", "-i", "--watch", "--watchAll", "--ui", "-o", "--output-file", "--outputFile", "-f", "--format", "--reporter", "--reporters", "-R", "--check",
	"-c", "--list-different", "--exit-zero", "--pretty", "--json", "--build", "-b", "--cache", "--cache-dir", "--cache-location"}

// recipe is the only line of a target's recipe in a Makefile; "" for a target with needs, several lines, or one whose errors are ignored.
func recipe(text, target string) string {
	lines := strings.Split(text, "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, target+":") })
	if at < 0 || strings.TrimSpace(strings.TrimPrefix(lines[at], target+":")) != "" || slices.ContainsFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, ".IGNORE") || strings.HasPrefix(l, "MAKEFLAGS") || strings.HasPrefix(l, "include")
	}) {
		return ""
	}
	var own []string
	for _, l := range lines[at+1:] {
		if !strings.HasPrefix(l, "\t") {
			break
		}
		own = append(own, strings.TrimPrefix(strings.TrimSpace(l), "@"))
	}
	if len(own) != 1 || strings.HasPrefix(own[0], "-") {
		return ""
	}
	return own[0]
}
