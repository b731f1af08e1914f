package meter

import (
	"bytes"
	"strings"
)

// hidden replaces a key.
const hidden = "***"

// hide removes the key from a text.
func (e *Endpoint) hide(text string) string {
	if e.key == "" {
		return text
	}
	return strings.ReplaceAll(text, e.key, hidden)
}

// hider removes a secret from a stream. It holds back only what may be the beginning of the secret.
type hider struct {
	secret []byte
	held   []byte
}

// next returns what of an answer can be passed on without the secret after another part has come; last says that it is the last one. The result may be b.
func (h *hider) next(b []byte, last bool) []byte {
	if len(h.secret) == 0 {
		return b
	}
	if len(h.held) > 0 {
		b = append(h.held, b...)
		h.held = nil
	}
	if bytes.Contains(b, h.secret) {
		b = bytes.ReplaceAll(b, h.secret, []byte(hidden))
	}
	if last {
		return b
	}
	for n := min(len(h.secret)-1, len(b)); n > 0; n-- {
		if bytes.HasSuffix(b, h.secret[:n]) {
			h.held = bytes.Clone(b[len(b)-n:])
			return b[:len(b)-n]
		}
	}
	return b
}
