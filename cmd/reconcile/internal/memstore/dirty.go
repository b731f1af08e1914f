package memstore

import (
	"maps"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// dirty returns the issues that must be folded again.
func (s *settling) dirty() map[int]bool {
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
func (s *settling) dirtyCaptures(dirty map[int]bool) {
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
func (s *settling) dirtyRecords(dirty map[int]bool) {
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

// summed reports whether sums of recalls replace all records of these names. The observations in sums are folded when their
// issues are.
func (s *settling) summed(went []string) bool {
	recalls := memory.Recalls(s.files.records(recallNames(s.names)))
	return !slices.ContainsFunc(went, func(name string) bool {
		recall, single := strings.CutPrefix(name, schemas.RecordRecalled+"-")
		_, told := recalls[recall]
		return !told && (single || !strings.HasPrefix(name, schemas.RecordRecalls+"-"))
	})
}
