package secrets

import (
	_ "embed"
	"math"
	"strconv"
	"strings"
)

// isReference reports whether a value is not a secret: a placeholder, a reference to a variable, a call, a type, or
// the next word of a sentence.
func (s *secretScanner) isReference(n name, v value) bool {
	text := s.text[v.start:v.end]
	switch {
	case placeholder(text), publicKey(text):
		return true
	case v.op == "is":
		return !v.quoted && !stated(text)
	case v.op == "to":
		return !stated(text) && (!v.quoted || sentenceWord(text) || secretWord(text))
	case v.op == "," || v.op == "'" || v.op == "(":
		return sentenceWord(text)
	case v.quoted:
		return strings.IndexByte("),;]", text[0]) >= 0 // the quote ended a text
	case n.lastWord == "pwd" && n.head == "" && v.spaced && identifier(text) && !mixed(text):
		return true // a directory
	case sentenceWord(strings.TrimRight(text, ".!?:")) || strings.EqualFold(text, n.text):
		return true
	case v.op == "--":
		return strings.HasPrefix(text, "-") || text == "and" || text == "or"
	case bareNumber(n, text), n.lastWord == "pass" && n.head == "" && v.op != "=":
		return true
	}
	return s.isCode(n, v, text)
}

// bareNumber reports whether a value is a count or a constant: of tests that passed, of tokens.
func bareNumber(n name, text string) bool {
	if strings.HasPrefix(strings.TrimPrefix(text, "-"), "0x") {
		return true
	}
	if n.lastWord != "pass" && n.lastWord != "token" && n.lastWord != "auth" && n.lastWord != "secret" {
		return false
	}
	return strings.Trim(text, "0123456789./,_-") == ""
}

// isCode reports whether an unquoted value is an expression of a program.
func (s *secretScanner) isCode(n name, v value, text string) bool {
	if strings.ContainsAny(text[:1], "([{*&!") && !(v.op == "=" && !v.spaced) {
		return true
	}
	if isCall(text) {
		return true
	}
	if n.shouts() && v.op == "=" && !v.spaced {
		return false // of the environment
	}
	last := text[strings.LastIndexByte(text, '.')+1:]
	if identifier(text) && (secretWord(last) || strings.IndexByte(text, '.') > 0 && knownRoot(text)) {
		return true
	}
	if v.op == ":=" && !n.shouts() || v.op == "<-" || v.op == "->" {
		return true
	}
	letters := identifier(text) && !strings.ContainsAny(text, "0123456789")
	after := s.text[v.end:min(v.end+2, len(s.text))]
	statement := after == ";" || after == ";\n" || after == ";\r"
	field := after == "," || after == ",\n" || after == ",\r"
	return letters && (statement && v.spaced || field && isUpper(n.text[0]) && !n.shouts())
}

// isCall reports whether a value is a name with something in brackets behind it.
func isCall(text string) bool {
	i := strings.IndexAny(text, "([{")
	return i > 0 && identifier(strings.TrimRight(text[:i], "?!"))
}

// identifier reports whether text is a name, or names with dots between.
func identifier(text string) bool {
	if text == "" || !isWord(text[0]) || isDigit(text[0]) {
		return false
	}
	for i := range len(text) {
		if c := text[i]; !isWord(c) && (c != '.' || i == len(text)-1) {
			return false
		}
	}
	return true
}

// knownRoot reports whether a dotted name begins as those of variables do.
func knownRoot(text string) bool {
	root, _, _ := strings.Cut(text, ".")
	switch root {
	case "self", "this", "cfg", "config", "conf", "c", "s", "opts", "options", "req", "request", "args", "env", "os",
		"process", "params", "user", "u", "data", "input", "form", "settings", "secrets", "vars", "var", "local", "module",
		"props", "state", "ctx", "r", "p", "m", "o", "t", "e", "body", "app", "client", "db", "row", "result", "res", "event":
		return true
	}
	return false
}

// references begin values that are stored elsewhere, filled in later, or escapes.
var references = []string{
	"{{", "${", "$(", "#{", "%(", "op://", "vault:", "env:", "file:", "/run/secrets/", `\u`, `\U`, "...", "…",
}

// placeholder reports whether a value is a placeholder.
func placeholder(text string) bool {
	text = strings.TrimRight(text, ".")
	if text == "" || oneByte(text) {
		return true
	}
	for _, r := range references {
		if strings.HasPrefix(text, r) {
			return true
		}
	}
	inner := ""
	if len(text) > 2 {
		inner = text[1 : len(text)-1]
	}
	switch first, last := text[0], text[len(text)-1]; first {
	case '<':
		return last == '>'
	case '@':
		return last == '@'
	case '%':
		return last == '%' || len(text) == 2
	case '{':
		return last == '}' && identifier(inner)
	case '$':
		return len(text) == 2 || identifier(text[1:]) && (!mixed(text[1:]) || text == strings.ToUpper(text))
	}
	return strings.Contains(strings.ToLower(text), "redacted")
}

