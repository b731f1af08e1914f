package document

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v2"
)

// Most documents are mappings and lists of one-line texts. yamlWriter writes those as the library does, byte by byte, in a
// fraction of the time; what else it meets, it leaves to the library. TestAsYAMLIsThatOfKubernetes holds both to each
// other.

// quickYAML writes what was decoded of JSON with json.Number, or returns false.
func quickYAML(v any) ([]byte, bool) {
	root, ok := v.(map[string]any)
	if !ok || len(root) == 0 {
		return nil, false
	}
	w := yamlWriter{b: make([]byte, 0, 4<<10)}
	ok = w.mapping(root, 0)
	return w.b, ok
}

// yamlWriter stands at the end of b. A method that returns false gives up for good.
type yamlWriter struct{ b []byte }

// bestWidth is the column behind which a line is broken at the next space.
const bestWidth = 80

// mapping writes fields, each on a line that begins so deep. The first one stands where the writer is.
func (w *yamlWriter) mapping(m map[string]any, indent int) bool {
	names, ok := yamlOrder(m)
	for i, name := range names {
		if i > 0 {
			w.spaces(indent)
		}
		w.b = append(append(w.b, name...), ':')
		if ok = ok && w.value(m[name], indent, indent+len(name)+1); !ok {
			return false
		}
	}
	return ok
}

// yamlOrder are the names of fields in the library's order, which is not that of their bytes where they have digits or
// signs: then it is asked. False if one of them needs quotes.
func yamlOrder(m map[string]any) ([]string, bool) {
	names := make([]string, 0, len(m))
	letters := true
	for name := range m {
		if !plainName(name) {
			return nil, false
		}
		letters = letters && strings.IndexFunc(name, notLetter) < 0
		names = append(names, name)
	}
	slices.Sort(names)
	if letters || len(names) == 1 {
		return names, true
	}
	places := make(map[string]int, len(names))
	for i, name := range names {
		places[name] = i
	}
	lines, err := yaml.Marshal(places)
	out := make([]string, 0, len(names))
	for line := range strings.Lines(string(lines)) {
		_, place, _ := strings.Cut(line, ": ")
		i, bad := strconv.Atoi(strings.TrimSuffix(place, "\n"))
		if bad != nil {
			return nil, false
		}
		out = append(out, names[i])
	}
	return out, err == nil && len(out) == len(names)
}

func notLetter(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }

// plainName reports whether a field's name surely needs no quotes and stands on its line.
func plainName(name string) bool {
	if name == "" || len(name) > 100 || notLetter(rune(name[0])) || mayBeWord(name) {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool { return notLetter(r) && !strings.ContainsRune("0123456789_-./", r) }) < 0
}

// mayBeWord reports whether a text may stand for a truth value or for nothing.
func mayBeWord(s string) bool {
	return len(s) <= 5 && slices.ContainsFunc([]string{"y", "yes", "on", "true", "n", "no", "off", "false", "null"}, func(word string) bool {
		return strings.EqualFold(s, word)
	})
}

func (w *yamlWriter) spaces(n int) {
	for range n {
		w.b = append(w.b, ' ')
	}
}

// value writes what follows "name:" or "-" with its line end; indent is that of the name or dash, column where it ends.
func (w *yamlWriter) value(v any, indent, column int) bool {
	switch v := v.(type) {
	case map[string]any:
		if len(v) > 0 {
			w.b = append(w.b, '\n')
			w.spaces(indent + 2)
			return w.mapping(v, indent+2)
		}
		w.b = append(w.b, " {}\n"...)
	case []any:
		if len(v) > 0 {
			w.b = append(w.b, '\n')
			return w.list(v, indent)
		}
		w.b = append(w.b, " []\n"...)
	case string:
		w.b = append(w.b, ' ')
		return w.text(v, indent+2, column+1)
	case bool:
		w.b = append(strconv.AppendBool(append(w.b, ' '), v), '\n')
	case json.Number:
		n, err := strconv.ParseInt(v.String(), 10, 64)
		w.b = append(strconv.AppendInt(append(w.b, ' '), n, 10), '\n')
		return err == nil
	default:
		return false
	}
	return true
}

