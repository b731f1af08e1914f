package memory

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/tokens"
	"reconcile.dev/reconcile/schemas"
)

// Candidate is an observation that may be recalled, as in the index. Superseded ones are excluded. A recall has many
// candidates, so they hold numbers only.
type Candidate struct {
	Issue   int
	Own     bool  // it was learned by the agent that asks
	Milli   int64 // when it was learned, in milliseconds since 1970
	Tokens  int   // of its content
	Recalls int
	// Overlap is the share of the words of the context that its summary has, 0 to 1.
	Overlap float64
	// Row is the caller's own number of it.
	Row int
}

// Chooser selects observations for the work of an agent on an issue.
type Chooser struct {
	Issue   int
	Budget  int // tokens of the whole section
	Now     time.Time
	Weights Weights
	// Stale says why an observation may be stale, "" that it is not; nil: none is. It is asked about those only that
	// would be chosen.
	Stale func(*Candidate) string
	// ID is that of a candidate. It is asked for those that are equal in all else.
	ID func(*Candidate) string
	// Load reads observations in full. It calls take with the number in the list of each that can be read, in any order,
	// perhaps several at the same time, and returns after that; in place of those that it leaves out others are chosen.
	Load func(list []*Candidate, take func(i int, o *schemas.Observation))
	// Size is how many tokens a file has, Share how many of the texts that they were learned from are the part of some
	// observations; both may be nil. See [Recalled.Displaced].
	Size  func(path string) int
	Share func([]*schemas.Observation) int
}

// Recalled is the result for the agent.
type Recalled struct {
	Text   string // the section "## Memory Recall"; "" where nothing is recalled
	IDs    []string
	Notes  []Note
	Tokens int // of Text
	// Displaced estimates the cost of reading the sources again, in tokens: the files of the notes, each once and
	// whole, and for a note without an existing file its share of the conversation that it was learned from.
	Displaced int
	// Least is the smallest budget within which one of the candidates fits, where none fits into this one; else 0.
	Least int
}

// Note is an observation in a recall.
type Note struct {
	*schemas.Observation
	Score float64
	Stale string // why it may be stale; "": it is not
	// Others counts the observations with the same text that were looked at and left out for this one.
	Others int
}

// Limits of the search for what still fits.
const (
	mostNotes = 50  // maximum number of notes
	leastNote = 20  // no note has fewer tokens: its id alone has about as many
	misses    = 20  // this many consecutive notes that do not fit after all end the search
	repeats   = 200 // and this many that repeat an earlier one: each was read to compare it
)

// Choose chooses the notes of a recall from the candidates: the best ones, at most 50, each in full, as long as the
// section stays within the budget of tokens. It skips a note that does not fit, and of equivalent ones, as several
// agents capture them, it keeps the best. Among equal scores the same issue is first, then the same agent, the newer
// one, the smaller id. The text and its tokens are a pure function of the results of the fields.
func (c *Chooser) Choose(cands []Candidate) Recalled {
	left := c.Budget - tokens.Count(recallHead(len(cands), len(cands), c.Budget))
	if left < leastNote {
		return Recalled{Least: least(c.shortest(cands), len(cands))}
	}
	s := selection{left: left, between: tokens.Count(between), places: map[string]int{}}
	q := c.queue(cands)
	for s.open() {
		run := q.nextBatch(s.left)
		if len(run) == 0 {
			break
		}
		for i, p := range c.read(run) {
			if s.open() && run[i].Tokens+leastNote <= s.left {
				s.add(p)
			}
		}
	}
	var short []part
	if len(s.parts) == 0 { // perhaps one of the shortest fits
		short = c.shortest(cands)
		for i := 0; i < len(short) && len(s.parts) == 0; i++ {
			s.add(short[i])
		}
	}
	r := Recalled{}
	c.finish(&r, s.parts, len(cands))
	if len(r.IDs) == 0 {
		r.Least = least(short, len(cands))
	}
	return r
}

// shortest reads the candidates of the shortest contents.
func (c *Chooser) shortest(cands []Candidate) []part {
	run := make([]ranked, len(cands))
	for i := range cands {
		run[i] = ranked{Candidate: &cands[i]}
	}
	slices.SortStableFunc(run, func(a, b ranked) int { return a.Tokens - b.Tokens })
	run = run[:min(len(run), mostNotes)]
	for i := range run {
		if c.Stale != nil {
			run[i].stale = c.Stale(run[i].Candidate)
		}
	}
	return c.read(run)
}

// least returns the smallest budget within which one of these parts of that many candidates fits, 0 for no parts.
func least(parts []part, of int) int {
	least := 0
	for _, p := range parts {
		if p.text == "" {
			continue
		}
		budget := p.tokens
		for need := 0; budget != need; {
			need = budget
			budget = max(p.tokens+tokens.Count(recallHead(of, of, need)), need)
		}
		if least == 0 || budget < least {
			least = budget
		}
	}
	return least
}

