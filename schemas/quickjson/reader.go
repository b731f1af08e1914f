package quickjson

import (
	"encoding/json"
	"unicode/utf8"
	"unsafe"
)

// reader walks through a document. The first thing that is not as expected sets bad; what is read after that is of no
// use.
type reader struct {
	b     []byte
	at    int
	depth int
	bad   bool

	inPlace bool // strings may be parts of b
}

// deep is how deep values may be nested.
const deep = 1000

func (r *reader) fail() { r.bad, r.at = true, len(r.b) }

func (r *reader) space() {
	for r.at < len(r.b) {
		switch r.b[r.at] {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return
		}
	}
}

// peek is the next character that is no space, or 0 at the end.
func (r *reader) peek() byte {
	r.space()
	if r.at < len(r.b) {
		return r.b[r.at]
	}
	return 0
}

// word takes a word if it comes next.
func (r *reader) word(w string) bool {
	if r.peek() != w[0] || len(r.b)-r.at < len(w) || string(r.b[r.at:r.at+len(w)]) != w {
		return false
	}
	r.at += len(w)
	return true
}

func (r *reader) null() bool { return r.word("null") }

// open takes the bracket that begins an object or array.
func (r *reader) open(c byte) bool {
	if r.depth++; r.peek() != c || r.depth > deep {
		r.fail()
		return false
	}
	r.at++
	return true
}

// first reports whether the object or array that was just opened has an element; if not, it takes the bracket.
func (r *reader) first(end byte) bool {
	if r.peek() != end {
		return !r.bad
	}
	r.depth--
	r.at++
	return false
}

// next takes the comma behind an element and reports true, or the bracket behind the last one.
func (r *reader) next(end byte) bool {
	switch r.peek() {
	case ',':
		r.at++
		return !r.bad
	case end:
		r.depth--
		r.at++
		return false
	}
	r.fail()
	return false
}

// count is how many elements the object or array has that was just opened, if it is well formed.
func (r *reader) count() int {
	if c := r.peek(); c == ']' || c == '}' {
		return 0
	}
	n, depth := 1, 0
	for i := r.at; i < len(r.b); i++ {
		switch r.b[i] {
		case '"':
			for i++; i < len(r.b) && r.b[i] != '"'; i++ {
				if r.b[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth < 0 {
				return n
			}
		case ',':
			if depth == 0 {
				n++
			}
		}
	}
	r.fail()
	return 0
}

// keyBytes takes a key and its colon.
func (r *reader) keyBytes() []byte {
	k := r.textBytes()
	if r.peek() != ':' {
		r.fail()
		return nil
	}
	r.at++
	return k
}

func (r *reader) text() string { return r.keep(r.textBytes()) }

// keep makes a string of what keyBytes or textBytes returned.
func (r *reader) keep(b []byte) string {
	if r.inPlace {
		return unsafe.String(unsafe.SliceData(b), len(b)) // part of the document, or made for this string
	}
	return string(b)
}

// textBytes takes a string. The result may be part of the document.
func (r *reader) textBytes() []byte {
	if r.peek() != '"' {
		r.fail()
		return nil
	}
	start := r.at + 1
	var all byte
	for i := start; i < len(r.b); i++ {
		c := r.b[i]
		switch {
		case c == '"':
			r.at = i + 1
			if all >= utf8.RuneSelf && !utf8.Valid(r.b[start:i]) {
				r.fail()
			}
			return r.b[start:i]
		case c == '\\':
			return r.escaped(start)
		case c < ' ':
			r.fail()
			return nil
		}
		all |= c
	}
	r.fail()
	return nil
}

// escaped takes a string with escapes, from its first character on.
func (r *reader) escaped(start int) []byte {
	for i := start; i < len(r.b); i++ {
		switch r.b[i] {
		case '\\':
			i++
		case '"':
			r.at = i + 1
			if out, ok := unescape(r.b[start:i]); ok {
				return out
			}
			var s string
			if !utf8.Valid(r.b[start:i]) || json.Unmarshal(r.b[start-1:i+1], &s) != nil {
				r.fail()
			}
			return []byte(s)
		}
	}
	r.fail()
	return nil
}

// escapes are the characters that one letter behind a backslash stands for.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape handles all but \u.
func unescape(in []byte) (out []byte, ok bool) {
	out = make([]byte, 0, len(in))
	for i := 0; i < len(in); i++ {
		c := in[i]
		if c == '\\' {
			i++
			if c = escapes[in[i]]; c == 0 {
				return nil, false
			}
		} else if c < ' ' {
			return nil, false
		}
		out = append(out, c)
	}
	return out, utf8.Valid(out)
}

// number takes a number; whole says that it has neither fraction nor exponent. The result is part of the document.
func (r *reader) number() (n string, whole bool) {
	r.space()
	start := r.at
	r.take('-')
	if !r.take('0') {
		r.digits()
	}
	whole = true
	if r.take('.') {
		whole = false
		r.digits()
	}
	if r.take('e') || r.take('E') {
		whole = false
		if !r.take('+') {
			r.take('-')
		}
		r.digits()
	}
	if r.bad {
		return "", false
	}
	b := r.b[start:r.at]
	return unsafe.String(unsafe.SliceData(b), len(b)), whole
}

func (r *reader) take(c byte) bool {
	if r.at < len(r.b) && r.b[r.at] == c {
		r.at++
		return true
	}
	return false
}

// digits takes one digit or more.
func (r *reader) digits() {
	start := r.at
	for r.at < len(r.b) && r.b[r.at] >= '0' && r.b[r.at] <= '9' {
		r.at++
	}
	if r.at == start {
		r.fail()
	}
}

// raw takes a value of any form and returns its bytes, which are part of the document.
func (r *reader) raw() []byte {
	c := r.peek()
	start := r.at
	switch {
	case c == '"':
		r.textBytes()
	case c == '{':
		r.rawList('{', '}')
	case c == '[':
		r.rawList('[', ']')
	case c == '-' || c >= '0' && c <= '9':
		r.number()
	case r.word("true"), r.word("false"), r.null():
	default:
		r.fail()
	}
	if r.bad {
		return nil
	}
	return r.b[start:r.at]
}

func (r *reader) rawList(from, to byte) {
	if !r.open(from) {
		return
	}
	for more := r.first(to); more; more = r.next(to) {
		if from == '{' {
			r.keyBytes()
		}
		r.raw()
	}
}