// list writes items, each on a line that begins so deep.
func (w *yamlWriter) list(items []any, indent int) bool {
	for _, item := range items {
		w.spaces(indent)
		w.b = append(w.b, '-')
		ok := false
		switch item := item.(type) {
		case map[string]any:
			if len(item) == 0 {
				return false
			}
			w.b = append(w.b, ' ')
			ok = w.mapping(item, indent+2)
		case []any:
			return false
		default:
			ok = w.value(item, indent, indent+1)
		}
		if !ok {
			return false
		}
	}
	return true
}

// text writes a text with its line end; lines after the first one begin so deep, and the first one at a column.
func (w *yamlWriter) text(s string, indent, column int) bool {
	switch {
	case s == "" || !visible(s) || strings.IndexByte(s, '\n') < 0 && mayBeMore(s):
		if len(s) > 40 {
			return false
		}
		short, err := yaml.Marshal(s)
		w.b = append(w.b, short...)
		return err == nil && strings.IndexByte(s, '\n') < 0 && column+len(short) <= bestWidth // else it is broken elsewhere
	case strings.IndexByte(s, '\n') >= 0:
		return w.literal(s, indent)
	case plainText(s):
		w.folded(s, 0, indent, column)
	default:
		w.folded(s, '\'', indent, column)
	}
	return true
}

// mayBeMore reports whether a line may stand for a number, a time or a word of YAML's own.
func mayBeMore(s string) bool {
	if strings.IndexByte("+-.0123456789", s[0]) >= 0 {
		return len(s) <= 40 || strings.IndexByte(s, ' ') < 0 // a time has spaces, a number none
	}
	return s == "~" || s == "<<" || mayBeWord(s)
}

// visible reports whether a text has no characters that need escapes, nor any that only seem to be line ends.
func visible(s string) bool {
	for _, r := range s {
		switch {
		case ' ' <= r && r < 0x7f, r == '\n':
		case r < 0xa0, r > 0xd7ff, r == '\u2028', r == '\u2029', r == utf8.RuneError:
			return false
		}
	}
	return true
}

// plainText reports whether a line can stand without quotes.
func plainText(s string) bool {
	if strings.IndexByte("#,[]{}&*!|>'\"%@` ", s[0]) >= 0 || strings.HasPrefix(s, "---") || strings.HasPrefix(s, "...") {
		return false
	}
	if last := s[len(s)-1]; last == ' ' || last == ':' || strings.IndexByte("?-", s[0]) >= 0 && (len(s) == 1 || s[1] == ' ') {
		return false
	}
	return !strings.Contains(s, ": ") && !strings.Contains(s, " #")
}

// folded writes a line, broken at single spaces, in quotes unless quote is 0.
func (w *yamlWriter) folded(s string, quote byte, indent, column int) {
	if quote != 0 {
		w.b = append(w.b, quote)
		column++
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		alone := c == ' ' && column > bestWidth && (i == 0 || s[i-1] != ' ') && i+1 < len(s) && s[i+1] != ' '
		switch {
		case alone && (quote == 0 || i > 0):
			w.b = append(w.b, '\n')
			w.spaces(indent)
			column = indent
			continue
		case c == quote && quote != 0:
			w.b = append(w.b, c)
			column++
		}
		w.b = append(w.b, c)
		if c&0xc0 != 0x80 {
			column++
		}
	}
	if quote != 0 {
		w.b = append(w.b, quote)
	}
	w.b = append(w.b, '\n')
}

// literal writes a text of several lines, each as it is.
func (w *yamlWriter) literal(s string, indent int) bool {
	body, ended := strings.CutSuffix(s, "\n")
	if body == "" || body[0] == ' ' || body[0] == '\n' || body[len(body)-1] == '\n' || s[len(s)-1] == ' ' || strings.Contains(s, " \n") {
		return false
	}
	w.b = append(w.b, '|')
	if !ended {
		w.b = append(w.b, '-')
	}
	w.b = append(w.b, '\n')
	for line := range strings.SplitSeq(body, "\n") {
		if line != "" {
			w.spaces(indent)
		}
		w.b = append(append(w.b, line...), '\n')
	}
	return true
}
