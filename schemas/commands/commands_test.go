package commands

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

func compile(t testing.TB, l Lists, role string) *Rules {
	t.Helper()
	return Compile(l.For(role))
}

// TestCorpus decides the rows of testdata/corpus.txt: the expected decision, a tab, and the command with \n, \t, \r, \0 and \xXX as
// in a string of Go. A line "role NAME" sets the role of the rows below.
func TestCorpus(t *testing.T) {
	f, err := os.Open("testdata/corpus.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rules, rows, line := compile(t, Lists{}, "engineer"), 0, 0
	for in := bufio.NewScanner(f); in.Scan(); {
		line++
		text := in.Text()
		if role, ok := strings.CutPrefix(text, "role "); ok {
			rules = compile(t, Lists{}, role)
			continue
		}
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		want, command, ok := strings.Cut(text, "\t")
		if !ok {
			t.Fatalf("line %d: no tab", line)
		}
		rows++
		command = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r", `\0`, "\x00", `\u202e`, "\u202e", `\xff`, "\xff").Replace(command)
		c := Command{Argv: []string{command}, Shell: true}
		if list, ok := strings.CutPrefix(command, "argv: "); ok {
			c = Command{Argv: strings.Split(list, "|")}
		}
		if got := rules.Decide(c); got.Decision.String() != want {
			t.Errorf("corpus.txt:%d: %q: %s (%s), want %s", line, command, got.Decision, got.Why, want)
		}
	}
	if rows < 150 {
		t.Errorf("the corpus has %d rows", rows)
	}
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, command string
		want             Decision
	}{
		{"make lint", "make lint", Allow},
		{"make lint", "make lint test", Ask},
		{"make *", "make lint", Allow},
		{"make ...", "make -C / lint", Ask},
		{"make ...", "make SHELL=/tmp/x lint", Ask},
		{"make -C sub ...", "make -C sub lint", Allow},
		{"cat *.md", "cat README.md", Allow},
		{"cat *.md", "cat README.md x", Ask},
		{"cat docs/*", "cat docs/a.md", Allow},
		{"say a*a", "say a", Ask},
		{"say a*b*c", "say axbyc", Allow},
		{"kubectl get {pods,nodes} -o *", "kubectl get pods -o yaml", Ask}, // it starts programs: no wildcard
		{"kubectl get pods", "kubectl get pods", Allow},
		{"python -m pytest ...", "python -m pytest -q tests", Allow},
		{"python ...", "python -c x", Ask},
		{"python ...", "python x.py", Ask},
		{"python x.py ...", "python x.py -c y", Allow},
		{"find ...", "find . -exec rm {} +", Ask},
		{"find ... -exec grep x '{}' +", "find . -exec grep x {} +", Ask}, // {} is expanded by some shells
		{"find ... -exec grep x '{}' +", "find . -exec grep x '{}' +", Allow},
		{"find . -exec ...", "find . -exec rm '{}' +", Allow}, // the pattern says so itself
		{"find ... !-newer", "find . -newer x", Ask},
		{"find ... !-newer*", "find . -newermt x", Ask},
		{"find ... !-newer", "find . -name x", Allow},
		{"git ...", "git -c core.pager=x log", Ask},
		{"git ...", "git log -3", Allow},
		{"git log ...", "git log --out=/tmp/x", Ask},
		{"sh -c ...", "sh -c 'rm x'", Ask},
		{"rm x", "sh -c 'rm x'", Allow},
		{"xargs ...", "xargs rm", Ask},
		{"env", "env", Allow},
		{"env ...", "env rm x", Ask},
		{"{pytest,tox} ...", "tox -q", Allow},
		{"say 'a b' it''s", "say 'a b' its", Allow},
		{`say a\ b`, "say 'a b'", Allow},
		{"say ''", "say ''", Allow},
		{"say ... end ...", "say a b end c", Allow},
		{"say ... end", "say a end b", Ask},
		{"say", "say ''", Ask},
	} {
		if err := Check(c.pattern); err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		r := Compile([]string{c.pattern}, nil)
		if v := r.Decide(Command{Argv: []string{c.command}, Shell: true}); v.Decision != c.want {
			t.Errorf("%q, %q: %s (%s), want %s", c.pattern, c.command, v.Decision, v.Why, c.want)
		}
	}
}

