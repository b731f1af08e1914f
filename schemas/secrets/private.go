package secrets

import "strings"

// StripPrivate removes private text from text: all between <private> and </private>, marks included. Marks are in any case,
// with space or attributes before the ">", and as JSON and HTML write them ("\u003cprivate\u003e", "&lt;private&gt;").
// Private text that does not end goes on to the end of the text; inner pairs belong to the outer one. A "</private>" that
// ends nothing stays. No opening mark is left in the result, not even one that came together because the text between its
// halves was private.
func StripPrivate(text string) string {
	if !mayBePrivate(text) {
		return text
	}
	return StripPrivateFrom([]string{text})[0]
}

// StripPrivateFrom strips private text from the parts of one text, such as the messages of a conversation, as StripPrivate
// does. What one part opens goes on in the next, and a mark may begin in one and end in another. The result has as many
// parts, perhaps empty ones; it is parts itself if nothing is private.
func StripPrivateFrom(parts []string) []string {
	if !mayBePrivate(strings.Join(parts, "")) {
		return parts
	}
	var s stripper
	for _, part := range parts {
		s.begins = append(s.begins, beginning{len(s.out), 1})
		for i := range len(part) {
			s.add(part[i])
		}
	}
	if s.depth > 0 {
		s.cut(s.kept)
	}
	return s.parts()
}

// stripper removes private text from the text that is added to it.
type stripper struct {
	out         []byte
	depth, kept int // kept is how much of out stays while text is hidden
	begins      []beginning
}

// beginning is a place of out at which parts begin, ascending.
type beginning struct{ at, parts int }

func (s *stripper) add(c byte) {
	s.out = append(s.out, c)
	mark, opens := privateMark(s.out[s.kept:])
	switch {
	case mark == 0 || !opens && s.depth == 0:
		return
	case opens:
		if s.depth == 0 {
			s.kept = len(s.out) - mark
		}
		s.depth++
	default:
		s.depth--
	}
	s.cut(s.kept)
	if s.depth == 0 {
		s.kept = 0
	}
}

// cut shortens out. Parts that began behind its end are empty up to there.
func (s *stripper) cut(end int) {
	s.out = s.out[:end]
	n := 0
	for i := len(s.begins) - 1; i >= 0 && s.begins[i].at > end; i-- {
		n += s.begins[i].parts
		s.begins = s.begins[:i]
	}
	if n > 0 {
		s.begins = append(s.begins, beginning{end, n})
	}
}

func (s *stripper) parts() (out []string) {
	for i, b := range s.begins {
		end := len(s.out)
		if i+1 < len(s.begins) {
			end = s.begins[i+1].at
		}
		for range b.parts - 1 {
			out = append(out, "")
		}
		out = append(out, string(s.out[b.at:end]))
	}
	return out
}

// RulePrivate is the rule of findings that are private text.
const RulePrivate = "private"

// Private returns where private text stands, marks included, in order and apart from each other.
func Private(text string) []Finding {
	if !mayBePrivate(text) {
		return nil
	}
	var out []Finding
	depth, start := 0, 0
	for i := range len(text) {
		mark, opens := privateMark(text[:i+1])
		switch {
		case mark == 0 || !opens && depth == 0:
		case opens:
			if depth == 0 {
				start = i + 1 - mark
			}
			depth++
		default:
			if depth--; depth == 0 {
				out = append(out, Finding{RulePrivate, start, i + 1})
			}
		}
	}
	if depth > 0 {
		out = append(out, Finding{RulePrivate, start, len(text)})
	}
	return out
}

// mayBePrivate is a quick look: false means that text has no opening mark.
func mayBePrivate[T string | []byte](text T) bool {
	for i := 1; i < len(text); i++ {
		if c := text[i-1]; text[i]|0x20 == 'p' && (c == '<' || c == ';' || c|0x20 == 'c') {
			if _, ok := cutFold(text[:min(i+len("private"), len(text))], "private"); ok {
				return true
			}
		}
	}
	return false
}

// privateMark returns the length of the mark that b ends with, 0 for none, and whether it opens private text.
func privateMark[T string | []byte](b T) (length int, opens bool) {
	rest, ok := cutAny(b, ">", `\u003e`, "&gt;")
	if !ok {
		return 0, false
	}
	if rest, ok = tagName(rest); !ok {
		return 0, false
	}
	opens = true
	if inner, ok := cutFold(rest, "/"); ok {
		rest, opens = inner, false
	}
	if rest, ok = cutAny(rest, "<", `\u003c`, "&lt;"); !ok {
		return 0, false
	}
	return len(b) - len(rest), opens
}

// longTag is how far from its end the name of a tag with attributes is looked for.
const longTag = 256

// tagName cuts "private" off b, with space or attributes behind it.
func tagName[T string | []byte](b T) (T, bool) {
	for i := len(b); i > max(len(b)-longTag, 0); i-- {
		if rest, ok := cutFold(b[:i], "private"); ok && areAttributes(b[i:]) {
			return rest, true
		}
		if c := b[i-1]; c == '<' || c == '>' {
			break
		}
	}
	return b, false
}

// areAttributes reports whether b is blank, or begins as attributes do: ` class=`.
func areAttributes[T string | []byte](b T) bool {
	i := 0
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	blank, name := i, 0
	for i < len(b) && (isNameByte(b[i]) || b[i] == ':') {
		i, name = i+1, name+1
	}
	return blank == len(b) || blank > 0 && name > 0 && i < len(b) && b[i] == '='
}

// cutAny cuts the first of the suffixes that b has off it.
func cutAny[T string | []byte](b T, suffixes ...string) (T, bool) {
	for _, s := range suffixes {
		if rest, ok := cutFold(b, s); ok {
			return rest, true
		}
	}
	return b, false
}

// cutFold cuts the suffix of a private tag, which is in lower case, off b, whatever its case there.
func cutFold[T string | []byte](b T, suffix string) (T, bool) {
	cut := len(b) - len(suffix)
	if cut < 0 {
		return b, false
	}
	for i := range suffix {
		if lower(b[cut+i]) != suffix[i] {
			return b, false
		}
	}
	return b[:cut], true
}

// nextMark finds the first mark in text[from:to], or one that text[from:] is within; without one it returns to, to.
func nextMark(text string, from, to int) (start, end int) {
	back := max(strings.LastIndex(text[max(from-maxMark, 0):from], markStart), 0) + max(from-maxMark, 0)
	for back < to {
		i := strings.Index(text[back:to], markStart)
		if i < 0 {
			break
		}
		start, end = back+i, markEnds(text, back+i)
		if end > from {
			return max(start, from), min(end, to)
		}
		back = start + 1
	}
	return to, to
}
