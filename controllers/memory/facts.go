package memory

import (
	"maps"
	"path"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/tokens"
	"reconcile.dev/reconcile/schemas"
)

// Spec is an Observation: a capture.
type Spec struct {
	Name   string
	Digest string // as schemas.Object.Digest
	*schemas.ObservationSpec
	// Tokens are those of contents that were counted before, by content; may be nil. To count them takes longer than all
	// else that is done with a capture.
	Tokens map[string]int
}

// Truth is the input of the store's fold, other than the observations in the issue files of other programs.
type Truth struct {
	Specs   []Spec
	Records map[string]schemas.MemoryRecord // by name
	// Taken are the captures in the issue files, by name: the union of [TakenIn] of each file. Without it an edit of a
	// capture is noticed only in its own issue.
	Taken map[string]Taken
	// Exists reports whether there is an Observation of the name, perhaps one that cannot be read; nil: those in Specs
	// are all.
	Exists func(name string) bool
}

// Taken is a capture as it was accepted.
type Taken struct {
	Issue  int
	Digest string
	Links  schemas.MemoryLinks
}

// Facts are what follows from the truth as a whole, for whichever issue it is folded. They are not changed once made.
type Facts struct {
	taken       map[string]Taken
	exists      func(string) bool
	specs       map[int][]Spec    // those that are accepted, or to be, by issue
	frozen      map[int][]string  // by issue: captures whose observations stand as they were accepted
	edited      map[string]string // of these, the edited ones: name to accepted digest
	known       map[string]string // the digests of Specs, by name
	removed     map[string]bool
	verified    map[string]verification
	recalls     map[string]int
	recalledBy  map[string][]int // of issues with compactions: by id, the numbers of the recalls that it was in
	repeats     map[string]int
	superseded  map[string]string // by which newer one
	compactions map[int][]compaction
	undone      map[int]schemas.Stamp // by issue: when a compaction was last undone
	compacted   map[int]schemas.Stamp // by issue: the newest time of a compaction, including undone ones
	newest      map[int]schemas.Stamp // by issue: the newest time in what says something of its observations
}

type verification struct {
	at      schemas.Stamp
	record  string
	anchors []schemas.Anchor
	told    bool // the record has anchors of it
}

// NewFacts collects the facts about the captures and records of a memory from its truth: specs by issue, removals,
// verifications, recalls, repeats and compactions. It takes time linear in the truth; it reads no content.
func NewFacts(t Truth) *Facts {
	f := &Facts{
		taken: t.Taken, exists: t.Exists,
		specs: map[int][]Spec{}, frozen: map[int][]string{}, edited: map[string]string{},
		known:   make(map[string]string, len(t.Specs)),
		removed: map[string]bool{}, verified: map[string]verification{}, recalls: map[string]int{},
		repeats: map[string]int{}, superseded: map[string]string{},
		compactions: map[int][]compaction{}, undone: map[int]schemas.Stamp{}, newest: map[int]schemas.Stamp{},
		compacted: map[int]schemas.Stamp{},
	}
	var links []schemas.MemoryLinks
	for _, s := range t.Specs {
		f.known[s.Name] = s.Digest
		links = append(links, f.accept(s))
	}
	links = append(links, f.freezeBroken()...)
	f.addRecords(t.Records)
	f.addLinks(links)
	return f
}

// accept assigns a capture to its issue, and returns its links to older observations.
func (f *Facts) accept(s Spec) schemas.MemoryLinks {
	taken, ok := f.taken[s.Name]
	if ok && taken.Digest != s.Digest {
		f.edited[s.Name] = taken.Digest
		f.frozen[taken.Issue] = append(f.frozen[taken.Issue], s.Name)
		return taken.Links
	}
	f.specs[s.Issue] = append(f.specs[s.Issue], s)
	links := linksOf(s)
	if len(links.Repeats)+len(links.Supersedes) > 0 {
		f.touchLinks(links, schemas.StampOfTime(s.Timestamp.Time))
	}
	return links
}

// freezeBroken keeps the observations of Observations that cannot be read now.
func (f *Facts) freezeBroken() (links []schemas.MemoryLinks) {
	for _, name := range slices.Sorted(maps.Keys(f.taken)) {
		if _, known := f.known[name]; known || f.exists == nil || !f.exists(name) {
			continue
		}
		taken := f.taken[name]
		f.frozen[taken.Issue] = append(f.frozen[taken.Issue], name)
		links = append(links, taken.Links)
	}
	return links
}

// idsOf are the ids of the entries of a capture, each another one; that of a repeated one is the one it repeats.
func idsOf(s Spec) []string {
	ids := make([]string, len(s.Entries))
	taken := make(map[string]bool, len(s.Entries))
	for i := range s.Entries {
		e := &s.Entries[i]
		if e.Repeats != "" {
			ids[i] = e.Repeats
			continue
		}
		for place := i; ids[i] == "" || taken[ids[i]]; place += len(s.Entries) {
			ids[i] = NewID(s.Agent, s.Issue, s.Timestamp.Time, s.Name, place, e.Content)
		}
		taken[ids[i]] = true
	}
	return ids
}

