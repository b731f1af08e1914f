package secrets

import "strings"

// longAddress bounds what of an address is looked at.
const longAddress = 1024

// url finds the password in scheme://user:password@host; end is behind "://".
func (s *scanner) url(end int) {
	if end < 4 || !isAlnum(s.text[end-4]) {
		return
	}
	s.lookAtAddress(end)
	s.userinfo(ruleURL, end, s.sign)
}

// lookAtAddress finds the last @ of the address that begins at start, and where the address ends. One that began in
// another is not looked at again, but near its end, which may be only where the look at the other stopped.
func (s *scanner) lookAtAddress(start int) {
	if a := s.address; a.start <= start && start+longAddress/4 < a.end {
		return
	}
	stop := start
	s.sign = -1
	for stop < len(s.text) && stop-start < longAddress && !endsAddress(s.text[stop]) {
		if s.text[stop] == '@' {
			s.sign = stop
		}
		stop++
	}
	s.address = span{start, stop}
}

// endsAddress reports whether a byte ends the part of an address with user and host. A slash does not: passwords
// contain it, also without escaping.
func endsAddress(c byte) bool {
	switch c {
	case '"', '\'', '`', '<', '>', ',', '?', '#', '\\':
		return true
	}
	return c <= ' '
}

// userinfo reports the password in user:password that ends at at, unless it is a placeholder.
func (s *scanner) userinfo(rule string, start, at int) {
	if at < start {
		return
	}
	colon := strings.IndexByte(s.text[start:at], ':')
	if colon < 0 || strings.IndexByte(s.text[start:start+colon], '/') >= 0 {
		return // the @ is in the path, as in host/@scope, or there is only a user
	}
	colon += start
	if slash := strings.IndexByte(s.text[colon:at], '/'); slash >= 0 && number16(s.text[colon+1:colon+slash]) {
		return // host:port/…@…
	}
	if password := s.text[colon+1 : at]; password != "" && !placeholder(password) {
		s.add(rule, colon+1, at)
	}
}

// number16 reports whether text can be a port.
func number16(text string) bool {
	for i := range len(text) {
		if !isDigit(text[i]) {
			return false
		}
	}
	return 0 < len(text) && len(text) <= 5
}

// dsn finds the password in user:password@tcp(host:port), the form of MySQL's driver for Go; end is behind "@tcp(".
func (s *scanner) dsn(end int) {
	at := strings.LastIndexByte(s.text[:end], '@')
	start := at
	for start > 0 && at-start < 256 && !endsAddress(s.text[start-1]) && s.text[start-1] != '=' {
		start--
	}
	s.userinfo(ruleDSN, start, at)
}

// oracle finds the password in jdbc:oracle:thin:user/password@host; end is behind "jdbc:oracle:".
func (s *scanner) oracle(end int) {
	s.lookAtAddress(end)
	if s.sign < end {
		return
	}
	if slash := strings.IndexByte(s.text[end:s.sign], '/'); slash >= 0 && end+slash+1 < s.sign {
		s.add(ruleDSN, end+slash+1, s.sign)
	}
}

// bearer finds a token behind "bearer ".
func (s *scanner) bearer(end int) {
	stop := s.tokenEnd(end)
	text := s.text[end:stop]
	if len(text) >= 12 && mixed(text) && !wordy(text) && !placeholder(text) {
		s.add(ruleHeader, end, stop)
	}
}

// authorization finds what follows "Authorization:", with the scheme before it, or without.
func (s *scanner) authorization(end int) {
	i := s.skipQuote(end)
	i = s.skipBlank(i)
	if !s.at(i, ":", "=", ",") {
		return
	}
	i = s.skipBlank(i + 1)
	i = s.skipQuote(i)
	for _, scheme := range []string{"basic ", "bearer ", "token ", "apikey ", "digest ", "negotiate ", "bot "} {
		if !s.atFold(i, scheme) {
			continue
		}
		i += len(scheme)
		stop := s.tokenEnd(i)
		if text := s.text[i:stop]; len(text) >= 6 && !placeholder(text) && !letters(text) {
			s.add(ruleHeader, i, stop)
		}
		return
	}
	if stop := s.tokenEnd(i); madeUp(s.text[i:stop]) {
		s.add(ruleHeader, i, stop)
	}
}

// tokenEnd is the end of the token of a header that begins at i.
func (s *scanner) tokenEnd(i int) int {
	for i < len(s.text) && (isWord(s.text[i]) || strings.IndexByte("-.~+/=", s.text[i]) >= 0) {
		i++
	}
	return i
}

// letters reports whether text is a word of one case, perhaps capitalized.
func letters(text string) bool {
	for i := range len(text) {
		if !isLower(text[i]) && (i > 0 || !isUpper(text[i])) {
			return false
		}
	}
	return true
}

// longDocument bounds the document of YAML that the data of a Secret is looked for in.
const longDocument = 32 << 10

// kubernetes finds the data of a Secret; end is behind "kind:".
func (s *scanner) kubernetes(end int) {
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
func (s *scanner) secretLine(from, to int, inside bool, depth int) (bool, int) {
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
