// Package digest computes statistics of clarifications from the ledgers of a tree.
package digest

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Digest has statistics of the clarifications that were created in a period.
type Digest struct {
	Since schemas.Time `json:"since"` // null: from the first
	Until schemas.Time `json:"until"`
	// Total counts the clarifications; the next six, by status, sum up to it, except for unknown states.
	Total     int `json:"total"`
	Pending   int `json:"pending"`
	Answered  int `json:"answered"`
	Stale     int `json:"stale"`
	Escalated int `json:"escalated"`
	Resolved  int `json:"resolved"`
	Abandoned int `json:"abandoned"`
	// Blocking counts those whose asker could not go on without an answer.
	Blocking int `json:"blocking"`
	// EverEscalated counts those that were escalated at some time, resolved since or not.
	EverEscalated int `json:"everEscalated"`
	// Alone counts those that were resolved, were never escalated, and in which no person wrote an answer or a resolution:
	// someone who is no agent that the hub runs. What the hub writes is no one's.
	// AloneRate is their part of all that came to an end or to a human, Resolved + Escalated: 0 to 1, null where there
	// are none.
	Alone     int      `json:"resolvedWithoutHuman"`
	AloneRate *float64 `json:"resolvedWithoutHumanRate"`
	// AverageRounds is how often was asked, on the average; null where there are none.
	AverageRounds *float64 `json:"averageRounds"`
	// Answers counts the answers, and MedianAnswer is the median time from a question to its answer in seconds; null where
	// there are none.
	Answers      int      `json:"answers"`
	MedianAnswer *float64 `json:"medianAnswerSeconds"`
	// Topics, Askers and Asked are the topics, the asking and the asked agents, by count, then by name.
	Topics []Tally `json:"topics"`
	Askers []Tally `json:"askers"`
	Asked  []Tally `json:"asked"`
}

// Tally counts how often a name comes up.
type Tally struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// New computes the digest of the clarifications of all ledgers that were created at since or later. The zero time selects
// all of them, also those without a time of creation. until is the present.
func New(t *state.Tree, since, until time.Time) Digest {
	s := digestCollector{programs: programs(t), topics: topicCounts{}, askers: map[string]int{}, asked: map[string]int{}}
	s.Since, s.Until = schemas.NewTime(since), schemas.NewTime(until)
	for _, l := range t.Ledgers() {
		records := l.Records()
		for i := range records {
			if c := &records[i]; since.IsZero() || !c.Created.Before(since) {
				s.add(c)
			}
		}
	}
	return s.digest()
}

// digestCollector adds up a digest.
type digestCollector struct {
	Digest
	programs map[string]bool // agents that the hub runs, and the hub
	rounds   int
	waits    []time.Duration
	topics   topicCounts
	askers   map[string]int
	asked    map[string]int
}

func (s *digestCollector) add(c *schemas.Clarification) {
	s.Total++
	if n := s.counter(c.Status); n != nil {
		*n++
	}
	if c.Blocking {
		s.Blocking++
	}
	switch escalated := everEscalated(c); {
	case escalated:
		s.EverEscalated++
	case c.Status == schemas.ClarificationResolved && !s.helped(c):
		s.Alone++
	}
	s.rounds += askedRounds(c)
	s.waits = appendWaits(s.waits, c.Thread)
	s.topics.add(c.Topic)
	s.askers[c.From]++
	s.asked[c.To]++
}

// programs are the names under which something is said without a person.
func programs(t *state.Tree) map[string]bool {
	names := map[string]bool{clarify.Hub: true}
	for _, e := range t.Entries(schemas.AgentKind.Name) {
		if e.Object == nil {
			continue
		}
		if spec := schemas.SpecAs[*schemas.AgentSpec](e.Object); spec != nil && spec.Runner.AsCommand() != nil {
			names[e.Name] = true
		}
	}
	return names
}

// helped reports whether a person answered or resolved.
func (s *digestCollector) helped(c *schemas.Clarification) bool {
	return slices.ContainsFunc(c.Thread, func(t schemas.ClarificationTurn) bool {
		return (t.Type == schemas.TurnAnswer || t.Type == schemas.TurnResolution) && !s.programs[t.From]
	})
}

