package tools

import (
	"path"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/schemas/treepath"
)

// Job is a tool that is to check a folder, or some files in it. Its command is that of the role with the placeholders filled in:
//
//	{files}      the files, relative to the folder; for the whole folder the role's Whole
//	{packages}   the folders of the files, as ./a/b; for the whole folder ./...
//	{report}     the file into which the tool writes its output, or the folder for its files
//	{config}     the tool's configuration, relative to its folder, and {configFolder} the folder of that
//	{folder}     the folder where it runs, as an absolute path
//	{coverage}   the file into which it writes what the tests ran
//	{test}, {suite}, {file}   one test
//
// A placeholder that is part of an argument, as in --output={report}, is replaced there; {files} and {packages} are arguments of their own.
type Job struct {
	Tool  Discovered
	Files []string // below the root; nil: the whole folder
	// Narrowed says that the tool checks more than requested, so that only its findings in Asked count.
	Narrowed bool
	Asked    []string
	// Uses says that it also looks at what uses files that changed. A finding elsewhere counts, too, unless the tool had it in the commit before.
	Uses    bool
	Removed []string // files that are gone
	// Own is the command of the team that checks the whole folder, and runs in place of the tool's.
	Own []string
}

// Jobs returns the jobs of the tools that check files, in the order of the tools; with nil files of those that check everything. all are the files
// of the project, for tools that only take files. A file is checked by the tool of the nearest folder above it that has one for the same category
// and language.
func Jobs(found []Discovered, files, all []string) []Job {
	var jobs []Job
	for _, t := range found {
		if len(t.Check) == 0 {
			continue
		}
		if files == nil && !t.Role.List {
			j := Job{Tool: t, Own: t.Own}
			if t.OwnFound != 0 {
				j.Tool.Role.Found = append(slices.Clone(foundOr(t.Role.Found)), t.OwnFound)
			}
			jobs = append(jobs, j)
			continue
		}
		wanted := files
		if files == nil {
			wanted = all
		}
		var own []string
		for _, f := range wanted {
			if t.Concerns(f) && nearest(found, t, f) {
				own = append(own, f)
			}
		}
		if len(own) == 0 {
			continue
		}
		j := Job{Tool: t, Asked: own}
		if t.Role.Named() {
			j.Files, j.Narrowed = own, t.Role.ByPackage()
		} else {
			j.Narrowed = true
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// IsTest reports whether a file has tests, by its name; a pattern with a folder is also about that of the file.
func (r Role) IsTest(file string) bool {
	name := path.Base(file)
	inFolder := path.Join(path.Base(path.Dir(file)), name)
	return slices.ContainsFunc(r.TestFiles, func(p string) bool { return matches(p, name) || strings.Contains(p, "/") && matches(p, inFolder) })
}

// IsReport reports whether a path may be that of a report that the tool writes into the project.
func (r Role) IsReport(p string) bool {
	parts := strings.Split(p, "/")
	return slices.ContainsFunc(r.Reports, func(pattern string) bool {
		n := strings.Count(pattern, "/") + 1
		if len(parts) < n {
			return false
		}
		ok, err := path.Match(pattern, strings.Join(parts[len(parts)-n:], "/"))
		return err == nil && ok
	})
}

// RunsTests reports whether the check is a run of tests.
func (r Role) RunsTests() bool { return len(r.TestFiles) > 0 }

// Holds reports whether a path lies in the tool's folder.
func (t Discovered) Holds(p string) bool { return below(t.Folder, p) }

// ByPackage reports whether the tool checks packages, which are folders.
func (r Role) ByPackage() bool { return slices.Contains(r.Check, "{packages}") }

// Named reports whether the command of a check names files or their folders.
func (r Role) Named() bool {
	return slices.Contains(r.Check, "{files}") || slices.Contains(r.Check, "{packages}")
}

// Concerns reports whether the tool is about a file in its folder.
func (t Discovered) Concerns(file string) bool {
	return below(t.Folder, file) && (len(t.Role.Extensions) == 0 || slices.Contains(t.Role.Extensions, path.Ext(file)) ||
		slices.Contains(t.Role.Extensions, path.Base(file)) || slices.Contains(t.Scripts, file))
}

// nearest reports whether no tool of the same category and language has a folder between t's and the file.
func nearest(found []Discovered, t Discovered, file string) bool {
	return !slices.ContainsFunc(found, func(o Discovered) bool {
		return o.Category == t.Category && o.Language == t.Language && len(o.Folder) > len(t.Folder) && below(o.Folder, file)
	})
}

// below reports whether a path is a folder, or lies in it; every path lies in "".
func below(folder, p string) bool {
	return folder == "" || treepath.Below(p, folder)
}

// Build returns the command that builds what the job's command runs; none where that builds it itself.
func (j Job) Build(places map[string]string) []string {
	if j.Own != nil || len(j.Tool.Role.Build) == 0 {
		return nil
	}
	return j.fill(j.Tool.Role.Build, places)
}

// Command returns the job's command, with the files in places.
func (j Job) Command(places map[string]string) []string {
	if j.Own != nil {
		return j.fill(j.Own, places)
	}
	return j.fill(j.Tool.Role.Check, places)
}

// foundOr are the exit codes for findings.
func foundOr(codes []int) []int {
	if codes == nil {
		return []int{1}
	}
	return codes
}

func (j Job) fill(argv []string, places map[string]string) []string {
	var out []string
	for _, a := range argv {
		switch {
		case a == "{files}" && j.Files == nil:
			out = append(out, wholeOr(j.Tool.Role.Whole, ".")...)
		case a == "{packages}" && j.Files == nil:
			out = append(out, wholeOr(j.Tool.Role.Whole, "./...")...)
		case a == "{files}":
			for _, f := range j.Files {
				out = append(out, asFile(relative(j.Tool.Folder, f)))
			}
		case a == "{packages}":
			var folders []string
			for _, f := range j.Files {
				folders = append(folders, "./"+path.Dir(relative(j.Tool.Folder, f)))
			}
			slices.Sort(folders)
			out = append(out, slices.Compact(folders)...)
		default:
			config := relative(j.Tool.Folder, j.Tool.Config)
			a = strings.NewReplacer("{config}", config, "{configFolder}", path.Dir(config)).Replace(a)
			for name, value := range places {
				a = strings.ReplaceAll(a, "{"+name+"}", value)
			}
			out = append(out, a)
		}
	}
	return out
}

// asFile keeps a file whose name begins with a dash from being taken for a flag.
func asFile(p string) string {
	if strings.HasPrefix(p, "-") {
		return "./" + p
	}
	return p
}

func wholeOr(whole []string, otherwise string) []string {
	if whole != nil {
		return whole
	}
	return []string{otherwise}
}

// relative returns a path below a folder relative to it.
func relative(folder, p string) string {
	if folder == "" {
		return p
	}
	return strings.TrimPrefix(p, folder+"/")
}

// One returns the command that runs one test, and false where the tool cannot.
func (t Discovered) One(test checks.Test) ([]string, bool) {
	if len(t.Role.One) == 0 || test.Name == "" {
		return nil, false
	}
	file := test.File
	if file == "" && slices.ContainsFunc(t.Role.One, func(a string) bool { return strings.Contains(a, "{file}") }) {
		return nil, false
	}
	return Job{Tool: t}.fill(t.Role.One, map[string]string{"test": test.Name, "suite": test.Suite, "file": asFile(relative(t.Folder, file))}), true
}

// Scope divides a job's findings: those in the files that were asked for, or without a file, and those elsewhere.
func (j Job) Scope(findings []checks.Finding) (in, elsewhere []checks.Finding) {
	if !j.Narrowed {
		return findings, nil
	}
	for _, f := range findings {
		if f.File == "" || slices.Contains(j.Asked, f.File) {
			in = append(in, f)
		} else {
			elsewhere = append(elsewhere, f)
		}
	}
	return in, elsewhere
}
