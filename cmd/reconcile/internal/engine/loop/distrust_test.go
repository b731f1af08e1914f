package loop

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reconcile.dev/reconcile/controllers/preferences"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// TestDistrust has an action that skips a node appear while a run is marked as unconfined: it counts only if something shows that a person
// wrote it.
func TestDistrust(t *testing.T) {
	const skip, path = "  target: dag/job\n  node: a\n  verb: %s", "specs/actions/act.yaml"
	for name, c := range map[string]struct {
		verb, proof           string
		unmarked, vouch, edit bool
		want                  string
	}{
		"nothing shows it":           {verb: "skip", want: schemas.NodeSucceeded},
		"without a mark":             {verb: "skip", unmarked: true, want: schemas.NodeSkipped},
		"a command wrote it":         {verb: "skip", vouch: true, want: schemas.NodeSkipped},
		"a command wrote other text": {verb: "skip", vouch: true, edit: true, want: schemas.NodeSucceeded},
		"a signature":                {verb: "skip", proof: schemas.ProofSignature, want: schemas.NodeSkipped},
		"a verb of agents":           {verb: "cancel", want: schemas.NodeCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := tree(t, "    - {name: a, run: [x]}")
				l := newLoop(t, dir, newActor(always(time.Millisecond, schemas.OutcomeSucceeded)))
				l.Identify = func(context.Context, *schemas.SettingsSpec, *schemas.Object) (settle.Identity, error) {
					return settle.Identity{Proof: c.proof}, nil
				}
				if !c.unmarked {
					mark(t, l, "dags/job/other-1")
				}
				text := fmt.Sprintf(envelope, "Action", "act", fmt.Sprintf(skip, c.verb))
				if c.vouch {
					if err := state.Vouch(l.Store.Root(), path, []byte(text)); err != nil {
						t.Fatal(err)
					}
				}
				if c.edit {
					text += "  reason: Another text.\n"
				}
				put(t, dir, path, text)
				r, err := l.Once(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if got := job(t, r.Tree).Nodes.Of("a").State; got != c.want {
					t.Errorf("the node is %s, want %s", got, c.want)
				}
			})
		})
	}
}

// looking is an actor that looks at the tree before an effect starts.
type looking struct {
	*actor
	look func()
}

func (a looking) Submit(e settle.Effect) {
	a.look()
	a.actor.Submit(e)
}

// TestDecisionsAreOnDiskFirst: an action has its status before an effect starts, so that it does not count as written by that one if the run is
// killed.
func TestDecisionsAreOnDiskFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, seen := tree(t, "    - {name: a, run: [x]}\n    - {name: b, run: [x]}"), 0
		l := newLoop(t, dir, looking{newActor(always(time.Millisecond, schemas.OutcomeSucceeded)), func() {
			if _, err := os.Stat(filepath.Join(dir, "state/actions/act.json")); err != nil {
				t.Error(err)
			}
			seen++
		}})
		put(t, dir, "specs/actions/act.yaml", fmt.Sprintf(envelope, "Action", "act", "  target: dag/job\n  node: b\n  verb: skip"))
		if _, err := l.Once(t.Context()); err != nil || seen != 1 {
			t.Errorf("%d effects started, %v", seen, err)
		}
	})
}

// TestDistrustPreferences has a preference of a person appear while a run is marked as unconfined: it counts as inferred, unless something shows that a person
// wrote it, or it was there before.
func TestDistrustPreferences(t *testing.T) {
	const path = "specs/preferences/p.yaml"
	for name, c := range map[string]struct {
		vouch, before, edit bool
		want                string
	}{
		"nothing shows it":      {want: schemas.PreferenceInferred},
		"a command wrote it":    {vouch: true, want: schemas.PreferenceExplicit},
		"it was there before":   {before: true, want: schemas.PreferenceExplicit},
		"it was changed by now": {before: true, edit: true, want: schemas.PreferenceInferred},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := tree(t, "    - {name: a, run: [x]}")
				l := newLoop(t, dir, newActor(always(time.Millisecond, schemas.OutcomeSucceeded)))
				text := fmt.Sprintf(envelope, "Preference", "p", "  domain: tools\n  key: go/linter\n  value: staticcheck")
				if c.before {
					put(t, dir, path, text)
					if _, err := l.Once(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if c.edit {
					text += "  reason: Another text.\n"
				}
				mark(t, l, "dags/job/other-1")
				if c.vouch {
					if err := state.Vouch(l.Store.Root(), path, []byte(text)); err != nil {
						t.Fatal(err)
					}
				}
				put(t, dir, path, text)
				r, err := l.Once(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if got := preferences.Of(r.Tree); len(got) != 1 || got[0].Source != c.want {
					t.Errorf("%v, want %s", got, c.want)
				}
			})
		})
	}
}

