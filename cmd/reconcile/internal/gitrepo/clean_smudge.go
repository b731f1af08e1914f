package gitrepo

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
)

// conversion describes how git converts a file between the work tree and the object store: the attributes text,
// eol, ident and working-tree-encoding, with core.autocrlf and core.eol. The zero value converts nothing.
type conversion struct {
	text     textMode
	crlf     bool   // line ends in the work tree are CRLF
	ident    bool   // $Id$ is expanded in the work tree
	encoding string // of the work tree; "" is UTF-8
	filter   bool   // a program converts the file as well
}

// textMode selects the files whose line ends are converted.
type textMode int

const (
	binaryFile textMode = iota
	textFile
	textIfGuessed // the content decides
)

// lineEnds holds the configured line-end settings.
type lineEnds struct {
	auto textMode // for files without a text attribute
	crlf bool     // text has CRLF in the work tree unless attributes decide
}

// readLineEnds reads how the configuration converts line ends between work tree and objects.
func readLineEnds(ctx context.Context, c *gitConfig) (e lineEnds) {
	if v, _ := c.get(ctx, "core.autocrlf"); strings.EqualFold(v, "input") {
		return lineEnds{auto: textIfGuessed}
	}
	if c.flag(ctx, "core.autocrlf", false) {
		return lineEnds{auto: textIfGuessed, crlf: true}
	}
	v, _ := c.get(ctx, "core.eol")
	switch strings.ToLower(v) {
	case "crlf":
		e.crlf = true
	case "lf":
	default:
		e.crlf = runtime.GOOS == "windows"
	}
	return e
}

// textValue returns the value of the attribute text, or of crlf, its old name.
func textValue(says map[string]string) string {
	switch v := says["text"]; v {
	case attrSet, attrClear, "input", "auto":
		return v
	}
	return says["crlf"]
}

// plain reports whether git stores and checks out the bytes as they are.
func (c conversion) plain() bool { return c == conversion{crlf: c.crlf} }

// native reports whether this package can write the file as git would check it out.
func (c conversion) native() bool {
	if c.encoding == "" {
		return !c.filter
	}
	w, err := wideOf(c.encoding)
	return !c.filter && err == nil && w.order != nil
}

// clean converts a file's content to the form that git stores. indexed returns the file's content in the index, or
// nil: where git guesses, a file with CRLF in the index keeps it. An error means that git cannot convert it either,
// or that only git can.
func (c conversion) clean(data []byte, indexed func() []byte) ([]byte, error) {
	if c.encoding != "" && len(data) > 0 {
		var err error
		if data, err = toUTF8(c.encoding, data); err != nil {
			return nil, err
		}
	}
	if c.text != binaryFile {
		data = c.cleanLineEnds(data, indexed)
	}
	if c.ident {
		data = collapseIdent(data)
	}
	return data, nil
}

func (c conversion) cleanLineEnds(data []byte, indexed func() []byte) []byte {
	if c.text == textFile {
		return bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	}
	s := countText(data)
	if s.crlf == 0 || s.binary() {
		return data
	}
	if was := countText(indexed()); was.crlf > 0 && !was.binary() {
		return data
	}
	return bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
}

// smudge converts stored content to the form that git writes to the work tree.
func (c conversion) smudge(data []byte) ([]byte, error) {
	if c.ident {
		data = expandIdent(data)
	}
	if c.text != binaryFile && c.crlf {
		data = c.smudgeLineEnds(data)
	}
	if c.encoding == "" || len(data) == 0 {
		return data, nil
	}
	return fromUTF8(c.encoding, data)
}

func (c conversion) smudgeLineEnds(data []byte) []byte {
	s := countText(data)
	if s.lf == 0 || c.text == textIfGuessed && (s.cr > 0 || s.crlf > 0 || s.binary()) {
		return data
	}
	out := make([]byte, 0, len(data)+s.lf)
	for i, b := range data {
		if b == '\n' && (i == 0 || data[i-1] != '\r') {
			out = append(out, '\r')
		}
		out = append(out, b)
	}
	return out
}

// textCount holds the counts by which git tells text from binary content.
type textCount struct{ nul, cr, lf, crlf, printable, other int }

func countText(data []byte) (s textCount) {
	for i := 0; i < len(data); i++ {
		switch b := data[i]; {
		case b == '\r' && i+1 < len(data) && data[i+1] == '\n':
			s.crlf++
			i++
		case b == '\r':
			s.cr++
		case b == '\n':
			s.lf++
		case b == '\b', b == '\t', b == '\x1b', b == '\f':
			s.printable++
		case b == 0:
			s.nul++
			s.other++
		case b < 32, b == 127:
			s.other++
		default:
			s.printable++
		}
	}
	if n := len(data); n > 0 && data[n-1] == '\x1a' { // a DOS end-of-file mark
		s.other--
	}
	return s
}

func (s textCount) binary() bool { return s.cr > 0 || s.nul > 0 || s.printable>>7 < s.other }

// eachIdent copies data and calls found for each $Id$ and $Id: …$. The result of found replaces the text between
// the dollars.
func eachIdent(data []byte, found func(inner []byte) []byte) []byte {
	var out []byte
	for {
		i := bytes.Index(data, []byte("$Id"))
		if i < 0 {
			return append(out, data...)
		}
		out = append(out, data[:i+1]...)
		data = data[i+1:]
		rest := data[len("Id"):]
		if len(rest) == 0 || rest[0] != '$' && rest[0] != ':' {
			continue
		}
		end := bytes.IndexByte(rest, '$')
		if end < 0 {
			return append(out, data...)
		}
		inner := data[:len("Id")+end]
		if bytes.IndexByte(inner, '\n') >= 0 {
			continue
		}
		now := found(inner)
		if now == nil {
			continue
		}
		out = append(append(out, now...), '$')
		data = data[len(inner)+1:]
	}
}

