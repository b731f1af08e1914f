package memory

import (
	"strings"
	"sync"
	"unicode"

	"reconcile.dev/reconcile/schemas"
)

// passage is a bullet, with its nested ones, or a paragraph of a text, with its section.
type passage struct {
	section string // a category, or noSection or leftOut
	text    string
	bullet  bool
}

// Sections without a category.
const (
	noSection = ""
	leftOut   = "-" // plans, questions, prompts: not knowledge
)

// sectionNames are the headings of summaries by category.
var sectionNames = map[string]string{
	schemas.CategoryDecision: "decisions|decision|key decisions|decisions made|main decisions|important decisions|" +
		"design decisions|technical decisions|architecture decisions|architectural decisions|decision log|" +
		"design choices|key design choices|choices|choices made|entscheidungen|décisions|decisiones|决策|決定|решения",
	schemas.CategoryCodeChange: "code changes|code change|changes|changes made|key changes|summary of changes|" +
		"what changed|what i changed|what was changed|what was done|file changes|files changed|changed files|" +
		"files modified|modified files|files created|new files|files touched|files and code sections|" +
		"implementation|änderungen|modifications|cambios|代码更改|変更|изменения",
	schemas.CategoryError: "errors encountered|errors|error|errors and fixes|errors & fixes|error log|bugs|" +
		"bugs found|bugs fixed|bug fixes|fixes|problems|problems encountered|problems solved|problem solving|" +
		"issues|issues found|issues encountered|issues fixed|failures|root cause|fehler|erreurs|errores|错误|エラー|" +
		"ошибки",
	schemas.CategoryKeyFact: "key facts|key fact|facts|important facts|findings|key findings|learnings|" +
		"key learnings|lessons learned|lessons|notes|important notes|constraints|discoveries|insights|" +
		"key insights|gotchas|caveats|conventions|takeaways|key takeaways|things to know|good to know|" +
		"key technical concepts|key concepts|environment|fakten|faits|hechos|关键事实|事実|факты",
	schemas.CategorySummary: "summary|compaction summary|conversation summary|session summary|overview|tl;dr|tldr|" +
		"in short|zusammenfassung|résumé|resumen|总结|まとめ|итоги",
	leftOut: "next steps|next step|optional next step|todo|todos|to do|plan|the plan|pending tasks|remaining work|" +
		"remaining tasks|open questions|questions|memory recall|current work|all user messages|user messages|" +
		"primary request and intent|test plan|how to test|checklist|usage|example|examples|follow ups|follow-ups",
}

var sections = sync.OnceValue(func() map[string]string { return byName(sectionNames) })

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

// sectionOf is the section that a heading opens; false if it names none.
func sectionOf(title string) (string, bool) {
	if len(title) > 60 {
		return noSection, false
	}
	title = strings.TrimFunc(title, func(r rune) bool {
		return !unicode.IsLetter(r) // numbers, colons, pictures, marks of emphasis
	})
	section, found := sections()[strings.ToLower(title)]
	return section, found
}

// passages splits a text into passages. A section extends to the next heading of the same or a higher level, or one
// that names another section. Boxes that are not ticked are plans.
func passages(text string) []passage {
	w := walker{}
	all := blocks(text)
	for i, b := range all {
		switch {
		case b.kind == kindHeading:
			w.heading(b)
		case b.kind == kindBullet:
			w.bullet(b, i+1 < len(all) && all[i+1].kind == kindBullet && all[i+1].level > b.level)
		default:
			w.paragraph(b)
		}
	}
	w.flush()
	return w.out
}

// walker gathers passages.
type walker struct {
	out     []passage
	section string
	level   int // of the heading that opened the section

	group   block    // the bullet under way
	nested  []string // the bullets below it
	grouped bool
	marker  *marker
}

// marker is a bullet that opens a section for those nested below it: "- **Decisions**".
type marker struct {
	column, level int
	section       string
} // and what holds again behind it