// between stands between two notes. Notes begin with a bar and end in a line break, as it does: so the tokens of all are
// those of each together.
const between = "|\n"

// selection are the notes chosen so far.
type selection struct {
	parts    []part
	places   map[string]int // of the parts, by their text (see flat)
	left     int            // of the budget
	missed   int            // how many did not fit since the last one that did
	repeated int            // equivalent notes skipped since then
	between  int            // tokens of what stands between two
}

// open reports whether there may be more to choose.
func (s *selection) open() bool {
	return s.missed < misses && s.repeated < repeats && s.left >= leastNote && len(s.parts) < mostNotes
}

// add chooses a note if it fits and says something new; one that could not be read has no text.
func (s *selection) add(p part) {
	if p.text == "" {
		return
	}
	said := flat(p.Content)
	if at, told := s.places[said]; told {
		s.repeated++
		s.repeat(at)
		return
	}
	if len(s.parts) > 0 {
		p.text, p.tokens = between+p.text, s.between+p.tokens
	}
	if p.tokens > s.left {
		s.missed++
		return
	}
	s.missed, s.repeated = 0, 0
	s.left -= p.tokens
	s.places[said] = len(s.parts)
	s.parts = append(s.parts, p)
}

// repeat has a chosen note say that another one says the same, if there is room for that.
func (s *selection) repeat(at int) {
	p := s.parts[at]
	p.Others++
	p.text = formatNote(p.Note)
	p.tokens = tokens.Count(p.text)
	if at > 0 {
		p.text, p.tokens = between+p.text, s.between+p.tokens
	}
	if more := p.tokens - s.parts[at].tokens; more <= s.left {
		s.left -= more
		s.parts[at] = p
	}
}

// read loads candidates and writes them. One that cannot be read has no text.
func (c *Chooser) read(run []ranked) []part {
	list, parts := make([]*Candidate, len(run)), make([]part, len(run))
	for i := range run {
		list[i] = run[i].Candidate
	}
	c.Load(list, func(i int, o *schemas.Observation) {
		p := part{Note: Note{Score: run[i].score, Stale: run[i].stale, Observation: o}}
		p.text = formatNote(p.Note)
		p.tokens = tokens.Count(p.text)
		parts[i] = p
	})
	return parts
}

// finish writes the section. The tokens of its parts are those of the whole, see [tokens.Count]; only a line so long
// that the count cuts it makes it worth a look, and then the last notes make room.
func (c *Chooser) finish(r *Recalled, parts []part, of int) {
	for n := len(parts); n > 0; n-- {
		*r = written(parts[:n], of)
		if r.Tokens <= c.Budget {
			r.Displaced = c.displaced(r.Notes)
			return
		}
	}
	*r = Recalled{}
}

// part is a note as it is written.
type part struct {
	Note
	text   string
	tokens int
}

// longLine is from where on the count of a whole may differ from that of its lines.
const longLine = 8 << 10

func (c *Chooser) displaced(notes []Note) (sum int) {
	sizes := map[string]int{}
	var loose []*schemas.Observation // without an existing file
	for _, n := range notes {
		there := false
		for _, a := range n.Anchors {
			if _, known := sizes[a.Path]; !known && c.Size != nil {
				sizes[a.Path] = c.Size(a.Path)
				sum += sizes[a.Path]
			}
			there = there || sizes[a.Path] > 0
		}
		if !there {
			loose = append(loose, n.Observation)
		}
	}
	if c.Share != nil {
		sum += c.Share(loose)
	}
	return sum
}

func (c *Chooser) queue(cands []Candidate) *candidateQueue {
	q := &candidateQueue{chooser: c, cands: cands, scores: make([]float64, len(cands)), sorted: make([]int32, len(cands))}
	now := clock{c.Now, c.Now.UnixMilli(), 0}
	now.rest = c.Now.Sub(time.UnixMilli(now.milli))
	for i := range cands {
		k := &cands[i]
		q.scores[i] = score(c.Weights, now.since(k.Milli).Hours()/24, k.Recalls, k.Overlap)
	}
	q.sort()
	return q
}

func (c *Chooser) before(a, b *ranked) bool {
	if a.score != b.score {
		return a.score > b.score
	}
	order := cmp.Or(trueFirst(a.Issue == c.Issue, b.Issue == c.Issue),
		trueFirst(a.Own, b.Own),
		cmp.Compare(b.Milli, a.Milli))
	if order == 0 {
		order = strings.Compare(c.ID(a.Candidate), c.ID(b.Candidate))
	}
	return order < 0
}
