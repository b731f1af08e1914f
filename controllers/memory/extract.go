package memory

import (
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// extract turns a summary into entries: one for each bullet, of the category that its section names, with what is
// nested below it. A bullet of an unknown section is of the category that its label names ("Decision: …"), else a key
// fact. A section that names a category and has no bullet gives an entry for each paragraph. Text without any bullet
// or such section is one entry of category compaction-summary. Bullets that refer to an observation by its id are left
// out. whole says whether text without any of these counts.
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
	var g gatherer
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

// labelled takes a bullet that stands under no heading which says what it tells.
func (g *gatherer) labelled(text string) {
	if category, rest := label(text); category != "" {
		g.add(category, rest, true)
		return
	}
	if rules().tellsFailure(newSentence(text)) {
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
	var g gatherer
	text, category := strings.Join(texts, "\n"), schemas.CategorySummary
	if rules().tellsFailure(newSentence(text)) {
		category = schemas.CategoryError
	}
	g.add(category, text, true)
	return g.found
}
