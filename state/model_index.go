package state

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
)

// statusBody returns the status; nil if it is missing or not usable.
func (s *slot) statusBody() schemas.Status {
	held, _ := s.status.body.(*lazyStatus)
	return held.get()
}

// phase returns the phase of the status; "" if it is missing or not usable.
func (s *slot) phase() string {
	if s == nil || s.status == nil {
		return ""
	}
	if held, ok := s.status.body.(*lazyStatus); ok {
		return held.inBrief().Phase
	}
	return ""
}

func newModel(l *layout) *model {
	return &model{
		layout: l, files: map[string]*file{}, slots: map[schemas.Ref]*slot{}, scanErrors: map[string]scanError{},
		journals: map[string]*journalView{}, missing: map[string]bool{}, links: map[string]bool{}, unfinished: map[string]bool{}, related: map[string]bool{},
		inputs: &inputs{},
	}
}

// refOf returns the object of a file, or the zero Ref.
func (m *model) refOf(f *file) schemas.Ref {
	if b, ok := f.body.(*specBody); ok {
		return b.ref
	}
	_, ref := m.layout.classify(f.path)
	return ref
}

// reserve allocates maps for a number of files, in an empty model.
func (m *model) reserve(files int) {
	m.files = make(map[string]*file, files)
	m.slots = make(map[schemas.Ref]*slot, files/2)
}

// put adds a file; it replaces the one with the same path.
func (m *model) put(f *file) {
	m.drop(f.path)
	m.files[f.path] = f
	if f.link {
		m.links[f.path] = true
	}
	ref := m.refOf(f)
	if b, ok := f.body.(*specBody); ok && b.unfinished() {
		m.unfinished[f.path] = true
	}
	if ref == (schemas.Ref{}) || f.area == areaLedgers || f.area == areaCheckpoints || f.area == areaOther {
		return
	}
	s := m.slots[ref]
	if s == nil {
		s = &slot{}
		m.slots[ref] = s
	}
	s.add(f)
}

func (s *slot) add(f *file) {
	switch f.area {
	case areaSpecs:
		s.specs = append(s.specs, f)
		if len(s.specs) > 1 {
			slices.SortFunc(s.specs, func(a, b *file) int { return strings.Compare(a.path, b.path) })
		}
	case areaStatus:
		s.status = f
	case areaRuns:
		s.runs = append(s.runs, f)
	}
}

// drop removes the file at a path and returns it, or nil.
func (m *model) drop(p string) *file {
	f := m.files[p]
	if f == nil {
		return nil
	}
	delete(m.files, p)
	delete(m.links, p)
	delete(m.unfinished, p)
	delete(m.missing, f.path)
	delete(m.related, f.path)
	ref := m.refOf(f)
	s := m.slots[ref]
	if s == nil {
		return f
	}
	is := func(o *file) bool { return o == f }
	s.specs = slices.DeleteFunc(s.specs, is)
	s.runs = slices.DeleteFunc(s.runs, is)
	if s.status == f {
		s.status = nil
	}
	if len(s.specs) == 0 && len(s.runs) == 0 && s.status == nil {
		delete(m.slots, ref)
	}
	return f
}

// exists reports whether some file, broken or not, declares ref.
func (m *model) exists(ref schemas.Ref) bool {
	s := m.slots[ref]
	return s != nil && len(s.specs) > 0 || m.dormant.has(ref) || ref == schemas.AllRef() // the settings always are
}

// hiddenProblem returns the problem of an object with traces but without a spec, while a part of specs/ cannot be read or is
// unfinished: its spec may be there, so that the object must not be treated as deleted. It returns nil if there is no such part.
func (m *model) hiddenProblem(ref schemas.Ref) []schemas.Problem {
	t, ok := m.firstUnreadable()
	if !ok {
		return nil
	}
	return []schemas.Problem{{
		Place: schemas.Place{Path: t.path}, Severity: schemas.Error, Code: t.code, Ref: ref,
		Message: "this " + t.text + ", and the object's spec may be in it; its status and records are kept",
	}}
}

// firstUnreadable returns the first path in specs/ that is unreadable or unfinished, if any; its text follows the word "this".
func (m *model) firstUnreadable() (first scanError, ok bool) {
	for p, t := range m.scanErrors {
		if (within(m.layout.specs, p) || p == m.layout.specs) && (!ok || p < first.path) {
			first, ok = scanError{p, t.code, "cannot be read"}, true
		}
	}
	for p := range m.unfinished {
		if !ok || p < first.path {
			first, ok = scanError{p, "unfinished", "is empty or unfinished"}, true
		}
	}
	return first, ok
}

func (s *slot) fill(e *Entry) {
	for _, f := range s.specs {
		b := f.body.(*specBody)
		e.Problems = appendErrors(appendErrors(e.Problems, b.problems), b.cross)
	}
	if len(e.Problems) == 0 && len(s.specs) == 1 {
		e.Object = s.specs[0].body.(*specBody).object
	} else if len(s.specs) == 1 {
		e.Refs = s.specs[0].body.(*specBody).references()
	}
	if s.status != nil {
		e.status, _ = s.status.body.(*lazyStatus)
		e.StatusPath = s.status.path
	}
	for _, f := range s.runs {
		if r, ok := f.body.(*lazyRun); ok {
			e.addRun(r)
		}
	}
}

