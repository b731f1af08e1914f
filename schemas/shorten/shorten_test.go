package shorten_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"reconcile.dev/reconcile/schemas/shorten"
)

func TestText(t *testing.T) {
	for _, c := range []struct {
		s    string
		most int
		want string
	}{
		{"", 1, ""}, {"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"äöü", 3, "äöü"}, {"äöüß", 3, "äö…"}, {"ab", 1, "…"}, {"€€", 2, "€€"},
	} {
		if got := shorten.Text(c.s, c.most); got != c.want {
			t.Errorf("Text(%q, %d) = %q, want %q", c.s, c.most, got, c.want)
		}
	}
}

func TestBytes(t *testing.T) {
	for most, want := range map[int]string{0: "", 1: "a", 2: "a", 3: "aä", 4: "aä", 5: "aä", 6: "aä€", 9: "aä€"} {
		if got := shorten.Bytes("aä€", most); got != want {
			t.Errorf("%d bytes are %q, want %q", most, got, want)
		}
	}
}

func FuzzShorten(f *testing.F) {
	f.Add("aä€𝄞\xff", 3)
	f.Fuzz(func(t *testing.T, s string, most int) {
		if most < 1 || most > 1000 {
			return
		}
		text, bytes := shorten.Text(s, most), shorten.Bytes(s, most)
		if utf8.RuneCountInString(text) > most || text != s && !strings.HasSuffix(text, "…") || text != s && utf8.RuneCountInString(s) <= most {
			t.Errorf("Text(%q, %d) = %q", s, most, text)
		}
		if len(bytes) > most || !strings.HasPrefix(s, bytes) || utf8.ValidString(s) && !utf8.ValidString(bytes) {
			t.Errorf("Bytes(%q, %d) = %q", s, most, bytes)
		}
	})
}
