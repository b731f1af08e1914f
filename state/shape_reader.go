package state

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
	"unsafe"

	"reconcile.dev/reconcile/schemas"
)

// shapeReader matches text with a shape.
type shapeReader struct {
	shaped
	in    []byte // the unread rest
	texts bool   // a string has non-ASCII characters

	escaped bool // the last string has escapes
}

// read reports whether all of data matches the shape.
func (r *shapeReader) read(s *shape, data []byte) bool {
	r.shaped = shaped{packed: r.packed[:0]}
	r.in, r.texts = data, false
	ok := r.value(s) && r.skipSpace() && len(r.in) == 0
	return ok && (!r.texts || utf8.Valid(data))
}

func (r *shapeReader) value(s *shape) (ok bool) {
	var at span
	switch s.kind {
	case shapeText:
		at, ok = r.text()
		ok = ok && (s.mark == markNone || !r.escaped)
	case shapeInt:
		at, ok = r.int()
	case shapeTime:
		at, ok = r.time()
	case shapeBool:
		at, ok = r.word("true", "false")
	case shapeAny:
		at.from = int32(len(r.packed))
		ok = r.any(0)
	case shapeStruct:
		at.from = int32(len(r.packed))
		ok = r.object(s)
	case shapeList:
		return r.list(s)
	case shapeMap:
		return r.table(s)
	}
	if ok && s.mark != markNone {
		r.marked[s.mark] = at
		r.note(s.mark)
	}
	return ok
}

// any consumes a value of any form, except numbers that are not integers.
func (r *shapeReader) any(depth int) (ok bool) {
	if len(r.in) == 0 || depth > 32 {
		return false
	}
	switch r.in[0] {
	case '"':
		_, ok = r.text()
	case 't', 'f':
		_, ok = r.word("true", "false")
	case '{', '[':
		return r.anyOf(r.in[0], depth)
	default:
		_, ok = r.int()
	}
	return ok
}

func (r *shapeReader) anyOf(open byte, depth int) bool {
	end := open + 2 // of both pairs of brackets
	if r.token(open); r.token(end) {
		return true
	}
	for {
		if open == '{' {
			if _, ok := r.text(); !ok || !r.token(':') {
				return false
			}
		}
		if !r.any(depth + 1) {
			return false
		}
		if !r.token(',') {
			return r.token(end)
		}
	}
}

// table consumes a map with its keys in order.
func (r *shapeReader) table(s *shape) bool {
	if !r.token('{') {
		return false
	}
	if r.token('}') {
		return true
	}
	for before := (span{}); ; {
		key, ok := r.text()
		if !ok || r.escaped || before.present() && bytes.Compare(r.of(before), r.of(key)) >= 0 {
			return false
		}
		if before = key; !r.token(':') || !r.value(s.elem) {
			return false
		}
		if !r.token(',') {
			return r.token('}')
		}
	}
}

func (r *shapeReader) list(s *shape) bool {
	if !r.token('[') {
		return false
	}
	if r.token(']') {
		return true
	}
	for {
		if !r.value(s.elem) {
			return false
		}
		if !r.token(',') {
			return r.token(']')
		}
	}
}

func (r *shapeReader) object(s *shape) bool {
	if !r.token('{') {
		return false
	}
	if r.token('}') {
		return true
	}
	for next := 0; ; {
		i := next
		for ; i < len(s.fields); i++ {
			if f := s.fields[i].start; len(r.in) >= len(f) && string(r.in[:len(f)]) == f {
				break
			}
		}
		if i == len(s.fields) {
			return false
		}
		r.take(len(s.fields[i].start))
		if r.skipSpace(); !r.value(s.fields[i].shape) {
			return false
		}
		if !r.token(',') {
			return r.token('}')
		}
		next = i + 1
	}
}

func (r *shapeReader) time() (at span, ok bool) {
	if at, ok = r.word("null"); ok {
		return at, true
	}
	at, ok = r.text()
	return at, ok && !r.escaped && plainTime(r.packed[at.from:at.to])
}

// plainTime reports whether a string, with its quotes, is a time in the form of this program: in UTC, with or without a
// fraction.
func plainTime(b []byte) bool {
	const form = `"0000-00-00T00:00:00`
	if len(b) < len(form)+2 || string(b[len(b)-2:]) != `Z"` {
		return false
	}
	for i := range len(form) {
		if digit := '0' <= b[i] && b[i] <= '9'; digit != (form[i] == '0') || !digit && b[i] != form[i] {
			return false
		}
	}
	two := func(at int) int { return int(b[at]-'0')*10 + int(b[at+1]-'0') }
	month, day := two(6), two(9)
	if month < 1 || month > 12 || day < 1 || day > daysOf[month] || two(12) > 23 || two(15) > 59 || two(18) > 59 {
		return false
	}
	fraction := b[len(form) : len(b)-2]
	if len(fraction) == 0 {
		return true
	}
	for _, c := range fraction[1:] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return fraction[0] == '.' && 1 < len(fraction) && len(fraction) < 10
}

// word consumes one of the words.
func (r *shapeReader) word(words ...string) (at span, ok bool) {
	for _, word := range words {
		if len(r.in) >= len(word) && string(r.in[:len(word)]) == word {
			return r.take(len(word)), true
		}
	}
	return at, false
}

