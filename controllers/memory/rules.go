package memory

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"reconcile.dev/reconcile/schemas"
)

// ruleSet decides from the words of a sentence whether it is worth remembering, and in which category. It is a set of
// rules, not a parser: it is tuned so that the selected sentences are seldom chatter, and it misses other phrasings,
// and other languages than English, unless they are under a heading of a summary.
type ruleSet struct {
	tone
	choices
	breaks
	changes
	facts
	wishes
}

var rules = sync.OnceValue(func() *ruleSet {
	return &ruleSet{newTone(), newChoices(), newBreaks(), newChanges(), newFacts(), newWishes()}
})

// labelNames are words before a colon that name the category of the text behind it.
var labelNames = map[string]string{
	schemas.CategoryDecision: "decision|decided|choice|resolution|key decision|chose",
	schemas.CategoryError: "error|bug|root cause|cause|problem|issue|fix|the fix|the problem|failure|the bug|" +
		"the cause",
	schemas.CategoryKeyFact: "note|important|fact|gotcha|caveat|constraint|convention|warning|key fact|watch out|" +
		"heads up|nb|reminder|careful|beware|remember|learned|finding|lesson|key finding|invariant",
	schemas.CategoryCodeChange: "code change|changed|created|modified|added|deleted|removed|renamed|updated",
	schemas.CategorySummary:    "summary",
}

var labels = sync.OnceValue(func() map[string]string { return byName(labelNames) })

// shortest and longest bound the words of a sentence that the rules take.
const (
	shortest = 4
	longest  = 90
)

// category is what a sentence of an agent is worth remembering as; "" for nothing.
func (r *ruleSet) category(s sentence) string {
	if category, _ := learnLabel(s.text); category != "" && !s.isQuestion() && !r.doubts.in(s.words) {
		return category
	}
	if r.reportsFailure(s) {
		return schemas.CategoryError
	}
	w := r.body(s.words)
	if len(w) < shortest || len(w) > longest || s.isQuestion() || isCode(s.text) {
		return ""
	}
	switch {
	case r.isDecision(w):
		return schemas.CategoryDecision
	case r.plans.begin(w) || r.doubts.in(w):
		return ""
	case r.known.begin(w):
		return schemas.CategoryKeyFact
	case r.isError(s, w):
		return schemas.CategoryError
	case r.isChange(s, w):
		return schemas.CategoryCodeChange
	case r.isFact(s, w):
		return schemas.CategoryKeyFact
	}
	return ""
}

// body is a sentence without the words at its beginning that say nothing.
func (r *ruleSet) body(words []string) []string {
	for range 3 {
		if len(words) < 2 || !r.openers.begin(words) || r.plans.begin(words) {
			break
		}
		words = words[r.openers.at(words, 0):]
	}
	return words
}

// isDecision: a phrase of deciding, not conditional and not negated; or a choice together with the rejected
// option.
func (r *ruleSet) isDecision(w []string) bool {
	if r.undecided.in(w) {
		return false
	}
	for i := r.decided.find(w, 0); i >= 0; i = r.decided.find(w, i+1) {
		if !r.unless.before(w, i, 4) && !r.not.before(w, i, 2) {
			return true
		}
	}
	if !r.contrast.in(w) || r.plans.begin(w) || r.doubts.in(w) {
		return false
	}
	i := r.usage.find(w, 0)
	told := i == 0 || i > 0 && i <= 3 && r.subject.before(w, i, 2)
	return told && r.weighed.find(w, i) > i && !r.not.before(w, i, 2)
}

// isError: a phrase of something that broke; or a weaker word of it, together with a reason or a thing that is named.
func (r *ruleSet) isError(s sentence, w []string) bool {
	if r.added.begin(w) || r.conditional.begin(w) {
		return false
	}
	for i := r.broke.find(w, 0); i >= 0; i = r.broke.find(w, i+1) {
		if !r.not.before(w, i, 3) && !r.unless.before(w, i, 2) {
			return true
		}
	}
	i := r.wrong.find(w, 0)
	if i < 0 || r.not.before(w, i, 3) || r.nothingWrong.in(w) || r.unless.before(w, i, 2) {
		return false
	}
	return r.reason.in(w) && (s.specific() > 0 || i <= 3)
}

// exception matches the name of one, as programs print it, and what begins a trace.
var exception = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[\s:(\x60])(?:\w+\.)*[A-Z]\w*(?:Error|Exception)\b`)
})

// trace matches the begin of what a program prints when it fails.
var trace = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:Traceback\b|panic: \S|Exception in thread "|(?:PHP )?Fatal error: +\S|` +
		`(?:Unhandled exception:|Uncaught) \S|(?:\w+\.)*[A-Z]\w*(?:Error|Exception): \S)`)
})

