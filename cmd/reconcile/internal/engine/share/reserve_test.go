package share

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/loop"
	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/mutants"
)

// starter is a performer that only says what it is to start.
type starter struct {
	loop.Performer
	started chan string
}

func (s starter) Submit(e settle.Effect)  { s.started <- "started" }
func (s starter) Notify() <-chan struct{} { return nil }
func (s starter) Drain() []settle.Report  { return nil }

// TestOneOfTwoClonesGetsTheRest: two clones decide at once, each without having seen the other, on turns of which a budget has one
// left. One starts; the other is told to decide again, and then has nothing left until the first gives its part back.
func TestOneOfTwoClonesGetsTheRest(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{"day", "session/s"} {
		t.Run(scope, func(t *testing.T) {
			t.Parallel()
			r := newRivals(t, scope)
			var both []settle.Effect
			for i, name := range []string{"c", "d"} {
				e, ok := r.admit(i, name)
				if !ok {
					t.Fatalf("%s may not start, and nothing has", e.Key)
				}
				both = append(both, e)
			}
			for i, s := range r.clones {
				s.keeper.Submit(both[i])
			}
			got := []string{r.outcome(), r.outcome()}
			slices.Sort(got)
			if want := []string{"other reconcilers have reserved a part of its budget, or its group, meanwhile", "started"}; !slices.Equal(got, want) {
				t.Fatalf("of two that were decided at once: %q, want %q", got, want)
			}
			first, last := 0, 1
			if r.clones[1].keeper.Has(both[1].Key) {
				first, last = 1, 0
			}
			if e, ok := r.admit(last, "x"); ok {
				t.Errorf("%s may start with %+v, and the other clone has reserved it", e.Key, *e.Reserved)
			}
			r.give(first, both[first].Key)
			r.fetch(last)
			late, ok := r.admit(last, "late")
			if !ok {
				t.Fatalf("%s may not start, and nothing is reserved any more", late.Key)
			}

			// What came and went between two fetches has a record, which the tree lacks until it is adopted.
			r.fetch(first)
			e, _ := r.admit(first, "next")
			if _, again, err := r.clones[first].Claims().Reserve(t.Context(), []settle.Effect{e}); err != nil || len(again) > 0 {
				t.Fatal(again, err)
			}
			r.git(first, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "Record next")
			r.git(first, "push", "-q", "origin", "main")
			r.give(first, e.Key)
			r.fetch(last)
			if _, _, behind := r.clones[last].Holds(); !behind {
				t.Error("the record of a former reservation is not missed")
			}
			if _, again, err := r.clones[last].Claims().Reserve(t.Context(), []settle.Effect{late}); err != nil || len(again) != 1 {
				t.Error("what was decided before is claimed:", again, err)
			}
			r.git(last, "pull", "-q", "origin", "main")
			r.clones[last].MovedTo(r.clones[last].tip.Head)
			r.fetch(last)
			if all, _, behind := r.clones[last].Holds(); len(all) > 0 || behind {
				t.Errorf("all records are here, and %d reservations count (%t)", len(all), behind)
			}
		})
	}
}

// rivals are two clones of a hub whose turns count against one budget.
type rivals struct {
	*testing.T
	dir, scope string
	clones     []*Share
	started    chan string
}

func newRivals(t *testing.T, scope string) *rivals {
	dir, open := sharedBy(t)
	r := &rivals{t, dir, scope, nil, make(chan string, 2)}
	r.git(1, "pull", "-q", "origin", "main")
	for i, name := range []string{"a", "b"} {
		s := open(name)
		r.clones = append(r.clones, s)
		k := s.Guard(starter{started: r.started})
		t.Cleanup(func() { k.Stop(t.Context()) })
		r.fetch(i)
	}
	return r
}

func (r *rivals) git(clone int, args ...string) {
	r.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = filepath.Join(r.dir, []string{"a", "b"}[clone])
	if out, err := cmd.CombinedOutput(); err != nil {
		r.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

func (r *rivals) fetch(clone int) {
	r.Helper()
	if _, err := r.clones[clone].Fetch(r.Context(), false); err != nil {
		r.Fatal(err)
	}
}

// admit decides in a clone on a turn that needs all that the budget leaves.
func (r *rivals) admit(clone int, name string) (e settle.Effect, ok bool) {
	e = settle.Effect{Key: "run/" + name, Owner: schemas.DAGKind.Ref(name), Node: name, Agent: "a", Session: "s",
		Allowances: []settle.Allowance{{Scope: r.scope, Limit: schemas.Budget{Tokens: 1}}}}
	ledger := budgets.Ledger{Sums: new(budgets.Sums), Slots: 1}
	holds, seen, _ := r.clones[clone].Holds()
	ledger.Hold(holds...)
	e.Seen = seen
	e.Reserved, ok = ledger.Reserve(&e)
	return e, ok
}

// outcome is what becomes of the next submitted turn of one of the clones.
func (r *rivals) outcome() string {
	select {
	case what := <-r.started:
		return what
	case <-r.clones[0].keeper.Notify():
		return r.clones[0].keeper.Drain()[0].Why
	case <-r.clones[1].keeper.Notify():
		return r.clones[1].keeper.Drain()[0].Why
	case <-time.After(time.Minute):
		return "nothing"
	}
}

// give gives a claim of a clone back.
func (r *rivals) give(clone int, key string) {
	r.Helper()
	if err := r.clones[clone].Claims().Drop(r.Context(), []string{key}); err != nil {
		r.Fatal(err)
	}
}

// faults are those in reserving a part of a budget on the remote, which the tests must notice.
var faults = []mutants.Mutant{
	{"two clones reserve the same", "../../gitrepo/remote_reserve.go", "case seen != r.Seen:", "case seen != r.Seen && false:"},
	{"reserving is no compare-and-swap", "../../gitrepo/remote_reserve.go",
		"lease: true, old: m.seen[reservesRef].hash, atomic: true}", "atomic: true}"},
	{"a claim does not say what it reserves", "claims.go", "json.Marshal(budgets.HoldOf(&effects[i]))",
		"json.Marshal(budgets.HoldOf(&effects[i]).Scopes)"},
	{"what others have reserved is not seen", "claims.go", "s.holds[c.Key], s.claimed[c.Key] = h, true", "s.claimed[c.Key] = true"},
	{"what others have reserved is not counted", "../../../../../controllers/budgets/hold.go", "l.hold(scope, &all[i].Budget)", "_ = scope"},
	{"a turn with a budget reserves nothing", "../claims/work.go", "it.effect.Reserves() {", "it.effect.Reserves() && false {"},
	{"what came and went between two fetches is forgotten", "claims.go", "s.accounted != s.reserves\n", "false\n"},
	{"what was reserved counts for ever", "claims.go", "return !s.claimed[key] })", "return false })"},
}

func TestMutants(t *testing.T) {
	mutants.Suite{Mutants: mutants.NoticedBy("TestOneOfTwoClonesGetsTheRest", faults), Args: []string{"-short"}}.Run(t)
}
