package secrets

import "strings"

// longAddress bounds what of an address is looked at.
const longAddress = 1024

// url finds the password in scheme://user:password@host; end is behind "://".
func (s *secretScanner) url(end int) {
	if end < 4 || !isAlnum(s.text[end-4]) {
		return
	}
	s.lookAtAddress(end)
	s.userinfo(ruleURL, end, s.sign)
}

// lookAtAddress finds the last @ of the address that begins at start, and where the address ends. One that began in
// another is not looked at again, but near its end, which may be only where the look at the other stopped.
func (s *secretScanner) lookAtAddress(start int) {
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
func (s *secretScanner) userinfo(rule string, start, at int) {
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
func (s *secretScanner) dsn(end int) {
	at := strings.LastIndexByte(s.text[:end], '@')
	start := at
	for start > 0 && at-start < 256 && !endsAddress(s.text[start-1]) && s.text[start-1] != '=' {
		start--
	}
	s.userinfo(ruleDSN, start, at)
}

// oracle finds the password in jdbc:oracle:thin:user/password@host; end is behind "jdbc:oracle:".
func (s *secretScanner) oracle(end int) {
	s.lookAtAddress(end)
	if s.sign < end {
		return
	}
	if slash := strings.IndexByte(s.text[end:s.sign], '/'); slash >= 0 && end+slash+1 < s.sign {
		s.add(ruleDSN, end+slash+1, s.sign)
	}
}

// bearer finds a token behind "bearer ".
func (s *secretScanner) bearer(end int) {
	stop := s.tokenEnd(end)
	text := s.text[end:stop]
	if len(text) >= 12 && mixed(text) && !wordy(text) && !placeholder(text) {
		s.add(ruleHeader, end, stop)
	}
}

// authorization finds what follows "Authorization:", with the scheme before it, or without.
func (s *secretScanner) authorization(end int) {
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
func (s *secretScanner) tokenEnd(i int) int {
	for i < len(s.text) && (isWord(s.text[i]) || strings.IndexByte("-.~+/=", s.text[i]) >= 0) {
		i++
	}
	return i
}

// longDocument bounds the document of YAML that the data of a Secret is looked for in.
const longDocument = 32 << 10

// pgpass finds the password in a line of PostgreSQL's password file, host:port:database:user:password, as its manual
// describes under "The Password File": a port may be *, and a colon within a field is escaped. end is behind the port, or
// in it. A line that ends its text or is between quotes counts too; an address of the internet's version 6, the place of
// a message in a file and a row of asterisks do not.
func (s *secretScanner) pgpass(end int) {
	start := end
	for start > 0 && end-start < 300 && !isSpace(s.text[start-1]) && strings.IndexByte("\"'`", s.text[start-1]) < 0 {
		start--
	}
	if end <= s.covered || start > 0 && end-start == 300 {
		return
	}
	stop := min(end+longAddress, len(s.text))
	if i := strings.IndexAny(s.text[end:stop], "\r\n\"'`"); i >= 0 {
		stop = end + i
	}
	if start > 0 && s.text[start-1] != '\n' { // in a sentence or a command
		if i := strings.IndexAny(s.text[end:stop], " \t"); i >= 0 {
			stop = end + i
		}
	}
	at := start
	var fields [4]string
	for i := range fields {
		colon := unescapedColon(s.text[at:stop])
		if colon < 0 {
			return
		}
		fields[i], at = s.text[at:at+colon], at+colon+1
	}
	password := s.text[at:stop]
	if !pgpassFields(fields) || password == "" || placeholder(password) || shortHex(password) && shortHex(fields[0]) {
		return
	}
	s.covered = stop
	s.add(ruleDSN, at, stop)
}

// unescapedColon is where the first colon is that ends a field; -1 for none.
func unescapedColon(text string) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case ':':
			return i
		}
	}
	return -1
}

// pgpassFields reports whether these can be host, port, database and user.
func pgpassFields(f [4]string) bool {
	host, port, database, user := f[0], f[1], f[2], f[3]
	return host != "" && (port == "*" || number16(port)) && database != "" && user != "" && !number16(database) &&
		!strings.ContainsAny(database+user, " \t/(){}<>,;=")
}

// shortHex reports whether text can be a group of an address of the internet's version 6.
func shortHex(text string) bool {
	return len(text) <= 4 && strings.Trim(strings.ToLower(text), "0123456789abcdef") == ""
}

func (s *secretScanner) links(i int) bool { return s.linkLength(i) > 0 && !isAlnum(s.text[i]) }

func (s *secretScanner) linkLength(i int) int {
	for _, l := range speechLinks {
		if isLower(l[0]) && i > 0 && !isSpace(s.text[i-1]) {
			continue // the end of a word
		}
		if len(s.text)-i >= len(l) && strings.EqualFold(s.text[i:i+len(l)], l) {
			return len(l)
		}
	}
	return 0
}
