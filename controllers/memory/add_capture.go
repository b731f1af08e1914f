package memory

import (
	"bytes"
	"errors"
	"maps"
	"slices"

	"reconcile.dev/reconcile/schemas"
)

// ErrEdited is the error of growing by a capture that the file has with another digest.
var ErrEdited = errors.New("it was accepted before with another content, which stands")

// Effects are the links of a capture to older observations.
type Effects struct {
	At         schemas.Stamp
	Repeated   map[string]int    // how often, by id
	Superseded map[string]string // by which newer one, by id
}

// IDs returns the sorted ids of the observations that the effects repeat or supersede.
func (e *Effects) IDs() []string {
	return sortedIDs(slices.AppendSeq(slices.Collect(maps.Keys(e.Repeated)), maps.Keys(e.Superseded)))
}

// Issues returns the sorted issues of the observations that the effects repeat or supersede, parsed from their ids.
func (e *Effects) Issues() (out []int) {
	for _, id := range e.IDs() {
		if _, issue, _, ok := ParseID(id); ok {
			out = append(out, issue)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Opened is an issue file that was read to be grown. It is for one goroutine at a time.
type Opened struct {
	data []byte
	file *memoryFile // nil after it was grown
	err  error
}

// Open opens the data of an issue's file to grow it with captures, see [Opened.Grow], which returns the errors. nil
// data means a missing file.
func Open(data []byte, issue int) *Opened {
	f, err := readFile(data, issue)
	return &Opened{data, f, err}
}

// Lines returns the index lines that the manifest gets for the opened issue file when a capture's spec has been added,
// nil if the file has the capture. They are those of the Observations of [Opened.Grow].
func (o *Opened) Lines(s Spec) []schemas.ObservationIndex {
	if o.file == nil {
		return nil
	}
	if _, known := o.file.Sources[s.Name]; known {
		return nil
	}
	all := append(o.file.plain(), observations(s, nil)...)
	slices.SortFunc(all, compareObservations)
	return indexOf(all)
}

// Grow adds the observations of a new capture, given by its spec, to the data of an up-to-date issue file. It looks at
// nothing else, and returns what [Facts.Fold] would, but for the archive and what concerns it: Archive and Archived are
// nil. Effects on observations that are not in the file are returned: see [Apply]. What takes more to know is left to
// the next Fold: records that name the new ids already, and circles of observations that replace each other. A capture
// that the file has already changes nothing. If data is no longer the opened data, it opens data again. The errors are
// [ErrEdited] and those of [Parse].
func (o *Opened) Grow(data []byte, s Spec) (Folded, Effects, error) {
	if (o.file == nil && o.err == nil) || (o.data == nil) != (data == nil) || !bytes.Equal(o.data, data) {
		o = Open(data, s.Issue)
	}
	if o.err != nil {
		return Folded{}, Effects{}, o.err
	}
	f := o.file
	if digest, ok := f.Sources[s.Name]; ok {
		if digest != s.Digest {
			return Folded{}, Effects{}, ErrEdited
		}
		return Folded{Issue: s.Issue, File: data, Observations: f.plain()}, Effects{}, nil
	}
	o.file = nil
	links := linksOf(s)
	f.note(s, links)
	added := map[string]bool{}
	f.entries = slices.Grow(f.entries, len(s.Entries))
	for _, o := range observations(s, nil) {
		added[o.ID] = true
		f.entries = append(f.entries, stored{Observation: o})
	}
	effects := f.apply(effectsOf(links, schemas.StampOfTime(s.Timestamp.Time)))
	f.finish()
	out := Folded{Issue: s.Issue, File: f.encode(), Observations: f.plain()}
	for _, o := range out.Observations {
		if added[o.ID] {
			out.Added = append(out.Added, o)
		}
	}
	return out, effects, nil
}

// note records that a capture was accepted.
func (f *memoryFile) note(s Spec, links schemas.MemoryLinks) {
	if f.Sources == nil {
		f.Sources = map[string]string{}
	}
	f.Sources[s.Name] = s.Digest
	if len(links.Repeats)+len(links.Supersedes) > 0 {
		if f.Links == nil {
			f.Links = map[string]schemas.MemoryLinks{}
		}
		f.Links[s.Name] = links
	}
	f.UpdatedAt = laterCapture(f.UpdatedAt, schemas.StampOfTime(s.Timestamp.Time))
}

func effectsOf(links schemas.MemoryLinks, at schemas.Stamp) Effects {
	e := Effects{At: at, Repeated: map[string]int{}, Superseded: map[string]string{}}
	for _, id := range links.Repeats {
		e.Repeated[id]++
	}
	for by, older := range links.Supersedes {
		for _, id := range older {
			if id != by && foldReplaces(by, e.Superseded[id]) {
				e.Superseded[id] = by
			}
		}
	}
	return e
}

// Apply applies what a capture of another issue adds here, its links, to the folded file of an issue. It skips observations that the
// file does not have: they are in the archive, for the next fold, or do not exist. nil data stays nil. Archive and
// Archived are nil.
func Apply(data []byte, issue int, e Effects) (Folded, error) {
	if data == nil {
		return Folded{Issue: issue}, nil
	}
	f, err := readFile(data, issue)
	if err != nil {
		return Folded{}, err
	}
	f.apply(e)
	if slices.Contains(e.Issues(), issue) {
		f.UpdatedAt = laterCapture(f.UpdatedAt, e.At)
	}
	f.finish()
	return Folded{Issue: issue, File: f.encode(), Observations: f.plain()}, nil
}

// apply returns the effects on observations that are not there.
func (f *memoryFile) apply(e Effects) (rest Effects) {
	rest = Effects{e.At, maps.Clone(e.Repeated), maps.Clone(e.Superseded)}
	for i := range f.entries {
		o := &f.entries[i].Observation
		if n, ok := e.Repeated[o.ID]; ok {
			o.SeenCount = max(o.SeenCount, 1) + n
			delete(rest.Repeated, o.ID)
		}
		if by, ok := e.Superseded[o.ID]; ok {
			if foldReplaces(by, o.SupersededBy) {
				o.SupersededBy = by
			}
			delete(rest.Superseded, o.ID)
		}
	}
	return rest
}

func (f *memoryFile) holds() bool { return len(f.entries)+len(f.Sources)+len(f.extra) > 0 }

func sortedIDs(ids []string) []string {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}