func (w *walker) heading(b block) {
	w.flush()
	w.unmark(-1)
	section, named := sectionOf(b.text)
	switch {
	case named:
		w.section, w.level = section, b.level
	case w.level == 0 || b.level <= w.level:
		w.section, w.level = noSection, 0
	}
}

func (w *walker) paragraph(b block) {
	w.flush()
	w.unmark(-1)
	if section, named := sectionOf(b.text); named && strings.HasSuffix(b.text, ":") {
		w.section, w.level = section, boldLevel
		return
	}
	w.out = append(w.out, passage{section: w.section, text: b.text})
}

func (w *walker) bullet(b block, parent bool) {
	if w.grouped && b.level > w.group.level {
		if !b.open && !w.group.open {
			w.nested = append(w.nested, b.text)
		}
		return
	}
	w.flush()
	w.unmark(b.level)
	if section, named := sectionOf(b.text); named && parent {
		w.marker = &marker{b.level, w.level, w.section}
		w.section = section
		return
	}
	w.group, w.grouped = b, true
}

// unmark ends the section that a bullet opened, at a line that is not nested below it.
func (w *walker) unmark(column int) {
	if w.marker != nil && column <= w.marker.column {
		w.section, w.level, w.marker = w.marker.section, w.marker.level, nil
	}
}

func (w *walker) flush() {
	if w.grouped && !w.group.open {
		w.out = append(w.out, passage{section: w.section, text: joined(w.group.text, w.nested), bullet: true})
	}
	w.grouped, w.nested = false, nil
}

// joined is a bullet with those nested below it, on one line.
func joined(parent string, nested []string) string {
	if len(nested) == 0 {
		return parent
	}
	for i, text := range nested {
		nested[i] = strings.TrimRight(text, ".;, ")
	}
	return strings.TrimRight(parent, ".:; ") + ": " + strings.Join(nested, "; ")
}

// extract turns a summary into entries: one for each bullet, of the category of its section, with the bullets nested
// below it. A bullet of an unknown section has the category of its label ("Decision: …"), else it is a key fact. A
// section of a category without bullets gives an entry for each paragraph. Text without any bullet or such section is
// one entry of category compaction-summary. Bullets that refer to an observation by its id are left out. whole says
// whether text without any of these counts.
func extract(summary string, whole bool) []remark {
	all := passages(summary)
	bullets := map[string]bool{}
	structured := false
	for _, p := range all {
		bullets[p.section] = bullets[p.section] || p.bullet
		structured = structured || p.bullet || p.section != noSection && p.section != leftOut
	}
	if !structured {
		return wholeText(all, whole)
	}
	var g collector
	for _, p := range all {
		switch {
		case p.section == leftOut:
		case p.bullet && (p.section == noSection || p.section == schemas.CategorySummary):
			g.labelled(p.text)
		case p.bullet:
			g.add(p.section, p.text, true)
		case p.section != noSection && !bullets[p.section] && !introduces(p.text):
			g.add(p.section, p.text, true)
		}
	}
	return g.found
}

// labelled adds a bullet that is not under a heading of a category.
func (g *collector) labelled(text string) {
	if category, rest := label(text); category != "" {
		g.add(category, rest, true)
		return
	}
	if rules().reportsFailure(newSentence(text)) {
		g.add(schemas.CategoryError, text, true)
		return
	}
	g.add(schemas.CategoryKeyFact, text, true)
}

func wholeText(all []passage, whole bool) []remark {
	if !whole {
		return nil
	}
	var texts []string
	for _, p := range all {
		if p.section != leftOut {
			texts = append(texts, p.text)
		}
	}
	var g collector
	text, category := strings.Join(texts, "\n"), schemas.CategorySummary
	if rules().reportsFailure(newSentence(text)) {
		category = schemas.CategoryError
	}
	g.add(category, text, true)
	return g.found
}
