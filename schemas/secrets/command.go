package secrets

import (
	"path"
	"slices"
	"strings"
)

// loginTools have a command login that takes a password behind -p, as their references say: docker login, podman-login(1),
// buildah-login(1), skopeo-login(1), nerdctl login, oras login, helm registry login, crane auth login, oc login, az acr
// login.
var loginTools = []string{"docker", "podman", "buildah", "skopeo", "nerdctl", "oras", "helm", "crane", "oc", "az"}

// longCommand bounds what of a command is looked at, in bytes before and behind the word login.
const longCommand = 256

// login finds the password in docker login -u USER -p PASSWORD; that behind --password has a name. end is behind
// "login".
func (s *scanner) login(end int) {
	before := s.text[max(end-longCommand, 0):end]
	words := strings.Fields(before[strings.LastIndexAny(before, "\n|;&(`'\"")+1:])
	if !slices.ContainsFunc(words, func(w string) bool { return slices.Contains(loginTools, path.Base(w)) }) {
		return
	}
	rest := s.text[end:min(end+longCommand, len(s.text))]
	rest = strings.ReplaceAll(strings.ReplaceAll(rest, "\\\n", "  "), "\t", " ") // as long as before
	if i := strings.IndexAny(rest, "\n|;&`"); i >= 0 {
		rest = rest[:i]
	}
	i := strings.Index(rest, " -p")
	if i < 0 {
		return
	}
	from := end + i + len(" -p")
	if s.at(from, "=") {
		from++
	}
	from = s.skipBlank(from)
	at, quoted := s.quoted(from)
	if !quoted {
		at = s.bare(from)
	}
	if text := s.text[at.start:at.end]; text != "" && text[0] != '-' && !placeholder(text) && !sentenceWord(text) {
		s.add(ruleCommand, at.start, at.end)
	}
}

// pgpass finds the password in a line of PostgreSQL's password file, host:port:database:user:password, as its manual
// describes under "The Password File": a port may be *, and a colon within a field is escaped. end is behind the port, or
// in it. A line that ends its text or is between quotes counts too; an address of the internet's version 6, the place of
// a message in a file and a row of asterisks do not.
func (s *scanner) pgpass(end int) {
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
