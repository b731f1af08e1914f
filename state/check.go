package state

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/disk"
)

// Cross-file problems: duplicate objects, references to missing objects, and paths that differ only in case.

// crossCheck computes the cross problems of one spec file and reports whether they differ from before.
func (s *Store) crossCheck(m *model, f *file) (changed bool) {
	b := f.body.(*specBody)
	var cross []schemas.Problem
	cross = s.checkDuplicate(m, f, cross)
	cross = s.checkCase(m, f, cross)
	if m.hasMissingReference(b) {
		m.missing[f.path] = true
		cross = s.checkReferences(m, f, cross)
	} else {
		delete(m.missing, f.path)
	}
	cross = s.checkAgainst(m, f, cross)
	if slices.EqualFunc(cross, b.cross, equalProblems) {
		return false
	}
	b.cross = cross
	return true
}

// maxOthers bounds how many other declarations of an object a problem names: with n declarations, each would name all the
// others.
const maxOthers = 5

func (s *Store) checkDuplicate(m *model, f *file, to []schemas.Problem) []schemas.Problem {
	b := f.body.(*specBody)
	if b.ref == (schemas.Ref{}) || len(m.slots[b.ref].specs) < 2 {
		return to
	}
	p := schemas.Problem{Place: b.at, Severity: schemas.Error, Code: "duplicate-object", Ref: b.ref,
		Field: "metadata.name"}
	var others []string
	all := m.slots[b.ref].specs
	for _, o := range all {
		if o == f {
			continue
		}
		if len(others) == maxOthers {
			others = append(others, fmt.Sprintf("%d more files", len(all)-1-maxOthers))
			break
		}
		at := o.body.(*specBody).at
		others = append(others, at.String())
		p.Related = append(p.Related, at)
		p.Notes = append(p.Notes, "also declared here")
	}
	times := "twice"
	if len(all) > 2 {
		times = fmt.Sprintf("%d times", len(all))
	}
	p.Message = fmt.Sprintf("%s is declared %s: here and in %s", b.ref, times, strings.Join(others, " and in "))
	p.Suggestion = "rename or remove one of them; until then neither is used"
	p.Source = s.sourceLine(b.at)
	return append(to, p)
}

// checkCase reports spec files whose paths differ only in case: on case-insensitive file systems they are one file.
func (s *Store) checkCase(m *model, f *file, to []schemas.Problem) []schemas.Problem {
	if m.cased == nil {
		return to
	}
	for _, other := range m.cased[strings.ToLower(f.path)] {
		if other == f.path {
			continue
		}
		to = append(to, schemas.Problem{
			Place: schemas.Place{Path: f.path}, Severity: schemas.Error, Code: "case-collision", Ref: f.body.(*specBody).ref,
			Message: fmt.Sprintf("on a file system that ignores case this file and %s are the same",
				schemas.Place{Path: other}),
			Related: []schemas.Place{{Path: other}}, Notes: []string{"the other file"}, Suggestion: "rename one of them",
		})
	}
	return to
}

// indexCase finds the paths of spec files that differ only in case.
func (m *model) indexCase() {
	m.cased = nil
	fold := map[string][]string{}
	for p, f := range m.files {
		if f.area == areaSpecs {
			if low := strings.ToLower(p); low != p {
				fold[low] = append(fold[low], p)
			}
		}
	}
	for low, ps := range fold {
		if f := m.files[low]; f != nil && f.area == areaSpecs {
			ps = append(ps, low)
		}
		if len(ps) < 2 {
			continue
		}
		slices.Sort(ps)
		if m.cased == nil {
			m.cased = map[string][]string{}
		}
		m.cased[low] = ps
	}
}

// hasMissingReference reports whether an object refers to a missing object.
func (m *model) hasMissingReference(b *specBody) bool {
	return slices.ContainsFunc(b.references(), func(r schemas.Reference) bool { return !m.exists(r.To) })
}

// checkReferences reports references to missing objects. An accepted question stays valid if one of its agents is
// removed: its controller decides about that, and the file has no mistake.
func (s *Store) checkReferences(m *model, f *file, to []schemas.Problem) []schemas.Problem {
	finished, accepted := m.finished(f), m.accepted(f)
	for _, r := range f.body.(*specBody).references() {
		if !m.exists(r.To) && (r.Hard || !finished) {
			r.Hard = r.Hard && !accepted
			to = append(to, s.missingReference(m, f, r))
		}
	}
	return to
}

// checkAgainst reports problems of an object with respect to the objects that it refers to. It skips an applied action;
// the status of its target shows that before the action's own status does.
func (s *Store) checkAgainst(m *model, f *file, to []schemas.Problem) []schemas.Problem {
	b := f.body.(*specBody)
	check := s.against[b.ref.Kind]
	if check == nil || b.object == nil || m.finished(f) {
		delete(m.related, f.path)
		return to
	}
	m.related[f.path] = true
	var r schemas.Report
	for _, ref := range b.object.Refs {
		if target := m.written(ref.To); target != nil && !m.actionApplied(ref.To, b.ref.Name) {
			check(b.object, target, &r)
		}
	}
	if len(r.Findings()) == 0 {
		return to
	}
	return append(to, locatedProblem(&r, b.ref, f.path, s.sourceOf(f))...)
}

