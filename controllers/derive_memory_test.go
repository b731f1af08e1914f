package controllers

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/derive"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// remembering is a tree in which engineer works in dag/work for session/days, and may ask architect and boss, a human.
func remembering(t *testing.T) *sim {
	s := newSim(t)
	for name, spec := range map[string]string{
		"engineer":  "{runner: {command: {argv: [tool]}}, canClarify: [architect, boss]}",
		"architect": "{runner: {command: {argv: [tool]}}}",
		"boss":      "{runner: {human: {}}}",
	} {
		s.put("specs/agents/"+name+".yaml", head("Agent", name)+"spec: "+spec+"\n")
	}
	s.put("specs/sessions/days.yaml", head("Session", "days")+"spec: {issue: 29}\n")
	s.put("specs/dags/work.yaml", head("DAG", "work")+
		"spec: {session: days, nodes: [{name: build, agent: engineer, prompt: go}]}\n")
	s.settle()
	return s
}

// TestDeriveFollows changes what lets a spec be called for, beside the object that calls for it: derive compares what is looked
// at with everything.
func TestDeriveFollows(t *testing.T) {
	s := remembering(t)
	s.work(func(r *schemas.Run) {
		r.Learned = []schemas.ObservationEntry{entry(schemas.CategoryDecision, "The days are long.")}
	})
	foreign := schemas.Clarification{ID: clarify.FormatID(29, 1), From: "engineer", To: "stranger", Topic: "days",
		Status: schemas.ClarificationPending, Round: 1, MaxRounds: 2, Created: schemas.NewTime(s.now), StaleAfter: schemas.NewTime(s.now)}
	ledger, err := json.Marshal(schemas.Ledger{IssueNumber: 29, Clarifications: []schemas.Clarification{foreign}})
	if err != nil {
		t.Fatal(err)
	}
	s.setLedger(29, ledger)
	called := func(want ...string) {
		t.Helper()
		s.settle()
		var got []string
		for _, spec := range s.derive() {
			got = append(got, spec.Ref.Kind)
			s.write(spec)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v is called for, want %v", got, want)
		}
	}
	called(schemas.ObservationKind.Name)
	called()
	for path, d := range s.specs {
		if d.Ref.Kind == schemas.ObservationKind.Name {
			s.put(path, "")
		}
	}
	called(schemas.ObservationKind.Name)
	s.put("specs/agents/stranger.yaml", head("Agent", "stranger")+"spec: {runner: {human: {}}}\n")
	called(schemas.ClarificationRequestKind.Name)
	called()
}

// derivedSpecs are what a tree calls for that was not looked at before.
func derivedSpecs(t *state.Tree, scheduled ...schemas.Ref) []derive.Spec {
	specs, _ := new(derive.Deriver).Derive(t, scheduled...)
	return specs
}

// derivedObservations are the derived ones, and no other spec is derived.
func derivedObservations(t *testing.T, s *sim) []derive.Spec {
	t.Helper()
	specs := derivedSpecs(s.tree())
	for _, spec := range specs {
		if spec.Ref.Kind != schemas.ObservationKind.Name {
			t.Errorf("%s is derived", spec.Ref)
		}
	}
	return specs
}

func entry(category, content string) schemas.ObservationEntry {
	return schemas.ObservationEntry{Category: category, Content: content}
}

func (s *sim) work(change func(*schemas.Run)) {
	s.t.Helper()
	e, ok := s.find("work", "build")
	if !ok {
		s.t.Fatal("build does not want to run")
	}
	s.claim(e, "p")
	s.start(e)
	s.now = s.now.Add(time.Minute)
	s.finish("work", "build", schemas.OutcomeSucceeded, change)
}

// What a run taught becomes one observation, once, whatever became of the DAG since.
func TestDeriveWhatARunTaught(t *testing.T) {
	for name, then := range map[string]func(*sim){
		"as it is":       func(*sim) {},
		"decided":        func(s *sim) { s.settle() },
		"broken":         func(s *sim) { s.put("specs/dags/work.yaml", head("DAG", "work")+"spec: {session: days}\n") },
		"without a spec": func(s *sim) { s.put("specs/dags/work.yaml", "") },
	} {
		t.Run(name, func(t *testing.T) {
			s := remembering(t)
			s.work(func(r *schemas.Run) {
				r.Learned = []schemas.ObservationEntry{entry(schemas.CategoryDecision, "One adapter.")}
				r.SourceTokens, r.Issue = 120, 29
			})
			then(s)
			specs := derivedObservations(t, s)
			if len(specs) != 1 || !strings.HasPrefix(specs[0].Path, "specs/observations/work-build-") {
				t.Fatalf("derived: %v", specs)
			}
			o := specs[0].Spec.(*schemas.ObservationSpec)
			if o.Agent != "engineer" || o.Issue != 29 || o.Session != "days" || !o.Timestamp.Equal(s.now) ||
				o.SourceTokens != 120 || !strings.HasPrefix(o.Run, "dags/work/build-") || len(o.Entries) != 1 {
				t.Errorf("the observation is %+v", o)
			}
			s.write(specs[0])
			if e := s.entries[specs[0].Ref]; e.Broken() {
				t.Errorf("it cannot be taken: %v", e.Problems)
			}
			if again := derivedObservations(t, s); len(again) > 0 {
				t.Errorf("and once more: %v", again)
			}
		})
	}
}

