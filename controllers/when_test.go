package controllers

import (
	"errors"
	"strings"
	"testing"
)

func TestCheckWhen(t *testing.T) {
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
		if err := CheckWhen(when, needs); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	bad := []struct{ when, problem string }{
		{`needs.biuld.state == "x"`, `1:7: this node does not need "biuld"; did you mean "build"?`},
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
		{strings.Repeat("true && ", maxWhenNodes) + "true", "maximum"},
	}
	for _, c := range bad {
		err := CheckWhen(c.when, needs)
		if err == nil || !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%.60s: got %v, want something about %s", c.when, err, c.problem)
		}
	}
}

func TestWhenErrorHasAPlace(t *testing.T) {
	err := CheckWhen("true &&\n  needs.scan.stat == 1", []string{"scan"})
	var at *WhenError
	if !errors.As(err, &at) || at.Line != 2 || at.Column < 3 || strings.Contains(at.Message, "\n") {
		t.Errorf("got %#v", err)
	}
}

// TestEvalWhenWantsABool: what is only known at run time may turn out to be no condition.
func TestEvalWhenWantsABool(t *testing.T) {
	prog, _, err := compileWhen("needs.scan.result", []string{"scan"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		result any
		holds  bool
		fails  bool
	}{{true, true, false}, {false, false, false}, {7.0, false, true}, {"true", false, true}, {nil, false, false}} { // no result is no yes
		holds, err := evalWhen(prog, whenEnv{Needs: map[string]whenNeed{"scan": {Result: c.result}}})
		if holds != c.holds || (err != nil) != c.fails {
			t.Errorf("%v: got %v, %v", c.result, holds, err)
		}
	}
}

// FuzzWhen: no expression panics or is evaluated differently twice.
func FuzzWhen(f *testing.F) {
	for _, s := range []string{`needs.scan.result.a > 0`, `needs.scan.result[3:1] == nil`, `len(needs) / 0 > 1`,
		`values(needs.scan.result) == [1]`, `session matches dag`, `needs.scan.result?.b.c ?? 1 == 1`} {
		f.Add(s, `{"a":1,"b":[1,2]}`)
	}
	f.Fuzz(func(t *testing.T, when, result string) {
		prog, _, err := compileWhen(when, []string{"scan"})
		if err != nil {
			return
		}
		scan := whenNeed{State: "Succeeded", Result: value([]byte(result))}
		env := whenEnv{Needs: map[string]whenNeed{"scan": scan}, Session: "s", DAG: "d"}
		a, err1 := evalWhen(prog, env)
		b, err2 := evalWhen(prog, env)
		if a != b || (err1 == nil) != (err2 == nil) {
			t.Errorf("%q over %s: %v %v, then %v %v", when, result, a, err1, b, err2)
		}
	})
}

// TestWhenReadsState tells conditions that read the state of a need from others, whatever they are written like.
func TestWhenReadsState(t *testing.T) {
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
		_, states, err := compileWhen(condition, []string{"t"})
		if err != nil || states != want {
			t.Errorf("%s reads a state: %v, want %v (%v)", condition, states, want, err)
		}
	}
}

// TestWhenDash says where a name with a dash follows a dot, and leaves texts alone.
func TestWhenDash(t *testing.T) {
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
		if err := CheckWhen(condition, []string{"a-b"}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", condition, got, want)
		}
	}
}