// finished reports whether a file declares an object that had its effect: it waits for none of its references.
func (m *model) finished(f *file) bool {
	ref := f.body.(*specBody).ref
	k, ok := m.layout.kinds.Named(ref.Kind)
	return ok && k.FinalPhase != "" && m.slots[ref].phase() == k.FinalPhase
}

// accepted reports whether a file declares an object that was accepted.
func (m *model) accepted(f *file) bool {
	ref := f.body.(*specBody).ref
	k, ok := m.layout.kinds.Named(ref.Kind)
	s := m.slots[ref]
	return ok && k.Accepted != nil && s != nil && s.status != nil && k.Accepted(s.statusBody()) // of other kinds no status is decoded
}

// actionApplied reports whether an action was applied to target, by the target's status.
func (m *model) actionApplied(target schemas.Ref, action string) bool {
	s := m.slots[target]
	if s == nil || s.status == nil {
		return false
	}
	return slices.ContainsFunc(schemas.AppliedTo(s.statusBody()), func(a schemas.AppliedAction) bool { return a.Name == action })
}

func (s *Store) missingReference(m *model, f *file, r schemas.Reference) schemas.Problem {
	p := schemas.Problem{
		Place:    schemas.Place{Path: f.path, Line: int(r.Line), Column: int(r.Column)},
		Severity: schemas.Warning, Code: "missing-reference", Ref: f.body.(*specBody).ref,
		Field:   fieldPath(append([]any{"spec"}, r.Field...)),
		Message: fmt.Sprintf("there is no %s called %q", strings.ToLower(r.To.Kind), r.To.Name),
	}
	if r.Hard {
		p.Severity = schemas.Error
	}
	if len(m.missing) <= maxQuotedFiles {
		p.Source = s.sourceLine(p.Place)
	}
	if near := m.suggest(r.To); near != "" {
		p.Suggestion = fmt.Sprintf("did you mean %q?", near)
	}
	return p
}

// maxSuggestNames bounds the names that are searched for a suggestion, and the number of files with missing references
// for which suggestions are computed: a tree without any agents must not take minutes to report that.
const maxSuggestNames = 1000

// maxQuotedFiles bounds how many files with missing references are read again to quote lines, for each of which the whole
// text is searched for secrets: every command loads the tree, and few show its problems.
const maxQuotedFiles = 100

// suggest returns the name of an existing object that is similar to a missing one, or "".
func (m *model) suggest(missing schemas.Ref) string {
	if len(m.missing) > maxSuggestNames {
		return ""
	}
	if m.suggestions == nil {
		m.suggestions = map[schemas.Ref]string{}
	}
	near, ok := m.suggestions[missing]
	if !ok {
		near = schemas.GuessWord(missing.Name, m.names(missing.Kind))
		m.suggestions[missing] = near
	}
	return near
}

// names returns the names of the declared objects of a kind, sorted; nil if there are too many to search.
func (m *model) names(kind string) []string {
	if m.nameLists == nil {
		m.nameLists = map[string][]string{}
	}
	out, ok := m.nameLists[kind]
	if ok {
		return out
	}
	for ref, s := range m.slots {
		if ref.Kind == kind && len(s.specs) > 0 {
			if out = append(out, ref.Name); len(out) > maxSuggestNames {
				out = nil
				break
			}
		}
	}
	for o := range m.dormant.all(kind) {
		if out = append(out, o.Name); len(out) > maxSuggestNames {
			out = nil
			break
		}
	}
	slices.Sort(out)
	m.nameLists[kind] = out
	return out
}

// clearSuggestions drops the data that was computed from the set of existing objects.
func (m *model) clearSuggestions() { m.suggestions, m.nameLists = nil, nil }

// sourceOf reads a spec file again, to find positions in it; nil if it was removed or changed.
func (s *Store) sourceOf(f *file) []byte {
	d, err := disk.OpenDir(s.root, path.Dir(f.path))
	if err != nil {
		return nil
	}
	defer d.Close()
	data, _, err := d.Read(path.Base(f.path), s.limit(areaSpecs))
	if err != nil {
		return nil
	}
	return data
}

func (s *Store) sourceLine(at schemas.Place) string {
	if at.Line == 0 {
		return ""
	}
	data := s.sourceOf(&file{path: at.Path})
	n := at.Line
	for line := range strings.SplitSeq(string(data), "\n") {
		if n--; n == 0 {
			p := []schemas.Problem{{Place: at, Source: strings.TrimSuffix(line, "\r")}}
			schemas.Discreet(p, string(data))
			return p[0].Source
		}
	}
	return ""
}

func equalProblems(a, b schemas.Problem) bool {
	return a.Place == b.Place && a.Severity == b.Severity && a.Code == b.Code && a.Ref == b.Ref && a.Field == b.Field &&
		a.Message == b.Message && a.Suggestion == b.Suggestion && a.Source == b.Source &&
		slices.Equal(a.Related, b.Related) && slices.Equal(a.Notes, b.Notes)
}

// CheckFile returns the problems that Load would report for a file with this path and content, except those that need the
// other files of the tree. The file need not be in the tree, nor exist.
func (s *Store) CheckFile(path string, data []byte) []schemas.Problem {
	if path == schemas.SettingsPath {
		return s.decoder.Decode(path, data).Problems
	}
	return s.decodeSpec(path, data).(*specBody).problems
}
