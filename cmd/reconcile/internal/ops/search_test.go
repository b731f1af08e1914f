package ops_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
)

// openCode is open, with some code and a document to search.
func openCode(t *testing.T) ops.Env {
	env := open(t)
	write(t, env, "go.mod", "module example.com/pump\n")
	write(t, env, "pump/pump.go", `package pump

// Drain empties the vessel until the valve closes.
func Drain() { Throttle() }

// Throttle slows the flow by a valve.
func Throttle() { Drain() }
`)
	write(t, env, "docs/valves.md", "# Valves\n\nA valve is closed by `Throttle` in pump/pump.go.\n")
	return env
}

// badField checks that an error is about a field of a request.
func badField(t *testing.T, err error, field string) {
	t.Helper()
	var wrong *ops.FieldError
	if !errors.As(err, &wrong) || wrong.Field != field || ops.CodeOf(err) != ops.BadRequest {
		t.Errorf("%v, want a bad %s", err, field)
	}
}

// finished returns the result of an operation on the index after the index is finished.
func finished[T any](r T, rest *ops.Pending, err error) (T, error) {
	if err == nil {
		err = rest.Finish(context.Background())
	}
	return r, err
}

func errorOf[T any](_ T, _ *ops.Pending, err error) error { return err }

func refusalOf[T any](_ T, err error) error { return err }

func TestSearch(t *testing.T) {
	env := openCode(t)
	search := func(q ops.SearchRequest) (*ops.SearchResult, error) {
		return finished(ops.Search(t.Context(), env, q))
	}
	q := ops.NewSearch()
	q.Text, q.Explain = "empties the vessel", true
	r, err := search(q)
	if err != nil || r.Status != "found" || r.Results[0].ID != "pump/pump.go:Drain" || !strings.Contains(r.Results[0].Why(), "words: rank 1") {
		t.Errorf("%+v, %v", r, err)
	}
	q.Text, q.Kinds, q.Mode = "vessel", []string{"session"}, "lexical"
	if r, err = search(q); err != nil || r.Status != "no_matches" || !strings.Contains(r.Hint, "--kind") {
		t.Errorf("%+v, %v", r, err)
	}
	for field, change := range map[string]func(*ops.SearchRequest){
		"k":              func(q *ops.SearchRequest) { q.Limit = 0 },
		"min-similarity": func(q *ops.SearchRequest) { q.MinSimilarity = 2 },
		"domain":         func(q *ops.SearchRequest) { q.Domains = []string{"cod"} },
		"label":          func(q *ops.SearchRequest) { q.Labels = []string{"lang"} },
		"depth":          func(q *ops.SearchRequest) { q.Mode, q.Depth = ops.RelatedMode, 9 },
	} {
		q := ops.NewSearch()
		q.Text = "valve"
		change(&q)
		_, err := search(q)
		badField(t, err, field)
	}
	if _, err := search(ops.NewSearch()); ops.CodeOf(err) != ops.BadRequest {
		t.Errorf("an empty query: %v", err)
	}
	refused(t, func(ctx context.Context, env ops.Env) error {
		return errorOf(ops.Search(ctx, env, q))
	})
}

// TestSearchAnswersFirst: the first search answers before what is missing of the new index is made.
func TestSearchAnswersFirst(t *testing.T) {
	env := openCode(t)
	heard := &notes{}
	env.Sink = heard
	q := ops.NewSearch()
	q.Text = "valve"
	r, rest, err := ops.Search(t.Context(), env, q)
	if err != nil || len(r.Results) == 0 || len(heard.notes) > 0 {
		t.Fatalf("%+v, %v; %q before the answer", r, err, heard.notes)
	}
	if err := rest.Finish(t.Context()); err != nil || len(heard.notes) != 1 || !strings.HasPrefix(heard.notes[0], "the index is built (") {
		t.Errorf("%q, %v", heard.notes, err)
	}
}

