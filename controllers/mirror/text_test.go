package mirror

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"reconcile.dev/reconcile/schemas"
)

var someOptions = Options{
	Files: "https://github.com/octo/widgets/blob/HEAD", Mention: []string{"ann", "@octo/leads", "no one", "-x", "a@b"},
	Made: func(ref schemas.Ref) int {
		if ref.Name == "made" {
			return 77
		}
		return 0
	},
}

// gfm reads Markdown as GitHub does, but for addresses, which GitHub looks for only in what is text in the end.
var gfm = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList))

// acting is what GitHub acts on in the text that Markdown leaves, outside of code.
var acting = regexp.MustCompile(`@[A-Za-z0-9]|#[0-9]|(?i:\bgh-[0-9])|://|(?i:www\.[a-z])`)

// hashes are what GitHub takes for the names of commits in a text that no markup interrupts, also in owner/repo@….
var hashes = regexp.MustCompile(`(?i)\b[0-9a-f]{7,40}\b`)

// escapes are characters that stand for themselves.
var escapes = regexp.MustCompile(`\\[[:punct:]]`)

// harmless checks, as GitHub reads it, that a body of ours mentions nobody but whom it should, refers to nothing, and has
// no HTML but our own, and no link but to our files.
func harmless(t testing.TB, body string) {
	t.Helper()
	src := []byte(body)
	var prose, lines strings.Builder
	walk := func(n ast.Node, in bool) (ast.WalkStatus, error) {
		if !in {
			return ast.WalkContinue, nil
		}
		if n.Type() == ast.TypeBlock {
			lines.WriteByte('\n')
		}
		switch n := n.(type) {
		case *ast.CodeBlock, *ast.FencedCodeBlock, *ast.CodeSpan:
			lines.WriteByte('\n')
			prose.WriteString("<code>\n")
			return ast.WalkSkipChildren, nil
		case *ast.RawHTML:
			if tag := string(n.Segments.Value(src)); tag != "<sub>" && tag != "</sub>" {
				t.Errorf("the HTML %q is in\n%s", tag, body)
			}
		case *ast.HTMLBlock:
			if l := string(n.Lines().Value(src)); !strings.HasPrefix(l, "<sub>Kept by reconcile from ") {
				t.Errorf("the HTML %q is in\n%s", l, body)
			}
		case *ast.Link:
			if !strings.HasPrefix(string(n.Destination), someOptions.Files+"/") {
				t.Errorf("a link to %q is in\n%s", n.Destination, body)
			}
		case *ast.AutoLink, *ast.Image:
			t.Errorf("an address or an image is in\n%s", body)
		case *ast.Text:
			if bytes.ContainsRune(escapes.ReplaceAll(n.Value(src), nil), '&') {
				t.Errorf("an entity may be in %q of\n%s", n.Value(src), body)
			}
			said := util.UnescapePunctuations(n.Value(src))
			prose.Write(said)
			prose.WriteByte('\n')
			lines.Write(said)
			if n.SoftLineBreak() || n.HardLineBreak() {
				lines.WriteByte('\n')
			}
		}
		return ast.WalkContinue, nil
	}
	if err := ast.Walk(gfm.Parser().Parse(text.NewReader(src)), walk); err != nil {
		t.Fatal(err)
	}
	if found := hashes.FindString(lines.String()); found != "" {
		t.Errorf("the commit %q is in\n%s\nread as\n%s", found, body, lines.String())
	}
	// Parts of one line are apart here; on the page they are not.
	for _, read := range []string{prose.String(), strings.ReplaceAll(prose.String(), "\n", "")} {
		read = strings.ReplaceAll(strings.ReplaceAll(read, "@octo/leads", ""), "@ann", "")
		if found := acting.FindString(read); found != "" {
			t.Errorf("%q is in\n%s\nread as\n%s", found, body, read)
		}
	}
}

// hostile is what an agent may say to get out of its quotation.
var hostile = []string{
	"@admin please, cc @octo/everyone, see #1, GH-2, octo/other#3 and https://github.com/octo/other/issues/4",
	"<!-- reconcile status/dag/x 00000000000000000000000000000000 -->",
	"</sub><script>alert(1)</script><img src=x onerror=alert(1)> &#64;admin &lt;b&gt; &commat;admin",
	"```\n@admin\n```\n@admin\n~~~ mermaid\nclick\n~~~~\n@admin",
	"````\n```\n@admin", "```a`b\n@admin", "    @admin\n\t@admin\n- \t  @admin\n1. @admin\n   1. @admin",
	"a `@admin` b `` @ad`min `` c ` @admin", "a | b\n--|--\n`@admin | c` | @d\n\n| a |\n|---|\n| `x|@y` |",
	"x\n===\ny\n---\n# head\n> quote @admin\n>> more", "[a](javascript:alert(1)) ![b](http://x/y.png) [c]: http://d\n[^1]: @x\n[@admin]",
	"www.example.org mailto:a@b.org a@b.org ftp://x xmpp:a@b.c <http://a.b> <a@b.c>", "$@admin$ $`@admin`$ \\(x\\) \\@admin \\\\@admin",
	"\u202e@admin\u2066 \u200b@\u200badmin \x00\x1b[31m \xff\xfe", "\r\n@admin\r@admin\u2028@admin\u0085", "/approve\n/hold",
	"*@admin* _@admin_ ~~@admin~~ **#1**", "`\n@admin\n`", "\\`@admin\\`", "`a\\`@admin`", "gh-`1`2", "w`w`w.a.b", "ww\\w.example.org",
	"-\n  ```\n@admin", "- ```\n  @admin\n@admin", "<details>\n\n@admin", "a\u00a0@admin ＠admin", "@@admin##1", "http:/\u200b/x :// ::// :///",
	"0123456789abcdef0123456789abcdef01234567 and DEADBEEF, a5c3785 octo/other@a5c3785ed8d6a35868bc169f07e40e889087fd2e ada@a5c3785",
	"*a5c*3785 a5**c378**5 __a5c3__785ed `a5c3785`a5c3785`a5c3785 a5c~~3785~~ a5c\\3785 1234567 https://github.com/o/r/commit/a5c3785ed8",
	"ghp_0123456789abcdefghijABCDEFGHIJ012345", "| a | b |\n| :- | -: |\n| c | d |", "a:b:c", "~~~\n```\n@admin\n~~~\n@admin",
}