// text consumes a string. Strings that are extracted or compared must have no escapes.
func (r *shapeReader) text() (at span, ok bool) {
	if len(r.in) == 0 || r.in[0] != '"' {
		return at, false
	}
	r.escaped = false
	for i := 1; ; {
		if i += plainText(r.in[i:]); i >= len(r.in) {
			return at, false
		}
		switch c := r.in[i]; {
		case c == '"':
			return r.take(i + 1), true
		case c >= utf8.RuneSelf:
			r.texts = true
			i++
		case c == '\\':
			n := shapeEscape(r.in[i:])
			if n == 0 {
				return at, false
			}
			r.escaped = true
			i += n
		default:
			return at, false
		}
	}
}

// shapeEscape returns the length of the escape at the start of b, 0 without an escape. Surrogates are left to the decoder.
func shapeEscape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	if b[1] != 'u' {
		if strings.IndexByte(`"\/bfnrt`, b[1]) < 0 {
			return 0
		}
		return 2
	}
	if len(b) < 6 || b[2] == 'd' || b[2] == 'D' {
		return 0
	}
	for _, c := range b[2:6] {
		if ('0' > c || c > '9') && ('a' > c|' ' || c|' ' > 'f') {
			return 0
		}
	}
	return 6
}

// plainText counts the bytes before the first quote, escape, control character or non-ASCII byte.
func plainText(b []byte) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; len(b)-n >= 8; n += 8 {
		x := binary.LittleEndian.Uint64(b[n:])
		quote, slash := x^ones*'"', x^ones*'\\'
		if hit := (x | (x-ones*' ')&^x | (quote-ones)&^quote | (slash-ones)&^slash) & tops; hit != 0 {
			return n + bits.TrailingZeros64(hit)/8
		}
	}
	for n < len(b) && b[n] >= ' ' && b[n] != '"' && b[n] != '\\' && b[n] < utf8.RuneSelf {
		n++
	}
	return n
}

// note handles the marks that occur several times, in conditions and nodes.
func (r *shapeReader) note(m mark) {
	switch m {
	case markNodeState:
		r.has.blocked = r.has.blocked || string(r.of(r.marked[m])) == schemas.NodeBlocked
	case markCondition:
		is := &r.marked
		switch name := string(r.of(is[markConditionType])); {
		case name == schemas.Ready && !r.has.ready:
			r.has.ready, r.ready = true, is[markConditionStatus]
		case name == schemas.Stalled && !r.has.stalled:
			r.has.stalled, r.stall = true, [2]span{is[markConditionStatus], is[markConditionReason]}
		}
		is[markConditionType], is[markConditionStatus], is[markConditionReason] = span{}, span{}, span{}
	}
}

// skipSpace skips whitespace. It returns true.
func (r *shapeReader) skipSpace() bool {
	for i, c := range r.in {
		if c > ' ' || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			r.in = r.in[i:]
			return true
		}
	}
	r.in = nil
	return true
}

// token consumes one byte, with the whitespace around it.
func (r *shapeReader) token(c byte) bool {
	if r.skipSpace(); len(r.in) == 0 || r.in[0] != c {
		return false
	}
	r.in = r.in[1:]
	r.packed = append(r.packed, c)
	return r.skipSpace()
}

// take consumes n bytes.
func (r *shapeReader) take(n int) span {
	from := len(r.packed)
	r.packed = append(r.packed, r.in[:n]...)
	r.in = r.in[n:]
	return span{int32(from), int32(from + n)}
}

// shapeDigits counts the digits of a number; a leading zero is allowed only alone.
func shapeDigits(b []byte) int {
	n := 0
	for n < len(b) && '0' <= b[n] && b[n] <= '9' {
		n++
	}
	if n > 1 && b[0] == '0' {
		return 0
	}
	return n
}

func (r *shapeReader) int() (at span, ok bool) {
	sign := 0
	if len(r.in) > 0 && r.in[0] == '-' {
		sign = 1
	}
	n := shapeDigits(r.in[sign:])
	if rest := r.in[sign+n:]; n == 0 || n > 9 || len(rest) > 0 && strings.IndexByte(".eE", rest[0]) >= 0 {
		return at, false
	}
	return r.take(sign + n), true
}

// shapesOf returns a function that makes the shapes, once.
func shapesOf(kinds schemas.Kinds) func() *shapes {
	return sync.OnceValue(func() *shapes {
		s := &shapes{runShape(), map[string]*shape{}}
		for _, k := range kinds {
			if k.NewStatus != nil {
				s.statuses[k.Name] = statusShape(k)
			}
		}
		return s
	})
}

// inBrief returns the brief of a status. It points into the packed text.
func (s *shaped) inBrief() schemas.Brief {
	b := schemas.Brief{Phase: s.text(markPhase), ObservedDigest: s.text(markDigest),
		Ready: schemas.ConditionStatus(s.part(s.ready)), Stalled: schemas.ConditionStatus(s.part(s.stall[0])),
		StalledReason: s.part(s.stall[1]), Running: s.number(markRunning), Blocked: s.has.blocked, ID: s.text(markID),
		Progress: schemas.Progress{Done: s.number(markDone), Total: s.number(markTotal)}}
	if at := s.marked[markFinished]; at.present() {
		_ = b.FinishedAt.UnmarshalJSON(s.packed[at.from:at.to]) // plainTime
	}
	return b
}

func (s *shaped) number(m mark) int {
	at := s.marked[m]
	n, _ := strconv.Atoi(string(s.packed[at.from:at.to]))
	return n
}

// text returns the string with a mark, as a part of the packed text; "" if it is missing.
func (s *shaped) text(m mark) string { return s.part(s.marked[m]) }

func (s *shaped) part(at span) string {
	b := s.of(at)
	return unsafe.String(unsafe.SliceData(b), len(b))
}
