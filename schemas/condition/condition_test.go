package condition

import (
	"errors"
	"strings"
	"testing"
)

func TestCompile(t *testing.T) {
	needs := []string{"build", "scan"}
	good := []string{
		`needs.build.state == "Succeeded"`,
		`needs.scan.result.findings > 0 and session == "health"`,
		`len(needs.scan.result.list) > 2 || needs.build.exitCode != 0`,
		`(needs["build"].result?.version ?? "") startsWith "v1"`,
		`issue in [41, 42] ? dag == "checks" : true`,
		`"x" in keys(needs.scan.result)`,
	}
	for _, when := range good {
		if _, err := CompileIn(when, Scope{Needs: needs}); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	bad := []struct{ when, problem string }{
		{`needs.biuld.state == "x"`, `1:7: this node does not need "biuld"`},
		{`needs.build.sate == "x"`, "sate"},
		{`needs.build.state`, "bool"},
		{`1 +`, "1:3: unexpected token EOF"},
		{`now() > 3`, "now"},
		{`all(needs.scan.result, {# > 1})`, "predicates are not supported"},
		{`toJSON(needs.scan.result) == ""`, "toJSON"},
		{`len(1..1000000) > 1`, "ranges are not supported"},
		{`let x = "a"; x == "a"`, "variables are not supported"},
		{`repeat("a", 100000) == ""`, "repeat"},
		{`sesion == "health"`, "sesion"},
		{strings.Repeat("true && ", maxNodes) + "true", "maximum"},
	}
	for _, c := range bad {
		_, err := CompileIn(c.when, Scope{Needs: needs})
		if err == nil || !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%.60s: got %v, want something about %s", c.when, err, c.problem)
		}
	}
}

func TestErrorsHaveAPlace(t *testing.T) {
	_, err := CompileIn("true &&\n  needs.scan.stat == 1", Scope{Needs: []string{"scan"}})
	var at *Error
	if !errors.As(err, &at) || at.Line != 2 || at.Column < 3 || strings.Contains(at.Message, "\n") {
		t.Errorf("got %#v", err)
	}
}

// TestConditionsAreBools: what is only known at run time may turn out to be no condition.
func TestConditionsAreBools(t *testing.T) {
	prog, err := CompileIn("needs.scan.result", Scope{Needs: []string{"scan"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		result any
		holds  bool
		fails  bool
	}{{true, true, false}, {false, false, false}, {7.0, false, true}, {"true", false, true}, {nil, false, false}} { // no result is no yes
		holds, err := prog.Holds(Env{Needs: map[string]Need{"scan": {Result: c.result}}})
		if holds != c.holds || (err != nil) != c.fails {
			t.Errorf("%v: got %v, %v", c.result, holds, err)
		}
	}
}

// FuzzCondition: no expression panics or is evaluated differently twice.
func FuzzCondition(f *testing.F) {
	for _, s := range []string{`needs.scan.result.a > 0`, `needs.scan.result[3:1] == nil`, `len(needs) / 0 > 1`,
		`values(needs.scan.result) == [1]`, `session matches dag`, `needs.scan.result?.b.c ?? 1 == 1`} {
		f.Add(s, `{"a":1,"b":[1,2]}`)
	}
	f.Fuzz(func(t *testing.T, when, result string) {
		prog, err := CompileIn(when, Scope{Needs: []string{"scan"}})
		if err != nil {
			return
		}
		scan := Need{State: "Succeeded", Result: Result(([]byte)(result))}
		env := Env{Needs: map[string]Need{"scan": scan}, Session: "s", DAG: "d"}
		a, err1 := prog.Holds(env)
		b, err2 := prog.Holds(env)
		if a != b || (err1 == nil) != (err2 == nil) {
			t.Errorf("%q over %s: %v %v, then %v %v", when, result, a, err1, b, err2)
		}
	})
}

// TestReadsState tells conditions that read the state of a need from others, whatever they are written like.
func TestReadsState(t *testing.T) {
	for condition, want := range map[string]bool{
		`needs.t.state == "Failed"`:                   true,
		`needs["t"].state in ["Failed", "Cancelled"]`: true,
		`needs["t"]["state"] != "Succeeded"`:          true,
		`needs[dag].state == "Failed"`:                true,
		`get(needs, "t").state == "Failed"`:           true,
		`needs.t.exitCode == 0`:                       false,
		`needs.t.result.state == "Failed"`:            false,
		`session == "needs.t.state"`:                  false,
	} {
		prog, err := CompileIn(condition, Scope{Needs: []string{"t"}})
		if err != nil || prog.ReadsState != want {
			t.Errorf("%s reads a state: %+v, want %v (%v)", condition, prog, want, err)
		}
	}
}

// TestDash says where a name with a dash follows a dot, and leaves texts alone.
func TestDash(t *testing.T) {
	const hint = `a name with a dash cannot follow a dot: write needs["a-b"]`
	for condition, want := range map[string]string{
		`needs.a-b.exitCode == 0`:                            "1:1: " + hint,
		"dag == 'ü' &&\n  needs.a-b.state == \"Failed\"":     "2:3: " + hint,
		`needs["a-b"].result == "needs.a-b" || dag == "\"x"`: "",
		`needs["a-b"].exitCode-1 == 0`:                       "",
		`needs["a-b"].exitCode == 0 && dag != 'needs.a-b' `:  "",
		`dag == "é" && needs.a-b.exitCode == 0`:              "1:15: " + hint,
	} {
		got := ""
		if _, err := CompileIn(condition, Scope{Needs: []string{"a-b"}}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", condition, got, want)
		}
	}
}

// TestFieldless: an error about a field names what has none.
func TestFieldless(t *testing.T) {
	for expression, want := range map[string]string{
		`needs.a.result.x`:                     "needs.a.result has no fields: it is a text or a list (1:16)",
		"issue > 1 or\n  needs.n.result.x > 1": "needs.n.result has no fields: it is a number (2:18)",
		`(needs.none.result.x) == 1`:           "needs.none.result has no fields: it is nothing (1:20)",
		`needs.o.result.x.y`:                   "needs.o.result.x has no fields: it is true or false (1:18)",
		`needs.a.result?.x`:                    "needs.a.result has no fields: it is a text or a list (1:17)",
		`needs.n.result % 2 == 0`:              "% is for whole numbers: write int(…) around what comes before it (1:16)",
		`int(needs.a.result) > 1`:              "invalid operation: int(text) (1:1)",
	} {
		prog, err := CompileValue(expression, Scope{Needs: []string{"a", "n", "none", "o"}}, Env{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = prog.Value(Env{Needs: map[string]Need{"a": {Result: "text"}, "n": {Result: 1.0}, "o": {Result: map[string]any{"x": true}}}})
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v; want %s", expression, err, want)
		}
	}
}
