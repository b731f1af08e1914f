package render

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/ledgers"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/slash"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// hostileTopic would end a block of code, mention somebody and run a command, if it could.
const hostileTopic = "```` ~~~ @everyone #1 <img src=x> <!-- x -->"

func shownTree(t *testing.T, now time.Time) *state.Tree {
	t.Helper()
	d := schemas.NewDecoder(controllers.Schemas(), 0)
	var entries []*state.Entry
	for p, spec := range map[string]string{
		"specs/sessions/health.json": `"Session", "metadata": {"name": "health"}, "spec": {"title": "T", "issue": 42}`,
		"specs/agents/ada.json":      `"Agent", "metadata": {"name": "ada"}, "spec": {"role": "reviewer", "runner": {"human": {}}}`,
		"specs/agents/engineer.json": `"Agent", "metadata": {"name": "engineer"}, "spec": {"role": "engineer", "canClarify": ["ada"],
			"runner": {"human": {}}}`,
		"specs/dags/checks.json": `"DAG", "metadata": {"name": "checks"}, "spec": {"session": "health", "nodes": [
			{"name": "review", "agent": "ada", "prompt": "` + hostileTopic + `"}, {"name": "build", "needs": ["review"], "run": ["make"]}]}`,
		"specs/clarificationrequests/release.json": `"ClarificationRequest", "metadata": {"name": "release"}, "spec": {"issue": 42,
			"from": "engineer", "to": "ada", "topic": "` + hostileTopic + `", "question": "When?\n` + "```" + `\n/cancel", "blocking": true}`,
	} {
		got := d.Decode(p, []byte(`{"apiVersion": "`+schemas.APIVersion+`", "kind": `+spec+`}`))
		if got.Object == nil {
			t.Fatalf("%s: %v", p, got.Problems)
		}
		entries = append(entries, &state.Entry{Ref: got.Ref, Object: got.Object})
	}
	return settle.Tree(state.NewTree(controllers.Schemas(), nil, nil, entries...), now, nil).Tree
}

// TestShow: commands in comments are told what the command line prints, in a block that nothing in it ends.
func TestShow(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC)
	tree := shownTree(t, now)
	ref := func(word string) schemas.Ref {
		r, err := controllers.Schemas().ParseRef(word)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	all := []schemas.Ref{ref("clarificationrequest/release"), ref("dag/checks"), ref("session/health")}
	for _, c := range []struct {
		view slash.View
		want []string
	}{
		{slash.View{Verb: slash.Status, Objects: all}, []string{"health  ", "checks  ", "release  ", "dag/checks/review", "CLR-42-001", "ITEM"}},
		{slash.View{Verb: slash.Explain, Objects: all}, []string{"  dag/checks\n", "review is Blocked", "NODE", "  session/health\n"}},
		{slash.View{Verb: slash.Explain, Objects: all[1:2], Node: "build"}, []string{"dag/checks build: Pending"}},
		{slash.View{Verb: slash.Clarify, Issue: -1}, []string{"CLR-42-001", "pending"}},
		{slash.View{Verb: slash.Clarify, Issue: 42}, []string{"CLR-42-001", "When?", "/cancel"}},
		{slash.View{Verb: slash.Clarify, Issue: 7}, nil},
	} {
		got := Show(tree, c.view, now)
		if c.want == nil {
			if got != "There is nothing to tell." {
				t.Errorf("%+v: %s", c.view, got)
			}
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(got, w) {
				t.Errorf("%+v lacks %q:\n%s", c.view, w, got)
			}
		}
		fence, rest, _ := strings.Cut(got, "text\n")
		if strings.Trim(fence, "`") != "" || len(fence) < 3 || strings.Count(rest, fence) != 1 || !strings.HasSuffix(rest, "\n"+fence) {
			t.Errorf("%+v is no block of code:\n%s", c.view, got)
		}
		if p := slash.Parse(got); len(p.Commands) > 0 {
			t.Errorf("%+v has the command %s", c.view, p.Commands[0].Verb)
		}
	}
}

// TestShowWhatWasDecided: an answer in the same comment counts for what is shown below it, though no ledger has it yet.
func TestShowWhatWasDecided(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC)
	tree, request := shownTree(t, now), schemas.Ref{Kind: schemas.ClarificationRequestKind.Name, Name: "release"}
	asked, err := clarify.Fold(nil, 42, ledgers.LedgersOf(tree, []schemas.Ref{request})[42])
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := state.ParseLedger("state/clarifications/issue-42.json", asked)
	if err != nil {
		t.Fatal(err)
	}
	tree = tree.WithLedgers(ledger)
	status := slash.View{Verb: slash.Status, Objects: []schemas.Ref{request}}
	for i, reply := range []struct {
		typ, state string
		open       bool
	}{{"answer", "answered", true}, {"resolution", "resolved", false}} {
		name := fmt.Sprint("r", i)
		got := schemas.NewDecoder(controllers.Schemas(), 0).Decode("specs/replies/"+name+".json", []byte(`{"apiVersion": "`+schemas.APIVersion+
			`", "kind": "Reply", "metadata": {"name": "`+name+`"}, "spec": {"clarification": "release", "type": "`+reply.typ+
			`", "from": "github:ada", "body": "On Monday."}}`))
		if got.Object == nil {
			t.Fatal(got.Problems)
		}
		tree = settle.Tree(tree.With(&state.Entry{Ref: got.Ref, Object: got.Object}), now, nil).Tree
		thread := Show(tree, slash.View{Verb: slash.Clarify, Issue: 42}, now)
		for _, shown := range []string{Show(tree, status, now), thread} {
			if low := strings.ToLower(shown); !strings.Contains(low, reply.state) || strings.Contains(low, "pending") {
				t.Errorf("after one more, %s:\n%s", reply.typ, shown)
			}
		}
		if !strings.Contains(thread, "On Monday.") {
			t.Errorf("the %s is not in\n%s", reply.typ, thread)
		}
		open := Show(tree, slash.View{Verb: slash.Clarify, Issue: -1}, now)
		if strings.Contains(open, "CLR-42-001") != reply.open || reply.open && !strings.Contains(open, reply.state) {
			t.Errorf("after one more, %s:\n%s", reply.typ, open)
		}
	}
}

// TestShowIsCut: a comment has a limit.
func TestShowIsCut(t *testing.T) {
	t.Parallel()
	got := showFenced(strings.Repeat("é\n", 2*showLimit))
	if n := len([]rune(got)); n > showLimit+200 || !strings.HasSuffix(got, "\n```\n\n_There is more: the command line prints all of it._") {
		t.Errorf("%d characters, which end in %q", n, got[len(got)-100:])
	}
}
