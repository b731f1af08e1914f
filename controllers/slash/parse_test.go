package slash

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestParse reads testdata/comments.txtar: each file is a comment, a line of dots, and how it is understood.
func TestParse(t *testing.T) {
	t.Parallel()
	a, err := txtar.ParseFile("testdata/comments.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range a.Files {
		body, want, ok := strings.Cut(string(f.Data), "......\n")
		if !ok {
			t.Fatalf("%s: no line of dots", f.Name)
		}
		for _, ends := range []string{"\n", "\r\n", "\r"} {
			if got := describe(Parse(strings.ReplaceAll(body, "\n", ends))); got != want {
				t.Errorf("%s with lines that end in %q:\n%swant:\n%s", f.Name, ends, got, want)
			}
		}
	}
}

func describe(p Parsed) string {
	var b strings.Builder
	for _, c := range p.Commands {
		fmt.Fprintf(&b, "%s %q\n", c.Verb, c.Line)
		if c.Text != c.Line {
			fmt.Fprintf(&b, "  %q\n", c.Text)
		}
	}
	if p.Plain != "" {
		fmt.Fprintf(&b, "plain %q\n", p.Plain)
	}
	if p.Meant != "" {
		fmt.Fprintf(&b, "meant %s\n", p.Meant)
	}
	return b.String()
}

// deep are texts that are hard on parsers of Markdown.
func deep() []string {
	var out []string
	for _, piece := range []string{"> ", "- ", "[", "](", "*a_ ", "`", "<", "<!--", "&", "a|", "```\n", "> \n", "  - \n", "\\", "/retry\n",
		"1. ", "[a]: ", "![", "<a ", "**", "\n\n", "\t", "> - ", "* ", "+ "} {
		out = append(out, strings.Repeat(piece, bodyLimit/len(piece)))
	}
	half := bodyLimit / 2
	return append(out, strings.Repeat(">", half)+"\n/retry\n"+strings.Repeat(">", half),
		strings.Repeat("`", 300)+strings.Repeat("` ``", half/4), strings.Repeat("a|b\n-|-\n", half/8),
		strings.Repeat(strings.Repeat("> ", 990)+"x\n", 32), strings.Repeat(strings.Repeat("- ", 990)+"x\n", 32))
}

const bodyLimit = 65536 // characters of a comment on GitHub

func FuzzParse(f *testing.F) {
	a, err := txtar.ParseFile("testdata/comments.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range a.Files {
		f.Add(string(file.Data))
	}
	f.Add("> quoted\v/cancel\u2028/cancel\f/cancel\u0085/cancel")
	f.Add("\u202e/retry \xff\x00")
	f.Fuzz(func(t *testing.T, body string) {
		if len(body) <= bodyLimit {
			checkParsed(t, body, Parse(body))
		}
	})
}

// checkParsed checks what holds of every comment.
func checkParsed(t *testing.T, body string, p Parsed) {
	t.Helper()
	lower := strings.ToLower(visibleText(body))
	for _, c := range p.Commands {
		if verbOf("/"+c.Verb) != c.Verb || !strings.Contains(lower, "/"+c.Verb) {
			t.Fatalf("%q has the command %q", body, c.Verb)
		}
		if !strings.HasPrefix(c.Text, c.Line) {
			t.Fatalf("%q: text %q does not begin with line %q", body, c.Text, c.Line)
		}
	}
	if len(p.Commands) > 0 && (p.Plain != "" || p.Meant != "") {
		t.Fatalf("%q is both a command and plain", body)
	}
	// Quoted line by line, or in a fence that nothing in it closes, the same text has no command.
	quoted := "> " + strings.NewReplacer("\r\n", "\n> ", "\n", "\n> ", "\r", "\n> ").Replace(body)
	if p := Parse(quoted); len(p.Commands) > 0 {
		t.Fatalf("%q has the command %s", quoted, p.Commands[0].Verb)
	}
	fence := strings.Repeat("~", 3+strings.Count(body, "~"))
	if p := Parse(fence + "\n" + body + "\n" + fence); len(p.Commands) > 0 {
		t.Fatalf("%q in a fence has the command %s", body, p.Commands[0].Verb)
	}
}

// TestParseDeep: the package's time limit of a test is the only bound; each text takes milliseconds.
func TestParseDeep(t *testing.T) {
	t.Parallel()
	for _, body := range deep() {
		checkParsed(t, body, Parse(body))
	}
}

func writeFile(file string, data []byte) error { return os.WriteFile(file, data, 0o666) }
