package memory

import (
	"cmp"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// summarySections are the headings of a summary, in their order.
var summarySections = []struct{ category, title string }{
	{schemas.CategoryDecision, "Decisions"}, {schemas.CategoryCodeChange, "Code Changes"},
	{schemas.CategoryError, "Errors Encountered"}, {schemas.CategoryKeyFact, "Key Facts"},
	{schemas.CategorySummary, "Summary"},
}

// Bounds of a summary. Of more candidates, the best are compared with each other: that takes time by the square.
const (
	candidateLimit = 1000
	bulletLimit    = 200
)

// compact sums a conversation up by rules: what was decided, changed, found broken, and found out, as bullets under the
// headings Decisions, Code Changes, Errors Encountered and Key Facts. It is "" if nothing of the sort was said.
//
// What agents wrote under such headings themselves is taken over, bullet by bullet. Elsewhere a sentence counts by its
// words, see ruleSet: questions, plans, what may be, code, quotations and chatter do not. Of what users said, only that
// counts which they state as decided, or as a rule. Files that were changed by tools, and what commands said that failed,
// are listed unless a sentence tells of them. What is said several times is kept once, as it was said best.
// left is how many remarks were too many for the summary.
func compact(messages []Message) (text string, left int) {
	var g gatherer
	for _, m := range messages {
		g.message(m)
	}
	g.files()
	g.failures()
	different := distinct(g.found)
	best := first(different, bulletLimit)
	return format(best), len(different) - len(best)
}

// remark is something worth remembering, while it is gathered.
type remark struct {
	schemas.ObservationEntry
	place int // in the order in which they were found
	worth float64
}

// gatherer gathers remarks of a conversation.
type gatherer struct {
	found  []remark
	count  int // of all that were found
	edits  []edit
	failed []string
	user   bool // whose words are read
}

func (g *gatherer) message(m Message) {
	g.user = m.Role == RoleUser
	switch m.Role {
	case RoleEdit:
		g.edits = append(g.edits, readEdits(m.Content)...)
	case RoleFailure:
		if text := whatFailed(m.Content); text != "" && !slices.Contains(g.failed, text) {
			g.failed = append(g.failed, text)
		}
	case RoleUser, RoleAssistant, RoleSummary:
		for _, p := range passages(m.Content) {
			g.passage(p)
		}
	}
}

// add notes a remark. What was told under a heading of a summary was thought to be worth it by who told it.
func (g *gatherer) add(category, text string, told bool) {
	text = strings.TrimSpace(text)
	if isNothing(text) || tellsOfMemory(text) {
		return
	}
	r := remark{schemas.ObservationEntry{Category: category, Content: Cut(text, contentLimit)}, g.count, 0}
	r.worth = worth(&r.ObservationEntry)
	if told {
		r.worth += 3
	}
	g.found = append(g.found, r)
	g.count++
	if len(g.found) >= 4*candidateLimit { // no more than candidateLimit will be compared
		g.found = first(byWorth(g.found), candidateLimit)
	}
}

func (g *gatherer) passage(p passage) {
	switch {
	case p.section == leftOut:
	case g.user || p.section == noSection || p.section == schemas.CategorySummary:
		g.prose(p)
	case p.bullet || !introduces(p.text):
		g.add(p.section, p.text, true)
	}
}

// introduces reports whether a paragraph only leads over to what stands below it.
func introduces(text string) bool { return strings.HasSuffix(text, ":") }

// isNothing reports whether a text says that there is nothing to tell.
func isNothing(text string) bool {
	switch strings.ToLower(strings.Trim(text, "()[]*_. ")) {
	case "", "none", "n/a", "nothing", "no", "no errors", "no changes", "no decisions", "none so far", "nothing yet":
		return true
	}
	return false
}

// prose takes the sentences of a passage that the rules take, with those that belong to them; of a bullet, all that
// stands behind them.
func (g *gatherer) prose(p passage) {
	all := sentences(p.text)
	for i := 0; i < len(all); i++ {
		category := g.category(all[i])
		if category == "" {
			continue
		}
		text := all[i].text
		if i > 0 && refersBack(all[i]) && !all[i-1].isQuestion() && !rules().plans.begin(all[i-1].words) {
			text = all[i-1].text + " " + text
		}
		for i+1 < len(all) && (p.bullet || belongs(all[i+1])) && len(text)+len(all[i+1].text) < explanationLimit {
			i++
			text += " " + all[i].text
		}
		g.add(category, text, false)
	}
}

// explanationLimit bounds a sentence with those that belong to it, in bytes.
const explanationLimit = 600

func (g *gatherer) category(s sentence) string {
	if g.user {
		return rules().userCategory(s)
	}
	return rules().category(s)
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

// belongs reports whether a sentence goes on with the one before it, and states something.
func belongs(s sentence) bool {
	return refersBack(s) && len(s.words) >= shortest && !s.isQuestion() && !rules().doubts.in(s.words)
}

// files adds the files that were changed by tools and that no sentence tells of, several of a sort in one remark.
func (g *gatherer) files() {
	told := map[string]bool{}
	for _, r := range g.found {
		for word := range strings.FieldsFuncSeq(r.Content, partsPaths) {
			told[pathIn(word)] = true
		}
	}
	for _, verb := range []string{verbCreated, verbWrote, verbModified, verbDeleted} {
		for batch := range slices.Chunk(untold(g.edits, verb, told), filesPerRemark) {
			g.add(schemas.CategoryCodeChange, verb+" "+strings.Join(batch, ", "), false)
		}
	}
}

const filesPerRemark = 10

// untold are the different paths of the edits with a verb that are not told of, in their order.
func untold(edits []edit, verb string, told map[string]bool) []string {
	var out []string
	seen := map[string]bool{}
	for _, e := range edits {
		if e.verb == verb && !seen[e.path] && !told[e.path] {
			seen[e.path] = true
			out = append(out, e.path)
		}
	}
	return out
}

// distinct are the remarks that say different things, best first. Of those that say the same, the best is kept, with
// the anchors of all.
func distinct(all []remark) []remark {
	var kept []remark
	var known []likeness
	for _, r := range byWorth(all)[:min(len(all), candidateLimit)] {
		l := newLikeness(r.Content)
		if i := l.sameAsAny(known); i >= 0 {
			kept[i].join(r)
			continue
		}
		kept, known = append(kept, r), append(known, l)
	}
	return kept
}

// byWorth are remarks sorted, the best first; of equals the later one.
func byWorth(all []remark) []remark {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b remark) int {
		return cmp.Or(cmp.Compare(b.worth, a.worth), cmp.Compare(b.place, a.place))
	})
	return all
}