// TestDistrustReplies has a reply appear while a run is marked as unconfined: the run warns, unless something shows that a person wrote it, or it
// is an agent's.
func TestDistrustReplies(t *testing.T) {
	const path = "specs/replies/r.yaml"
	for name, c := range map[string]struct {
		from            string
		unmarked, vouch bool
		want            int
	}{
		"nothing shows it":   {from: "ada", want: 1},
		"without a mark":     {from: "ada", unmarked: true},
		"a command wrote it": {from: "ada", vouch: true},
		"of an agent":        {from: "coder"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := tree(t, "    - {name: a, run: [x]}")
				put(t, dir, "specs/agents/coder.yaml", fmt.Sprintf(envelope, "Agent", "coder", "  runner: {command: {argv: [x]}}"))
				l := newLoop(t, dir, newActor(always(time.Millisecond, schemas.OutcomeSucceeded)))
				warned := 0
				l.Warn = func(text string) {
					if strings.Contains(text, path+", answer of ada, appeared while the run dags/job/other-1 worked") {
						warned++
					}
				}
				if !c.unmarked {
					mark(t, l, "dags/job/other-1")
				}
				text := fmt.Sprintf(envelope, "Reply", "r", "  clarification: CLR-42-001\n  type: answer\n  from: "+c.from+"\n  body: Use SQLite.")
				if c.vouch {
					if err := state.Vouch(l.Store.Root(), path, []byte(text)); err != nil {
						t.Fatal(err)
					}
				}
				put(t, dir, path, text)
				if _, err := l.Once(t.Context()); err != nil {
					t.Fatal(err)
				}
				if warned != c.want {
					t.Errorf("it warned %d times, want %d", warned, c.want)
				}
			})
		})
	}
}

// TestMarkedWhileItRuns: a mark stays while its run is under way, though all files are looked at meanwhile.
func TestMarkedWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tree(t, "    - {name: slow, run: [x]}\n    - {name: quick, run: [x]}\n    - {name: late, run: [x], needs: [slow]}")
		var l *Loop
		a := newActor(func(node string, _ int) (time.Duration, string) {
			if node != "slow" {
				return time.Second, schemas.OutcomeSucceeded
			}
			return time.Minute, schemas.OutcomeSucceeded
		})
		marked := &marker{actor: a, node: "slow"}
		l = newLoop(t, dir, marked)
		marked.mark = func(key string) { mark(t, l, key) }
		time.AfterFunc(30*time.Second, func() {
			put(t, dir, "specs/actions/act.yaml", fmt.Sprintf(envelope, "Action", "act", "  target: dag/job\n  node: late\n  verb: skip"))
		})
		r, err := l.Once(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := job(t, r.Tree).Nodes.Of("late").State; got != schemas.NodeSucceeded {
			t.Errorf("the node late is %s", got)
		}
	})
}

// TestMarksEnd: the next run over a tree ends the mark of a killed one, though it has nothing to do; and one that is interrupted ends its
// own. What a person writes later counts.
func TestMarksEnd(t *testing.T) {
	for name, interrupt := range map[string]bool{"killed": false, "interrupted": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := tree(t, "    - {name: slow, run: [x]}\n    - {name: late, run: [x], needs: [slow]}")
				l := newLoop(t, dir, newActor(always(time.Millisecond, schemas.OutcomeSucceeded)))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if interrupt {
					m := &marker{actor: newActor(always(time.Minute, schemas.OutcomeSucceeded)), node: "slow"}
					l = newLoop(t, dir, m)
					m.mark = func(key string) { mark(t, l, key) }
					time.AfterFunc(time.Second, cancel)
				} else {
					mark(t, l, "dags/job/other-1")
					put(t, dir, "specs/actions/hold.yaml", fmt.Sprintf(envelope, "Action", "hold", "  target: dag/job\n  node: slow\n  verb: hold"))
				}
				if _, err := l.Once(ctx); err != nil && !interrupt {
					t.Fatal(err)
				}
				l = newLoop(t, dir, newActor(always(time.Millisecond, schemas.OutcomeSucceeded)))
				put(t, dir, "specs/actions/act.yaml", fmt.Sprintf(envelope, "Action", "act", "  target: dag/job\n  node: late\n  verb: skip"))
				r, err := l.Once(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if got := job(t, r.Tree).Nodes.Of("late").State; got != schemas.NodeSkipped {
					t.Errorf("the node is %s, and the action %v", got, r.Tree.Entry(schemas.ActionKind.Ref("act")).Status())
				}
			})
		})
	}
}

// marker marks the run of a node when it starts.
type marker struct {
	*actor
	node string
	mark func(key string)
}

func (m *marker) Submit(e settle.Effect) {
	if e.Node == m.node {
		m.mark(e.Key)
	}
	m.actor.Submit(e)
}

func mark(t *testing.T, l *Loop, key string) {
	t.Helper()
	if err := state.MarkUnconfined(l.Store.Root(), key); err != nil {
		t.Error(err)
	}
}
