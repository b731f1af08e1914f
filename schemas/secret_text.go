package schemas

import (
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas/secrets"
)

// Codes of problems with text that must not be in a repository.
const (
	codeSecret  = "secret"
	codePrivate = "private"
)

// checkDiscreet reports a text that contains a secret or private text, without repeating it.
func checkDiscreet(at Spot, text string) {
	for _, w := range indiscretions(text) {
		at.Errorf(w.code, "%s", w.message).suggest("%s", w.hint)
	}
}

// indiscretion is why a text must not be in a repository.
type indiscretion struct{ code, message, hint string }

func indiscretions(text string) (out []indiscretion) {
	if found := secrets.Find(text); len(found) > 0 {
		out = append(out, indiscretion{codeSecret,
			"holds a secret (" + found[0].Rule + "), and memory is read by everybody who has the repository",
			"remove it, and replace it where it is used: git's history keeps what was committed"})
	}
	if len(secrets.Private(text)) > 0 {
		out = append(out, indiscretion{codePrivate,
			"holds private text, a private tag and what follows it, which must not be kept",
			"remove it; git's history keeps what was committed"})
	}
	return out
}

// withoutSecrets takes secrets and private text out of texts, and reports whether there were any.
func withoutSecrets(texts ...*string) (found bool) {
	for _, t := range texts {
		was := *t
		*t = secrets.Redact(was)
		found = found || *t != was
	}
	return found
}

// discreetMetadata reports secrets and private text in the name, the labels and the annotations of an observation.
func (s *source) discreetMetadata(metadata *value) {
	tell := func(text string, line, col int, field string) {
		for _, w := range indiscretions(text) {
			s.fail(w.code, line, col, field, "%s", w.message).hint("%s", w.hint)
		}
	}
	if name := metadata.get("name"); name != nil {
		tell(name.text, name.line, name.col, "metadata.name")
	}
	for _, field := range []string{"labels", "annotations"} {
		pairs := metadata.get(field)
		if pairs == nil {
			continue
		}
		for i := range pairs.fields { // their own names may be what must not be said
			f := &pairs.fields[i]
			tell(f.name, f.line, f.col, "metadata."+field)
			tell(f.value.text, f.value.line, f.value.col, "metadata."+field)
		}
	}
}

// Discreet takes secrets and private text out of problems of one file, whose text it is: a line of it that has any is
// not shown, and messages do not quote them. Problems about a secret are moved to where exactly it stands, if that can
// be told.
func Discreet(problems []Problem, text string) {
	if len(problems) == 0 {
		return
	}
	found := slices.Concat(secrets.Find(text), secrets.Private(text))
	lines := newLines([]byte(text))
	for i := range problems {
		p := &problems[i]
		if p.Code == codeSecret || p.Code == codePrivate {
			p.moveTo(found, lines)
		}
		p.hide(text, found)
	}
}

// moveTo sets the place to that of the first finding of the problem's code at or behind the field that it is about.
func (p *Problem) moveTo(found []secrets.Finding, lines *lines) {
	for _, f := range found {
		line, col := lines.place(f.Start)
		if (f.Rule == secrets.RulePrivate) == (p.Code == codePrivate) &&
			(line > p.Line || line == p.Line && col >= p.Column) {
			p.Line, p.Column = line, col
			return
		}
	}
}

// hide removes secrets found in the text of the problem's file from the problem.
func (p *Problem) hide(text string, found []secrets.Finding) {
	start, end := lineSpan(text, p.Line)
	if p.Code == codeSecret || p.Code == codePrivate {
		p.Source = ""
		return // the text is from this package
	}
	for _, f := range found {
		if f.Start >= end || f.End <= start || p.Line == 0 {
			continue
		}
		p.Source = ""
		for _, secret := range []string{text[f.Start:f.End], text[max(f.Start, start):min(f.End, end)]} {
			p.unsay(secret, f.Rule)
		}
	}
	p.eachText(secrets.Redact)
}

// unsay replaces a secret in a message: as a whole word in quotes, and anywhere if it is too long to occur by
// accident.
func (p *Problem) unsay(secret, rule string) {
	const chance = 4
	mark := "[redacted:" + rule + "]"
	p.eachText(func(s string) string {
		s = strings.ReplaceAll(s, `"`+secret+`"`, `"`+mark+`"`)
		if len(secret) >= chance {
			s = strings.ReplaceAll(s, secret, mark)
		}
		return s
	})
}

func texts(v *value) []string {
	if v == nil {
		return nil
	}
	out := make([]string, len(v.items))
	for i, item := range v.items {
		out[i] = item.text
	}
	return out
}
