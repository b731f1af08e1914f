package schemas

import "strings"

// Most specs are written in a small part of YAML: block mappings and lists, values of one line or of several without a
// blank one, one-line brackets, and literal and folded texts. plainYAML reads just that part, an order of magnitude faster than a full parser. Whatever else it
// meets, and whatever looks wrong, it leaves to the full parser, which then also words the error. Where it does accept a
// file, both yield the same values at the same places; FuzzPlainYAML holds it to that.

// plainYAML returns the document, or nil if the full parser must read it. Its values are from the store, which must
// not be emptied while they are in use; nil means a new store.
func plainYAML(text string, from *valueStore) *value {
	if text == "" || strings.IndexByte(text, '\t') >= 0 || hasOddBreak(text) {
		return nil
	}
	if from == nil {
		from = new(valueStore)
	}
	r := plainReader{text: text, store: from}
	if r.advance(); r.rest() == "---" { // an explicit start of the only document
		r.advance()
	}
	if r.eof || r.indent != 0 {
		return nil
	}
	root := r.block(0)
	if root == nil || !r.eof {
		return nil
	}
	return root
}

// plainReader stands on a line that is neither blank nor a comment, or at the end. A method that returns nil or false
// gives up for good.
type plainReader struct {
	text   string
	next   int // where the line after this one begins
	start  int // where this line begins
	end    int // where it ends, without its line end and trailing spaces
	at     int // where in the line the reader is
	line   int
	indent int // spaces at the beginning of the line
	eof    bool
	ascii  bool // of this line
	known  int  // a place of this line whose column is known, for lines that are not ASCII
	wide   int  // bytes of the line before known that begin no character
	values int
	store  *valueStore
}

// valueStore allocates values and frees all of them at once. A document has dozens, each with its lists, and they are
// needed only until the object is made.
type valueStore struct {
	first [64]value
	used  int     // of first
	spare []value // when first is used up

	scratch []byte   // room for the canonical form
	nodes   [16]Node // room for those of a DAG while it is checked
}

// take returns an empty value, which may have room for fields or items.
func (s *valueStore) take() *value {
	if s.used < len(s.first) {
		s.used++
		return &s.first[s.used-1]
	}
	if len(s.spare) == 0 {
		s.spare = make([]value, 64)
	}
	v := &s.spare[0]
	s.spare = s.spare[1:]
	return v
}

// empty takes the values back. Nothing of the document stays.
func (s *valueStore) empty() {
	for i := range s.first[:s.used] {
		v := &s.first[i]
		clear(v.fields)
		clear(v.items)
		*v = value{fields: v.fields[:0], items: v.items[:0]}
	}
	s.used, s.spare = 0, nil
	clear(s.nodes[:])
}

// advance goes to the next line that says something.
func (r *plainReader) advance() {
	for {
		if !r.nextLine() {
			r.eof, r.indent = true, -1
			return
		}
		if r.at < r.end && r.text[r.at] != '#' {
			return
		}
	}
}

func (r *plainReader) nextLine() bool {
	if r.next >= len(r.text) {
		return false
	}
	r.start = r.next
	r.line++
	if i := strings.IndexByte(r.text[r.start:], '\n'); i >= 0 {
		r.end, r.next = r.start+i, r.start+i+1
	} else {
		r.end, r.next = len(r.text), len(r.text)
	}
	for r.end > r.start && r.text[r.end-1] == ' ' {
		r.end--
	}
	r.at = r.start
	for r.at < r.end && r.text[r.at] == ' ' {
		r.at++
	}
	r.indent = r.at - r.start
	r.ascii, r.known, r.wide = true, r.start, 0
	for i := r.start; i < r.end && r.ascii; i++ {
		r.ascii = r.text[i] < 0x80
	}
	return true
}

func (r *plainReader) rest() string { return r.text[r.at:r.end] }

func (r *plainReader) column(at int) int {
	if r.ascii {
		return at - r.start + 1
	}
	if at < r.known {
		r.known, r.wide = r.start, 0
	}
	for ; r.known < at; r.known++ {
		if r.text[r.known]&0xC0 == 0x80 {
			r.wide++
		}
	}
	return at - r.start - r.wide + 1
}

// value makes a value at the present place, or nil past the bounds of a document.
func (r *plainReader) value(f form, depth int) *value {
	r.values++
	if depth > maxDepth || r.values > maxValues {
		return nil
	}
	v := r.store.take()
	v.form, v.line, v.col = f, r.line, r.column(r.at)
	return v
}

// block reads the mapping or list that starts at the present place of the line.
func (r *plainReader) block(depth int) *value {
	if r.isItem() {
		return r.blockList(depth)
	}
	return r.blockObject(depth)
}

// isItem reports whether a list item starts here.
func (r *plainReader) isItem() bool {
	return r.at+1 < r.end && r.text[r.at] == '-' && r.text[r.at+1] == ' '
}

