package memory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// evalDepth is how many results of a question count.
const evalDepth = 10

// errGold says that a gold set cannot be used.
var errGold = errors.New("this is no gold set")

// Question is a line of a gold set: a question, and the ids of the observations that answer it.
type Question struct {
	Question string   `json:"question"`
	Expect   []string `json:"expect"`
}

// ParseGold parses the questions of a gold set, a JSON object on each line; blank lines are skipped. The error is
// errGold and names the line.
func ParseGold(data []byte) ([]Question, error) {
	var out []Question
	n := 0
	for line := range bytes.Lines(data) {
		if n++; len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		q, err := parseQuestion(line)
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", errGold, n, err)
		}
		out = append(out, q)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: it has no question; write lines as "+
			`{"question": "why no ORM", "expect": ["obs-engineer-18-1768226700000-a1b2c3"]}`, errGold)
	}
	return out, nil
}

func parseQuestion(line []byte) (Question, error) {
	var q Question
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		return q, fmt.Errorf("want an object with question and expect: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return q, errors.New("want one object on a line")
	}
	switch {
	case strings.TrimSpace(q.Question) == "":
		return q, errors.New("the question is empty")
	case len(q.Expect) == 0:
		return q, errors.New("expect names no observation")
	}
	for i, id := range q.Expect {
		if !schemas.IsObservationID(id) {
			return q, fmt.Errorf("%q is no id of an observation", id)
		}
		if slices.Contains(q.Expect[:i], id) {
			return q, fmt.Errorf("expect names %s twice", id)
		}
	}
	return q, nil
}

// Result is an observation that a search found, and what reading it in full costs.
type Result struct {
	ID     string
	Tokens int
}

// Answer is the result of a question.
type Answer struct {
	Question
	// Found are the ids of the first ten results, best first.
	Found []string `json:"found"`
	// Rank is the place of the first expected one among them, from 1; 0 if none is there.
	Rank int `json:"rank"`
	// Tokens is what reading the results in full costs, from the first to the last expected one that was found; of all
	// ten if one is missing.
	Tokens int `json:"tokens"`

	recall [3]float64 // at 1, 5 and 10
	ndcg   float64
}

// Judge compares the results for a question with the expected ones. Only the first ten count.
func Judge(q Question, results []Result) Answer {
	a := Answer{Question: q, Found: []string{}}
	gain, left := 0.0, len(q.Expect)
	all := 0
	for i, r := range results[:min(len(results), evalDepth)] {
		a.Found = append(a.Found, r.ID)
		all += r.Tokens
		if !slices.Contains(q.Expect, r.ID) {
			continue
		}
		if left--; a.Rank == 0 {
			a.Rank = i + 1
		}
		gain += rankDiscount(i)
		a.Tokens = all
		for k, depth := range []int{1, 5, evalDepth} {
			if i < depth {
				a.recall[k] += 1 / float64(len(q.Expect))
			}
		}
	}
	if left > 0 {
		a.Tokens = all
	}
	a.ndcg = gain / idealGain(len(q.Expect))
	return a
}

// rankDiscount weighs place i, from 0, as the discounted cumulative gain does (Järvelin and Kekäläinen, 2002).
func rankDiscount(i int) float64 { return 1 / math.Log2(float64(i)+2) }

// idealGain is the gain when n observations come first.
func idealGain(n int) float64 {
	sum := 0.0
	for i := range min(n, evalDepth) {
		sum += rankDiscount(i)
	}
	return sum
}

// Evaluation says how well questions were answered, each figure as the mean over all questions.
type Evaluation struct {
	Questions int `json:"questions"`
	// Recall at k is the share of the expected observations that are among the first k results.
	RecallAt1  float64 `json:"recallAt1"`
	RecallAt5  float64 `json:"recallAt5"`
	RecallAt10 float64 `json:"recallAt10"`
	// MRR is 1 through the place of the first expected one, 0 if it is not among the first ten.
	MRR float64 `json:"mrr"`
	// NDCG is the discounted cumulative gain of the first ten, through the highest possible one.
	NDCG float64 `json:"ndcgAt10"`
	// Tokens is the cost of reading up to the answer, see Answer.
	Tokens float64 `json:"tokens"`
}

// Evaluate sums answers up. Without any it is zero.
func Evaluate(answers []Answer) Evaluation {
	e := Evaluation{Questions: len(answers)}
	n := float64(max(1, len(answers)))
	for _, a := range answers {
		e.RecallAt1 += a.recall[0] / n
		e.RecallAt5 += a.recall[1] / n
		e.RecallAt10 += a.recall[2] / n
		if a.Rank > 0 {
			e.MRR += 1 / float64(a.Rank) / n
		}
		e.NDCG += a.ndcg / n
		e.Tokens += float64(a.Tokens) / n
	}
	return e
}

// EvalBounds are the least values of the figures of an evaluation, and the highest of Tokens. 0 binds nothing.
type EvalBounds struct {
	Recall1, Recall5, Recall10, MRR, NDCG float64
	Tokens                                int
}

// Figure is one figure of an evaluation.
type Figure struct {
	Name         string
	Value, Bound float64
	Most         bool // the bound is the highest allowed value, else the lowest
}

// Figures are the figures of an evaluation, with their bounds.
func (e Evaluation) Figures(b EvalBounds) []Figure {
	return []Figure{
		{Name: "recall@1", Value: e.RecallAt1, Bound: b.Recall1},
		{Name: "recall@5", Value: e.RecallAt5, Bound: b.Recall5},
		{Name: "recall@10", Value: e.RecallAt10, Bound: b.Recall10},
		{Name: "MRR", Value: e.MRR, Bound: b.MRR},
		{Name: "nDCG@10", Value: e.NDCG, Bound: b.NDCG},
		{Name: "tokens", Value: e.Tokens, Bound: float64(b.Tokens), Most: true},
	}
}

// past reports whether the figure is beyond its bound. Rounding of a mean is forgiven.
func (f Figure) past() bool {
	const rounding = 1e-9
	if f.Most {
		return f.Bound > 0 && f.Value > f.Bound+rounding
	}
	return f.Value < f.Bound-rounding
}

// Past describes the figures of the evaluation that are past their bounds: the value, and the least or most that the
// bound allows.
func (e Evaluation) Past(b EvalBounds) []string {
	out := []string{}
	for _, f := range e.Figures(b) {
		word := "least"
		if f.Most {
			word = "most"
		}
		if f.past() {
			out = append(out, fmt.Sprintf("%s is %.4g, at %s %.4g is wanted", f.Name, f.Value, word, f.Bound))
		}
	}
	return out
}
