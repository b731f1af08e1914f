// Package memory decides what agents remember. It is pure: conversations, files and records are its input values, and
// the bytes to write its output.
//
// # What is learned
//
// [Learn] makes entries from a conversation or a summary: [ReadConversation] reads transcripts, compact_text.go
// summarizes them, and the summary, without secrets, becomes at most fifty entries of an Observation.
//
// # What the store is
//
// The source of truth are the Observations under specs/ and the records of later events ([EncodeRecord]); each writer
// makes files with its own names, so nothing is lost and nothing conflicts. [NewFacts] derives the facts from all of
// that, [Facts.Fold] the files of one issue, and [Manifest] the index of all. Observations of other programs are a part
// of the truth that exists in the issue files only: they are kept with all their fields. The bytes of a file are a
// function of the truth: a store that grew, capture by capture, equals a rebuilt one.
//
//	id.go        the ids of observations
//	file.go      reading issue files and archives; encode.go writes them
//	record.go    the records
//	facts.go     what follows from captures and records for all issues
//	fold.go      the files of one issue
//	grow.go      the same for one more capture, without the rest of the truth
//	salvage.go   what is whole in a damaged file
//	manifest.go  the index; splice.go replaces one issue in it
//
// A capture that was edited after it was accepted has no effect: for each one, the file of its issue keeps its digest
// and its links to older observations. [TakenIn] collects these from all files, so that an edit that moves a capture to
// another issue is noticed, too.
//
// # What is recalled
//
// score.go has the formula, recall.go selects by it within a budget and writes the section for agents. Staleness of an
// observation is not stored: it compares its anchors with the current files.
//
// # Compaction
//
// compact.go defines the records of compactions, related.go the grouping of observations, merged.go the text of merged
// ones.
package memory

