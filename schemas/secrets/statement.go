package secrets

import "strings"

// statements connect a name to its value, longer ones before their prefixes.
var statements = []string{"is set to ", "was set to ", "was changed to ", "is now ", "defaults to ", "is ", "was ", "by "}

// statement finds what says in a sentence what the password with this name is: "is" behind it, or "to" where the sentence
// sets it, as in "set the password for the staging database to …".
func (s *secretScanner) statement(i int, n name, quotedName bool) (op string, at int) {
	if !quotedName {
		i = s.whose(i)
		for _, o := range statements {
			if s.atFold(i, o) {
				return "is", i + len(o)
			}
		}
	}
	if s.atFold(i, "to ") && s.isSet(n) {
		return "to", i + len("to ")
	}
	return "", 0
}

// whose goes over what a password is for, in "password of the staging database is …", if a statement follows.
func (s *secretScanner) whose(i int) int {
	if !s.atFold(i, "for ") && !s.atFold(i, "of ") {
		return i
	}
	words := 0
	for j := i; j < len(s.text) && j-i < 60 && words <= 5; j++ {
		if c := s.text[j]; c != ' ' {
			if !isNameByte(c) && c != '\'' {
				break
			}
			continue
		}
		words++
		if s.atFold(j+1, "is ") || s.atFold(j+1, "was ") || s.atFold(j+1, "to ") {
			return j + 1
		}
	}
	return i
}

// setters begin the words for giving something a value.
var setters = []string{"set", "reset", "chang", "updat", "rotat", "switch"}

// isSet reports whether one of the five words before a name sets it: "set the admin password", "we changed its password".
func (s *secretScanner) isSet(n name) bool {
	before := s.text[max(n.start-60, 0):n.start]
	words := strings.Fields(before[strings.LastIndexAny(before, ".,;:!?()\n")+1:])
	for _, w := range words[max(len(words)-5, 0):] {
		for _, begin := range setters {
			if len(w) >= len(begin) && strings.EqualFold(w[:len(begin)], begin) {
				return true
			}
		}
	}
	return false
}

// stated reports whether a word of a sentence can only be a password: it has letters and digits, or a sign within, and
// is neither a measure (12-character), nor an encoding or a hash (base64, sha256-hashed), nor an address.
func stated(text string) bool {
	text = strings.ToLower(strings.TrimRight(text, ".,!?:;*"))
	if i := strings.IndexByte(text, '@'); i > 0 && strings.IndexByte(text[i:], '.') > 0 {
		return false
	}
	if !mixed(text) {
		i := strings.IndexAny(text, "!@#$%^&*")
		return len(text) >= 6 && i > 0 && i < len(text)-1 && isAlnum(text[i-1]) && isAlnum(text[i+1])
	}
	if unit := strings.TrimLeft(text, "0123456789"); unit != text && begins(strings.TrimPrefix(unit, "-"), units) {
		return false
	}
	base, rest, _ := strings.Cut(text, "-")
	return !begins(base, encodings) || strings.ContainsAny(rest, "0123456789") && base != "utf"
}

var (
	units     = []string{"char", "byte", "bit", "day", "digit", "word", "letter", "hour", "minute", "month", "year"}
	encodings = []string{"base64", "base32", "sha1", "sha256", "sha384", "sha512", "md5", "argon2", "pbkdf2", "utf", "rot13"}
)

// purpose skips the purpose of a password, in "password for the staging database: …"; it returns where the value begins,
// 0 if there is no value.
func (s *secretScanner) purpose(i int) int {
	if !s.atFold(i, "for ") && !s.atFold(i, "of ") && !s.atFold(i, "to ") {
		return 0
	}
	words := 0
	for j := i; j < len(s.text) && j-i < 60; j++ {
		switch c := s.text[j]; {
		case c == ':' || c == '=':
			return j + 1
		case c == ' ':
			if words++; words > 4 {
				return 0
			}
		case !isNameByte(c) && c != '\'':
			return 0
		}
	}
	return 0
}