// entryOf returns the entry that the files of an object make.
func (l *layout) entryOf(ref schemas.Ref, files []*file) *Entry {
	var s slot
	for _, f := range files {
		s.add(f)
	}
	e := &Entry{Ref: ref, StatusPath: l.statusPath(ref)}
	s.fill(e)
	return e
}

// fillJournals adds the results that are not in files yet, and the claims of live processes.
func (m *model) fillJournals(e *Entry) {
	for _, v := range m.journals {
		own := v.owners[e.Ref]
		if own == nil {
			continue
		}
		e.addUnfiled(own.sorted)
		if v.alive {
			for _, c := range own.claims {
				e.Claims = append(e.Claims, *c)
			}
		}
	}
	slices.SortFunc(e.Claims, func(a, b Claim) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Process, b.Process))
	})
}

func appendErrors(to, from []schemas.Problem) []schemas.Problem {
	for _, p := range from {
		if p.Severity == schemas.Error {
			to = append(to, p)
		}
	}
	return to
}

// refs returns all objects that have an entry.
func (m *model) refs() []schemas.Ref {
	out := make([]schemas.Ref, 0, len(m.slots))
	for ref := range m.slots {
		out = append(out, ref)
	}
	for _, v := range m.journals {
		for ref := range v.owners {
			if m.slots[ref] == nil && !slices.Contains(out[len(m.slots):], ref) {
				out = append(out, ref)
			}
		}
	}
	return out
}

// problems returns those of all files.
func (m *model) problems() []schemas.Problem {
	out := slices.Clone(m.settings.problems)
	for _, f := range m.files {
		switch b := f.body.(type) {
		case *specBody:
			out = append(append(out, b.problems...), b.cross...)
		case *damage:
			out = append(out, m.damaged(f, b))
		case *Ledger:
			out = append(out, rejections(b)...)
		}
	}
	for _, t := range m.scanErrors {
		out = append(out, m.scanProblem(t))
	}
	for _, v := range m.journals {
		out = append(out, v.problems...)
	}
	return out
}

func (m *model) damaged(f *file, d *damage) schemas.Problem {
	return schemas.Problem{
		Place:    schemas.Place{Path: f.path, Line: d.line, Column: d.column},
		Severity: schemas.Warning, Code: DamagedState, Ref: m.refOf(f),
		Message:    "this state file cannot be used: " + secrets.Redact(d.text),
		Suggestion: "the next run moves it to " + path.Join(damagedDir, f.path) + ".<n> and decides again",
	}
}

// rejections returns the problems of a ledger's rejected records.
func rejections(l *Ledger) []schemas.Problem {
	var out []schemas.Problem
	for _, r := range l.Rejected {
		out = append(out, schemas.Problem{
			Place: schemas.Place{Path: l.Path, Line: r.Line}, Severity: schemas.Warning, Code: rejectedRecordCode, Ref: l.Ref(),
			Message:    fmt.Sprintf("record %d cannot be used: %s", r.Number, secrets.Redact(r.Reason)),
			Suggestion: "all other records are used; have the program that wrote this one correct it, or remove it",
		})
	}
	return out
}

// scanProblem returns an error for a path in specs/, where it hides specs, and a warning elsewhere.
func (m *model) scanProblem(t scanError) schemas.Problem {
	p := schemas.Problem{Place: schemas.Place{Path: t.path}, Severity: schemas.Error, Code: t.code, Message: t.text}
	if !within(m.layout.specs, t.path) && t.path != m.layout.specs {
		p.Severity = schemas.Warning
	}
	return p
}

// DamagedState is the Code of problems of files that MoveAside would move.
const DamagedState = "damaged-state"

// rejectedRecordCode is the Code of problems of unusable records in a ledger that is otherwise usable.
const rejectedRecordCode = "rejected-record"

// references returns the references of the object, or of the valid part of a broken one.
func (b *specBody) references() []schemas.Reference {
	if b.object != nil {
		return b.object.Refs
	}
	return b.refs
}

func (u *update) touch(ref schemas.Ref) {
	if ref != (schemas.Ref{}) {
		u.touched[ref] = true
	}
}

// touchedBy reports whether an object refers to a touched object.
func (u *update) touchedBy(b *specBody) bool {
	return slices.ContainsFunc(b.references(), func(r schemas.Reference) bool { return u.touched[r.To] })
}

// hasInJournals reports whether a journal has results or claims of an object.
func (m *model) hasInJournals(ref schemas.Ref) bool {
	for _, v := range m.journals {
		if v.owners[ref] != nil {
			return true
		}
	}
	return false
}

// journaled reports whether a journal has entries.
func (m *model) journaled() bool {
	for _, v := range m.journals {
		if len(v.owners) > 0 || len(v.problems) > 0 {
			return true
		}
	}
	return false
}
