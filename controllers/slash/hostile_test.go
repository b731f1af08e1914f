package slash

import (
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"reconcile.dev/reconcile/schemas"
)

// FuzzDecide: whatever somebody who may give commands writes, specs that a run can read come of it, and what is replied
// has nothing that GitHub acts on.
func FuzzDecide(f *testing.F) {
	a, err := txtar.ParseFile("testdata/decide/questions.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range a.Files {
		if strings.HasPrefix(file.Name, "comment ") {
			f.Add(string(file.Data), false)
		}
	}
	for _, body := range []string{
		"/answer @everyone #1 <img src=x> ``` <!-- reconcile status/a 00 -->", "/retry `@ada`", "/retry ``@ada`` <!--", "/skip a|b",
		"/answer CLR-42-@ada", "/explain dag/`x`@ada", "/clarify #99999999999999999999", "/remember " + strings.Repeat("x", 3000),
		"/answer two\u202e\u0000\u2028/retry", "/hold https://example.org/@ada/#1", "/aprove\n@everyone",
	} {
		f.Add(body, true)
	}
	f.Fuzz(func(t *testing.T, body string, edited bool) {
		if len(body) > bodyLimit {
			t.Skip()
		}
		w := newWorld(t, a)
		i := &w.issues[0]
		i.Comments = []Comment{{ID: 200, Body: body, Edited: edited, Created: now, Author: Actor{Login: "ada", Association: "OWNER"}}}
		in := w.input()
		for _, v := range Decide(in) {
			checkVerdict(t, w, v)
		}
	})
}

func checkVerdict(t *testing.T, w *world, v Verdict) {
	t.Helper()
	refused := v.Handled.Outcome == schemas.HandledRefused
	if refused && (v.Handled.Reply == "" || len(v.Specs) > 0) || len(v.Specs) > mostCommands {
		t.Fatalf("verdict %+v", v)
	}
	for _, s := range v.Specs {
		if !strings.HasPrefix(s.Ref.Name, "gh-200") || !strings.HasSuffix(s.Path, "/"+s.Ref.Name+".yaml") {
			t.Fatalf("spec %s at %s", s.Ref, s.Path)
		}
		w.put(s.Path, encode(t, s)) // fails for what a run cannot read
	}
	prose := v.Handled.Reply
	if !refused {
		return // what is shown is the renderer's
	}
	for {
		before, rest, ok := strings.Cut(prose, "`")
		if strings.ContainsAny(before, "@<>#[]&|\\") || strings.Contains(before, "//") {
			t.Fatalf("%q is not inert: %q", v.Handled.Reply, before)
		}
		if !ok {
			return
		}
		if _, prose, ok = strings.Cut(rest, "`"); !ok {
			t.Fatalf("%q has code that does not end", v.Handled.Reply)
		}
	}
}
