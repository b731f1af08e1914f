package secrets

import (
	"strings"
)

// A pair is what one function of gitleaks makes a regular expression for in most of its rules:
//
//	[\w.-]{0,50}? NAME [ \t\w.-]{0,20} [\s'"]{0,3} OPERATOR [`'"\s=]{0,5} (VALUE) ([`'"\s;] | \\[nr] | $)
//
// Nine in ten names in ordinary text are followed by no operator, which is seen at once; only the value is left to a
// regular expression. Beyond the original, a backslash counts as a quote, so that JSON in JSON is understood.

// pairValues are the words that may be a pair's value.
type pairValues struct {
	list [8]span
	n    int
}

// operators, the longer ones of those that begin alike after the shorter ones.
var operators = [...]string{"=", ">", ":::=", "::=", ":=", "||", ":", "=>", "?=", ","}

// pairValues looks for values behind the name that ends before end.
func (s *secretScanner) pairValues(end int) (v pairValues) {
	op, ok := s.operator(end)
	if !ok {
		return v
	}
	rest := s.text[op:]
	for _, o := range operators {
		if len(rest) < len(o) || rest[:len(o)] != o {
			continue
		}
		from := op + len(o)
		to := from
		for to < len(s.text) && to-from < 8 && isGap(s.text[to]) {
			to++
		}
		s.addValues(&v, from, to)
	}
	return v
}

// longestValue bounds the values that are looked at.
const longestValue = 2048

// pair applies a rule to the values behind the name that ends before end.
func (s *secretScanner) pair(r *rule, end int, v *pairValues) {
	if !s.free(r, end) {
		return
	}
	for _, value := range v.list[:v.n] {
		n := value.end - value.start
		if n < r.shortest || r.longest > 0 && n > r.longest || n > longestValue {
			continue
		}
		text := s.text[value.start:value.end]
		if !r.pattern().MatchString(text) {
			continue
		}
		match := span{s.nameStart(end), min(value.end+1, len(s.text))}
		s.take(r, match.end)
		if r.id == genericRule && plain(s.text[match.start:value.start], text) {
			return
		}
		s.report(r, value, match)
		return
	}
}

// kubernetes finds the data of a Secret; end is behind "kind:".
func (s *secretScanner) kubernetes(end int) {
	if end <= s.secretData {
		return // of the same document
	}
	i := s.skipQuote(s.skipBlank(end))
	if !s.atFold(i, "secret") || len(s.text) > i+6 && isWord(s.text[i+6]) {
		return
	}
	from := max(end-longDocument, 0)
	if j := strings.LastIndex(s.text[from:end], "\n---"); j >= 0 {
		from += j
	}
	to := min(end+longDocument, len(s.text))
	if j := strings.Index(s.text[end:to], "\n---"); j >= 0 {
		to = end + j
	}
	s.secretData = to
	inside, depth := false, 0
	for from < to {
		next := to
		if j := strings.IndexByte(s.text[from:to], '\n'); j >= 0 {
			next = from + j + 1
		}
		inside, depth = s.secretLine(from, next, inside, depth)
		from = next
	}
}

// secretLine reads a line of a Secret; inside means that it may be part of the data, whose head is depth spaces in.
func (s *secretScanner) secretLine(from, to int, inside bool, depth int) (bool, int) {
	line := strings.TrimRight(s.text[from:to], " \t\r\n")
	text := strings.TrimLeft(line, " \t")
	indent := len(line) - len(text)
	switch {
	case text == "data:" || text == "stringData:":
		return true, indent
	case text == "":
		return inside, depth
	case !inside || indent <= depth:
		return false, depth
	}
	start := from + indent
	if name, rest, ok := strings.Cut(text, ":"); ok && !strings.ContainsAny(name, " \t") {
		start = from + len(line) - len(strings.TrimLeft(rest, ` "'`))
	}
	stop := from + len(strings.TrimRight(line, `"'`))
	if stop-start > 2 && !placeholder(s.text[start:stop]) {
		s.add(ruleKubernetes, start, stop)
	}
	return true, depth
}

// element is the text up to the next "<".
func (s *secretScanner) element(from int) span {
	end := from
	for end < len(s.text) && end-from < longToken && s.text[end] != '<' && s.text[end] != '\n' {
		end++
	}
	return span{from, end}
}
