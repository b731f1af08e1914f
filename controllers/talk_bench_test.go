package controllers

import (
	"fmt"
	"testing"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/ledgers"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// benchTalk is a tree of n questions, a thousand to an issue, every tenth of which is open; a person is asked.
func benchTalk(n int) *state.Tree {
	var list []*state.Entry
	for _, name := range []string{"engineer", "architect"} {
		spec := &schemas.AgentSpec{Runner: schemas.Runner{Human: &schemas.HumanRunner{}}, CanClarify: []string{"architect"}}
		list = append(list, &state.Entry{Ref: schemas.AgentKind.Ref(name), Object: benchObject(schemas.AgentKind, name, spec)})
	}
	for i := range n {
		name := fmt.Sprintf("q%05d", i)
		spec := &schemas.ClarificationRequestSpec{Issue: 1 + i/1000, From: "engineer", To: "architect", Blocking: true,
			Topic: "Topic " + name, Question: "What about " + name + "?"}
		list = append(list, &state.Entry{Ref: schemas.ClarificationRequestKind.Ref(name), Object: benchObject(schemas.ClarificationRequestKind, name, spec)})
		if i%10 > 0 {
			for typ, from := range map[string]string{"answer": "ann", "resolution": "engineer"} {
				reply := name + "-" + typ
				list = append(list, &state.Entry{Ref: schemas.ReplyKind.Ref(reply), Object: benchObject(schemas.ReplyKind, reply,
					&schemas.ReplySpec{Clarification: name, Type: typ, From: from, Body: "So be it, " + name})})
			}
		}
	}
	return settle.Tree(state.NewTree(Schemas(), nil, nil, list...), benchNow, nil).Tree
}

// BenchmarkTalkTurn decides what one more reply affects.
func BenchmarkTalkTurn(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			t := benchTalk(n)
			ref := schemas.ReplyKind.Ref("more")
			t = t.With(&state.Entry{Ref: ref, Object: benchObject(schemas.ReplyKind, "more",
				&schemas.ReplySpec{Clarification: "q00000", Type: "answer", From: "ann", Body: "This way."})})
			b.ReportAllocs()
			for b.Loop() {
				if d := settle.Tree(t, benchNow, []schemas.Ref{ref}); len(d.Changed) == 0 {
					b.Fatal("nothing was decided")
				}
			}
		})
	}
}

// BenchmarkTalkAll decides everything anew where nothing changed.
func BenchmarkTalkAll(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			t := benchTalk(n)
			b.ReportAllocs()
			for b.Loop() {
				settle.Tree(t, benchNow, nil)
			}
		})
	}
}

// BenchmarkTalkLedger makes the ledger of an issue with a thousand questions from the statuses.
func BenchmarkTalkLedger(b *testing.B) {
	t := benchTalk(1000)
	b.ReportAllocs()
	for b.Loop() {
		records := ledgers.LedgersOf(t, []schemas.Ref{schemas.ClarificationRequestKind.Ref("q00000")})[1]
		if _, err := clarify.Fold(nil, 1, records); err != nil || len(records) != 1000 {
			b.Fatal(err, len(records))
		}
	}
}

// BenchmarkTalkDerive looks for specs to write where there is none: the observations of what was resolved exist.
func BenchmarkTalkDerive(b *testing.B) {
	t := benchTalk(10000)
	var derived []*state.Entry
	for _, s := range derivedSpecs(t) {
		derived = append(derived, &state.Entry{Ref: s.Ref, Object: benchObject(schemas.ObservationKind, s.Ref.Name, s.Spec)})
	}
	t = t.With(derived...)
	b.ReportAllocs()
	for b.Loop() {
		if specs := derivedSpecs(t); len(specs) > 0 {
			b.Fatal(specs[0].Ref)
		}
	}
}
