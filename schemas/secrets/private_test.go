package secrets

import (
	"strings"
	"testing"
)

func TestStripPrivate(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"nothing private", "nothing private"},
		{"a <private>b</private> c", "a  c"},
		{"a <PRIVATE>b</Private> c", "a  c"},
		{"a <private >b</private\t> c", "a  c"},
		{"a <private>b", "a "},
		{"a <private>b <private>c</private> d</private> e", "a  e"},
		{"a <private>b <private>c</private> d", "a "},
		{"a </private> b", "a </private> b"},
		{"<private></private>", ""},
		{"one <private>1</private> two <private>2</private> three", "one  two  three"},
		{"a <private>b\n\nc\n</private> d", "a  d"},
		{`{"a":"\u003cprivate\u003eb\u003c/private\u003ec"}`, `{"a":"c"}`},
		{"a <pri<private>x</private>vate>b</private> c", "a  c"},
		{"a <pri<private>x</private>vate>b", "a "},
		{"a <private class=\"x\" id='y'>b</private> c", "a  c"},
		{`{"a":"<private class=\"x\">b</private>c"}`, `{"a":"c"}`},
		{"a &lt;private&gt;b&lt;/private&gt; c", "a  c"},
		{"a &lt;PRIVATE class=x&gt;b", "a "},
		{"a <private\n>b</private\n> c", "a  c"},
		{"is a <private b> or a <privateKey x=1>?", "is a <private b> or a <privateKey x=1>?"},
		{"a <privates>b</privates>", "a <privates>b</privates>"},
		{"é <private>ü</private> \xff", "é  \xff"},
	} {
		if got := StripPrivate(c.in); got != c.want {
			t.Errorf("%q: got %q, want %q", c.in, got, c.want)
		}
		if again := StripPrivate(StripPrivate(c.in)); again != c.want {
			t.Errorf("%q: a second time makes %q", c.in, again)
		}
	}
}

// TestStripPrivateFrom: what is private in parts is what is private in the whole.
func TestStripPrivateFrom(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"a|b", "a|b"},
		{"a <private>b|c</private> d", "a | d"},
		{"a <private>b|c|d</private> e|f", "a || e|f"},
		{"a <priv|ate>b</private> c", "a | c"},
		{"a <private>b|c", "a |"},
		{"|<private>|b|", "|||"},
		{"a <pri|<private>x|</private>|vate>b|c</private>|d", "a |||||d"},
		{"a</private>|b", "a</private>|b"},
	} {
		if got := strings.Join(StripPrivateFrom(strings.Split(c.in, "|")), "|"); got != c.want {
			t.Errorf("%q: got %q, want %q", c.in, got, c.want)
		}
		whole := StripPrivate(strings.ReplaceAll(c.in, "|", ""))
		if whole != strings.ReplaceAll(c.want, "|", "") {
			t.Errorf("%q: the whole is %q", c.in, whole)
		}
	}
}

func TestPrivate(t *testing.T) {
	text := "a <private>b <private>c</private> d</private> e <PRIVATE>f"
	var got []string
	for _, f := range Private(text) {
		if f.Rule != RulePrivate {
			t.Errorf("the rule is %q", f.Rule)
		}
		got = append(got, text[f.Start:f.End])
	}
	if want := "<private>b <private>c</private> d</private>|<PRIVATE>f"; strings.Join(got, "|") != want {
		t.Errorf("got %q", got)
	}
	if Private("no </private> mark opens") != nil {
		t.Error("found private text where none begins")
	}
}

// TestStripPrivateIsLinear: marks within marks within marks cost no more than their length.
func TestStripPrivateIsLinear(t *testing.T) {
	const depth = 200_000
	text := strings.Repeat("<pri", depth) + "<private></private>" + strings.Repeat("vate>", depth)
	got := StripPrivate(text)
	if strings.Contains(got, "<private>") {
		t.Error("a mark is left")
	}
	if got := StripPrivate(strings.Repeat("<private>", depth) + strings.Repeat("</private>", depth) + "x"); got != "x" {
		t.Errorf("%d bytes are left", len(got))
	}
}
