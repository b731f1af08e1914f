package secrets

import "strings"

// name is a field, variable or flag that something may be assigned to.
type name struct {
	span
	text     string
	lastWord string // the word of the name that key is in or at, in lower case
	tail     string // what follows that word
	head     string // the text before it
}

// nameAt is the name around the word that ends before end.
func (s *secretScanner) nameAt(end int) name {
	start, stop := s.nameStart(end), end
	for stop < len(s.text) && stop-end < 40 && (isWord(s.text[stop]) || s.text[stop] == '-') {
		stop++
	}
	for start < end && (s.text[start] == '-' || s.text[start] == '.') {
		start++ // of a flag
	}
	n := name{span: span{start, stop}, text: s.text[start:stop]}
	n.split(end - start)
	return n
}

// split finds the word that the byte before at belongs to: between underscores, dashes and dots, and where lower case
// turns to upper case.
func (n *name) split(at int) {
	from, to := at-1, at
	for from > 0 && !wordBreak(n.text, from) {
		from--
	}
	for to < len(n.text) && !wordBreak(n.text, to) {
		to++
	}
	n.head, n.tail = n.text[:from], n.text[to:]
	n.lastWord = strings.ToLower(strings.Trim(n.text[from:to], "_-."))
}

// wordBreak reports whether in the name of a variable, which may be that of a secret, a new word begins at text[i].
func wordBreak(text string, i int) bool {
	c, before := text[i], text[i-1]
	return c == '_' || c == '-' || c == '.' || isUpper(c) && (isLower(before) || isDigit(before)) ||
		isUpper(c) && i+1 < len(text) && isLower(text[i+1]) && isUpper(before)
}

// shouts reports whether the name is written as those of the environment are.
func (n name) shouts() bool { return n.text == strings.ToUpper(n.text) }

// isPassword reports whether the value of a field with this name is a password.
func (n name) isPassword() bool {
	w := strings.TrimRight(n.lastWord, "0123456789")
	switch {
	case strings.HasSuffix(w, "password"), strings.HasSuffix(w, "passwd"), strings.HasSuffix(w, "passphrase"),
		strings.HasSuffix(w, "passwort"), w == "pswd", w == "passcode":
	case strings.HasSuffix(w, "pwd"):
		if w == "oldpwd" || w == "pwd" && n.head == "" && n.tail == "" && n.shouts() {
			return false // where one is
		}
	case w == "pass", w == "pgpass", w == "dbpass", w == "userpass", w == "mypass":
	default:
		return false
	}
	return !aboutIt(n.tail)
}

// isSecret reports whether the value of a field with this name may be a secret.
func (n name) isSecret() bool {
	w := strings.TrimRight(n.lastWord, "0123456789")
	switch {
	case w == "key":
		if !keyOf(n.head) {
			return false
		}
	case strings.HasSuffix(w, "apikey"), strings.HasSuffix(w, "accesskey"), strings.HasSuffix(w, "secretkey"),
		strings.HasSuffix(w, "privatekey"), strings.HasSuffix(w, "authkey"), strings.HasSuffix(w, "accountkey"):
	case strings.HasSuffix(w, "secret"), strings.HasSuffix(w, "token"), w == "credential", w == "credentials",
		w == "auth", w == "cookie":
	default:
		return false
	}
	head := strings.ToLower(strings.TrimRight(n.head, "_-."))
	return !strings.HasSuffix(head, "public") && !strings.HasSuffix(head, "csrf") && !aboutIt(n.tail)
}

// abouts are the words behind a name that make it one of something about a secret.
var abouts = []string{
	"hash", "digest", "file", "path", "dir", "length", "len", "size", "min", "max", "policy", "field", "reset", "url",
	"uri", "endpoint", "env", "name", "id", "ids", "type", "hint", "prompt", "label", "input", "required", "count", "expir",
	"ttl", "age", "store", "manager", "generator", "valid", "rule", "regex", "pattern", "format", "strength", "attempt",
	"error", "ref", "provider", "protect", "auth", "change", "placeholder", "limit", "budget", "usage",
	"used", "version", "index", "kind", "source", "column", "param", "header", "less", "check", "encod", "enabl",
	"disabl", "algorithm", "issuer", "audience", "scope", "description", "message", "rotat", "window", "per", "word", "var",
}

// aboutIt reports whether a name's tail says that it is not the secret itself: the length of a password, its file.
func aboutIt(tail string) bool {
	tail = strings.ToLower(strings.TrimLeft(tail, "_-."))
	for _, a := range abouts {
		if strings.HasPrefix(tail, a) {
			return true
		}
	}
	return false
}

// nameStart goes back to where the name that ends before end begins.
func (s *secretScanner) nameStart(end int) int {
	start := end
	for start > 0 && end-start < 64 && isNameByte(s.text[start-1]) {
		start--
	}
	return start
}

// isNameByte reports whether a byte can be part of the name of a field or variable.
func isNameByte(c byte) bool { return isWord(c) || c == '.' || c == '-' }

// secretWord reports whether a variable of this name holds a secret: "password = newPassword" tells none.
func secretWord(text string) bool {
	if strings.ContainsAny(text, "0123456789") {
		return false
	}
	text = strings.ToLower(text)
	for _, w := range []string{"pass", "pwd", "secret", "token", "credential", "value", "apikey", "api_key"} {
		if strings.Contains(text, w) {
			return true
		}
	}
	return text == "key" || text == "text"
}

// strongName reports whether a name says that its value is secret; "key" and "access" alone do not.
func strongName(name string) bool {
	name = strings.ToLower(name)
	for _, w := range []string{"secret", "token", "passw", "cred", "auth", "private", "signing", "encrypt"} {
		if strings.Contains(name, w) {
			return true
		}
	}
	i := strings.Index(name, "key")
	return i > 0 && keyOf(name[:i]) || strings.Contains(name, "api_") || strings.Contains(name, "api-")
}