// counter returns the count of a status; nil for an unknown one.
func (s *digestCollector) counter(status string) *int {
	switch status {
	case schemas.ClarificationPending:
		return &s.Pending
	case schemas.ClarificationAnswered:
		return &s.Answered
	case schemas.ClarificationStale:
		return &s.Stale
	case schemas.ClarificationEscalated:
		return &s.Escalated
	case schemas.ClarificationResolved:
		return &s.Resolved
	case schemas.ClarificationAbandoned:
		return &s.Abandoned
	}
	return nil
}

func (s *digestCollector) digest() Digest {
	d := s.Digest
	d.AloneRate = ratio(d.Alone, d.Resolved+d.Escalated)
	d.AverageRounds = ratio(s.rounds, d.Total)
	d.Answers = len(s.waits)
	d.MedianAnswer = median(s.waits)
	d.Topics, d.Askers, d.Asked = s.topics.tallies(), tallies(s.askers), tallies(s.asked)
	return d
}

// ratio is a/b; nil for b 0.
func ratio(a, b int) *float64 {
	if b == 0 {
		return nil
	}
	r := float64(a) / float64(b)
	return &r
}

// median is the middle of the times in seconds, or of the two in the middle their mean; nil without any. It sorts them.
func median(times []time.Duration) *float64 {
	n := len(times)
	if n == 0 {
		return nil
	}
	slices.Sort(times)
	low, high := times[(n-1)/2].Seconds(), times[n/2].Seconds()
	m := low + (high-low)/2
	return &m
}

func everEscalated(c *schemas.Clarification) bool {
	return c.Status == schemas.ClarificationEscalated ||
		slices.ContainsFunc(c.Thread, func(t schemas.ClarificationTurn) bool { return t.Type == schemas.TurnEscalation })
}

// askedRounds counts the rounds in which something was asked. A resolution has a round of its own, which is none of
// them. A record that came without a thread is believed what it says.
func askedRounds(c *schemas.Clarification) int {
	n, last := 0, 0
	for _, t := range c.Thread {
		if t.Type == schemas.TurnQuestion && (n == 0 || t.Round != last) {
			n, last = n+1, t.Round
		}
	}
	if n == 0 {
		return max(c.Round, 1)
	}
	return n
}

// appendWaits appends the time from each question to the first answer after it in its round. Where clocks disagree so
// much that it would be negative, it is 0.
func appendWaits(waits []time.Duration, thread []schemas.ClarificationTurn) []time.Duration {
	var asked *schemas.ClarificationTurn
	for i := range thread {
		switch t := &thread[i]; {
		case t.Type == schemas.TurnQuestion && (asked == nil || asked.Round != t.Round):
			asked = t
		case t.Type == schemas.TurnAnswer && asked != nil && asked.Round == t.Round:
			waits = append(waits, max(t.Timestamp.Sub(asked.Timestamp.Time), 0))
			asked = nil
		}
	}
	return waits
}

// topicCounts counts topics by their words in lower case, so that case, blanks and punctuation make no difference. The
// value counts how each of them is written.
type topicCounts map[string]map[string]int

func (t topicCounts) add(topic string) {
	key := topicKey(topic)
	if t[key] == nil {
		t[key] = map[string]int{}
	}
	t[key][strings.TrimSpace(topic)]++
}

func topicKey(topic string) string {
	apart := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	words := strings.FieldsFunc(strings.ToLower(topic), apart)
	if len(words) == 0 {
		return strings.TrimSpace(topic)
	}
	return strings.Join(words, " ")
}

// tally names each topic as it is written most often.
func (t topicCounts) tallies() []Tally {
	out := make([]Tally, 0, len(t))
	for _, spellings := range t {
		sum := 0
		for _, n := range spellings {
			sum += n
		}
		out = append(out, Tally{tallies(spellings)[0].Name, sum})
	}
	slices.SortFunc(out, compareTallies)
	return out
}

func tallies(counts map[string]int) []Tally {
	out := make([]Tally, 0, len(counts))
	for name, n := range counts {
		out = append(out, Tally{name, n})
	}
	slices.SortFunc(out, compareTallies)
	return out
}

func compareTallies(a, b Tally) int {
	return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Name, b.Name))
}