// What was written into a record by hand and no observation may have is left out.
func TestDeriveSoundEntriesOnly(t *testing.T) {
	s := remembering(t)
	s.work(func(r *schemas.Run) {
		r.Learned = []schemas.ObservationEntry{
			entry("opinion", "x"), entry(schemas.CategoryError, " \n"), entry(schemas.CategoryError, strings.Repeat("é", 2001)),
			{Category: schemas.CategoryError, Content: "x", Summary: strings.Repeat("é", 501)},
			{Category: schemas.CategoryError, Content: "x", Anchors: []string{"../../etc/passwd"}},
			entry(schemas.CategoryError, strings.Repeat("é", 2000)),
		}
		r.Learned = append(r.Learned, slices.Repeat([]schemas.ObservationEntry{entry(schemas.CategoryKeyFact, "y")}, 60)...)
	})
	specs := derivedObservations(t, s)
	if len(specs) != 1 {
		t.Fatal(specs)
	}
	entries := specs[0].Spec.(*schemas.ObservationSpec).Entries
	if len(entries) != 50 || utf8.RuneCountInString(entries[0].Content) != 2000 {
		t.Errorf("%d entries, the first %.80q", len(entries), entries[0].Content)
	}
	s.write(specs[0])
	if e := s.entries[specs[0].Ref]; e.Broken() {
		t.Errorf("it cannot be taken: %v", e.Problems)
	}

	s = remembering(t)
	s.work(func(r *schemas.Run) { r.Learned = []schemas.ObservationEntry{entry("opinion", "x")} })
	if specs := derivedObservations(t, s); len(specs) > 0 {
		t.Errorf("of nothing sound this is derived: %v", specs)
	}
}

// talkedOver is a tree in which a question of engineer was settled by the replies, each "type from body".
func talkedOver(t *testing.T, to, question string, replies ...[3]string) *sim {
	t.Helper()
	s := remembering(t)
	s.put("specs/clarificationrequests/layer.yaml", head("ClarificationRequest", "layer")+
		fmt.Sprintf("spec: {issue: 42, from: engineer, to: %s, topic: Database layer, question: %q, "+
			"artifacts: [docs/b.md, docs/a.md, docs/b.md]}\n", to, question))
	s.settle()
	s.fold()
	for i, r := range replies {
		s.now = s.now.Add(time.Minute)
		name := fmt.Sprintf("r%d", i)
		s.put("specs/replies/"+name+".yaml", head("Reply", name)+
			fmt.Sprintf("spec: {clarification: layer, type: %s, from: %s, body: %q}\n", r[0], r[1], r[2]))
		s.settle()
		s.fold()
	}
	return s
}

func TestDeriveDecisions(t *testing.T) {
	const asks = "Dual layer or migrate?"
	taken := [3]string{"resolution", "engineer", "Taken."}
	hard := [3]string{"escalation", "engineer", "Too hard."}
	secret := "Log in with ghp_Zx81Kq0PbTn4VwYd2RsLmA7cE9uHfJ3gQ5oB <private>in the cellar</private>."
	for name, c := range map[string]struct {
		replies [][3]string
		agent   string
		says    []string
	}{
		"of an agent": {[][3]string{{"answer", "architect", "Use one adapter."}, taken}, "architect",
			[]string{"CLR-42-001, Database layer", "Question of engineer: " + asks, "Answer of architect: Use one adapter.",
				"Resolution of engineer: Taken."}},
		"of a human after an escalation": {[][3]string{{"answer", "architect", "Hm."}, hard,
			{"resolution", "boss", "Migrate."}}, "boss", []string{"Answer of architect: Hm.", "Resolution of boss: Migrate."}},
		"of someone who is no agent": {[][3]string{hard, {"resolution", "petra", "Migrate."}}, "architect",
			[]string{"Resolution of petra: Migrate."}},
		"without an answer": {[][3]string{hard, {"resolution", "boss", "Migrate."}}, "boss",
			[]string{"Resolution of boss: Migrate."}},
		"with a secret": {[][3]string{{"answer", "architect", secret}, taken}, "architect",
			[]string{"Log in with [redacted:"}},
	} {
		t.Run(name, func(t *testing.T) {
			specs := derivedObservations(t, talkedOver(t, "architect", asks, c.replies...))
			if len(specs) != 1 || specs[0].Path != "specs/observations/resolved-layer.yaml" {
				t.Fatalf("derived: %v", specs)
			}
			o := specs[0].Spec.(*schemas.ObservationSpec)
			e := o.Entries[0]
			if o.Agent != c.agent || o.Issue != 42 || o.Clarification != "layer" || e.Category != schemas.CategoryDecision ||
				!slices.Equal(e.Anchors, []string{"docs/a.md", "docs/b.md"}) || !strings.Contains(e.Summary, "CLR-42-001") {
				t.Errorf("the observation is %+v", o)
			}
			for _, want := range c.says {
				if !strings.Contains(e.Content, want) {
					t.Errorf("it lacks %q:\n%s", want, e.Content)
				}
			}
			if text := e.Content + e.Summary; strings.Contains(text, "ghp_") || strings.Contains(text, "cellar") {
				t.Errorf("it tells a secret:\n%s", text)
			}
		})
	}
}