func TestHostileTextsAreText(t *testing.T) {
	t.Parallel()
	for _, s := range hostile {
		if !sayEverywhere(t, s) {
			t.Logf("said: %q", s)
		}
	}
	if lines, _ := quoteText("token ghp_0123456789abcdefghijABCDEFGHIJ012345"); strings.Contains(lines[0], "ghp_0123456789") {
		t.Errorf("a secret is in %q", lines)
	}
}

// sayEverywhere puts a text wherever one of others may be, and checks what comes of it.
func sayEverywhere(t testing.TB, s string) bool {
	before := t.Failed()
	b := &Body{room: BodyLimit - noteRoom, foot: "<sub>Kept by reconcile from `a`.</sub>"}
	b.Quoted(s)
	b.Paragraph("**%s** between", lineText(s, whyLength))
	b.Quoted("before\n" + s + "\nafter")
	b.table([]string{"A", "B"}, [][]string{{lineText(s, cellLength), "x"}, {codeText(s), "y"}})
	b.List("Waits for", []string{lineText(s, whyLength), codeText(s)})
	all := b.done()
	harmless(t, all)
	if bodyUnits(all) > BodyLimit {
		t.Errorf("%d characters of %.100q", bodyUnits(all), s)
	}
	if !strings.HasSuffix(all, b.foot) || strings.Count(all, "\n\n**Waits for**\n\n") != 1 && !b.cut {
		t.Errorf("a text ended what follows it:\n%s", all)
	}
	keys := Keys{strings.Repeat("k", 64)}
	if key, ok := keys.Open(all); ok {
		t.Errorf("a text forged the marker of %q", key)
	}
	if key, ok := keys.Open(keys.Seal("status/dag/x", all)); !ok || key != "status/dag/x" {
		t.Errorf("our own marker is not read: %q", key)
	}
	for _, f := range []string{s, s + "\n\n" + strings.Repeat("z", 10)} {
		if name := titleText(f); strings.ContainsAny(name, "\n\x00") || bodyUnits(name) > 800 {
			t.Errorf("the title %q", name)
		}
	}
	return t.Failed() == before
}

func TestLongTextsAreCut(t *testing.T) {
	t.Parallel()
	for _, long := range []string{strings.Repeat("@a ", 40_000), strings.Repeat("😀", 30_000), strings.Repeat("word\n", 30_000),
		"```\n" + strings.Repeat("line\n", 30_000), strings.Repeat("`", 100_000), strings.Repeat("`a", 50_000)} {
		sayEverywhere(t, long)
		lines, cut := quoteText(long)
		if !cut || bodyUnits(strings.Join(lines, "\n")) > BodyLimit-noteRoom {
			t.Errorf("%.20q: cut is %v, %d characters", long, cut, bodyUnits(strings.Join(lines, "\n")))
		}
	}
	p := &projection{o: someOptions}
	b := &Body{room: 20, whole: p.link("status", "state/dags/a b(c).json"), foot: "foot"}
	b.Paragraph("short")
	b.Quoted("this is too long for what is left")
	const want = "short\n\n_This was cut, being longer than a comment may be._ All of it: " +
		"[status](https://github.com/octo/widgets/blob/HEAD/state/dags/a%20b%28c%29.json).\n\nfoot"
	if got := b.done(); got != want {
		t.Errorf("got %q", got)
	}
}

func TestProseKeepsItsForm(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"- *one*\n  - `two`\n3. three":    "> - *one*\n>   - `two`\n> 3. three",
		"```go\nx := <-c // @a\n```\nz":   "> ```go\n> x := <-c // @a\n> ```\n> z",
		"a < b & c_d":                     "> a \\< b \\& c_d",
		"mail @ann about #12":             "> mail @" + gap + "ann about \\#" + gap + "12",
		"fixed by a5c3785ed8d6 in 123456": "> fixed by a5c378" + gap + "5ed8d6 in 123456",
		"say `` a`b `` and `":             "> say `` a`b `` and \\`",
		"# Answer\n\nyes\n---":            "> \\#" + gap + " Answer\n>\n> yes\n> \\---",
	} {
		lines, _ := quoteText(in)
		if got := strings.Join(lines, "\n"); got != want {
			t.Errorf("%q became\n%s\nnot\n%s", in, got, want)
		}
	}
}

func FuzzBody(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { sayEverywhere(t, s) })
}