func TestRelated(t *testing.T) {
	env := openCode(t)
	q := ops.RelatedRequest{Node: "pump.go:Drain", Depth: 1, Limit: 10}
	q.Edges = []string{"calls"}
	env.Prefix = "pump"
	if r, err := finished(ops.Related(t.Context(), env, q)); err != nil || len(r.Results) != 1 || r.Results[0].ID != "pump/pump.go:Throttle" {
		t.Errorf("%+v, %v", r, err)
	}
	q.Node = "pump/pump.go:Drian"
	if err := errorOf(ops.Related(t.Context(), env, q)); err == nil || !strings.Contains(err.Error(), "did you mean pump/pump.go:Drain") {
		t.Errorf("a typo: %v", err)
	}
	for field, change := range map[string]func(*ops.RelatedRequest){
		"depth":     func(q *ops.RelatedRequest) { q.Depth = 21 },
		"k":         func(q *ops.RelatedRequest) { q.Limit = 0 },
		"edge":      func(q *ops.RelatedRequest) { q.Edges = []string{"knows"} },
		"avoid":     func(q *ops.RelatedRequest) { q.Avoid = []string{"calls"} },
		"direction": func(q *ops.RelatedRequest) { q.Direction = "up" },
	} {
		q := q
		change(&q)
		badField(t, errorOf(ops.Related(t.Context(), env, q)), field)
	}
	refused(t, func(ctx context.Context, env ops.Env) error { return errorOf(ops.Related(ctx, env, q)) })
}

func TestCycles(t *testing.T) {
	env := openCode(t)
	if r, err := finished(ops.Cycles(t.Context(), env, ops.CyclesRequest{Limit: 1})); err != nil || len(r.Cycles) != 1 || len(r.Cycles[0].Round) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	other := "docs/valves.md"
	if r, err := finished(ops.Cycles(t.Context(), env, ops.CyclesRequest{Node: &other, Limit: 1})); err != nil || len(r.Cycles) != 0 {
		t.Errorf("of another node: %+v, %v", r, err)
	}
	badField(t, errorOf(ops.Cycles(t.Context(), env, ops.CyclesRequest{})), "k")
}

func TestPath(t *testing.T) {
	env := openCode(t)
	q := ops.PathRequest{Ends: []string{"pump/pump.go:Drain", "pump/pump.go:Throttle"}, Paths: 1}
	if r, err := finished(ops.Path(t.Context(), env, q)); err != nil || r.Paths[0].Length != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	q.Walk.Direction, q.Kinds = "out", []string{"session"}
	q.Ends[1] = "docs/valves.md"
	if err := errorOf(ops.Path(t.Context(), env, q)); err == nil || !strings.Contains(err.Error(), "no such way leads from") {
		t.Errorf("%v", err)
	}
	if err := errorOf(ops.Path(t.Context(), env, ops.PathRequest{Ends: q.Ends[:1]})); ops.CodeOf(err) != ops.BadRequest {
		t.Errorf("with one end: %v", err)
	}
	q.Paths = 0
	badField(t, errorOf(ops.Path(t.Context(), env, q)), "paths")
}

func TestIndex(t *testing.T) {
	env := openCode(t)
	r, err := ops.Index(t.Context(), env, ops.IndexRequest{Verify: true, Stats: true})
	if err != nil || r.Rebuilt == "" || r.Verified == nil || r.Stats.Types["function"] != 2 || r.Stats.Cycles["calls"] != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	write(t, env, "docs/valves.md", "# Valves\n\nChanged.\n")
	if r, err = ops.Index(t.Context(), env, ops.IndexRequest{}); err != nil || r.Rebuilt != "" || r.Changed != 1 || r.Stats != nil {
		t.Errorf("after a change: %+v, %v", r, err)
	}
	if r, err = ops.Index(t.Context(), env, ops.IndexRequest{Rebuild: true}); err != nil || r.Rebuilt == "" {
		t.Errorf("again: %+v, %v", r, err)
	}
	refused(t, func(ctx context.Context, env ops.Env) error {
		_, err := ops.Index(ctx, env, ops.IndexRequest{})
		return err
	})
}

