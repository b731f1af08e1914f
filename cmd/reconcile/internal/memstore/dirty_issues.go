package memstore

import (
	"maps"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// dirty returns the issues that must be folded again.
func (s *memorySettling) dirty() map[int]bool {
	dirty := map[int]bool{}
	if s.before.captures == nil { // nothing is known
		for issue := range s.view.owners {
			dirty[issue] = true
		}
		for issue := range s.archive {
			dirty[issue] = true
		}
	}
	s.dirtyCaptures(dirty)
	s.dirtyRecords(dirty)
	for issue, o := range s.view.owners {
		if hash, ok := s.before.issues[issue]; !ok || hash != o.hash {
			dirty[issue] = true
		}
	}
	for issue := range s.before.issues {
		if _, ok := s.view.owners[issue]; !ok {
			dirty[issue] = true
		}
	}
	for issue, id := range s.archive {
		if s.before.archives[issue] != id {
			dirty[issue] = true
		}
	}
	for issue := range s.before.archives {
		if _, ok := s.archive[issue]; !ok {
			dirty[issue] = true
		}
	}
	maps.Copy(dirty, s.wrong)
	for issue, err := range s.view.bad { // of a newer version, or unreadable: it is left alone
		if err != nil {
			delete(dirty, issue)
		}
	}
	return dirty
}

// dirtyCaptures marks the issues of new and removed captures, and those that they refer to.
func (s *memorySettling) dirtyCaptures(dirty map[int]bool) {
	there := make(map[string]bool, len(s.entries))
	for _, e := range s.entries {
		if e.Gone() {
			continue
		}
		there[e.Name] = true
		if s.before.captures[e.Name] {
			continue
		}
		if taken, ok := s.taken[e.Name]; ok {
			dirty[taken.Issue] = true
			markLinks(dirty, taken.Links)
		}
		if spec := schemas.SpecAs[*schemas.ObservationSpec](e.Object); spec != nil {
			dirty[spec.Issue] = true
			markEntries(dirty, spec)
		}
	}
	for name, taken := range s.taken {
		if !there[name] && !s.exists(name) {
			dirty[taken.Issue] = true
			markLinks(dirty, taken.Links)
		}
	}
}

// markLinks marks the issues as dirty whose files of the memory change with the links of a capture.
func markLinks(dirty map[int]bool, links schemas.MemoryLinks) {
	markIDs(dirty, links.Repeats)
	for _, older := range links.Supersedes {
		markIDs(dirty, older)
	}
}

func markEntries(dirty map[int]bool, spec *schemas.ObservationSpec) {
	for _, e := range spec.Entries {
		markIDs(dirty, e.Supersedes)
		if e.Repeats != "" {
			markIDs(dirty, []string{e.Repeats})
		}
	}
}

func markIDs(dirty map[int]bool, ids []string) {
	for _, id := range ids {
		if _, issue, _, ok := memory.ParseID(id); ok {
			dirty[issue] = true
		}
	}
}

// dirtyRecords marks the issues of new records. The issues of removed records are unknown: then it marks all.
func (s *memorySettling) dirtyRecords(dirty map[int]bool) {
	news := map[string]state.Identity{}
	for name, id := range s.names {
		if s.before.records[name] != id {
			news[name] = id
		}
	}
	if len(news) > 0 {
		for _, r := range s.files.records(news) {
			markIDs(dirty, r.IDs)
			if r.Type == schemas.RecordCompacted || r.Type == schemas.RecordUncompacted {
				dirty[r.Issue] = true
			}
		}
	}
	var went []string
	for name := range s.before.records {
		if _, ok := s.names[name]; !ok {
			went = append(went, name)
		}
	}
	if len(went) > 0 && !s.summed(went) {
		for issue := range s.view.owners {
			dirty[issue] = true
		}
	}
}

// findDirtyCaptures finds the captures whose specs differ from the ingested ones. If the observations of one match its spec, only the
// recorded digest is wrong: folding the issue again corrects it.
func (s *memorySettling) findDirtyCaptures() {
	s.out.Edited, s.wrong = map[string]string{}, map[int]bool{}
	for _, e := range s.entries {
		taken, ok := s.taken[e.Name]
		if !ok || e.Object == nil || taken.Digest == e.Object.Digest {
			continue
		}
		if s.accepted(e, taken) {
			taken.Digest = e.Object.Digest
			s.taken[e.Name], s.wrong[taken.Issue] = taken, true
			continue
		}
		s.out.Edited[e.Name] = taken.Digest
	}
}

// accepted reports whether a capture was ingested with its present spec.
func (s *memorySettling) accepted(e *state.Entry, taken memory.Taken) bool {
	spec := schemas.SpecAs[*schemas.ObservationSpec](e.Object)
	if spec == nil {
		return false
	}
	var stored []schemas.Observation
	for _, p := range []string{s.files.issuePath(taken.Issue), s.files.archivePath(taken.Issue)} {
		m, err := s.files.readIssue(p, taken.Issue)
		if err != nil {
			return false
		}
		stored = append(stored, m.Observations...)
	}
	removed := map[string]bool{}
	for _, r := range s.files.records(s.names) {
		if r.Type == schemas.RecordRemoved {
			for _, id := range r.IDs {
				removed[id] = true
			}
		}
	}
	return memory.Holds(memory.Spec{Name: e.Name, ObservationSpec: spec}, taken, stored, removed)
}

// specs returns the captures that affect the issues.
func (s *memorySettling) specs(dirty map[int]bool) []memory.Spec {
	var out []memory.Spec
	for _, e := range s.entries {
		if e.Object == nil || !s.affects(e, dirty) {
			continue
		}
		if spec := schemas.SpecAs[*schemas.ObservationSpec](e.Object); spec != nil {
			out = append(out, memory.Spec{Name: e.Name, Digest: e.Object.Digest, ObservationSpec: spec})
		}
	}
	return out
}

// affects reports whether a capture refers to one of the issues. A capture that is not ingested yet does.
func (s *memorySettling) affects(e *state.Entry, dirty map[int]bool) bool {
	taken, ok := s.taken[e.Name]
	if !ok || dirty[taken.Issue] {
		return true
	}
	marked := map[int]bool{}
	markLinks(marked, taken.Links)
	for issue := range marked {
		if dirty[issue] {
			return true
		}
	}
	return false
}
