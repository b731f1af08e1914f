package gitrepo

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

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
