package memory

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/similar"
	"reconcile.dev/reconcile/controllers/tokens"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
)

// entryLimit is how many entries a capture has at most (agentx-spec, memory pipeline 3.4).
const entryLimit = 50

// Source is the input of Learn: a text, or a conversation if it has messages.
type Source struct {
	Agent    string
	Issue    int
	Session  string
	At       time.Time
	Text     string
	Messages []Message
	// Category is that of what is in no section of Text and has no label; "": as its words say.
	Category string
	// Exists reports whether a path below the root is a file; nil: no anchors. Digest is its content's, "" if unknown.
	Exists func(path string) bool
	Digest func(path string) string
	// StateFolder is the folder of observed state: entries are about no file in it.
	StateFolder string
	// Known returns the id of an observation equivalent to a content (see Same), "" if none exists.
	Known func(content string) (id string)
}

// Learned is what a capture holds.
type Learned struct {
	// Entries are at most entryLimit, in the order of the text, without secrets or private text.
	Entries []schemas.ObservationEntry
	// SourceTokens is the length of the input.
	SourceTokens int
	// Found is how many different things were found, of the thousand best that are looked at; Dropped how many of them
	// were too many.
	Found, Dropped int
}

// Learn extracts the entries of a capture from a source, the text of a summary or the messages of a conversation. It
// takes all steps of a capture, without any effect, to find what is worth remembering. Secrets and private text are
// removed first, recalled memory after them. A conversation is summarized by compact; a summary is split as in extract.
// Each entry gets its summary and its anchors; of equivalent ones one is kept, and a known one becomes a repetition of
// it. Of more than entryLimit entries the best are kept. An empty result is valid.
func Learn(s Source) Learned {
	c := cleanEntry(s)
	text, left := c.text, 0
	if len(c.messages) > 0 {
		text, left = compactText(c.messages)
	}
	l := s.finish(c, learnEntries(text, true, s.Category))
	return l.missing(left)
}

// missing counts what the summary of a conversation had no room for.
func (l Learned) missing(left int) Learned {
	l.Found += left
	l.Dropped += left
	return l
}

// cleaned is a source without what must not be kept.
type cleaned struct {
	text     string
	messages []Message
	recalled []likeness
	tokens   int
}

func cleanEntry(s Source) cleaned {
	var c cleaned
	c.text = c.take(s.Text)
	for _, m := range withoutPrivate(s.Messages) {
		if m.Role == roleEdit {
			m.Content = s.located(m.Content)
		}
		if m.Content = c.take(m.Content); m.Content != "" {
			c.messages = append(c.messages, m)
		}
	}
	return c
}

// withoutPrivate takes private text out of messages. What one opens, a later one may close.
func withoutPrivate(messages []Message) []Message {
	parts := make([]string, len(messages))
	for i := range messages {
		parts[i] = messages[i].Content
	}
	parts = secrets.StripPrivateFrom(parts)
	out := slices.Clone(messages)
	for i := range out {
		out[i].Content = parts[i]
	}
	return out
}

// take returns a text without secrets, private text and recalled memory; it records what was recalled.
func (c *cleaned) take(text string) string {
	text = secrets.Redact(text)
	c.tokens += tokens.Count(text)
	rest, recalled := withoutRecalled(text)
	for _, content := range recalled {
		c.recalled = append(c.recalled, newLikeness(content))
	}
	return rest
}

// finish makes entries of remarks.
func (s *Source) finish(c cleaned, all []remark) Learned {
	var ready []remark
	for i, r := range all {
		if !r.polish() || newLikeness(r.Content).sameAsAny(c.recalled) >= 0 {
			continue
		}
		r.place = i
		r.worth += float64(i) / float64(len(all)) // of equals the later one
		r.Anchors = s.anchors(r.Content)
		ready = append(ready, r)
	}
	different := distinctRemarks(ready)
	best := bestRemarks(different, entryLimit)
	l := Learned{SourceTokens: c.tokens, Found: len(different), Dropped: len(different) - len(best)}
	for i := range best {
		l.Entries = append(l.Entries, s.entry(best[i].ObservationEntry))
	}
	return l
}

// entry completes an entry, or makes it a repetition of a known one.
func (s *Source) entry(e schemas.ObservationEntry) schemas.ObservationEntry {
	if s.Known != nil {
		if id := s.Known(e.Content); id != "" {
			return schemas.ObservationEntry{Category: e.Category, Content: e.Content, Repeats: id}
		}
	}
	e.Summary = Summary(e.Content)
	for _, p := range e.Anchors {
		if digest := s.digest(p); digest != "" {
			if e.Digests == nil {
				e.Digests = map[string]string{}
			}
			e.Digests[p] = digest
		}
	}
	e.Anchors = slices.Clip(e.Anchors)
	return e
}

// quoted begins the lines of a recall, as of all quoted input of agents (see agentio).
const quoted = "|"