func (r *plainReader) blockObject(depth int) *value {
	indent := r.at - r.start
	v := r.value(object, depth)
	if v == nil {
		return nil
	}
	for {
		f := field{line: r.line, col: r.column(r.at)}
		name, ok := r.key()
		if !ok || v.field(name) != nil || len(v.fields) > 200 {
			return nil
		}
		f.name = name
		if f.value = r.fieldValue(indent, depth+1); f.value == nil {
			return nil
		}
		v.fields = append(v.fields, f)
		switch {
		case r.indent < indent:
			return v
		case r.indent > indent || r.isItem():
			return nil
		}
	}
}

// key reads "word:" and stands behind it and the spaces that follow.
func (r *plainReader) key() (string, bool) {
	i := r.at
	for i < r.end && isKeyByte(r.text[i]) {
		i++
	}
	name := r.text[r.at:i]
	if name == "" || name[0] == '-' || name[0] == '.' || len(name) > 100 || i >= r.end || r.text[i] != ':' {
		return "", false
	}
	var k value
	if why, _ := k.plainScalar(name); why != "" || k.form != text {
		return "", false
	}
	if r.at = i + 1; r.at < r.end && r.text[r.at] != ' ' {
		return "", false
	}
	r.spaces()
	return name, true
}

func isKeyByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.' || c == '/'
}

func (r *plainReader) spaces() {
	for r.at < r.end && r.text[r.at] == ' ' {
		r.at++
	}
}

// fieldValue reads what follows "key: " and stands on the next line then.
func (r *plainReader) fieldValue(indent, depth int) *value {
	if r.at < r.end && r.text[r.at] != '#' {
		return r.inline(indent, depth)
	}
	r.advance()
	if r.indent > indent || r.indent == indent && r.isItem() {
		return r.block(depth)
	}
	return nil // no value: rare, and the full parser knows its place
}

func (r *plainReader) blockList(depth int) *value {
	indent := r.at - r.start
	if indent != r.indent { // a list inside a list's line
		return nil
	}
	v := r.value(list, depth)
	if v == nil {
		return nil
	}
	for {
		r.at++
		r.spaces()
		item := r.item(indent, depth+1)
		if item == nil {
			return nil
		}
		v.items = append(v.items, item)
		switch {
		case r.indent < indent || r.indent == indent && !r.isItem():
			return v
		case r.indent > indent:
			return nil
		}
	}
}

// item reads what follows "- ".
func (r *plainReader) item(indent, depth int) *value {
	if r.at >= r.end || r.text[r.at] == '#' || r.isItem() {
		return nil
	}
	here := *r
	if _, ok := r.key(); ok {
		*r = here
		return r.blockObject(depth)
	}
	*r = here
	return r.inline(indent, depth)
}

// inline reads a value that begins on its line and goes to the line after it, which must not be deeper than the field or
// item that the value belongs to.
func (r *plainReader) inline(indent, depth int) *value {
	var v *value
	switch r.text[r.at] {
	case '|', '>':
		return r.blockText(indent, depth)
	case '[', '{', '"', '\'':
		v = r.flow(depth)
		if v == nil || !r.atEnd() {
			return nil
		}
	default:
		return r.plain(indent, depth)
	}
	if r.advance(); r.indent > indent {
		return nil
	}
	return v
}

// atEnd reports whether nothing but a comment follows.
func (r *plainReader) atEnd() bool {
	if r.at == r.end {
		return true
	}
	if r.text[r.at] != ' ' {
		return false
	}
	r.spaces()
	return r.at == r.end || r.text[r.at] == '#'
}

// plain reads an unquoted text that extends to the end of the line or to a comment, and continues on lines that are
// indented deeper than its parent, each joined by a space.
func (r *plainReader) plain(indent, depth int) *value {
	first, ends := r.plainLine()
	if !startsPlain(first) {
		return nil
	}
	v := r.value(text, depth)
	if v == nil {
		return nil
	}
	s, line := first, r.line
	var more []byte
	for r.advance(); r.indent > indent; r.advance() {
		if line++; r.line != line || ends { // a blank line, which counts, or a comment, which ends the text
			return nil
		}
		if s, ends = r.plainLine(); s == "" {
			return nil
		}
		if more == nil {
			more = append(make([]byte, 0, 4*len(first)), first...)
		}
		more = append(append(more, ' '), s...)
	}
	if more != nil {
		first = string(more)
	}
	if why, _ := v.plainScalar(first); why != "" {
		return nil
	}
	return v
}

// plainLine is what a line has of an unquoted text, "" if that cannot be one, and whether a comment ends the text.
func (r *plainReader) plainLine() (s string, ends bool) {
	s = r.rest()
	if i := strings.Index(s, " #"); i >= 0 {
		s, ends = strings.TrimRight(s[:i], " "), true
	}
	if s == "" || strings.Contains(s, ": ") || s[len(s)-1] == ':' {
		return "", ends
	}
	return s, ends
}

// startsPlain reports whether an unquoted text can begin like s.
func startsPlain(s string) bool {
	if s == "" || strings.IndexByte("?:,[]{}#&*!|>'\"%@`", s[0]) >= 0 {
		return false
	}
	return s[0] != '-' || len(s) > 1 && s[1] != ' ' && s[1] != '-'
}

func (r *plainReader) scalar(s string, depth int) *value {
	v := r.value(text, depth)
	if v == nil {
		return nil
	}
	if why, _ := v.plainScalar(s); why != "" {
		return nil
	}
	return v
}