func (f *Facts) touch(id string, at schemas.Stamp) {
	if _, issue, _, ok := ParseID(id); ok && at.After(f.newest[issue].Time) {
		f.newest[issue] = at
	}
}

// addRecords applies the records, in any order.
func (f *Facts) addRecords(records map[string]schemas.MemoryRecord) {
	undone := map[string]bool{}
	for _, r := range records {
		if r.Type == schemas.RecordUncompacted {
			undone[r.Record] = true
			f.undone[r.Issue] = laterCapture(f.undone[r.Issue], r.At)
		}
	}
	for name, r := range records {
		switch r.Type {
		case schemas.RecordCompacted:
			f.compacted[r.Issue] = laterCapture(f.compacted[r.Issue], r.At)
			if !undone[name] {
				f.compactions[r.Issue] = append(f.compactions[r.Issue], compaction{name, r})
			}
		case schemas.RecordRemoved, schemas.RecordVerified, schemas.RecordRecalled, schemas.RecordRecalls:
			for _, id := range r.IDs {
				f.touch(id, r.At)
				f.addRecord(name, &r, id)
			}
		}
	}
	f.countRecalls(records)
	for _, all := range f.compactions {
		slices.SortFunc(all, compareCompactions)
	}
	if len(f.compactions) > 0 {
		f.numberRecalls(records)
	}
}

// countRecalls counts each recall of an observation once, in however many sums and records it is.
func (f *Facts) countRecalls(records map[string]schemas.MemoryRecord) {
	in := map[string][]string{}
	summed := map[string]bool{} // observations that have sums
	for name, r := range records {
		switch r.Type {
		case schemas.RecordRecalled:
			for _, id := range r.IDs {
				in[id] = append(in[id], recallOf(name))
			}
		case schemas.RecordRecalls:
			in[r.IDs[0]], summed[r.IDs[0]] = append(in[r.IDs[0]], r.Recalls...), true
		}
	}
	for id, recalls := range in {
		if summed[id] {
			slices.Sort(recalls)
			recalls = slices.Compact(recalls)
		}
		f.recalls[id] = len(recalls)
	}
}

// numberRecalls notes which recalls observations were in, where compaction may have to tell them apart.
func (f *Facts) numberRecalls(records map[string]schemas.MemoryRecord) {
	f.recalledBy = map[string][]int{}
	number := 0
	for _, r := range Recalls(records) {
		number++
		for _, id := range r.IDs {
			if _, issue, _, ok := ParseID(id); ok && len(f.compactions[issue]) > 0 {
				f.recalledBy[id] = append(f.recalledBy[id], number)
			}
		}
	}
}

// recallsOf counts the recalls that a merged observation was in, itself or by one or more of its originals.
func (f *Facts) recallsOf(o *schemas.Observation) int {
	all := slices.Clone(f.recalledBy[o.ID])
	for _, id := range o.Compacts {
		all = append(all, f.recalledBy[id]...)
	}
	slices.Sort(all)
	return len(slices.Compact(all))
}

// addRecord adds what a record of the memory says about an observation: that it was removed, verified or the like.
func (f *Facts) addRecord(name string, r *schemas.MemoryRecord, id string) {
	switch r.Type {
	case schemas.RecordRemoved:
		f.removed[id] = true
	case schemas.RecordVerified:
		old, ok := f.verified[id]
		if !ok || r.At.After(old.at.Time) || r.At.Equal(old.at.Time) && name > old.record {
			anchors, told := r.Anchors[id]
			f.verified[id] = verification{r.At, name, anchors, told}
		}
	}
}

// recordNames reports whether a record of the memory, such as a recall, proves that a fact existed, unchanged from the beginning: it names
// the observation, or the one into which it was merged.
func recordNames(r *schemas.MemoryRecord, byID map[string]*schemas.Observation, id string) bool {
	if o := byID[id]; o == nil || o.SeenCount > 1 {
		return false
	}
	return slices.ContainsFunc(r.IDs, func(named string) bool {
		o := byID[named]
		return named == id || o != nil && slices.Contains(o.Compacts, id)
	})
}

// plainForm returns an observation without its derived fields, as text.
func plainForm(s *stored) string {
	c := *s
	c.Archived, c.VerifiedAt, c.SupersededBy, c.SeenCount = false, schemas.Stamp{}, "", 0
	var w jsonWriter
	w.observation(&c)
	return string(w.b)
}