func TestBadPatterns(t *testing.T) {
	for _, text := range []string{"", "  ", "...", "* x", "{a*,b} x", "a 'b", "a {b", "a }b", "a {b}{c}", "a {b{c}}", "@default", "@x y", "a !b c", "a !...", "a " + strings.Repeat("b ", 200)} {
		if Check(text) == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// TestDefaults: each pattern of the default lists is valid.
func TestDefaults(t *testing.T) {
	all := slices.Concat(defaultAllow, defaultBlock)
	for _, list := range defaultRoles {
		all = append(all, list...)
	}
	for _, p := range all {
		if err := Check(p); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
}

func TestLists(t *testing.T) {
	var l Lists
	if a, b := l.For("engineer"); len(a) != 9 || len(b) != 3 {
		t.Errorf("%d patterns allow, %d block", len(a), len(b))
	}
	if a, _ := l.For("architect"); len(a) != 16 {
		t.Errorf("architect: %d", len(a))
	}
	if a, _ := l.For("tester"); len(a) != 15 {
		t.Errorf("tester: %d", len(a))
	}
	l = Lists{Allow: []string{"make x"}, Block: []string{Default, "curl ..."}, Roles: map[string][]string{"tester": {Default, "make y"}, "designer": {"ls"}}}
	if a, b := l.For("engineer"); !slices.Equal(a, []string{"make x"}) || len(b) != 4 {
		t.Error(a, b)
	}
	if a, _ := l.For("tester"); len(a) != 16 {
		t.Error(a)
	}
	if a, _ := l.For("designer"); len(a) != 1 {
		t.Error(a)
	}
	if a, _ := l.For("architect"); len(a) != 16 {
		t.Error("commands.allow widened a role that only reads:", a)
	}
	if l.HasRole("engineer") || !l.HasRole("designer") || !l.HasRole("architect") {
		t.Error("HasRole")
	}
}

func TestBlockWins(t *testing.T) {
	r := compile(t, Lists{Allow: []string{"sudo ls", "rm -rf /"}}, "engineer")
	for _, command := range []string{"sudo ls", "rm -rf /"} {
		if v := r.Decide(Command{Argv: []string{command}, Shell: true}); v.Decision != Block {
			t.Errorf("%s: %s", command, v.Decision)
		}
	}
}

func TestExact(t *testing.T) {
	for _, command := range []string{"npm ci", `git commit -m "it's {a} *done*"`, "sh -c 'make a && make b'", "timeout 5 make x", "echo ... '!'", "say ''",
		"find . -exec rm '{}' ';'", "xargs rm", "say @default"} {
		c := Command{Argv: []string{command}, Shell: true}
		list, err := Exact(c)
		if err != nil {
			t.Errorf("%s: %v", command, err)
			continue
		}
		r := Compile(list, nil)
		if v := r.Decide(c); v.Decision != Allow {
			t.Errorf("%q does not allow %s: %s", list, command, v.Why)
		}
		if v := r.Decide(Command{Argv: []string{command + " more"}, Shell: true}); v.Decision == Allow {
			t.Errorf("%q allows more than %s", list, command)
		}
	}
	if _, err := Exact(Command{Argv: []string{"cat $X"}, Shell: true}); err == nil {
		t.Error("an expansion has an exact pattern")
	}
}

func TestLine(t *testing.T) {
	if got := Line(Command{Argv: []string{"git", "commit", "-m", "a b"}}); got != "git commit -m 'a b'" {
		t.Error(got)
	}
}

// FuzzDecide compares with the shell library: what is allowed has only simple commands, no expansion and no redirection to a file, and
// each of its commands runs with exactly the arguments that a pattern matched.
func FuzzDecide(f *testing.F) {
	for _, s := range []string{"cat x", "cat x; rm -rf .", "cat 'a b' | grep \"x\\\"y\" 2>&1", "cat $(x)", "bash -lc 'cat a && cat b'", "cat a\\\nb >/dev/null",
		"timeout 5 cat ~/x", "cat {a,b}", "cat \"a$\"", "time cat x", "(cat a)", "cat a & b", "cat <<E\nE", "git log HEAD~1", "cat =x", "A=1 cat x"} {
		f.Add(s)
	}
	rules := Compile([]string{"cat ...", "grep ...", "git log ...", "a ...", "b ..."}, nil)
	f.Fuzz(func(t *testing.T, text string) { checkAllowed(t, rules, text) })
}

func checkAllowed(t *testing.T, rules *Rules, text string) {
	c := Command{Argv: []string{text}, Shell: true}
	if rules.Decide(c).Decision != Allow {
		return
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil {
		t.Fatalf("%q is allowed and does not parse", text)
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case nil, *syntax.File, *syntax.Stmt, *syntax.CallExpr, *syntax.BinaryCmd, *syntax.Subshell, *syntax.TimeClause, *syntax.Word, *syntax.Lit,
			*syntax.SglQuoted, *syntax.DblQuoted, *syntax.Comment:
		case *syntax.Redirect:
			if to := n.Word.Lit(); to != "/dev/null" && to != "0" && to != "1" && to != "2" && !strings.ContainsAny(to, `\`) {
				t.Fatalf("%q is allowed and redirects to %q", text, to)
			}
		default:
			t.Fatalf("%q is allowed and has a %T", text, n)
		}
		if call, ok := n.(*syntax.CallExpr); ok {
			fields, err := expand.Fields(&expand.Config{Env: expand.ListEnviron("HOME=/home"), ReadDir2: nil}, call.Args...)
			var mine []string
			for _, w := range call.Args {
				mine = append(mine, evaluate(w).text)
			}
			if err != nil || !slices.Equal(fields, mine) {
				t.Fatalf("%q: %q, and the library says %q, %v", text, mine, fields, err)
			}
			if inner, ok := shellText(fields); ok {
				checkAllowed(t, rules, inner)
				return true
			}
			for rest := unwrap(fields); rest != nil; rest = unwrap(fields) {
				fields = rest
			}
			if inner, ok := shellText(fields); ok {
				checkAllowed(t, rules, inner)
			} else if !slices.Contains([]string{"cat", "grep", "git", "a", "b"}, fields[0]) {
				t.Fatalf("%q is allowed and runs %q", text, fields)
			}
		}
		return true
	})
}

func BenchmarkDecide(b *testing.B) {
	rules := compile(b, Lists{}, "engineer")
	c := Command{Argv: []string{"cat go.mod && go test ./... 2>&1 | grep -v ok"}, Shell: true}
	for b.Loop() {
		rules.Decide(c)
	}
}
