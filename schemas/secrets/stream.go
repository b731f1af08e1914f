package secrets

import (
	"bytes"
	"strings"
)

// Stream removes secrets that begin in one part of a stream of text and end in another: private text, and private
// keys, which have several lines. Secrets within one part are left to [RedactBytes]. The zero Stream is ready to use,
// for one stream.
type Stream struct {
	// Mark replaces private text.
	Mark string

	depth  int  // of marks of private text
	inside bool // a private key
	last   int  // the length of its last line
	untold bool // too little of it had come for RedactBytes to name it
}

// Hide hides private text in b, a part of the stream, and leaves out the lines of a private key that began before it, in whose place is a mark
// where RedactBytes made none. b is whole lines or pieces of one. It does not change b, and may return a part of it.
func (s *Stream) Hide(b []byte) []byte {
	b = s.hidePrivate(b)
	if s.inside {
		rest := s.leave(b)
		if s.untold && significant(string(b[:len(b)-len(rest)])) > 0 {
			s.untold, rest = false, append([]byte(markStart+ruleKey+markEnd+"\n"), rest...)
		}
		b = rest
	}
	if s.inside {
		return b
	}
	end := b[max(len(b)-longKey, 0):]
	if i := max(bytes.LastIndex(end, []byte("-----BEGIN ")), bytes.LastIndex(end, []byte("-----begin "))); i >= 0 {
		s.enter(string(end[i:]))
	}
	return b
}

func (s *Stream) hidePrivate(b []byte) []byte {
	if s.depth == 0 && !mayBePrivate(b) {
		return b
	}
	var out []byte
	kept := 0 // b[kept:] is not in out yet
	for i := range b {
		mark, opens := privateMark(b[:i+1])
		switch {
		case mark == 0 || !opens && s.depth == 0:
		case opens:
			if s.depth == 0 {
				out = append(append(out, b[kept:i+1-mark]...), s.Mark...)
			}
			s.depth++
		default:
			if s.depth--; s.depth == 0 {
				kept = i + 1
			}
		}
	}
	if s.depth == 0 {
		out = append(out, b[kept:]...)
	}
	return out
}

// enter notes whether text, from a mark on, is a key up to its end.
func (s *Stream) enter(text string) {
	body := keyMark(text, len("-----BEGIN "))
	if body < 0 || keyEnds(text, body) >= 0 || keyBody(text, body) < len(text) {
		return
	}
	s.inside, s.last, s.untold = true, 64, significant(text[body:]) < minKey
}

// leave cuts off what still belongs to the key.
func (s *Stream) leave(b []byte) []byte {
	text := string(b)
	for i := 0; i < len(text); {
		to, next := lineEnd(text, i, len(text))
		line := strings.Trim(text[i:to], lineFrame)
		if foldPrefix(line, "-----end ") {
			s.inside = false
			return b[next:]
		}
		if !keyLine(line, s.last) {
			s.inside = false
			return b[i:]
		}
		if line != "" {
			s.last = len(line)
		}
		i = next
	}
	return nil
}
