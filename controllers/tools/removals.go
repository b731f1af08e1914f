package tools

import (
	"slices"

	"reconcile.dev/reconcile/controllers/checks"
)

// Removals plans the checks that tell whether something still uses removed files, by the tools that judge more than single files. They are added to
// the jobs for the files that changed: a tool for packages checks those of folders, and everything if a package is gone; any other tool checks its whole
// folder. A finding in files that did not change counts if it is new, see [Job.Removed]. all are the files of the project. unjudged are
// the removed files of which no tool of the project can tell that, though it has tools for files like them.
func Removals(jobs []Job, found []Discovered, removed, all []string, folders map[string]string) (_ []Job, unjudged []string) {
	judged, known := map[string]bool{}, map[string]bool{}
	for _, t := range found {
		if len(t.Check) == 0 {
			continue
		}
		var gone []string
		for _, f := range removed {
			if t.Concerns(f) && nearest(found, t, f) {
				gone, known[f] = append(gone, f), true
			}
		}
		if len(gone) == 0 || !t.Role.joins() {
			continue
		}
		for _, f := range gone {
			judged[f] = true
		}
		left := slices.DeleteFunc(slices.Clone(all), func(f string) bool { return !t.Concerns(f) || !nearest(found, t, f) })
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
		j.Narrowed, j.Removed, j.Files = true, gone, nil
		if t.Role.ByPackage() && !slices.ContainsFunc(gone, func(f string) bool { return !hasFolder(left, checks.Folder(f)) }) {
			j.Files = slices.DeleteFunc(left, func(f string) bool { return folders[checks.Folder(f)] == "" && !slices.Contains(j.Asked, f) })
		} else if t.Role.List {
			j.Files = left
		}
	}
	for _, f := range removed {
		if known[f] && !judged[f] {
			unjudged = append(unjudged, f)
		}
	}
	return jobs, unjudged
}

// joins reports whether the tool judges how files belong together, so that it notices that one is missing.
func (r Role) joins() bool {
	return r.Category == checks.TypeChecker || r.Category != checks.Formatter && (r.ByPackage() || !r.Named())
}

func hasFolder(files []string, folder string) bool {
	return slices.ContainsFunc(files, func(f string) bool { return checks.Folder(f) == folder })
}