import (
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// Folded is what the store holds of an issue.
type Folded struct {
	Issue int
	// File and Archive are the content of the issue file and its archive; nil: it must not exist.
	File, Archive []byte
	// Observations are those of the file, Archived those of the archive, each sorted by time and id, and as [Parse] gives
	// them.
	Observations, Archived []schemas.Observation
	// Added are those that the file did not know the capture of, sorted likewise.
	Added []schemas.Observation
	// Edited are captures that were edited after they were accepted, with the accepted digest; the edit has no
	// effect.
	Edited map[string]string
}

// Index returns the index lines of the folded issue's observations, as they are in the manifest.
func (f *Folded) Index() []schemas.ObservationIndex { return indexOf(f.Observations) }

// Fold folds an issue: it makes the issue file and the archive from the facts of the captures and the foreign
// observations in data and archive, the old files. nil is a file that does not exist. It is pure, and folding its
// result changes nothing. The errors are those of [Parse].
//
// Observations of other programs are kept with all their fields. Those of captures are made from the captures, so that
// a manual change does not last; those of captures that were edited, or cannot be read now, are kept unchanged.
func (f *Facts) Fold(issue int, data, archive []byte) (Folded, error) {
	old, err := readFile(data, issue)
	if err != nil {
		return Folded{}, err
	}
	older, err := readFile(archive, issue)
	if err != nil {
		return Folded{}, err
	}
	d := &memoryFold{facts: f, issue: issue, old: old, out: &memoryFile{}, edited: map[string]string{}, added: map[string]bool{}}
	d.stored = append(slices.Clip(old.entries), older.entries...)
	d.sortOut()
	d.collect()
	d.split()
	return d.folded(older.extra), nil
}

// memoryFold is one fold of one issue.
type memoryFold struct {
	facts  *Facts
	issue  int
	old    *memoryFile
	stored []stored // file and archive as they were
	frozen map[string]bool
	edited map[string]string
	added  map[string]bool                 // names of captures that are new
	counts map[string]*schemas.Observation // as in the old files, for their tokens
	all    map[string]*stored

	out      *memoryFile // the issue file
	archived []stored
}

// sortOut decides which captures count, and how.
func (d *memoryFold) sortOut() {
	d.out.MemoryFile = schemas.MemoryFile{IssueNumber: d.issue, Sources: map[string]string{}}
	d.out.extra = d.old.extra
	d.frozen = map[string]bool{}
	for _, name := range d.facts.frozen[d.issue] {
		d.freeze(name)
	}
	for name, digest := range d.old.Sources {
		if _, told := d.facts.taken[name]; told || d.frozen[name] {
			continue
		}
		if now, known := d.facts.known[name]; known && now != digest || !known && d.facts.exists != nil && d.facts.exists(name) {
			d.freeze(name)
		}
	}
}

func (d *memoryFold) freeze(name string) {
	digest, here := d.old.Sources[name]
	if !here {
		digest = d.facts.taken[name].Digest
	}
	d.frozen[name] = true
	d.out.Sources[name] = digest
	if links, ok := d.old.Links[name]; ok {
		d.link(name, links)
	}
	if _, known := d.facts.known[name]; known {
		d.edited[name] = digest
	}
}

func (d *memoryFold) link(name string, links schemas.MemoryLinks) {
	if len(links.Repeats)+len(links.Supersedes) == 0 {
		return
	}
	if d.out.Links == nil {
		d.out.Links = map[string]schemas.MemoryLinks{}
	}
	d.out.Links[name] = links
}

// collect unites what captures and other programs say into one observation for each id.
func (d *memoryFold) collect() {
	d.counts = make(map[string]*schemas.Observation, len(d.stored))
	for i := range d.stored {
		o := &d.stored[i].Observation
		d.counts[o.ID] = o
	}
	d.all = make(map[string]*stored, len(d.stored)+16)
	for i := range d.stored {
		s := &d.stored[i]
		if foreign(&s.Observation) || d.frozen[s.Source] {
			d.unite(s)
		}
	}
	for _, s := range d.facts.specs[d.issue] {
		if d.frozen[s.Name] {
			continue
		}
		d.out.Sources[s.Name] = s.Digest
		d.link(s.Name, linksOf(s))
		d.added[s.Name] = d.old.Sources[s.Name] == ""
		d.out.UpdatedAt = laterCapture(d.out.UpdatedAt, schemas.StampOfTime(s.Timestamp.Time))
		for _, o := range observations(s, d.counts) {
			d.all[o.ID] = &stored{Observation: o}
		}
	}
	for id, s := range d.all {
		if d.facts.removed[id] {
			delete(d.all, id)
			continue
		}
		d.facts.setDerived(&s.Observation)
	}
}

// unite keeps one of two observations with an id, whatever their order: the newer one, else the one that sorts last.
func (d *memoryFold) unite(s *stored) {
	other, ok := d.all[s.ID]
	if !ok || s.Timestamp.After(other.Timestamp.Time) ||
		s.Timestamp.Equal(other.Timestamp.Time) && strings.Compare(plainForm(s), plainForm(other)) > 0 {
		c := *s
		d.all[s.ID] = &c
	}
}

// split tells what stays in the file from what compaction replaced.
func (d *memoryFold) split() {
	replaced, groups := d.facts.grouped(d.issue)
	for id, s := range d.all {
		if s.Archived = replaced[id]; s.Archived {
			d.archived = append(d.archived, *s)
		} else {
			d.out.entries = append(d.out.entries, *s)
		}
	}
	for _, group := range groups {
		for _, o := range combine(group, d.member) {
			if !d.facts.removed[o.ID] {
				o.Tokens = countOnce(d.counts[o.ID], o.Content)
				d.setMergedDerived(&o)
				d.out.entries = append(d.out.entries, stored{Observation: o})
			}
		}
	}
}

// member is an observation as a merged one tells it.
func (d *memoryFold) member(id string) *schemas.Observation {
	s := d.all[id]
	if s == nil {
		return nil
	}
	o := cleanedCopy(s.Observation)
	return &o
}

// setMergedDerived adds an observation's own records to the fields that a merged one has from its originals.
func (d *memoryFold) setMergedDerived(o *schemas.Observation) {
	recalls, seen, anchors := o.RecallCount, o.SeenCount, o.Anchors
	d.facts.setDerived(o)
	o.RecallCount = max(d.facts.recallsOf(o), recalls) // other programs count without records
	o.SeenCount = max(o.SeenCount, seen)
	if o.VerifiedAt.IsZero() {
		o.Anchors = anchors
	}
}

// folded sorts and writes both files.
func (d *memoryFold) folded(archiveExtra extras) Folded {
	archive := &memoryFile{MemoryFile: schemas.MemoryFile{IssueNumber: d.issue}, extra: archiveExtra, entries: d.archived}
	d.out.UpdatedAt = laterCapture(d.out.UpdatedAt, d.facts.newest[d.issue])
	archive.finish()
	d.out.UpdatedAt = laterCapture(d.out.UpdatedAt, archive.UpdatedAt)
	d.out.finish()
	r := Folded{Issue: d.issue, Edited: d.edited, Observations: d.out.plain(), Archived: archive.plain()}
	if d.out.holds() || len(r.Archived) > 0 {
		r.File = d.out.encode()
	}
	if len(archive.entries) > 0 || len(archive.extra) > 0 {
		r.Archive = archive.encode()
	}
	for _, o := range slices.Concat(r.Observations, r.Archived) {
		if d.added[o.Source] {
			r.Added = append(r.Added, o)
		}
	}
	slices.SortFunc(r.Added, compareObservations)
	return r
}

// foldReplaces reports whether an observation is the one that is recorded as the replacement of another, where two replace
// it.
func foldReplaces(by, than string) bool { return than == "" || compareIDs(by, than) > 0 }

// setDerived sets the fields of an observation that come from records and other captures. It does not lower counts that
// another program keeps in its own observations.
func (f *Facts) setDerived(o *schemas.Observation) {
	recalls := f.recalls[o.ID]
	if foreign(o) {
		recalls = max(recalls, o.RecallCount)
	}
	o.RecallCount, o.SeenCount = recalls, 0
	if n := f.repeats[o.ID]; n > 0 {
		o.SeenCount = n + 1
	}
	o.SupersededBy = f.superseded[o.ID]
	o.VerifiedAt = schemas.Stamp{}
	if v, ok := f.verified[o.ID]; ok {
		o.VerifiedAt = v.at
		if v.told {
			o.Anchors = v.anchors
		}
	}
}
