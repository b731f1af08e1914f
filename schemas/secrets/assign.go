package secrets

import "strings"

// password finds the value that is assigned to a name like password, pwd or DB_PASS, however simple: a weak password is
// also a secret. It skips other text: names of variables and calls in code, references to a secret that is stored
// elsewhere, types, and words that continue a sentence after "password:".
func (s *secretScanner) password(end int) {
	if end <= s.covered {
		return
	}
	n := s.nameAt(end)
	if !n.isPassword() {
		return
	}
	if v, ok := s.assigned(n); ok && !s.isReference(n, v) {
		s.addValue(rulePassword, v)
	}
}

// assignment finds the value that is assigned to a name like api_key, secret or token, if it looks like a secret:
// many such values are numbers, names or identifiers.
func (s *secretScanner) assignment(end int) {
	if end <= s.covered {
		return
	}
	n := s.nameAt(end)
	if !n.isSecret() {
		return
	}
	v, ok := s.assigned(n)
	if !ok || s.isReference(n, v) {
		return
	}
	text := s.text[v.start:v.end]
	names := strings.ContainsAny(text, "-./: ") && wordy(text) || strings.EqualFold(text, n.lastWord)
	if madeUp(text) || n.lastWord == "secret" && (v.quoted || n.shouts()) && !names {
		s.addValue(ruleAssignment, v)
	}
}

// addValue reports a value, and the rest of it where it is so long that only its beginning was looked at.
func (s *secretScanner) addValue(rule string, v value) {
	if v.end-v.start >= longToken {
		for v.end < len(s.text) && !endsValue(s.text[v.end]) {
			v.end++
		}
	}
	s.covered = v.end
	s.add(rule, v.start, v.end)
}

// value is an assigned value.
type value struct {
	span
	op     string
	quoted bool
	spaced bool // spaces stand between operator and value
}

// assigned finds the value that is assigned to a name.
func (s *secretScanner) assigned(n name) (value, bool) {
	i := s.skipQuote(n.end)
	quotedName := i > n.end
	i = s.skipBlank(i)
	op, at := s.assignOperator(i, n, quotedName)
	if op == "" {
		return value{}, false
	}
	if op == ":" {
		at = s.skipType(at)
	}
	from := s.skipBlank(at)
	if !quotedName && n.start > 0 && from < len(s.text) && endsValue(s.text[from]) && s.text[from] == s.text[n.start-1] {
		return value{}, false // the end of a quotation: "password:"
	}
	v := value{op: op, spaced: from > at}
	switch v.span, v.quoted = s.quoted(from); {
	case v.quoted:
	case op == "(" || op == "," || op == "'" || op == "==" || op == "!=":
		return value{}, false // only a literal is a value there
	case op == ">":
		v.span = s.element(from)
	case op == ":" && s.at(from, "|", ">"):
		v.span = s.block(from)
	case from < len(s.text) && (s.text[from] == '\n' || s.text[from] == '\r'):
		next := s.skipBlank(s.skipNewline(from))
		if v.span, v.quoted = s.quoted(next); !v.quoted {
			return value{}, false
		}
	default:
		v.span = s.bare(from)
	}
	return v, v.end > v.start
}

// assignOperators, the longer before those that they begin with.
var assignOperators = []string{":::=", "::=", ":=", "==", "!=", "=>", "+=", "?=", "||=", "??=", "->", "<-", "=", ":"}

// assignOperator tells what assigns to the name that ends before i, and where it ends; "" for nothing.
func (s *secretScanner) assignOperator(i int, n name, quotedName bool) (op string, at int) {
	rest := s.text[i:min(i+4, len(s.text))]
	for _, o := range assignOperators {
		if strings.HasPrefix(rest, o) {
			return o, i + len(o)
		}
	}
	switch {
	case rest == "":
	case rest[0] == '(' && !quotedName && i == n.end: // setPassword("…")
		return "(", i + 1
	case rest[0] == ',' && quotedName && n.start > 1 && s.before(n.start, "(\"", "('", "(`"): // setenv("PASSWORD", "…")
		return ",", i + 1
	case rest[0] == '>' && s.before(n.start, "<"): // <password>…</password>
		return ">", i + 1
	case s.before(n.start, "--") && i > n.end && rest[0] != '-': // --password …
		return "--", i
	case rest[0] == '\'' && i > n.end && n.lastWord != "pass": // PASSWORD '…' of SQL
		return "'", i
	case quotedName || i > n.end || rest[0] == '\n' || rest[0] == '\r':
		return s.wordOperator(i, n, quotedName)
	}
	return "", 0
}

// wordOperator finds what assigns in words: "password is …" (see statement), value="…" after name="password", a column's type.
func (s *secretScanner) wordOperator(i int, n name, quotedName bool) (op string, at int) {
	if quotedName && s.atFold(i, "value=") {
		return "is", i + len("value=")
	}
	if op, at := s.statement(i, n, quotedName); op != "" {
		return op, at
	}
	if quotedName && s.at(i, ",") {
		if j := s.skipQuote(s.skipSpace(i + 1)); s.atFold(j, "value") { // {"name": "PASSWORD", "value": "…"}
			if j = s.skipBlank(s.skipQuote(j + len("value"))); s.at(j, ":", "=") {
				return ":", j + 1
			}
		}
	}
	// - name: DB_PASSWORD
	//   value: …
	if j := s.skipSpace(i); j > i && s.atFold(j, "value:") && strings.ContainsAny(s.text[i:j], "\n") {
		return ":", j + len("value:")
	}
	if !quotedName && s.netrc(n) {
		return "--", i
	}
	if !quotedName && i == n.end+1 {
		if j := s.purpose(i); j > 0 {
			return ":", j
		}
	}
	if !quotedName && s.atFold(i, "string =") {
		return "=", i + len("string =")
	}
	return "", 0
}

