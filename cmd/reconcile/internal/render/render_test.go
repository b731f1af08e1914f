package render

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/document"
)

func TestLineAndText(t *testing.T) {
	for _, c := range []struct{ in, line, text string }{
		{"plain", "plain", "plain"},
		{"a\tb\n", `a\tb\n`, "a\tb\n"},
		{"a\r\nb\rc", `a\r\nb\rc`, "a\nb\\rc"},
		{"\x1b[31mred\x07", `\x1b[31mred\x07`, `\x1b[31mred\x07`},
		{"c1 \u009b31m", `c1 \x9b31m`, `c1 \x9b31m`},
		{"bidi \u202egnp.exe", `bidi \u202egnp.exe`, `bidi \u202egnp.exe`},
		{"zero\u200bwidth", `zero\u200bwidth`, `zero\u200bwidth`},
		{"bad \xff byte", `bad \xff byte`, `bad \xff byte`},
		{"日本 ü 👩‍💻", "日本 ü 👩‍💻", "日本 ü 👩‍💻"},
		{"line\u2028separator", `line\u2028separator`, `line\u2028separator`},
	} {
		if got := Line(c.in); got != c.line {
			t.Errorf("Line(%q) = %q, want %q", c.in, got, c.line)
		}
		if got := Text(c.in); got != c.text {
			t.Errorf("Text(%q) = %q, want %q", c.in, got, c.text)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("a\x1b[2Jb\u202e\xc2\x9b\xff")
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range Text(s) {
			if document.Hidden(r) && r != '\n' && r != '\t' {
				t.Fatalf("%q let %U through", s, r)
			}
		}
		if strings.ContainsAny(Line(s), "\n\t\r") {
			t.Fatalf("Line(%q) has several lines", s)
		}
	})
}

