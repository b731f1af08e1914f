package template

import (
	"errors"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas/condition"
)

var names = condition.Scope{Needs: []string{"plan", "a-b"}, Params: []string{"env", "list"}, Matrix: []string{"os"}}

func env() *Env {
	return &Env{Needs: map[string]Need{"plan": {State: "Succeeded", Result: map[string]any{"n": 3.0, "big": 1e6, "t": "x}}y"}},
		"a-b": {}}, Session: "s", DAG: "d", Issue: Issue{Number: 42, Title: "Fix it"},
		Params: map[string]any{"env": "prod", "list": []any{"a", 1.0}}, Matrix: map[string]any{"os": "linux"}, Round: 2}
}

func TestExecute(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"plain } } text { {":            "plain } } text { {",
		"to {{ params.env }}!":          "to prod!",
		"{{params.env}}{{ matrix.os }}": "prodlinux",
		"{{ params.list }}":             `["a",1]`,
		"{{ needs.plan.result.n }}":     "3",
		"{{ needs.plan.result.n > 2 ? 'many' : 'few' }}": "many",
		"{{ needs.plan.result.t }}":                      "x}}y",
		`{{ "}}" }}`:                                     "}}",
		`{{ "{{" }} stays`:                               "{{ stays",
		`{{ {"a": {"b": 1}} }}.`:                         `{"a":{"b":1}}.`,
		"{{ issue }} {{ issue.number }} {{issue.title}}": "42 42 Fix it",
		`{{ needs["a-b"].result ?? "none" }}`:            "none",
		"{{ round + 1 }}":                                "3",
		"{{ upper(session) + '/' + dag }}":               "S/d",
	} {
		tpl, err := Compile(text, names)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := tpl.Execute(env(), nil); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestErrorsHaveAPlace(t *testing.T) {
	for text, want := range map[string]string{
		"a {{ params.env":          "1:3: {{ has no }}",
		"é {{ }}":                  "1:5: there is no expression between {{ and }}",
		"x\ny {{ params.evn }}":    `2:13: there is no parameter "evn"`,
		"{{ needs.build.state }}":  `1:10: this node does not need "build"`,
		"{{ matrix.arch }}":        `1:11: the matrix has no "arch"`,
		"{{ now() }}":              "1:4: unknown name now",
		"{{ issue.titel }}":        `1:10: there is no field "titel" here`,
		"{{ needs.plan.stat }}":    `1:15: there is no field "stat" here`,
		"{{ 1 +\n 2 + }}":          "2:",
		"{{ needs.a-b.exitCode }}": "1:4: a name with a dash",
	} {
		_, err := Compile(text, names)
		if _, ok := errors.AsType[*exprError](err); !ok || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"a\n{{ needs.plan.result.none }}": "2:1: {{ needs.plan.result.none }}: there is no such value",
		"{{ needs.plan.result.n.x }}":     "1:1: {{ needs.plan.result.n.x }}: ",
		`{{ 1 % int(params.env) }}`:       "1:1: {{ 1 % int(params.env) }}: ",
	} {
		tpl, err := Compile(text, names)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = tpl.Execute(env(), nil); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestMarks: what is inserted is marked, and nothing else.
func TestMarks(t *testing.T) {
	tpl, err := Compile("Deploy {{ params.env }} now.", names)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tpl.Execute(env(), func(s string) string { return "<" + s + ">" })
	if got != "Deploy <prod> now." || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestReads tells which parameters decide about the text.
func TestReads(t *testing.T) {
	for text, want := range map[string]string{
		"{{ params.env }} {{ params.env }} {{ params['list'] }}": "env list",
		"{{ dag }}":                "",
		"{{ params }}":             "all",
		"{{ params[session] }}":    "all",
		"{{ len(params) }}":        "all",
		"{{ get(params, 'env') }}": "all",
	} {
		tpl, err := Compile(text, names)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := strings.Join(tpl.Params, " ")
		if tpl.AllParams {
			got = "all"
		}
		if got != want {
			t.Errorf("%s reads %q, want %q", text, got, want)
		}
	}
	if _, err := Compile("{{ params }}", condition.Scope{}); err == nil {
		t.Error("params is known where there are none")
	}
}

// FuzzTemplate: no text panics, its errors have a place inside of it, and it becomes the same twice.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"{{ params.env }}", "{{ '}}' }}{{", "é\n{{ needs.plan.result[1:] }}", "{{ {{ }} }}", "{{ `\\` }}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tpl, err := Compile(text, names)
		if err != nil {
			at, ok := errors.AsType[*exprError](err)
			if !ok || at.Line < 1 || at.Column < 1 || at.Line > 1+strings.Count(text, "\n") || at.Column > len(text)+2 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		a, err1 := tpl.Execute(env(), nil)
		b, err2 := tpl.Execute(env(), nil)
		if a != b || (err1 == nil) != (err2 == nil) {
			t.Fatalf("%q: %q, then %q", text, a, b)
		}
		if !Has(text) && a != text {
			t.Fatalf("%q became %q", text, a)
		}
	})
}