// reportsFailure: the output of a failed program; or a word of failing, with output or the name of an exception, not
// negated and not conditional.
func (r *ruleSet) reportsFailure(s sentence) bool {
	if s.isQuestion() {
		return false
	}
	if trace().MatchString(s.text) {
		return true
	}
	w := r.body(s.words)
	if r.added.begin(w) || r.conditional.begin(w) || r.plans.begin(w) || r.doubts.in(w) {
		return false
	}
	i := r.failing.find(w, 0)
	if i < 0 || r.not.before(w, i, 3) || r.unless.before(w, i, 3) {
		return false
	}
	return strings.Contains(strings.ToLower(s.text), w[i]+": ") || exception().MatchString(s.text)
}

// isChange: a verb of change at the beginning, or a thing that was changed, together with a thing that is named.
func (r *ruleSet) isChange(s sentence, w []string) bool {
	i := r.changed.find(w, 0)
	if i < 0 || s.specific() == 0 || r.not.before(w, i, 2) || r.unless.before(w, i, 3) {
		return false
	}
	active := i == 0 || i <= 2 && r.subject.before(w, i, 2) || w[i] == "now"
	return active || i <= 8 && r.passive.before(w, i, 2)
}

// isFact: a phrase that states how things are; or a weaker one, together with a thing that is named.
func (r *ruleSet) isFact(s sentence, w []string) bool {
	if i := r.known.find(w, 0); i >= 0 && !r.unless.before(w, i, 2) {
		return true
	}
	if r.placed.in(w) && s.specific() > 0 {
		return true
	}
	i := r.weakly.find(w, 0)
	return i >= 0 && w[0] != "i" && w[0] != "you" && s.specific() >= 2 && len(w) >= 6
}

// userCategory returns the category of a sentence of a user: users mostly ask for things, so that only statements
// of decisions or rules count.
func (r *ruleSet) userCategory(s sentence) string {
	if category, _ := learnLabel(s.text); category != "" && !s.isQuestion() {
		return category
	}
	w := r.body(s.words)
	if len(w) < shortest || len(w) > longest || s.isQuestion() || isCode(s.text) || r.doubts.in(w) {
		return ""
	}
	i := r.byUser.find(w, 0)
	switch {
	case r.idle.begin(w):
		return ""
	case i >= 0 && (i <= 3 || w[i] == "we") && !r.unless.before(w, i, 1):
		return schemas.CategoryDecision
	case r.orders.begin(w) && r.contrast.find(w, 2) > 0:
		return schemas.CategoryDecision
	case r.ruled.begin(w) || r.ruled.find(w, 0) > 0 && r.ruled.find(w, 0) <= 4 && !r.orders.begin(w):
		return schemas.CategoryKeyFact
	}
	return ""
}

// phrases is a set of phrases, by their first words.
type phrases map[string][][]string

// phrasesOf parses phrases separated by |. As a word, * matches any one word.
func phrasesOf(list string) phrases {
	out := phrases{}
	for phrase := range strings.SplitSeq(list, "|") {
		words := strings.Fields(phrase)
		out[words[0]] = append(out[words[0]], words)
	}
	return out
}

// at returns how many words of words[i:] are a phrase of the set, the most of them; 0 if they begin with none.
func (p phrases) at(words []string, i int) int {
	longest := 0
	for _, phrase := range p[words[i]] {
		if len(phrase) > longest && len(phrase) <= len(words)-i && keywordMatches(phrase, words[i:]) {
			longest = len(phrase)
		}
	}
	return longest
}

// find returns the index of the first phrase of the set in words, from from on; -1 without one.
func (p phrases) find(words []string, from int) int {
	for i := max(from, 0); i < len(words); i++ {
		if p.at(words, i) > 0 {
			return i
		}
	}
	return -1
}

func (p phrases) in(words []string) bool { return p.find(words, 0) >= 0 }

func (p phrases) begin(words []string) bool { return len(words) > 0 && p.at(words, 0) > 0 }

// before reports whether one of a set of single words stands among the n words before words[i].
func (p phrases) before(words []string, i, n int) bool {
	return slices.ContainsFunc(words[max(0, i-n):i], func(w string) bool { return p[w] != nil })
}

// refersBack reports whether a sentence says nothing without the one before it.
func refersBack(s sentence) bool {
	if len(s.words) < 2 {
		return false
	}
	switch s.words[0] {
	case "it", "this", "that", "they", "these", "those", "otherwise", "because", "both":
		return s.words[1] != "turns"
	case "the":
		switch s.words[1] {
		case "fix", "solution", "reason", "cause", "workaround", "same":
			return true
		}
	}
	return false
}
