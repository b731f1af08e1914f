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
func (s *secretScanner) login(end int) {
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

// netrc reports whether a name is in an entry of .netrc: "machine HOST login USER password …", also in
// several lines.
func (s *secretScanner) netrc(n name) bool {
	words := strings.Fields(s.text[max(n.start-160, 0):n.start])
	i := len(words) - 2 // login USER
	if i < 1 || words[i] != "login" {
		return false
	}
	return words[i-1] == "default" || i > 1 && words[i-2] == "machine"
}

// addValues adds the words that begin at to, or at an equals sign before it that belongs to the value.
func (s *secretScanner) addValues(v *pairValues, from, to int) {
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

// identified finds the password of a statement of SQL: CREATE USER app IDENTIFIED BY '…', also with a method before BY.
func (s *secretScanner) identified(end int) {
	before := strings.ToLower(s.text[max(end-240, 0):end])
	if !strings.Contains(before, "user ") && !strings.Contains(before, "grant ") && !strings.Contains(before, "role ") {
		return
	}
	i := s.skipSpace(end)
	if s.atFold(i, "with ") {
		i = s.skipSpace(i + len("with "))
		for from := i; i < len(s.text) && i-from < 40 && !isSpace(s.text[i]); {
			i++
		}
		i = s.skipSpace(i)
	}
	switch {
	case s.atFold(i, "by "):
		i = s.skipSpace(i + len("by "))
	case s.atFold(i, "as "):
		i = s.skipSpace(i + len("as "))
	default:
		return
	}
	for _, word := range []string{"password ", "values "} {
		if s.atFold(i, word) {
			i = s.skipSpace(i + len(word))
		}
	}
	at, quoted := s.quoted(i)
	if !quoted {
		at = s.bare(i)
	}
	text := s.text[at.start:at.end]
	if text == "" || placeholder(text) || !quoted && sentenceWord(text) {
		return
	}
	s.addValue(rulePassword, value{span: at, quoted: quoted})
}