// first are the first remarks of a list, at most so many, in the order in which they were found.
func first(all []remark, most int) []remark {
	all = slices.Clone(all[:min(len(all), most)])
	slices.SortFunc(all, func(a, b remark) int { return cmp.Compare(a.place, b.place) })
	return all
}

// join takes over the anchors of a remark that says the same.
func (r *remark) join(other remark) {
	for _, a := range other.Anchors {
		if !slices.Contains(r.Anchors, a) && len(r.Anchors) < anchorLimit {
			r.Anchors = append(r.Anchors, a)
		}
	}
	slices.Sort(r.Anchors)
}

// worth says what is kept when there is too much, as a sum: the category, four points apart; how specific it is, up to
// four; three for a reason; less for what is very short or long.
func worth(e *schemas.ObservationEntry) float64 {
	s := newSentence(e.Content)
	points := float64(4*categoryWorth(e.Category) + s.specific())
	if rules().reason.in(s.words) {
		points += 3
	}
	switch n := len(s.words); {
	case n < 6:
		points -= 3
	case n > 120:
		points -= 2
	}
	return points
}

// categoryWorth is what a category is worth: what was decided, and what went wrong, is the hardest to find out again.
func categoryWorth(category string) int {
	return 1 + slices.Index([]string{schemas.CategorySummary, schemas.CategoryCodeChange, schemas.CategoryKeyFact,
		schemas.CategoryError, schemas.CategoryDecision}, category)
}

// format writes remarks as a summary.
func format(all []remark) string {
	var b strings.Builder
	for _, section := range summarySections {
		begun := false
		for _, r := range all {
			if r.Category != section.category {
				continue
			}
			if !begun {
				b.WriteString("## " + section.title + "\n\n")
				begun = true
			}
			b.WriteString("- " + r.Content + "\n")
		}
		if begun {
			b.WriteString("\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
