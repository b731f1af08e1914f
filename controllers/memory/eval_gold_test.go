package memory

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/vectors/lexical"
)

const goldDir = "../../docs/memory-gold"

// goldObservations are the observations of the gold set that ships with the project.
func goldObservations(t *testing.T) (out []schemas.Observation) {
	t.Helper()
	files, err := filepath.Glob(goldDir + "/specs/observations/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		var doc struct {
			Metadata schemas.Metadata
			Spec     schemas.ObservationSpec
		}
		if err := yaml.Unmarshal(read(t, name), &doc); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out = append(out, observations(Spec{Name: doc.Metadata.Name, ObservationSpec: &doc.Spec}, nil)...)
	}
	return out
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestGoldSet holds the search to what it reached on the gold set, and the gold set to the observations that it names.
func TestGoldSet(t *testing.T) {
	questions, err := ParseGold(read(t, goldDir+"/questions.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	all := goldObservations(t)
	known := map[string]bool{}
	docs := make([]lexical.Document, len(all))
	for i, o := range all {
		known[o.ID] = true
		docs[i] = lexical.Document{Title: o.Summary, Body: o.Content, Key: ^uint64(o.Timestamp.UnixMilli())}
	}
	index, err := lexical.Build(docs)
	if err != nil {
		t.Fatal(err)
	}
	set, err := lexical.NewSet(lexical.Segment{Index: index})
	if err != nil {
		t.Fatal(err)
	}
	var answers []Answer
	for _, q := range questions {
		for _, id := range q.Expect {
			if !known[id] {
				t.Errorf("%s: expects %s, which no Observation makes", q.Question, id)
			}
		}
		hits, err := set.Search(q.Question, 10, nil)
		if err != nil {
			t.Fatal(err)
		}
		var results []Result
		for _, h := range hits {
			results = append(results, Result{all[h.Doc].ID, all[h.Doc].Tokens})
		}
		answers = append(answers, Judge(q, results))
	}
	e := Evaluate(answers)
	t.Logf("%d observations: %+v", len(all), e)
	if len(all) < 150 || e.Questions < 100 || e.RecallAt5 < 0.9 || e.NDCG < 0.84 {
		t.Errorf("the search has become worse, or the gold set smaller: %d observations, %+v", len(all), e)
	}
}