func TestSearchEval(t *testing.T) {
	env := openCode(t)
	write(t, env, "pump/pump.go", `package pump

// Drain empties the vessel until the valve closes.
func Drain(vessel []int) { clear(vessel) }

// Throttle slows the flow by a valve.
func Throttle(flow, valve int) int { return flow - valve }
`)
	r, err := ops.SearchEval(t.Context(), env, ops.SearchEvalRequest{Dir: env.Tree.Dir})
	if err != nil || r.Questions != 2 || r.Files != 1 || len(r.Rankings) != 3 || r.Rankings[2].By != "hybrid" || r.Rankings[2].Recall10 == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	_, err = ops.SearchEval(t.Context(), env, ops.SearchEvalRequest{Dir: env.Tree.Dir, Questions: -1})
	badField(t, err, "questions")
}

func TestFacts(t *testing.T) {
	env := openCode(t)
	list := func(q ops.FactsRequest) ([]ops.Fact, error) {
		return finished(ops.Facts(t.Context(), env, q))
	}
	state := func(f ops.Statement) ([]ops.Stated, error) {
		return finished(ops.StateFacts(t.Context(), env, ops.StateFactsRequest{Facts: []ops.Statement{f}, By: "ada"}))
	}
	taken, err := state(&ops.Conflict{A: "docs/valves.md", B: "pump/pump.go", Type: "contradiction"})
	if err != nil {
		t.Fatal(err)
	}
	id := taken[0].ID
	if _, _, err := ops.ResolveConflict(t.Context(), env, ops.ResolveRequest{ID: id, Text: "the code is right"}); err != nil {
		t.Error(err)
	}
	about := "docs/valves.md"
	found, err := list(ops.FactsRequest{About: &about, Kinds: []string{"conflict"}})
	if err != nil || len(found) != 1 || found[0].ID != id || !strings.Contains(found[0].Fact.Said(), "resolved: the code is right") {
		t.Errorf("%+v, %v", found, err)
	}
	if err := ops.RemoveFacts(t.Context(), env, []string{id}); err != nil {
		t.Error(err)
	}
	if found, err := list(ops.FactsRequest{}); err != nil || len(found) != 0 {
		t.Errorf("%+v, %v", found, err)
	}
	secret := "gh" + "p_R8tY2kLmQ9zX4vB7nC1dF6gH3jK5sW0pTqZu" // of no account
	q := ops.StateFactsRequest{Facts: []ops.Statement{&ops.Trust{Node: about, Level: 1}}, Note: "it has " + secret}
	if _, _, err := ops.StateFacts(t.Context(), env, q); err != nil {
		t.Error(err)
	}
	if found, err := list(ops.FactsRequest{}); err != nil || len(found) != 1 || strings.Contains(found[0].Fact.Said(), secret) ||
		!strings.Contains(found[0].Fact.Said(), "it has ") {
		t.Errorf("%+v, %v", found, err)
	}
	_, err = state(&ops.Trust{Node: about, Level: 1, Note: secret})
	if err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("a secret: %v", err)
	}
	badField(t, refusalOf(state(&ops.Relation{From: about, To: "pump/pump.go", Type: "knows"})), "type")
	badField(t, refusalOf(state(&ops.Relation{From: about, To: "pump/pump.go", Type: "documents", Weight: 2})), "weight")
	badField(t, refusalOf(state(&ops.Provenance{Node: about, Confidence: -1})), "confidence")
	badField(t, refusalOf(list(ops.FactsRequest{Kinds: []string{"edges"}})), "kind")
	for _, f := range []ops.Statement{&ops.Review{Node: about, Verdict: "fine"}, &ops.Trust{Node: about, Level: 2}} {
		if _, err := state(f); ops.CodeOf(err) != ops.BadRequest {
			t.Errorf("%s: %v", f.Kind(), err)
		}
	}
	refused(t, func(ctx context.Context, env ops.Env) error {
		return errorOf(ops.StateFacts(ctx, env, ops.StateFactsRequest{}))
	})
}
