package gitrepo

import (
	"bytes"
	"context"
	"os"
	"path"
	"path/filepath"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo/wildmatch"
	"reconcile.dev/reconcile/state/regular"
)

// Attribute values that have no text.
const (
	attrSet   = "\x00set"   // name
	attrClear = "\x00clear" // -name
	attrUnset = "\x00unset" // !name, and attributes that no line sets
)

// attrLine is a line of a .gitattributes file: a pattern with its attributes, or the definition of a macro.
type attrLine struct {
	macro   string // its name; "" for a pattern
	pattern string
	attrs   []attr
}

type attr struct{ name, value string }

// attrLimit is the size from which on git ignores a file of attributes, and attrLineLimit that of a line.
const (
	attrLimit     = 100 << 20
	attrLineLimit = 2048
)

// readAttributes reads a file of attributes. An unreadable file has no lines, as in git. Macros are valid only in
// files for the whole work tree.
func readAttributes(file string, macros bool) []attrLine {
	fi, err := os.Stat(file)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() >= attrLimit {
		return nil
	}
	data, err := regular.ReadPath(file)
	if err != nil {
		return nil
	}
	return parseAttributes(string(data), macros)
}

func parseAttributes(text string, macros bool) []attrLine {
	var out []attrLine
	text = strings.TrimPrefix(text, "\ufeff")
	for line := range strings.SplitSeq(text, "\n") {
		if len(line) >= attrLineLimit {
			continue
		}
		if l, ok := parseAttrLine(line); ok && (l.macro == "" || macros) {
			out = append(out, l)
		}
	}
	return out
}

const attrBlank = " \t\r\n"

func parseAttrLine(line string) (l attrLine, ok bool) {
	line = strings.TrimLeft(line, attrBlank)
	if line == "" || line[0] == '#' {
		return l, false
	}
	var rest string
	if name, quoted := unquoteC(line); quoted > 0 {
		l.pattern, rest = name, line[quoted:]
	} else {
		end := strings.IndexAny(line, attrBlank)
		if end < 0 {
			end = len(line)
		}
		l.pattern, rest = line[:end], line[end:]
	}
	if name, is := strings.CutPrefix(l.pattern, "[attr]"); is {
		if l.macro = strings.TrimLeft(name, attrBlank); l.macro == "" { // [attr] name
			rest = strings.TrimLeft(rest, attrBlank)
			end := strings.IndexAny(rest+" ", attrBlank)
			l.macro, rest = rest[:end], rest[end:]
		}
		if !attrName(l.macro) {
			return l, false
		}
	} else if l.pattern == "" || l.pattern[0] == '!' {
		return l, false // git warns of negative patterns
	}
	for word := range strings.FieldsFuncSeq(rest, func(r rune) bool { return strings.ContainsRune(attrBlank, r) }) {
		a := attr{word, attrSet}
		switch name, value, has := strings.Cut(word, "="); {
		case word[0] == '-':
			a = attr{word[1:], attrClear}
		case word[0] == '!':
			a = attr{word[1:], attrUnset}
		case has:
			a = attr{name, value}
		}
		if a.name, _, _ = strings.Cut(a.name, "="); !attrName(a.name) {
			return l, false // git skips the line
		}
		l.attrs = append(l.attrs, a)
	}
	return l, true
}

func attrName(s string) bool {
	if s == "" || s[0] == '-' {
		return false
	}
	return strings.TrimFunc(s, func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '.' || r == '_'
	}) == ""
}

// unquoteC reads the quoted C string at the start of s and returns its length in s; 0 if s does not start with one.
func unquoteC(s string) (text string, n int) {
	if s[0] != '"' {
		return "", 0
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; c {
		case '"':
			return b.String(), i + 1
		case '\\':
			if i++; i == len(s) {
				return "", 0
			}
			if k := strings.IndexByte(`abfnrtv\"`, s[i]); k >= 0 {
				b.WriteByte("\a\b\f\n\r\t\v\\\""[k])
				continue
			}
			if i+2 >= len(s) || !treeMode(s[i]) || s[i] > '3' || !treeMode(s[i+1]) || !treeMode(s[i+2]) {
				return "", 0
			}
			b.WriteByte((s[i]-'0')<<6 | (s[i+1]-'0')<<3 | (s[i+2] - '0'))
			i += 2
		default:
			b.WriteByte(c)
		}
	}
	return "", 0
}

// matches reports whether a line of the attributes file in folder dir applies to file. Paths are relative to the
// work tree.
func (l *attrLine) matches(dir, file string, fold bool) bool {
	p := l.pattern
	if l.macro != "" || strings.HasSuffix(p, "/") { // matches folders only
		return false
	}
	if fold {
		p, file, dir = strings.ToLower(p), strings.ToLower(file), strings.ToLower(dir)
	}
	if !strings.Contains(p, "/") {
		return wildmatch.Match(p, path.Base(file))
	}
	if dir != "" {
		file = file[len(dir)+1:]
	}
	return wildmatch.Match(strings.TrimPrefix(p, "/"), file)
}

// binaryMacro is git's built-in macro.
var binaryMacro = []attrLine{{macro: "binary", attrs: []attr{{"diff", attrClear}, {"merge", attrClear}, {"text", attrClear}}}}

// attributesOf returns the attributes of a file by name, without unset ones. levels are the attribute files, lowest
// precedence first; dirs are the folders that contain them.
func attributesOf(file string, levels [][]attrLine, dirs []string, fold bool) map[string]string {
	found := map[string]string{}
	macros := map[string][]attr{}
	for _, lines := range levels {
		for i := range lines {
			if lines[i].macro != "" {
				macros[lines[i].macro] = lines[i].attrs
			}
		}
	}
	var fill func(says []attr)
	fill = func(says []attr) {
		for i := len(says) - 1; i >= 0; i-- {
			a := says[i]
			if _, known := found[a.name]; known {
				continue
			}
			found[a.name] = a.value
			if a.value == attrSet {
				fill(macros[a.name])
			}
		}
	}
	for i := len(levels) - 1; i >= 0; i-- {
		for k := len(levels[i]) - 1; k >= 0; k-- {
			if l := &levels[i][k]; l.matches(dirs[i], file, fold) {
				fill(l.attrs)
			}
		}
	}
	return found
}

// namedAttributes returns the file that the configuration names. It parses the configuration only if the word
// occurs in it.
func namedAttributes(l layout) []string {
	_, named := environmentConfig(attributesKey)
	for _, p := range configPaths(l) {
		data, err := regular.ReadPath(p)
		named = named || err == nil && bytes.Contains(bytes.ToLower(data), []byte("attributesfile"))
	}
	if !named {
		return nil
	}
	c, err := loadConfig(l, "")
	if err != nil {
		return nil
	}
	return []string{c.userFile(context.Background(), attributesKey, "attributes")}
}

// attributePaths returns the attribute files outside the folders of the work tree, except the one that the
// configuration names.
func attributePaths(common string) []string {
	home, _ := os.UserHomeDir()
	xdg := envOr("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	return []string{systemAttributes, filepath.Join(xdg, "git", "attributes"), filepath.Join(common, "info", "attributes")}
}
