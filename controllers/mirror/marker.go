package mirror

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Keys are what markers are signed with. The first one signs; a text that any of them signed is ours.
type Keys []string

// A marker is the last line of a text: <!-- reconcile <key> <MAC> -->.
const (
	markerBegin = "<!-- reconcile "
	markerEnd   = " -->"
	macBytes    = 16 // of SHA-256's 32
)

// Seal seals a text with a marker at its end, which has the key and a MAC of both. The key holds no blank and no
// bracket.
func (k Keys) Seal(key, text string) string {
	text = plainEnds(text)
	return text + "\n\n" + markerBegin + key + " " + markerMAC(k[0], key, text) + markerEnd
}

// Open returns the key of a text as made by Seal; ok is false for any other text, also for one of ours that was edited.
// Line feeds and carriage returns from GitHub are equivalent.
func (k Keys) Open(sealed string) (key string, ok bool) {
	text, key, sum := splitMarker(sealed)
	for _, secret := range k {
		if key != "" && hmac.Equal([]byte(sum), []byte(markerMAC(secret, key, text))) {
			return key, true
		}
	}
	return "", false
}

// Marked splits the marker off the end of a text and returns its key, also if the marker is not ours; "" if the text
// has no marker.
func Marked(text string) string {
	_, key, _ := splitMarker(text)
	return key
}

// Unsealed splits the marker off the end of a sealed text and returns the text without it.
func Unsealed(sealed string) string {
	text, _, _ := splitMarker(sealed)
	return text
}

// splitMarker separates a text and the marker at its end; key is "" if there is no marker.
func splitMarker(sealed string) (text, key, sum string) {
	sealed = plainEnds(sealed)
	at := strings.LastIndex(sealed, "\n"+markerBegin)
	if at < 0 || !strings.HasSuffix(sealed, markerEnd) || len(sealed) < at+len(markerBegin)+len(markerEnd)+1 {
		return sealed, "", ""
	}
	inside := sealed[at+1+len(markerBegin) : len(sealed)-len(markerEnd)]
	key, sum, ok := strings.Cut(inside, " ")
	if !ok || key == "" || strings.ContainsAny(inside, "\n<>") || strings.Contains(sum, " ") {
		return sealed, "", ""
	}
	return plainEnds(sealed[:at]), key, sum
}

// plainEnds drops what servers and browsers change of a text: carriage returns, and blanks at its ends.
func plainEnds(text string) string {
	return strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
}

func markerMAC(secret, key, text string) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(key + "\n" + text))
	return hex.EncodeToString(h.Sum(nil)[:macBytes])
}

// Digest is that of a text as records have it: sha256:….
func Digest(text string) string {
	sum := sha256.Sum256([]byte(plainEnds(text)))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func hasFoldSuffix(s, suffix string) bool {
	return len(s) >= len(suffix) && strings.EqualFold(s[len(s)-len(suffix):], suffix)
}