// skipBlank, skipSpace and skipNewline go over spaces and tabs, any space, one line's end.
func (s *secretScanner) skipBlank(i int) int {
	for from := i; i < len(s.text) && i-from < 80 && (s.text[i] == ' ' || s.text[i] == '\t'); {
		i++
	}
	return i
}

func (s *secretScanner) skipSpace(i int) int {
	for from := i; i < len(s.text) && i-from < 80 && isSpace(s.text[i]); {
		i++
	}
	return i
}

func (s *secretScanner) skipNewline(i int) int {
	if s.at(i, "\r\n") {
		return i + 2
	}
	return min(i+1, len(s.text))
}

// skipQuote goes over a quote with the backslashes before it, if there is one.
func (s *secretScanner) skipQuote(i int) int {
	j := i
	for j < len(s.text) && j-i < 4 && s.text[j] == '\\' {
		j++
	}
	if j < len(s.text) && (s.text[j] == '"' || s.text[j] == '\'' || s.text[j] == '`') {
		return j + 1
	}
	return i
}

// skipType goes over the type in "password: str = …" to behind the equals sign.
func (s *secretScanner) skipType(i int) int {
	j := s.skipBlank(i)
	end := j
	for end < len(s.text) && end-j < 32 && (isWord(s.text[end]) || strings.IndexByte("[]?.|", s.text[end]) >= 0) {
		end++
	}
	if k := s.skipBlank(end); end > j && k > end && s.at(k, "= ") {
		return k + 1
	}
	return i
}

// quoted is the text between the quotes at i, which may be escaped and have a letter before them, as f"…". A quote that
// does not end ends with its line.
func (s *secretScanner) quoted(i int) (span, bool) {
	for range 2 {
		if i+1 < len(s.text) && strings.IndexByte("fFrRbBuU@$L", s.text[i]) >= 0 && s.at(i+1, `"`, "'", "@\"", "$\"") {
			i++
		}
	}
	start := s.skipQuote(i)
	if start == i {
		return span{}, false
	}
	mark := s.text[i:start]
	end := start
	for end < len(s.text) && end-start < longToken && s.text[end] != '\n' && !strings.HasPrefix(s.text[end:], mark) {
		if s.text[end] == '\\' && len(mark) == 1 {
			end++
		}
		end++
	}
	end = min(end, len(s.text))
	if end == start && strings.HasPrefix(s.text[end:], mark+mark) { // """
		return s.quotedThrice(start+2*len(mark), mark)
	}
	return span{start, end}, true
}

func (s *secretScanner) quotedThrice(start int, mark string) (span, bool) {
	end := min(start+longToken, len(s.text))
	if i := strings.Index(s.text[start:end], mark+mark+mark); i >= 0 {
		end = start + i
	} else if i := strings.IndexByte(s.text[start:end], '\n'); i >= 0 {
		end = start + i
	}
	return span{start, end}, true
}

// block is the first line of a block of YAML, whose mark is at i.
func (s *secretScanner) block(i int) span {
	for limit := min(i+80, len(s.text)); i < limit && s.text[i] != '\n'; {
		i++
	}
	from := s.skipBlank(min(i+1, len(s.text)))
	end := from
	for end < len(s.text) && end-from < longToken && s.text[end] != '\n' && s.text[end] != '\r' {
		end++
	}
	return span{from, end}
}

// bare is the word at from, without what closes a list or a sentence around it.
func (s *secretScanner) bare(from int) span {
	if strings.HasPrefix(s.text[from:], markStart) {
		if end := markEnds(s.text, from); end > 0 {
			return span{from, end}
		}
	}
	end := from
	for end < len(s.text) && end-from < longToken && !isSpace(s.text[end]) && strings.IndexByte("\"'`<", s.text[end]) < 0 {
		c := s.text[end]
		if (c == '&' || c == ';' || c == ',') && s.fieldFollows(end+1) {
			break
		}
		if c == '\\' && s.at(end, `\n`, `\r`, `\"`, `\'`) {
			break
		}
		end++
	}
	for end > from && strings.IndexByte(",;)}]", s.text[end-1]) >= 0 {
		end--
	}
	return span{from, end}
}

// fieldFollows reports whether another field begins at i, as in "password=…;user=…".
func (s *secretScanner) fieldFollows(i int) bool {
	i = s.skipQuote(s.skipBlank(i))
	from := i
	for i < len(s.text) && i-from < 40 && (isNameByte(s.text[i]) || s.text[i] == ' ') {
		i++
	}
	return i > from && s.at(s.skipQuote(i), "=", ":")
}

// isGap is what may stand between operator and value.
func isGap(c byte) bool {
	return isSpace(c) || c == '`' || c == '\'' || c == '"' || c == '=' || c == '\\'
}

// operator returns where the operator behind a name begins, if there is one.
func (s *secretScanner) operator(end int) (int, bool) {
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
func (s *secretScanner) valueEnd(start int) int {
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
