package answer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Pieces are all of a line, each short enough to be shown, and words are whole where they are not longer than a piece.
func TestPieces(t *testing.T) {
	t.Parallel()
	var words []string
	for i := range 500 {
		words = append(words, fmt.Sprintf("wörd%d", i))
	}
	text := strings.Join(words, " ")
	for _, line := range []string{
		"", "short", strings.Repeat("x", SnippetWidth), strings.Repeat("ü", SnippetWidth), strings.Repeat("x", SnippetWidth+1),
		strings.Repeat("ab\xff", 300), strings.Repeat(" ", 1000), strings.Repeat("long", 100_000), text, text + strings.Repeat("y", 200),
	} {
		got := pieces(line)
		whole := strings.ReplaceAll(strings.Join(got, ""), "……", "")
		if whole != line {
			t.Errorf("%.40q… in pieces is %.40q…", line, whole)
		}
		for i, p := range got {
			marks := strings.HasPrefix(p, "…") == (i > 0) && strings.HasSuffix(p, "…") == (i < len(got)-1)
			if utf8.RuneCountInString(p) > SnippetWidth || !marks {
				t.Errorf("piece %d of %.40q… is %q", i, line, p)
			}
		}
	}
	whole := strings.Fields(strings.ReplaceAll(strings.Join(pieces(text), " "), "…", ""))
	if !slices.Equal(whole, words) {
		t.Errorf("words were cut: %q", whole)
	}
}
