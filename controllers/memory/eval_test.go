package memory

import (
	"errors"
	"math"
	"strings"
	"testing"
)

const (
	idA = "obs-engineer-1-1767864600000-aaaaaa"
	idB = "obs-engineer-1-1767864600000-bbbbbb"
	idC = "obs-engineer-1-1767864600000-cccccc"
)

func TestParseGold(t *testing.T) {
	good := `{"question": "why", "expect": ["` + idA + `"]}` + "\r\n\n" +
		`{"question":"how","expect":["` + idA + `","` + idB + `"]}`
	got, err := ParseGold([]byte(good))
	if err != nil || len(got) != 2 || got[0].Question != "why" || len(got[1].Expect) != 2 {
		t.Fatalf("%v, %v", got, err)
	}
	for bad, want := range map[string]string{
		"": "no question",
		`{"question": "why", "expect": ["` + idA + `"]}` + "\n{":       "line 2",
		`{"question": " ", "expect": ["` + idA + `"]}`:                 "question is empty",
		`{"question": "why"}`:                                          "names no observation",
		`{"question": "why", "expect": ["obs-1"]}`:                     `"obs-1" is no id`,
		`{"question": "why", "expect": ["` + idA + `","` + idA + `"]}`: "twice",
		`{"question": "why", "expected": []}`:                          "expected",
		`["why"]`:                                                      "line 1",
		`{"question": "why", "expect": ["` + idA + `"]} {}`:            "one object",
	} {
		if _, err := ParseGold([]byte(bad)); !errors.Is(err, errGold) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want ErrGold with %q", bad, err, want)
		}
	}
}

// TestEvaluate compares with figures that were computed by hand.
func TestEvaluate(t *testing.T) {
	filler := Result{ID: idC, Tokens: 10}
	answers := []Answer{
		Judge(Question{"first", []string{idA}}, []Result{{idA, 7}, filler}),
		Judge(Question{"third of one and first", []string{idA, idB}}, []Result{{idB, 5}, filler, {idA, 3}, filler}),
		Judge(Question{"missing", []string{idA}}, []Result{filler, filler}),
		Judge(Question{"eleventh", []string{idA}}, append(repeated(filler, 10), Result{idA, 1})),
		Judge(Question{"sixth", []string{idA}}, append(repeated(filler, 5), Result{idA, 1})),
	}
	e := Evaluate(answers)
	for name, c := range map[string][2]float64{
		"recall@1":  {e.RecallAt1, (1 + .5) / 5},
		"recall@5":  {e.RecallAt5, (1 + 1) / 5.},
		"recall@10": {e.RecallAt10, (1 + 1 + 1) / 5.},
		"MRR":       {e.MRR, (1 + 1 + 1./6) / 5},
		"nDCG@10":   {e.NDCG, (1 + (1+0.5)/(1+1/math.Log2(3)) + 1/math.Log2(7)) / 5},
		"tokens":    {e.Tokens, (7 + 18 + 20 + 100 + 51) / 5.},
		"questions": {float64(e.Questions), 5},
	} {
		if math.Abs(c[0]-c[1]) > 1e-12 {
			t.Errorf("%s is %v, want %v", name, c[0], c[1])
		}
	}
	if answers[1].Rank != 1 || answers[3].Rank != 0 || len(answers[3].Found) != 10 || answers[4].Rank != 6 {
		t.Errorf("ranks: %+v", answers)
	}
	if e := Evaluate(nil); e != (Evaluation{}) {
		t.Errorf("of nothing: %+v", e)
	}
}

func repeated(r Result, n int) (out []Result) {
	for range n {
		out = append(out, r)
	}
	return out
}
