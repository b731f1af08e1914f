package tools

import (
	"slices"

	"reconcile.dev/reconcile/controllers/checks"
)

// Change is a change of a project.
type Change struct {
	Files, Removed []string          // that changed, and that are gone
	All            []string          // the files of the project
	Folders        map[string]string // of packages that have one of Files or Removed, or import such a package in any number of steps, with why
	// Mention returns those of some files that mention one of others.
	Mention func(of, among []string) []string
}

// Uses plans the checks that tell whether something that uses the files of a change still can, by the tools that judge more than single files: type checkers for
// those that changed, and for removed ones all such tools. They are added to the jobs for the files that changed. A tool for packages checks those of folders, and everything
// if a package is gone; one for files those that mention a file that changed, and those that mention these, since a type can go through files that stay right; any other tool checks its whole folder. A finding in files that did not change counts
// if it is new, see [Job.Uses]. unjudged are the removed files of which no tool of the project can tell that, though it has tools for files like them.
func Uses(jobs []Job, found []Discovered, c Change) (_ []Job, unjudged []string) {
	judged, known := map[string]bool{}, map[string]bool{}
	for _, t := range found {
		if len(t.Check) == 0 {
			continue
		}
		concerned := func(files []string) (out []string) {
			for _, f := range files {
				if t.Concerns(f) && nearest(found, t, f) {
					out = append(out, f)
				}
			}
			return out
		}
		gone, edited := concerned(c.Removed), concerned(c.Files)
		for _, f := range gone {
			known[f] = true
		}
		if t.Category != checks.TypeChecker {
			edited = nil
		}
		if len(gone)+len(edited) == 0 || !t.Role.joins() {
			continue
		}
		for _, f := range gone {
			judged[f] = true
		}
		left := concerned(c.All)
		if len(left) == 0 {
			continue // nothing is left that could use them
		}
		i := slices.IndexFunc(jobs, func(j Job) bool {
			return j.Tool.Tool == t.Tool && j.Tool.Category == t.Category && j.Tool.Folder == t.Folder
		})
		if i < 0 {
			i, jobs = len(jobs), append(jobs, Job{Tool: t})
		}
		j := &jobs[i]
		j.Narrowed, j.Uses, j.Removed, j.Files = true, true, gone, nil
		asked := func(f string) bool { return slices.Contains(j.Asked, f) }
		switch {
		case t.Role.ByPackage() && !slices.ContainsFunc(gone, func(f string) bool { return !hasFolder(left, checks.Folder(f)) }):
			j.Files = slices.DeleteFunc(left, func(f string) bool { return c.Folders[checks.Folder(f)] == "" && !asked(f) })
		case t.Role.List:
			j.Files = left
		case t.Role.Named() && len(gone) == 0:
			j.Files = slices.Concat(j.Asked, c.mentions(edited, slices.DeleteFunc(left, asked)))
		}
	}
	for _, f := range c.Removed {
		if known[f] && !judged[f] {
			unjudged = append(unjudged, f)
		}
	}
	return jobs, unjudged
}

// mentions are those of some files that mention one of others, in any number of steps.
func (c Change) mentions(of, among []string) (out []string) {
	for len(of) > 0 && len(among) > 0 {
		of = c.Mention(of, slices.Clone(among))
		out = append(out, of...)
		found := map[string]bool{}
		for _, f := range of {
			found[f] = true
		}
		among = slices.DeleteFunc(among, func(f string) bool { return found[f] })
	}
	return out
}

// joins reports whether the tool judges how files belong together, so that it notices that one is missing.
func (r Role) joins() bool {
	return r.Category == checks.TypeChecker || r.Category != checks.Formatter && (r.ByPackage() || !r.Named())
}

func hasFolder(files []string, folder string) bool {
	return slices.ContainsFunc(files, func(f string) bool { return checks.Folder(f) == folder })
}
