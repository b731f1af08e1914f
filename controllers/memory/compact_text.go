package memory

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
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

// compactText summarizes a conversation by rules: decisions, changes, errors and facts, as bullets under the headings
// Decisions, Code Changes, Errors Encountered and Key Facts. It returns "" without any.
//
// Text that agents wrote under such headings is copied, bullet by bullet. Elsewhere a sentence is selected by its
// words, see ruleSet: questions, plans, possibilities, code, quotations and chatter are not. Sentences of users count
// only if they state a decision or a rule. Files changed by tools, and the output of failed commands, are listed unless
// a sentence describes them. Of repeated statements the best is kept. left is the number of remarks that exceeded the
// limit of the summary.
func compactText(messages []Message) (text string, left int) {
	var g remarkCollector
	for _, m := range messages {
		g.message(m)
	}
	g.files()
	g.failures()
	different := distinctRemarks(g.found)
	best := bestRemarks(different, bulletLimit)
	return formatRemark(best), len(different) - len(best)
}

// remark is something worth remembering, while it is gathered.
type remark struct {
	schemas.ObservationEntry
	place int // in the order in which they were found
	worth float64
}

// remarkCollector gathers remarks of a conversation.
type remarkCollector struct {
	found  []remark
	count  int // of all that were found
	edits  []edit
	failed []string
	user   bool // whose words are read
}

func (g *remarkCollector) message(m Message) {
	g.user = m.Role == roleUser
	switch m.Role {
	case roleEdit:
		g.edits = append(g.edits, readEdits(m.Content)...)
	case roleFailure:
		if text := whatFailed(m.Content); text != "" && !slices.Contains(g.failed, text) {
			g.failed = append(g.failed, text)
		}
	case roleUser, roleAssistant, roleSummary:
		for _, p := range passages(m.Content) {
			g.passage(p)
		}
	}
}

// add adds a remark. A remark from under a heading of a summary was selected by its author.
func (g *remarkCollector) add(category, text string, told bool) {
	text = strings.TrimSpace(text)
	if isNothing(text) || refersToMemory(text) {
		return
	}
	r := remark{schemas.ObservationEntry{Category: category, Content: cut(text, contentLimit)}, g.count, 0}
	r.worth = remarkRank(&r.ObservationEntry)
	if told {
		r.worth += 3
	}
	g.found = append(g.found, r)
	g.count++
	if len(g.found) >= 4*candidateLimit { // no more than candidateLimit will be compared
		g.found = bestRemarks(byWorth(g.found), candidateLimit)
	}
}

func (g *remarkCollector) passage(p passage) {
	switch {
	case p.section == leftOut:
	case g.user || p.section == noSection || p.section == schemas.CategorySummary:
		g.prose(p)
	case p.bullet || !introduces(p.text):
		g.add(p.section, p.text, true)
	}
}

// introduces reports whether a paragraph only introduces the text below it.
func introduces(text string) bool { return strings.HasSuffix(text, ":") }

// prose takes the sentences of a passage that the rules take, with those that belong to them; of a bullet, all that
// stands behind them.
func (g *remarkCollector) prose(p passage) {
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

func (g *remarkCollector) category(s sentence) string {
	if g.user {
		return rules().userCategory(s)
	}
	return rules().category(s)
}

// belongs reports whether a sentence goes on with the one before it, and states something.
func belongs(s sentence) bool {
	return refersBack(s) && len(s.words) >= shortest && !s.isQuestion() && !rules().doubts.in(s.words)
}

// files adds the files that were changed by tools and that no sentence mentions, several of one kind in one remark.
func (g *remarkCollector) files() {
	told := map[string]bool{}
	for _, r := range g.found {
		for word := range strings.FieldsFuncSeq(r.Content, partsPaths) {
			told[pathIn(word)] = true
		}
	}
	for _, verb := range []string{verbCreated, verbWrote, verbModified, verbDeleted} {
		for batch := range slices.Chunk(unmentioned(g.edits, verb, told), filesPerRemark) {
			g.add(schemas.CategoryCodeChange, verb+" "+strings.Join(batch, ", "), false)
		}
	}
}

const filesPerRemark = 10

// unmentioned returns the distinct paths of the edits with a verb that are not mentioned, in order.
func unmentioned(edits []edit, verb string, told map[string]bool) []string {
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

// distinctRemarks are the remarks that say different things, best first. Of those that say the same, the best is kept, with
// the anchors of all.
func distinctRemarks(all []remark) []remark {
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

// bestRemarks returns the best remarks of a list, at most that many, in the order in which they were found.
func bestRemarks(all []remark, most int) []remark {
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

// remarkRank ranks remarks when there are too many, as a sum: the category, four points apart; specificity, up to four;
// three for a reason; less for very short or long ones.
func remarkRank(e *schemas.ObservationEntry) float64 {
	s := newSentence(e.Content)
	points := float64(4*categoryRank(e.Category) + s.specific())
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

// categoryRank returns the rank of a category: decisions and errors are the hardest to reconstruct.
func categoryRank(category string) int {
	return 1 + slices.Index([]string{schemas.CategorySummary, schemas.CategoryCodeChange, schemas.CategoryKeyFact,
		schemas.CategoryError, schemas.CategoryDecision}, category)
}

// formatRemark writes remarks as a summary.
func formatRemark(all []remark) string {
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

// polish makes a content fit for storage; it returns false if nothing is left. Text that was joined from harmless
// pieces may contain a secret.
func (r *remark) polish() bool {
	r.Content = cut(secrets.Redact(r.Content), contentLimit)
	return len(r.Content) > 2 && strings.ContainsFunc(r.Content, inWord)
}

// refersToMemory reports whether a passage refers to an observation by its id: it repeats known text.
func refersToMemory(text string) bool {
	return strings.Contains(text, "obs-") && recalledID().MatchString(text)
}

// labelled adds a bullet that is not under a heading of a category: with that of its label, else the given one.
func (g *remarkCollector) labelled(text, category string) {
	label, rest := learnLabel(text)
	switch {
	case label != "":
		category, text = label, rest
	case category != "":
	case rules().reportsFailure(newSentence(text)):
		category = schemas.CategoryError
	default:
		category = schemas.CategoryKeyFact
	}
	g.add(category, text, true)
}

// failures adds the last failures, unless a remark describes them: an error that names the same test or function. They
// are worth less than a remark.
func (g *remarkCollector) failures() {
	var told strings.Builder
	for i := range g.found {
		if g.found[i].Category == schemas.CategoryError {
			told.WriteString(g.found[i].Content + "\n")
		}
	}
	for _, text := range g.failed[max(len(g.failed)-failureLimit, 0):] {
		if namesAny(told.String(), text) {
			continue
		}
		before := len(g.found)
		g.add(schemas.CategoryError, "A command failed: "+text, false)
		if len(g.found) > before {
			g.found[before].worth -= 8
		}
	}
}

// namesAny reports whether a text has one of the names in a failure: words with an underscore or a capital inside.
func namesAny(text, failure string) bool {
	words := strings.FieldsFunc(failure, func(r rune) bool {
		return r != '_' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	})
	for _, w := range words {
		named := strings.Contains(w, "_") || strings.IndexFunc(w[1:], unicode.IsUpper) >= 0 && strings.ToUpper(w) != w
		if named && w != "AssertionError" && strings.Contains(text, w) {
			return true
		}
	}
	return false
}