// However long all of it is, the decision fits, and what is cut first is the question.
func TestDeriveLongDecisions(t *testing.T) {
	long := strings.Repeat("слово ", 300)
	for name, replies := range map[string][][3]string{
		"answer and resolution": {{"answer", "architect", "ANSWER " + long}, {"resolution", "engineer", "OUTCOME " + long}},
		"short resolution":      {{"answer", "architect", "ANSWER " + long}, {"resolution", "engineer", "OUTCOME"}},
		"resolution alone": {{"escalation", "engineer", "Too hard."},
			{"resolution", "engineer", "OUTCOME ANSWER " + long}},
	} {
		t.Run(name, func(t *testing.T) {
			s := talkedOver(t, "architect", "QUESTION "+long, replies...)
			specs := derivedObservations(t, s)
			content := specs[0].Spec.(*schemas.ObservationSpec).Entries[0].Content
			if n := utf8.RuneCountInString(content); n > 2000 || n < 1000 {
				t.Errorf("%d characters", n)
			}
			for _, want := range []string{"CLR-42-001", "QUESTION", "ANSWER", "OUTCOME"} {
				if !strings.Contains(content, want) {
					t.Errorf("%s is lost:\n%s", want, content)
				}
			}
			s.write(specs[0])
			if e := s.entries[specs[0].Ref]; e.Broken() {
				t.Errorf("it cannot be taken: %v", e.Problems)
			}
			if again := derivedObservations(t, s); len(again) > 0 {
				t.Errorf("and once more: %v", again)
			}
		})
	}
}

// A tree without memory derives nothing for it, and its agents are not reminded.
func TestDeriveNothingWithoutMemory(t *testing.T) {
	s := talkedOver(t, "architect", "Which?", [3]string{"answer", "architect", "That."},
		[3]string{"resolution", "engineer", "Taken."})
	s.work(func(r *schemas.Run) {
		r.Learned = []schemas.ObservationEntry{entry(schemas.CategoryDecision, "One adapter.")}
	})
	if specs := derivedObservations(t, s); len(specs) != 2 {
		t.Errorf("with memory, %d are derived", len(specs))
	}
	s.put("reconcile.yaml", head("Settings", "settings")+"spec: {memory: {enabled: false}}\n")
	if specs := derivedObservations(t, s); len(specs) > 0 {
		t.Errorf("derived: %v", specs)
	}
}

func TestRemindersAreNoPartOfKeys(t *testing.T) {
	s := remembering(t)
	with, _ := s.find("work", "build")
	if r := with.Command().Recall; r == nil || *r != (settle.Recall{Agent: "engineer", Issue: 29, Context: "go"}) {
		t.Errorf("the agent is reminded for %+v", r)
	}
	s.put("reconcile.yaml", head("Settings", "settings")+"spec: {memory: {enabled: false}}\n")
	s.settle()
	without, _ := s.find("work", "build")
	if without.Key != with.Key || without.Command().Recall != nil {
		t.Errorf("without memory %s, with it %s; reminded for %+v", without.Key, with.Key, without.Command().Recall)
	}
}

// Each resolved request has one observation, however names sort and whichever of them exist already.
func TestDeriveOncePerRequest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	tree := benchTalk(30)
	var more []*state.Entry
	for i, e := range tree.Entries(schemas.ClarificationRequestKind.Name) {
		for _, name := range []string{fmt.Sprintf("%c%d", 'a'+r.IntN(26), i), strings.Repeat("long-", 11) + fmt.Sprint(i)} {
			copied := *e
			copied.Name = name
			more = append(more, &copied)
		}
	}
	tree = tree.With(more...)
	all := derivedSpecs(tree)
	if len(all) != 3*27 {
		t.Fatalf("%d are derived of 81 that were resolved", len(all))
	}
	for range 20 {
		var there []*state.Entry
		for _, s := range all {
			if r.IntN(2) == 0 {
				there = append(there, &state.Entry{Ref: s.Ref, Object: benchObject(schemas.ObservationKind, s.Ref.Name, s.Spec)})
			}
		}
		if rest := derivedSpecs(tree.With(there...)); len(rest) != len(all)-len(there) {
			t.Fatalf("%d of %d exist, and %d are derived", len(there), len(all), len(rest))
		}
	}
}