func TestAge(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s":    -time.Second,
		"0ms":   0,
		"250ms": 250 * time.Millisecond,
		"1.0s":  time.Second,
		"9.9s":  9990 * time.Millisecond,
		"10s":   10 * time.Second,
		"119s":  119 * time.Second,
		"2m":    2 * time.Minute,
		"9m59s": 10*time.Minute - time.Second,
		"10m":   10*time.Minute + 59*time.Second,
		"2h":    2 * time.Hour,
		"3h7m":  3*time.Hour + 7*time.Minute,
		"47h":   48*time.Hour - time.Second,
		"2d":    48 * time.Hour,
		"12d":   12*24*time.Hour + time.Hour,
		"2y1d":  731 * 24 * time.Hour,
	} {
		if got := Age(d); got != want {
			t.Errorf("Age(%s) = %q, want %q", d, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	table := NewTable(Palette{}, "NAME", "READY", "NOTE")
	table.Row("a", "True", "")
	table.Row("日本", "False", "wide\x1b")
	table.Row("longer-name", "-", "x")
	var b bytes.Buffer
	if err := table.Write(&b); err != nil {
		t.Fatal(err)
	}
	want := "NAME         READY  NOTE\n" +
		"a            True\n" +
		"日本         False  wide\\x1b\n" +
		"longer-name  -      x\n"
	if b.String() != want {
		t.Errorf("got:\n%swant:\n%s", b.String(), want)
	}
	b.Reset()
	if err := NewTable(Palette{}, "NAME").Write(&b); err != nil || b.Len() > 0 {
		t.Errorf("a table without rows wrote %q, %v", b.String(), err)
	}
}

// Colour must not move a column.
func TestColoursKeepAlignment(t *testing.T) {
	strip := strings.NewReplacer("\x1b[31m", "", "\x1b[32m", "", "\x1b[1m", "", "\x1b[0m", "").Replace
	write := func(p Palette) string {
		table := NewTable(p, "A", "B")
		table.Cells(Cell{"Failed", Red}, Cell{Text: "x"})
		table.Cells(Cell{"ok", Green}, Cell{Text: "y"})
		var b bytes.Buffer
		if err := table.Write(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	painted, plain := write(Palette{On: true}), write(Palette{})
	if painted == plain || strip(painted) != plain {
		t.Errorf("painted %q, plain %q", painted, plain)
	}
}

func TestCutAndWrap(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"日本語", 5, "日本…"}, {"日本語", 4, "日…"}, {"", 0, ""}} {
		if got := Cut(c.in, c.width); got != c.want || textWidth(got) > c.width {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.in, c.width, got, c.want)
		}
	}
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{{"abc", 3, "abc"}, {"build_linux_7", 8, "bui…ux_7"}, {"build_linux_7", 7, "bu…ux_7"}, {"日本語日本語", 7, "日…本語"}, {"abcd", 1, "…"}} {
		if got := cutMiddle(c.in, c.width); got != c.want || textWidth(got) > c.width {
			t.Errorf("cutMiddle(%q, %d) = %q, want %q", c.in, c.width, got, c.want)
		}
	}
	got := strings.Join(Wrap("one two  three\nunbreakable-word four", 9), "|")
	if want := "one two|three|unbreakable-word|four"; got != want {
		t.Errorf("Wrap = %q, want %q", got, want)
	}
}

func problems() []schemas.Problem {
	return []schemas.Problem{
		{
			Place:    schemas.Place{Path: "specs/a b.yaml", Line: 3, Column: 5},
			Severity: schemas.Error, Code: "cycle", Field: "spec.nodes", Message: "a -> b -> a: 100%\nsecond, line",
			Related: []schemas.Place{{Path: "specs/a b.yaml", Line: 9}}, Notes: []string{"b needs a"},
		},
		{
			Place:    schemas.Place{Path: "specs/x,y:z.yaml"},
			Severity: schemas.Warning, Code: "encoding", Message: "odd \x1b", Suggestion: "save it as UTF-8",
		},
	}
}

func TestGitHub(t *testing.T) {
	var b bytes.Buffer
	if err := GitHub(&b, "sub", problems()); err != nil {
		t.Fatal(err)
	}
	want := "::error file=sub/specs/a b.yaml,line=3,col=5,title=cycle::spec.nodes: a -> b -> a: 100%25%0Asecond, line\n" +
		"::warning file=sub/specs/x%2Cy%3Az.yaml,title=encoding::odd ; save it as UTF-8\n"
	if b.String() != want {
		t.Errorf("got:\n%swant:\n%s", b.String(), want)
	}
}

func TestSARIF(t *testing.T) {
	var b bytes.Buffer
	if err := SARIF(&b, "v1", "", problems()); err != nil {
		t.Fatal(err)
	}
	golden(t, "problems.sarif", b.Bytes())
}

func TestProblemsArePaintedWithoutOtherChange(t *testing.T) {
	write := func(p Palette) string {
		var b bytes.Buffer
		if err := Problems(&b, p, problems()); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	plain, painted := write(Palette{}), write(Palette{On: true})
	if strings.Contains(plain, "\x1b") {
		t.Errorf("control characters came through: %q", plain)
	}
	strip := strings.NewReplacer("\x1b[31m", "", "\x1b[33m", "", "\x1b[0m", "").Replace
	if painted == plain || strip(painted) != plain {
		t.Errorf("painted %q, plain %q", painted, plain)
	}
}

var start = time.Date(2026, 2, 27, 12, 3, 4, 0, time.UTC)

// On a terminal no row of a table is wider than it, at any width: the last column is cut first. Files get everything.
func TestTableFits(t *testing.T) {
	why := "WaitsForPerson: look: waits for 山田さん; approve it when it is done, and not before that"
	write := func(width int, wrap bool) []string {
		table := NewTable(Palette{Width: width}, "OBJECT", "READY", "PHASE", "STATUS")
		table.Wrap = wrap
		table.Row("dag/checks", "False", "Paused", why)
		table.Row("session/a_name_of_some_length", "True", "Active", "")
		var b bytes.Buffer
		if err := table.Write(&b); err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	}
	for width := 1; width < 120; width++ {
		for _, line := range write(width, false) {
			if textWidth(line) > width {
				t.Errorf("a row of %d columns at %d: %q", textWidth(line), width, line)
			}
		}
	}
	want := []string{
		"OBJECT                         READY  PHASE   STATUS",
		"dag/checks                     False  Paused  WaitsForPerson: look: waits for …",
		"session/a_name_of_some_length  True   Active"}
	if got := write(80, false); !slices.Equal(got, want) {
		t.Errorf("at 80 columns:\n%s", strings.Join(got, "\n"))
	}
	want = []string{
		"OBJECT         READY  PHASE   STATUS",
		"dag/checks     False  Paused  WaitsForP…",
		"session/a_na…  True   Active"}
	if got := write(40, false); !slices.Equal(got, want) {
		t.Errorf("at 40 columns:\n%s", strings.Join(got, "\n"))
	}
	want = []string{
		"OBJECT                         READY  PHASE   STATUS",
		"dag/checks                     False  Paused  WaitsForPerson: look: waits for",
		"                                              山田さん; approve it when it is",
		"                                              done, and not before that",
		"session/a_name_of_some_length  True   Active"}
	if got := write(80, true); !slices.Equal(got, want) {
		t.Errorf("broken at words:\n%s", strings.Join(got, "\n"))
	}
	if got := write(0, false); !strings.HasSuffix(got[1], why) {
		t.Errorf("a file gets %q", got[1])
	}
}
