package memory

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"reconcile.dev/reconcile/controllers/tokens"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
)

// EntryLimit is how many entries a capture has at most (agentx-spec, memory pipeline 3.4).
const EntryLimit = 50

// Source is the input of Learn: a text, or a conversation if it has messages.
type Source struct {
	Agent    string
	Issue    int
	Session  string
	At       time.Time
	Text     string
	Messages []Message
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
	// Entries are at most EntryLimit, in the order of the text, without secrets or private text.
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
// it. Of more than EntryLimit entries the best are kept. An empty result is valid.
func Learn(s Source) Learned {
	c := clean(s)
	text, left := c.text, 0
	if len(c.messages) > 0 {
		text, left = compact(c.messages)
	}
	l := s.finish(c, extract(text, true))
	return l.missing(left)
}

// LearnRun learns entries from the output of an agent's run: the messages of a conversation, a JSON value with texts in
// it, or text. The steps are those of [Learn]. What says no more than that the work is done, or what tests printed,
// teaches nothing: there only sections, bullets of known sections, and sentences that the rules take count.
func LearnRun(s Source) Learned {
	if len(s.Messages) == 0 {
		s.Messages = outputMessages(s.Text)
		s.Text = ""
	}
	c := clean(s)
	text, left := compact(c.messages)
	l := s.finish(c, extract(text, false))
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

func clean(s Source) cleaned {
	var c cleaned
	c.text = c.take(s.Text)
	for _, m := range withoutPrivate(s.Messages) {
		if m.Role == RoleEdit {
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

// located makes the paths of edits relative to the root, if they exist there. Other absolute paths are not files of the
// project: they are left out.
func (s *Source) located(content string) string {
	var out []edit
	for _, e := range readEdits(content) {
		if s.Exists != nil {
			if p := s.existing(e.path); p != "" {
				e.path = p
			}
		}
		if s.ofProject(e.path) {
			out = append(out, e)
		}
	}
	return editLines(out)
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
	different := distinct(ready)
	best := bestRemarks(different, EntryLimit)
	l := Learned{SourceTokens: c.tokens, Found: len(different), Dropped: len(different) - len(best)}
	for i := range best {
		l.Entries = append(l.Entries, s.entry(best[i].ObservationEntry))
	}
	return l
}

// polish makes a content fit for storage; it returns false if nothing is left. Text that was joined from harmless
// pieces may contain a secret.
func (r *remark) polish() bool {
	r.Content = Cut(secrets.Redact(r.Content), contentLimit)
	return len(r.Content) > 2 && strings.ContainsFunc(r.Content, inWord)
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

func (s *Source) digest(file string) string {
	if s.Digest == nil {
		return ""
	}
	return s.Digest(file)
}

// quoted begins the lines of a recall, as of all quoted input of agents (see agentio).
const quoted = "|"

// withoutRecalled removes recalled memory from a text, so that it is not captured again: sections named Memory Recall
// up to the next heading, and lines that begin with "|". recalled are the contents in them.
func withoutRecalled(text string) (rest string, recalled []string) {
	if !strings.Contains(text, quoted) && !strings.Contains(strings.ToLower(text), "memory recall") {
		return text, nil
	}
	var kept, told strings.Builder
	recall, saidQuotes := false, false
	for line := range strings.SplitAfterSeq(text, "\n") {
		body := strings.TrimSpace(line)
		said, isQuoted := strings.CutPrefix(body, quoted)
		if title, level := headingOf(body); level > 0 {
			recall, saidQuotes = strings.EqualFold(strings.Trim(title, "*: "), "memory recall"), false
		} else if recall && saidQuotes && !isQuoted && body != "" {
			recall = false // behind the quoted lines the section is over
		}
		switch {
		case isQuoted:
			told.WriteString(strings.TrimSpace(said) + "\n")
			saidQuotes = true
		case recall:
			told.WriteString(strings.TrimLeft(body, "-*+ ") + "\n\n")
		default:
			kept.WriteString(line)
		}
	}
	return kept.String(), contents(told.String())
}

// contents returns the notes of a recall: they are separated by blank lines, and by the lines that begin with a
// category.
func contents(told string) []string {
	var out, lines []string
	end := func() {
		if text := strings.TrimSpace(strings.Join(lines, " ")); text != "" {
			out = append(out, text)
		}
		lines = nil
	}
	for line := range strings.SplitSeq(told, "\n") {
		switch {
		case line == "" || heads(line):
			end()
		default:
			lines = append(lines, line)
		}
	}
	end()
	return out
}

// heads reports whether a line is the one above a note: it begins with a category in brackets.
func heads(line string) bool {
	category, _, found := strings.Cut(strings.TrimPrefix(line, "["), "]")
	return found && strings.HasPrefix(line, "[") && slices.Contains(schemas.Categories(), category)
}

var recalledID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bobs-[a-z0-9._-]+-[0-9]{6,15}-[0-9a-z]{6}\b`)
})

// refersToMemory reports whether a passage refers to an observation by its id: it repeats known text.
func refersToMemory(text string) bool {
	return strings.Contains(text, "obs-") && recalledID().MatchString(text)
}
