package secrets

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
func (s *scanner) pairValues(end int) (v pairValues) {
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

// isGap is what may stand between operator and value.
func isGap(c byte) bool {
	return isSpace(c) || c == '`' || c == '\'' || c == '"' || c == '=' || c == '\\'
}

// addValues adds the words that begin at to, or at an equals sign before it that belongs to the value.
func (s *scanner) addValues(v *pairValues, from, to int) {
	for at := to; at >= from && v.n < len(v.list); at-- {
		if at < to && s.text[at] != '=' {
			break
		}
		word := span{at, s.valueEnd(at)}
		if word.end > word.start && (v.n == 0 || v.list[v.n-1] != word) {
			v.list[v.n] = word
			v.n++
		}
	}
}

// operator returns where the operator behind a name begins, if there is one.
func (s *scanner) operator(end int) (int, bool) {
	i, name := end, true // name: only what a name may be continued by was met
	gap := 0             // of what ends a name
	for ; i < len(s.text) && i-end <= 26; i++ {
		c := s.text[i]
		switch {
		case c == '=' || c == '>' || c == ':' || c == '|' || c == '?' || c == ',':
			return i, true
		case name && i-end < 20 && (isWord(c) || c == ' ' || c == '\t' || c == '.' || c == '-'):
		case isSpace(c) || c == '\'' || c == '"' || c == '\\':
			name = false
			if gap++; gap > 4 {
				return 0, false
			}
		default:
			return 0, false
		}
	}
	return 0, false
}

// valueEnd is the end of the value that begins at start: whatever follows, it ends before the next space, quote,
// semicolon or backslash.
func (s *scanner) valueEnd(start int) int {
	if s.token.start <= start && start < s.token.end {
		return s.token.end
	}
	end := start
	for end < len(s.text) && !endsValue(s.text[end]) {
		end++
	}
	s.token = span{start, end}
	return end
}

func endsValue(c byte) bool {
	return isSpace(c) || c == '"' || c == '\'' || c == '`' || c == ';' || c == '\\'
}

// longestValue bounds the values that are looked at.
const longestValue = 2048

// pair applies a rule to the values behind the name that ends before end.
func (s *scanner) pair(r *rule, end int, v *pairValues) {
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

// nameStart goes back to where the name that ends before end begins.
func (s *scanner) nameStart(end int) int {
	start := end
	for start > 0 && end-start < 64 && isNameByte(s.text[start-1]) {
		start--
	}
	return start
}

// isNameByte reports whether a byte can be part of the name of a field or variable.
func isNameByte(c byte) bool { return isWord(c) || c == '.' || c == '-' }