// observations are those of a capture. counts are observations known before: the tokens of the same content are not
// counted again.
func observations(s Spec, counts map[string]*schemas.Observation) []schemas.Observation {
	out := make([]schemas.Observation, 0, len(s.Entries))
	for i, id := range idsOf(s) {
		e := &s.Entries[i]
		if e.Repeats != "" {
			continue
		}
		out = append(out, schemas.Observation{
			ID: id, Agent: s.Agent, IssueNumber: s.Issue, Category: e.Category, Content: e.Content,
			Summary: summaryOf(e), Tokens: s.tokensOf(counts[id], e.Content),
			Timestamp: schemas.StampOfTime(s.Timestamp.Time),
			SessionID: s.Session, Source: s.Name, Anchors: anchorsOf(e),
		})
	}
	return out
}

func (s *Spec) tokensOf(known *schemas.Observation, content string) int {
	if n, ok := s.Tokens[content]; ok {
		return n
	}
	return countOnce(known, content)
}

// countOnce counts the tokens of a content, unless they were counted before. A token has at least one byte: an
// impossible count, as from a manual edit, is computed again.
func countOnce(known *schemas.Observation, content string) int {
	if known != nil && known.Content == content && 0 < known.Tokens && known.Tokens <= len(content) {
		return known.Tokens
	}
	return tokens.Count(content)
}

// Holds reports whether the stored observations and links of a taken capture are exactly those that its spec makes,
// except for removed observations. Then it was accepted in this form, and another recorded digest is damage, not an
// edit. stored are observations of its issue, in the issue file and the archive; without any the result is false.
func Holds(s Spec, taken Taken, stored []schemas.Observation, removed map[string]bool) bool {
	if taken.Issue != s.Issue {
		return false
	}
	links := linksOf(s)
	if !sameLinks(links, taken.Links) {
		return false
	}
	made := map[string]schemas.Observation{}
	for _, o := range observations(s, nil) {
		made[o.ID] = cleanedCopy(o)
	}
	found := len(links.Repeats) + len(links.Supersedes)
	for i := range stored {
		o := &stored[i]
		if o.Source != s.Name || len(o.Compacts) > 0 {
			continue
		}
		want, ok := made[o.ID]
		if !ok || !sameStatement(o, &want) {
			return false
		}
		delete(made, o.ID)
		found++
	}
	for id := range made {
		if !removed[id] {
			return false
		}
	}
	return found > 0
}

// sameStatement compares a stored fact with one that a capture makes, without later changes: of a verified one the paths of the anchors, and
// not their digests.
func sameStatement(stored, made *schemas.Observation) bool {
	anchors := slices.Equal(stored.Anchors, made.Anchors)
	if !stored.VerifiedAt.IsZero() {
		anchors = slices.EqualFunc(stored.Anchors, made.Anchors, func(a, b schemas.Anchor) bool { return a.Path == b.Path })
	}
	return anchors && stored.Agent == made.Agent && stored.IssueNumber == made.IssueNumber && stored.Category == made.Category &&
		stored.Content == made.Content && stored.Summary == made.Summary && stored.SessionID == made.SessionID &&
		stored.Timestamp.Equal(made.Timestamp.Time)
}

func newFacts() facts {
	return facts{
		known: phrasesOf("note that|turns out|discovered that|discovered|learned that|we learned|i learned|" +
			"found that|found out|realized that|realised that|only works|works only|only supports|supports only|" +
			"only supported|requires|does not support|doesn't support|do not support|don't support|not supported|" +
			"unsupported|defaults to|default is|is limited to|are limited to|limit is|limit of|deprecated|" +
			"by convention|convention is|keep in mind|be aware|beware|important to know|is important|is required|" +
			"are required|is mandatory|has no effect|have no effect|thread safe|is ignored|are ignored|" +
			"is not idempotent|is idempotent|must not|must never|backward compatible|backwards compatible|" +
			"source of truth|invariant|guarantees|guaranteed|rate limit|rate limited|not documented|undocumented|" +
			"case sensitive|case insensitive|incompatible|it is worth knowing|worth noting"),
		placed: phrasesOf("listens on|listen on|lives in|live in|located in|defined in|stored in|runs on port"),
		weakly: phrasesOf("must|cannot|can't|always|never|expects|expected to|depends on|runs on|port|version|" +
			"at least|at most|up to|by default|only|is set by|is generated|are generated|owned by|belongs to|" +
			"responsible for|means that|because"),
	}
}

// byName turns a table of lists of names round.
func byName(table map[string]string) map[string]string {
	out := map[string]string{}
	for value, names := range table {
		for name := range strings.SplitSeq(names, "|") {
			out[name] = value
		}
	}
	return out
}

func referenceName(piece transcriptObject) string {
	if name := piece.text("name"); name != "" {
		return name
	}
	return path.Base(piece.object("inlineReference").text("fsPath", "path", "name"))
}