var recalledID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bobs-[a-z0-9._-]+-[0-9]{6,15}-[0-9a-z]{6}\b`)
})

// redacted returns a text that may be shown. Control characters are removed first: they could split a secret.
func redacted(text string) string { return secrets.Redact(agentio.Plain(text)) }

// BestReplacement returns the place of the entry that most likely corresponds to an older observation which a capture of several is
// to replace: the one with most common pairs of words (see [Similar]), else most words, else of the same category, else the
// first. One that only repeats known text ranks last, and one that repeats the older one itself is excluded; -1 if no entry
// is left.
func BestReplacement(entries []schemas.ObservationEntry, older *schemas.Observation) int {
	best, found := matchQuality{}, -1
	words := wordsOf(older.Content)
	for i := range entries {
		e := &entries[i]
		if e.Repeats == older.ID {
			continue
		}
		f := matchQuality{
			isNew: e.Repeats == "", pairs: Similar(e.Content, older.Content),
			words: common(wordsOf(e.Content), words), category: e.Category == older.Category,
		}
		if found < 0 || f.compare(best) < 0 {
			best, found = f, i
		}
	}
	return found
}

// matchQuality is how well an entry fits an older observation.
type matchQuality struct {
	isNew    bool
	pairs    float64
	words    int
	category bool
}

// compare orders what fits better first.
func (f matchQuality) compare(other matchQuality) int {
	return cmp.Or(trueFirst(f.isNew, other.isNew), cmp.Compare(other.pairs, f.pairs),
		cmp.Compare(other.words, f.words), trueFirst(f.category, other.category))
}

// learnLabel is the category that the words before a colon name, with what stands behind it.
func learnLabel(text string) (category, rest string) {
	name, rest, found := strings.Cut(text, ":")
	if !found || len(name) > 20 {
		return "", text
	}
	category = labels()[strings.ToLower(strings.TrimSpace(strings.Trim(name, "*_ ⚠️❗📝✅")))]
	if rest = strings.TrimSpace(rest); category == "" || len(rest) < 8 {
		return "", text
	}
	return category, rest
}

// learnEntries turns a summary into entries: one for each bullet, of the category of its section, with the bullets nested
// below it. A bullet of an unknown section has the category of its label ("Decision: …"), else it is a key fact. A
// section of a category without bullets gives an entry for each paragraph. Text without any bullet or such section is
// one entry of category compaction-summary. Bullets that refer to an observation by its id are left out. whole says
// whether text without any of these counts.
func learnEntries(summary string, whole bool, category string) []remark {
	all := passages(summary)
	bullets := map[string]bool{}
	structured := false
	for _, p := range all {
		bullets[p.section] = bullets[p.section] || p.bullet
		structured = structured || p.bullet || p.section != noSection && p.section != leftOut
	}
	if !structured {
		return wholeText(all, whole, category)
	}
	var g remarkCollector
	for _, p := range all {
		switch {
		case p.section == leftOut:
		case p.bullet && (p.section == noSection || p.section == schemas.CategorySummary):
			g.labelled(p.text, category)
		case p.bullet:
			g.add(p.section, p.text, true)
		case p.section != noSection && !bullets[p.section] && !introduces(p.text):
			g.add(p.section, p.text, true)
		}
	}
	return g.found
}

// entryBounds reports whether a text has what may be a mark of private text.
func entryBounds(text string) bool { return strings.Contains(strings.ToLower(text), "private") }

func isScaffold(role, text string) bool {
	if role != roleUser {
		return false
	}
	for _, s := range scaffolds {
		if strings.HasPrefix(text, s) {
			return true
		}
	}
	return false
}

// nearDuplicate is from where two contents say the same: see [Similar]. Of 40 words, four that stand apart may differ.
// The measure is that of shingles (A. Broder, On the resemblance and containment of documents, 1997) with two words
// each, as observations are short; its threshold was set by the pairs of TestSame.
const nearDuplicate = 0.8

// Similar returns the similarity of two contents, from 0 to 1: the Dice coefficient of their pairs of neighbouring
// words.
func Similar(a, b string) float64 { return similar.Dice(similar.Pairs(a), similar.Pairs(b)) }

// Same reports whether the contents a and b are the same by their likeness: they say the same in nearly the same words.
// They do not if they differ in a number, a name in code, or a word that turns the meaning round: "30 s" is another
// fact than "60 s".
func Same(a, b string) bool { return newLikeness(a).same(newLikeness(b)) }

// likeness is the comparable form of a content.
type likeness struct {
	pairs   similar.Set
	telling []string // sorted
}

func newLikeness(content string) likeness {
	l := likeness{pairs: similar.Pairs(content)}
	for word := range strings.FieldsFuncSeq(strings.ToLower(content), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '\'' && r != '’'
	}) {
		if turns(word) || strings.ContainsFunc(word, unicode.IsDigit) || strings.Contains(word, "_") {
			l.telling = append(l.telling, word)
		}
	}
	slices.Sort(l.telling)
	l.telling = slices.Compact(l.telling)
	return l
}

// turns reports whether a word turns a meaning round.
func turns(word string) bool {
	switch strings.ReplaceAll(word, "’", "'") {
	case "not", "no", "never", "without", "cannot", "can't", "don't", "doesn't", "didn't", "won't", "isn't", "aren't",
		"wasn't", "nicht", "kein", "keine":
		return true
	}
	return false
}

func (l likeness) same(other likeness) bool {
	if len(l.pairs) == 0 || len(other.pairs) == 0 {
		return false
	}
	return slices.Equal(l.telling, other.telling) && similar.Dice(l.pairs, other.pairs) >= nearDuplicate
}

// sameAsAny reports which of several contents says the same; -1 if none does.
func (l likeness) sameAsAny(others []likeness) int {
	return slices.IndexFunc(others, l.same)
}
