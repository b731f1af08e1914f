package state

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"encoding/json"
	"maps"
	"math/bits"
	"reflect"
	"strings"
	"unicode/utf8"

	"reconcile.dev/reconcile/schemas"
)

// A shape is a form of JSON text that always decodes into a Go type: the fields of structs in their order, as this
// program writes them, and values that fit. Most files under state/ match their shape, so that a scan of a whole tree
// need not decode them to know that they are valid. Text that does not match may still be valid: then it is decoded.
type shape struct {
	kind   shapeKind
	mark   mark
	fields []shapeField // of structs
	elem   *shape       // of lists and maps
}

type shapeKind uint8

const (
	shapeOther shapeKind = iota // no text surely matches
	shapeText
	shapeInt
	shapeBool
	shapeTime
	shapeAny
	shapeStruct
	shapeList
	shapeMap
)

type shapeField struct {
	start string // the name in quotes, and a colon
	shape *shape
}

// mark names a value that is extracted from a file without decoding it.
type mark uint8

const (
	markNone mark = iota
	markVersion
	markKind
	markName
	markKey
	markOutcome
	markAgent
	markAsks
	markLearned
	markOutputs
	markStatus
	markPhase
	markDigest
	markCondition // after the three that follow
	markConditionType
	markConditionStatus
	markConditionReason
	markDone
	markTotal
	markRunning
	markFinished
	markNodeState
	marks
)

// The values to extract from records and statuses, by paths.
var (
	envelopeMarks = map[string]mark{".apiVersion": markVersion, ".kind": markKind, ".metadata.name": markName}
	runMarks      = map[string]mark{".apiVersion": markVersion, ".kind": markKind, ".key": markKey, ".outcome": markOutcome,
		".agent": markAgent, ".asks": markAsks, ".learned[]": markLearned, ".outputs[]": markOutputs}
	statusMarks = map[string]mark{"": markStatus, ".phase": markPhase, ".observedDigest": markDigest,
		".conditions[]": markCondition, ".conditions[].type": markConditionType, ".conditions[].status": markConditionStatus,
		".conditions[].reason": markConditionReason}
	dagMarks = map[string]mark{".progress.done": markDone, ".progress.total": markTotal, ".running": markRunning,
		".finishedAt": markFinished, ".nodes[].state": markNodeState}
)

func runShape() *shape { return shapeOf(reflect.TypeFor[schemas.Run](), "", runMarks) }

// statusShape returns the shape of the status files of a kind.
func statusShape(k schemas.Kind) *shape {
	e := shapeOf(reflect.TypeFor[envelope](), "", envelopeMarks)
	t := reflect.TypeOf(k.NewStatus()).Elem()
	wanted := maps.Clone(statusMarks)
	if t == reflect.TypeFor[schemas.DAGStatus]() {
		maps.Copy(wanted, dagMarks)
	}
	e.fields[len(e.fields)-1].shape = shapeOf(t, "", wanted)
	return e
}

// shapeOf makes the shape of a type. wanted has marks by paths as .conditions[].type.
func shapeOf(t reflect.Type, path string, wanted map[string]mark) *shape {
	s := &shape{mark: wanted[path]}
	if t == reflect.TypeFor[schemas.Time]() {
		s.kind = shapeTime
		return s
	}
	if t == reflect.TypeFor[json.RawMessage]() {
		s.kind = shapeAny
		return s
	}
	if p := reflect.PointerTo(t); p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return s
	}
	switch t.Kind() {
	case reflect.Pointer:
		return shapeOf(t.Elem(), path, wanted)
	case reflect.String:
		s.kind = shapeText
	case reflect.Int:
		s.kind = shapeInt
	case reflect.Bool:
		s.kind = shapeBool
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			s.kind, s.elem = shapeList, shapeOf(t.Elem(), path+"[]", wanted)
		}
	case reflect.Map:
		if t.Key().Kind() == reflect.String {
			s.kind, s.elem = shapeMap, shapeOf(t.Elem(), path+"[]", wanted)
		}
	case reflect.Struct:
		s.kind = shapeStruct
		s.addFields(t, path, wanted)
	}
	return s
}

func (s *shape) addFields(t reflect.Type, path string, wanted map[string]mark) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous && f.Type.Kind() == reflect.Struct:
			s.addFields(f.Type, path, wanted)
		case name == "" || name == "-" || strings.Contains(options, "string"):
			// Text with this field does not match.
		default:
			s.fields = append(s.fields, shapeField{`"` + name + `":`, shapeOf(f.Type, path+"."+name, wanted)})
		}
	}
}

// shaped is text that matches a shape.
type shaped struct {
	packed []byte // the text without whitespace; valid until the next read
	marked [marks]span
	ready  span // status and reason of the Ready condition
	stall  [2]span
	has    struct{ ready, stalled, blocked bool }
}

// span is a part of packed. A missing value has the offset 0, where no value begins.
type span struct{ from, to int32 }

func (s span) present() bool { return s.from > 0 }

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

// of returns a string without its quotes.
func (s *shaped) of(at span) []byte {
	if !at.present() {
		return nil
	}
	return s.packed[at.from+1 : at.to-1]
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
			n := escape(r.in[i:])
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

// escape returns the length of the escape at the start of b, 0 without an escape. Surrogates are left to the decoder.
func escape(b []byte) int {
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

// digits counts the digits of a number; a leading zero is allowed only alone.
func digits(b []byte) int {
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
	n := digits(r.in[sign:])
	if rest := r.in[sign+n:]; n == 0 || n > 9 || len(rest) > 0 && strings.IndexByte(".eE", rest[0]) >= 0 {
		return at, false
	}
	return r.take(sign + n), true
}

func (r *shapeReader) time() (at span, ok bool) {
	if at, ok = r.word("null"); ok {
		return at, true
	}
	at, ok = r.text()
	return at, ok && !r.escaped && plainTime(r.packed[at.from:at.to])
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

// daysOf are the minimum numbers of days of the months.
var daysOf = [13]int{0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// envelope is the outer form of every file under state/ that concerns one object.
type envelope struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Metadata   envelopeName `json:"metadata"`
	Status     any          `json:"status"`
}

type envelopeName struct {
	Name string `json:"name"`
}
