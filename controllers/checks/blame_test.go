package checks

import "testing"

func TestDiagnose(t *testing.T) {
	for _, c := range []struct {
		name string
		e    Symptoms
		want Blame
	}{
		{"passes once in three", Symptoms{Alone: Trials{1, 2}, CodeChanged: true}, Flaky},
		{"flaky before", Symptoms{Alone: Trials{0, 3}, Base: Trials{1, 1}}, Flaky},
		{"only with others", Symptoms{Alone: Trials{3, 0}}, Dependent},
		{"fails before, too", Symptoms{Alone: Trials{0, 3}, Base: Trials{0, 1}, CodeChanged: true}, Known},
		{"code changed", Symptoms{Alone: Trials{0, 3}, Base: Trials{1, 0}, CodeChanged: true}, Implementation},
		{"test changed", Symptoms{Alone: Trials{0, 3}, Base: Trials{1, 0}, TestChanged: true}, OfTest},
		{"both changed, the new test passes with the old code", Symptoms{Alone: Trials{0, 3}, Base: Trials{1, 0}, BaseTested: Trials{1, 0}, TestChanged: true, CodeChanged: true}, Implementation},
		{"both changed, the new test fails with the old code", Symptoms{Alone: Trials{0, 3}, Base: Trials{1, 0}, BaseTested: Trials{0, 1}, TestChanged: true, CodeChanged: true}, OfTest},
		{"a new test of new code", Symptoms{Alone: Trials{0, 3}, BaseTested: Trials{0, 1}, TestChanged: true, CodeChanged: true}, Unclear},
		{"a new test that fails in the same way before", Symptoms{Alone: Trials{0, 3}, BaseTested: Trials{0, 1}, Same: true, TestChanged: true, CodeChanged: true}, NoDifference},
		{"no git", Symptoms{Alone: Trials{0, 3}}, Unclear},
		{"cannot run alone", Symptoms{}, Unclear},
		{"cannot run alone, and passes before", Symptoms{Base: Trials{1, 0}, CodeChanged: true}, Unclear},
	} {
		if got, why := Diagnose(c.e); got != c.want || why == "" {
			t.Errorf("%s: %s (%s), want %s", c.name, got, why, c.want)
		}
	}
}