func collapseIdent(data []byte) []byte {
	return eachIdent(data, func(inner []byte) []byte {
		if len(inner) == len("Id") {
			return nil // its second dollar may start another one
		}
		return []byte("Id")
	})
}

// expandIdent inserts the blob's hash. An identifier that contains blanks belongs to another system.
func expandIdent(data []byte) []byte {
	hash := hashObject(plumbing.BlobObject, data).String()
	return eachIdent(data, func(inner []byte) []byte {
		const head = len("Id: ")
		if len(inner) > head {
			if i := bytes.IndexByte(inner[head:], ' '); i >= 0 && head+i < len(inner)-1 {
				return nil
			}
		}
		return []byte("Id: " + hash + " ")
	})
}

// wide is an encoding with units of two or four bytes.
type wide struct {
	size  int
	order binary.ByteOrder // nil: the byte order mark decides
	mark  bool             // written with a mark in this order, and read in either order, or without a mark in this order
}

// wides are the encodings that are converted here; git converts others.
var wides = map[string]wide{
	"UTF-16": {size: 2}, "UTF-16LE": {2, binary.LittleEndian, false}, "UTF-16BE": {2, binary.BigEndian, false},
	"UTF-16LE-BOM": {2, binary.LittleEndian, true},
	"UTF-32":       {size: 4}, "UTF-32LE": {4, binary.LittleEndian, false}, "UTF-32BE": {4, binary.BigEndian, false},
}

func wideOf(name string) (wide, error) {
	name = strings.ToUpper(name)
	if rest, ok := strings.CutPrefix(name, "UTF"); ok && !strings.HasPrefix(rest, "-") {
		name = "UTF-" + rest
	}
	w, ok := wides[name]
	if !ok {
		return w, &errEncoding{name}
	}
	return w, nil
}

var (
	errMark     = errors.New("the byte order mark is missing, or is there although the encoding says the order")
	errNotValid = errors.New("not valid in its encoding")
)

// toUTF8 converts data from the named encoding.
func toUTF8(name string, data []byte) ([]byte, error) {
	w, err := wideOf(name)
	if err != nil {
		return nil, err
	}
	order, marked := w.marked(data)
	if !w.mark && marked == (w.order != nil) {
		return nil, errMark
	}
	if marked {
		data = data[w.size:]
	} else {
		order = w.order
	}
	if len(data)%w.size != 0 {
		return nil, errNotValid
	}
	out := make([]byte, 0, len(data))
	for len(data) > 0 {
		r, n := w.rune(order, data)
		if n == 0 {
			return nil, errNotValid
		}
		out, data = utf8.AppendRune(out, r), data[n:]
	}
	return out, nil
}

// marked returns the byte order of the mark at the start of data.
func (w wide) marked(data []byte) (binary.ByteOrder, bool) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		if len(data) >= w.size && w.unit(order, data) == 0xFEFF {
			return order, true
		}
	}
	return nil, false
}

func (w wide) unit(order binary.ByteOrder, data []byte) uint32 {
	if w.size == 2 {
		return uint32(order.Uint16(data))
	}
	return order.Uint32(data)
}

// rune decodes the first rune; n is 0 if it is not valid.
func (w wide) rune(order binary.ByteOrder, data []byte) (r rune, n int) {
	u := w.unit(order, data)
	switch {
	case w.size == 2 && utf16.IsSurrogate(rune(u)):
		if len(data) < 4 {
			return 0, 0
		}
		if r = utf16.DecodeRune(rune(u), rune(w.unit(order, data[2:]))); r == utf8.RuneError {
			return 0, 0
		}
		return r, 4
	case u > utf8.MaxRune || !utf8.ValidRune(rune(u)):
		return 0, 0
	}
	return rune(u), w.size
}

// fromUTF8 converts to an encoding whose byte order is known.
func fromUTF8(name string, data []byte) ([]byte, error) {
	w, err := wideOf(name)
	if err != nil {
		return nil, err
	}
	if w.order == nil {
		return nil, &errEncoding{name} // the byte order depends on the system's library
	}
	if !utf8.Valid(data) {
		return nil, errNotValid
	}
	out := make([]byte, 0, 2*len(data)+4)
	if w.mark {
		out = w.append(out, 0xFEFF)
	}
	for _, r := range string(data) {
		if high, low := utf16.EncodeRune(r); w.size == 2 && r > 0xFFFF {
			out = w.append(w.append(out, uint32(high)), uint32(low))
		} else {
			out = w.append(out, uint32(r))
		}
	}
	return out, nil
}

func (w wide) append(out []byte, unit uint32) []byte {
	if w.size == 2 {
		return w.order.(binary.AppendByteOrder).AppendUint16(out, uint16(unit))
	}
	return w.order.(binary.AppendByteOrder).AppendUint32(out, unit)
}

func isUTF8(enc string) bool {
	return enc == "" || strings.EqualFold(enc, "UTF-8") || strings.EqualFold(enc, "UTF8")
}

// errEncoding reports an encoding that only git supports.
type errEncoding struct{ name string }

func (e *errEncoding) Error() string { return fmt.Sprintf("working-tree-encoding %s", e.name) }
