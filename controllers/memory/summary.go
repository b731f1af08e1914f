package memory

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/tokens"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
)

// Limits of the summary of an entry (agentx-spec, memory pipeline 4.1; schemas.ObservationEntry).
const (
	briefLimit  = 500 // characters
	briefTokens = 50
)

// cut cuts a text with more runes than most to that many: at a space in the latter half if there is one, else between
// two characters as they are seen. The last of them says that something is missing.
func cut(text string, most int) string {
	head, rest := shorten.Head(text, most)
	if rest == "" {
		return text
	}
	end := len(head)
	if !unicode.IsSpace(firstRune(rest)) {
		if space := strings.LastIndexFunc(text[:end], unicode.IsSpace); space > runes(text, most/2) {
			end = space
		} else {
			end = grapheme(text, end)
		}
	}
	return strings.TrimRightFunc(text[:end], unicode.IsSpace) + "…"
}

// runes is the length in bytes of the first n characters.
func runes(text string, n int) int {
	for i := range text {
		if n--; n < 0 {
			return i
		}
	}
	return len(text)
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

// grapheme is the last place up to end where no character as it is seen is parted, if there is one close before it.
func grapheme(text string, end int) int {
	const close = 200 // bytes: no character as it is seen is that long
	from := max(0, end-close)
	for !utf8.RuneStart(text[from]) {
		from++
	}
	at, state := from, -1
	for at < end {
		cluster, _, _, next := uniseg.FirstGraphemeClusterInString(text[at:min(len(text), end+close)], state)
		if at+len(cluster) > end {
			break
		}
		at, state = at+len(cluster), next
	}
	if at == from {
		return end
	}
	return at
}

// Summary returns a short form of a content, some 50 tokens: its first sentence, and more of them while there are
// fewer than five words, cut at a word. It is empty only for an empty content.
func Summary(content string) string {
	text := flat(content)
	short, words := "", 0
	for _, s := range sentences(text) {
		short = strings.TrimSpace(short + " " + s.text)
		if words += len(s.words); words >= 5 {
			break
		}
	}
	return fit(cut(short, briefLimit), briefTokens)
}

// fit cuts text at a word so that it has at most that many tokens.
func fit(text string, most int) string {
	if tokens.Count(text) <= most {
		return text
	}
	low, high := 1, utf8.RuneCountInString(text)-1 // Cut(text, low) fits, Cut(text, high+1) does not
	for low < high {
		middle := (low + high + 1) / 2
		if tokens.Count(cut(text, middle)) <= most {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return cut(text, low)
}

// summaryOf is the summary of an entry, or else the beginning of its content, on one line.
func summaryOf(e *schemas.ObservationEntry) string {
	if s := flat(e.Summary); s != "" {
		return s
	}
	return cutFlat(flat(e.Content), summaryLimit)
}

// flat is a text on one line, with one space between words.
func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

// cutFlat cuts a flat text to that many characters, at a word if there is one in the last third.
func cutFlat(s string, most int) string {
	head, rest := shorten.Head(s, most)
	if rest == "" {
		return s
	}
	if at := strings.LastIndexByte(head, ' '); at > len(head)*2/3 {
		head = head[:at]
	}
	return strings.TrimRight(head, " ") + ellipsis
}

// oneLine is a short text on one line.
func oneLine(s string) string { return cutFlat(flat(agentio.Plain(s)), 200) }