// oneByte reports whether text is one byte again and again, as "***" or "xxxx".
func oneByte(text string) bool {
	if isAlnum(text[0]) && len(text) < 3 {
		return false
	}
	return strings.Count(text, text[:1]) == len(text) && (!isDigit(text[0]) || text[0] == '0')
}

// sentenceWord reports whether a value is what follows the name in a sentence, a form or a type's definition, not a
// password.
func sentenceWord(text string) bool {
	switch strings.ToLower(text) {
	case "true", "false", "null", "nil", "none", "undefined", "yes", "no", "on", "off", "string", "str", "text", "bytes",
		"byte", "bool", "boolean", "int", "integer", "number", "any", "object", "char", "varchar", "required", "optional",
		"type", "a", "an", "the", "is", "are", "was", "be", "has", "have", "had", "must", "should", "may", "can", "cannot",
		"will", "do", "does", "not", "never", "always", "only", "use", "uses", "used", "using", "see", "set", "we", "it",
		"this", "that", "these", "to", "for", "in", "with", "when", "where", "if", "from", "and", "or", "of", "at",
		"by", "as", "all", "min", "max", "length", "reset", "hash", "hashed", "hashing", "field", "policy", "encrypted",
		"stored", "missing", "empty", "invalid", "incorrect", "wrong", "rejected", "accepted", "unknown", "unset", "i", "you",
		"they", "ask", "read", "enter", "prompt", "your", "our", "its", "each", "every", "both", "other", "same", "new", "old",
		"so", "then", "but", "how", "what", "why", "which", "who", "still", "now", "also", "changed", "removed", "added",
		"moved", "min_length", "max_length", "handle", "handling", "check", "checks", "keep", "make", "let", "todo":
		return true
	}
	return false
}

// mixed reports whether text has both a letter and a digit.
func mixed(text string) bool {
	var letter, digit bool
	for i := range len(text) {
		letter = letter || isAlnum(text[i]) && !isDigit(text[i])
		digit = digit || isDigit(text[i])
	}
	return letter && digit
}

// madeUp reports whether a value looks as made by a generator of secrets, not by a person who names something.
func madeUp(text string) bool {
	return len(text) >= 8 && mixed(text) && entropy(text) >= 2.75 && !strings.ContainsAny(text, " \t") && !wordy(text) &&
		!ours(text)
}

// wordy reports whether text consists of words with few digits behind each: a path, a version, a name.
func wordy(text string) bool {
	digits, parts := 0, 0
	for i := 0; i <= len(text); i++ {
		if i == len(text) || strings.IndexByte("-_./:@", text[i]) >= 0 {
			digits, parts = 0, parts+1
			continue
		}
		switch c := text[i]; {
		case isDigit(c):
			if digits++; digits > 4 {
				return false
			}
		case !isAlnum(c) || digits > 0:
			return false // a letter after digits
		}
	}
	return parts > 1 || digits == 0
}

// plain reports whether a match of the generic rule is not a secret: digests and ids under names that do not
// indicate a secret alone, checksums of modules, paths. name is the text from the name to the value.
func plain(name, text string) bool {
	if ours(text) || wordy(text) || strings.HasSuffix(name, "h1:") || strings.HasSuffix(name, "sha256:") {
		return true
	}
	return !strongName(name) && (hexDigest(text) || uuid(text))
}

// hexDigest reports whether a text that looks like a secret is a digest in hexadecimal digits of one case.
func hexDigest(text string) bool {
	var small, large bool
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'f':
			small = true
		case 'A' <= c && c <= 'F':
			large = true
		case !isDigit(c):
			return false
		}
	}
	return len(text) >= 12 && !(small && large)
}

// uuid reports whether text is one.
func uuid(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i := range len(text) {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (text[i] == '-') {
			return false
		}
	}
	return hexDigest(strings.ReplaceAll(text, "-", ""))
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

func number(s string) int {
	n, _ := strconv.Atoi(s) // a test reads every line
	return n
}

// entropy is Shannon's, of the characters of s, in bits a character.
func entropy(s string) float64 {
	var ascii [128]int
	var others map[rune]int
	n := 0
	for _, r := range s {
		n++
		if r < 128 {
			ascii[r]++
			continue
		}
		if others == nil {
			others = map[rune]int{}
		}
		others[r]++
	}
	sum := 0.0
	add := func(count int) {
		if count > 0 {
			p := float64(count) / float64(n)
			sum -= p * math.Log2(p)
		}
	}
	for _, c := range ascii {
		add(c)
	}
	for _, c := range others {
		add(c)
	}
	return sum
}
