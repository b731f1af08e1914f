package loop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/work"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/mutants"
	"reconcile.dev/reconcile/state/outputs"
)

// A run that decides only what differs from the settled tree leaves the same files, and runs the same nodes, as one that
// decides everything, whatever was done to the tree in between.
func TestRunSinceSettledEqualsWholeRun(t *testing.T) {
	seeds := mutants.Size(1, 2, 4)
	rounds := mutants.Size(6, 25, 40)
	var known, ran, reported atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for seed := range uint64(seeds) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				e := &edits{t: t, dir: t.TempDir(), rnd: rand.New(rand.NewPCG(seed, 1)), now: time.Now().Add(-100 * 24 * time.Hour)}
				e.begin()
				e.run(e.dir, false)
				for range rounds {
					done := e.some()
					if e.settled() {
						known.Add(1)
					}
					ran.Add(int64(e.compare(done)))
				}
				reported.Add(int64(e.reported))
			})
		}
	})
	t.Logf("%d reports were compared", reported.Load())
	if reported.Load() == 0 {
		t.Error("no report of failures was compared")
	}
	if known.Load() < int64(seeds*rounds/2) || ran.Load() < int64(seeds*rounds/10) {
		t.Errorf("in %d of %d rounds it was known what had changed, and %d nodes ran", known.Load(), seeds*rounds, ran.Load())
	}
}

// The same holds in a mixed tree: of each kind that rests most objects are dormant.
func TestRunSinceSettledLeavesObjectsOfAllKinds(t *testing.T) {
	seeds := mutants.Size(2, 4, 4)
	rounds := mutants.Size(12, 25, 40)
	var left, looks atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for seed := range uint64(seeds) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				e := &edits{t: t, dir: t.TempDir(), rnd: rand.New(rand.NewPCG(seed, 4)), now: time.Now().Add(-100 * 24 * time.Hour)}
				e.begin()
				e.mix()
				e.run(e.dir, false)
				for kind, n := range map[string]int{schemas.DAGKind.Name: mixedObjects, schemas.ObservationKind.Name: mixedObjects, schemas.ClarificationRequestKind.Name: mixedObjects / 2, schemas.ReplyKind.Name: mixedObjects / 2, schemas.SessionKind.Name: mixedObjects} {
					if got := e.dormantOf(kind); got < n {
						t.Errorf("%d objects of kind %s are dormant, want %d", got, kind, n)
					}
				}
				for round := range rounds {
					done := e.remix(round+int(seed)*rounds, e.rnd.IntN(mixedObjects))
					if e.rnd.IntN(2) == 0 {
						done += ", " + e.some()
					}
					left.Add(int64(min(e.dormant(), 1)))
					e.compare(done)
				}
				looks.Add(int64(e.lazy))
			})
		}
	})
	if looks.Load() < int64(seeds*rounds) {
		t.Errorf("%d looks in %d rounds left objects", looks.Load(), seeds*rounds)
	}
	if left.Load() < int64(seeds*rounds/4) {
		t.Errorf("in %d of %d rounds objects were left", left.Load(), seeds*rounds)
	}
}

const mixedObjects = 12

// mix adds objects that rest once they were decided: DAGs of a paused session, questions that people answered, and observations.
func (e *edits) mix() {
	e.still("Paused")
	for i := range mixedObjects {
		e.calm(i, "Paused")
		e.waiting(i, "true")
		e.put(fmt.Sprintf("specs/old/q-old-%d.yaml", i), "ClarificationRequest", fmt.Sprintf("q-old-%d", i), fmt.Sprintf(
			"  {issue: %d, from: a%d, to: a%d, topic: Old, question: \"What was %d?\", blocking: true}", 20+i%3, i%3, (i+1)%3, i))
		e.answer(i, "It was so.")
		e.observe(i, "seen")
	}
}

func (e *edits) still(phase string) {
	e.put("specs/sessions/still.yaml", "Session", "still", fmt.Sprintf("  phase: %s\n  description: edit %d", phase, e.n))
}

// calm writes a session that is one of a few owners.
func (e *edits) calm(i int, phase string) {
	e.put(fmt.Sprintf("specs/sessions/calm-%d.yaml", i), "Session", fmt.Sprintf("calm-%d", i), fmt.Sprintf(
		"  {phase: %s, owner: o%d, issue: %d, priority: %s}", phase, i%4, 20+i%3, []string{"high", "low"}[i%2]))
}

func (e *edits) waiting(i int, command string) {
	e.put(fmt.Sprintf("specs/waiting/w%d.yaml", i), "DAG", fmt.Sprintf("w%d", i), fmt.Sprintf(
		"  session: still\n  nodes:\n    - {name: x, run: [%q]}\n    - {name: y, agent: a%d, prompt: look, needs: [x]}", command, i%2))
}

func (e *edits) answer(i int, body string) {
	e.put(fmt.Sprintf("specs/old/r-old-%d.yaml", i), "Reply", fmt.Sprintf("r-old-%d", i), fmt.Sprintf(
		"  {clarification: q-old-%d, type: %s, from: a%d, body: %q}", i, []string{"answer", "resolution"}[i%2], (i+1)%3, body))
}

func (e *edits) observe(i int, what string) {
	e.put(fmt.Sprintf("specs/old/o-old-%d.yaml", i), "Observation", fmt.Sprintf("o-old-%d", i), fmt.Sprintf(
		"  agent: a%d\n  issue: 20\n  timestamp: \"2026-01-02T03:04:05Z\"\n  entries: [{category: decision, content: %q}]", i%3, what))
}

// remix does something that bears on objects that rest: each of the things once before one again.
func (e *edits) remix(what, i int) string {
	e.n++
	switch what % 19 {
	case 0:
		e.still([]string{"Active", "Paused", "Paused"}[e.rnd.IntN(3)])
		return "edit the session of those that wait"
	case 1:
		e.waiting(i, fmt.Sprint("edit-", e.n))
		return "edit a DAG that waits"
	case 2:
		e.put(fmt.Sprintf("specs/actions/act-%d.yaml", e.n), "Action", fmt.Sprintf("act-%d", e.n), fmt.Sprintf(
			"  {target: dag/w%d, node: x, verb: %s}", i, []string{"hold", "skip", "retry"}[e.rnd.IntN(3)]))
		return "act on a DAG that waits"
	case 3:
		e.answer(i, fmt.Sprint("It was ", e.n))
		return "edit a reply that was taken"
	case 4:
		e.put(fmt.Sprintf("specs/old/again-%d.yaml", e.n), "Reply", fmt.Sprintf("again-%d", e.n), fmt.Sprintf(
			"  {clarification: q-old-%d, type: resolution, from: a%d, body: \"Done.\"}", i, i%3))
		return "resolve a question that was answered"
	case 5:
		e.put(fmt.Sprintf("specs/old/q-old-%d.yaml", i), "ClarificationRequest", fmt.Sprintf("q-old-%d", i), fmt.Sprintf(
			"  {issue: %d, from: a%d, to: a%d, topic: Old, question: \"What is %d?\", blocking: true}", 20+i%3, i%3, (i+1)%3, e.n))
		return "edit a question that was answered"
	case 6:
		e.observe(i, fmt.Sprint("seen ", e.n))
		return "edit an observation"
	case 7:
		return "remove " + e.removeSome("specs/old")
	case 8:
		return "remove " + e.removeSome("state/clarificationrequests", "state/dags")
	case 9:
		return "damage " + e.changeSome("state/clarificationrequests", "state/dags")
	case 10:
		os.Remove(filepath.Join(e.dir, fmt.Sprintf("specs/agents/a%d.yaml", i%3)))
		return "remove an agent"
	case 11:
		e.put(fmt.Sprintf("specs/agents/a%d.yaml", i%3), "Agent", fmt.Sprintf("a%d", i%3), fmt.Sprintf("  description: edit %d\n  canClarify: [a%d]\n  runner: {human: {}}", e.n, (i%3+1)%3))
		return "edit an agent"
	case 12:
		return "empty " + e.emptyLedger()
	case 13:
		e.put(fmt.Sprintf("specs/new/q-new-%d.yaml", e.n), "ClarificationRequest", fmt.Sprintf("q-new-%d", e.n), fmt.Sprintf(
			"  {issue: %d, from: a%d, to: a%d, topic: New, question: \"What is %d?\", blocking: false}", 20+i%3, i%3, (i+1)%3, e.n))
		return "ask what gets the next number"
	case 15:
		e.put(fmt.Sprintf("specs/actions/act-%d.yaml", e.n), "Action", fmt.Sprintf("act-%d", e.n), fmt.Sprintf(
			"  {target: session/calm-%d, verb: %s}", i, []string{"pause", "resume", "cancel"}[e.rnd.IntN(3)]))
		return "act on a session that is paused"
	case 16:
		e.calm(i, []string{"Active", "Paused", "Completed"}[e.rnd.IntN(3)])
		return "edit a session that is paused"
	case 18:
		return e.report(i)
	case 17:
		e.put(fmt.Sprintf("specs/waiting/c%d.yaml", i), "DAG", fmt.Sprintf("c%d", i), fmt.Sprintf(
			"  session: calm-%d\n  nodes: [{name: x, run: [\"true\"]}]", i))
		return "add a DAG to a session that is paused"
	}
	put(e.t, e.dir, "reconcile.yaml", fmt.Sprintf("apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\nspec: {limits: {sessions: %d}}\n", 1+e.rnd.IntN(4)))
	return "edit the settings"
}

// The same holds where most of the tree is dormant, whatever is done to dormant objects before and during the run.
func TestRunSinceSettledLeavesDormantObjects(t *testing.T) {
	seeds := mutants.Size(1, 2, 8)
	rounds := mutants.Size(5, 20, 20) // what is damaged in one keeps objects from being dormant in later ones
	var left, woken atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for seed := range uint64(seeds) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				e := &edits{t: t, dir: t.TempDir(), rnd: rand.New(rand.NewPCG(seed, 2)), now: time.Now().Add(-100 * 24 * time.Hour)}
				e.begin()
				e.put("specs/calm.yaml", "Session", "calm", "  title: calm")
				for i := range finishedDAGs {
					e.finished(i)
				}
				e.run(e.dir, false)
				for range rounds {
					done := e.meddle(e.dir, e.rnd.IntN(15), e.rnd.IntN(finishedDAGs))
					if e.rnd.IntN(2) == 0 {
						done += ", " + e.some()
					}
					if e.rnd.IntN(2) == 0 {
						e.during = 1 + []int{1, 2, 4, 5, 5, 5, 6, 8, 9, 11}[e.rnd.IntN(10)]
						done += e.meddler()
					}
					dormant := e.dormant()
					left.Add(int64(min(dormant, 1)))
					e.compare(done)
					if e.during = 0; 0 < e.left && e.left < dormant {
						woken.Add(1)
					}
				}
			})
		}
	})
	if left.Load() < int64(seeds*rounds/4) || woken.Load() < int64(seeds*rounds/15) {
		t.Errorf("in %d of %d rounds objects were left, and in %d of these some were woken", left.Load(), seeds*rounds, woken.Load())
	}
}

// A session counts each DAG once, also one whose file is moved while a run works.
func TestDormantObjectsMovedDuringARun(t *testing.T) {
	e := newFinished(t)
	e.put("specs/calm.yaml", "Session", "calm", "  title: calm")
	for range 3 {
		e.n++
		e.during = 1 + moves
		done := e.meddler()
		e.compare(done)
	}
}

const (
	finishedDAGs = 40
	moves        = 4 // what meddle does
)

func (e *edits) finished(i int) { e.finishedAs(e.dir, "specs", fmt.Sprintf("f%d", i), i, "true") }

func (e *edits) finishedAs(dir, folder, file string, i int, command string) {
	put(e.t, dir, folder+"/"+file+".yaml", fmt.Sprintf(envelope, "DAG", fmt.Sprintf("f%d", i),
		fmt.Sprintf("  session: s%d\n  nodes:\n    - {name: x, run: [%q]}", i%2, command)))
}

// meddler has a DAG run that meddles.
func (e *edits) meddler() string {
	e.put("specs/meddler.yaml", "DAG", "meddler", fmt.Sprintf("  session: calm\n  description: edit %d\n"+
		"  nodes:\n    - {name: m, run: [echo, \"%d\"]}", e.n, e.n))
	return fmt.Sprintf(", %d during the run", e.during-1)
}

// meddle does something to an object that is dormant, most likely.
func (e *edits) meddle(dir string, what, i int) string {
	name := fmt.Sprintf("f%d", i)
	spec := filepath.Join(dir, "specs", name+".yaml")
	status := filepath.Join(dir, "state/dags", name+".json")
	switch what {
	case 0, 1:
		e.finishedAs(dir, "specs", name, i, fmt.Sprint("edit-", e.n))
		return "edit " + name
	case 2:
		os.Remove(spec)
		return "remove " + name
	case 3:
		put(e.t, dir, "specs/"+name+".yaml", "kind: [")
		return "break " + name
	case 4:
		os.Rename(spec, filepath.Join(dir, "specs", fmt.Sprintf("moved-%d.yaml", e.n)))
		return "move " + name
	case 5:
		e.finishedAs(dir, "specs", strings.ToUpper(name), finishedDAGs+e.n, "true")
		return "a file that differs from that of " + name + " by case"
	case 6:
		e.finishedAs(dir, "specs/more", name, i, "true")
		return "declare " + name + " twice"
	case 7:
		at := e.now.Add(time.Duration(e.n) * time.Second)
		os.Chtimes(spec, at, at)
		return "touch " + name
	case 8:
		os.Remove(status)
		return "remove the status of " + name
	case 9:
		data, _ := os.ReadFile(status)
		put(e.t, dir, "state/dags/"+name+".json", strings.ReplaceAll(string(data), `"Succeeded"`, `"Failed"`))
		return "edit the status of " + name
	case 10:
		os.RemoveAll(filepath.Join(dir, "state/runs/dags", name))
		return "remove the records of " + name
	case 11:
		put(e.t, dir, fmt.Sprintf("specs/actions/again-%d.yaml", e.n), fmt.Sprintf(envelope, "Action", fmt.Sprintf("again-%d", e.n),
			fmt.Sprintf("  {target: dag/%s, node: x, verb: retry}", name)))
		return "try " + name + " again"
	case 12:
		put(e.t, dir, "specs/sessions/s0.yaml", fmt.Sprintf(envelope, "Session", "s0", fmt.Sprintf("  phase: Active\n  issue: %d", e.n)))
		return "edit the session of many"
	case 13:
		link := filepath.Join(dir, "specs", fmt.Sprintf("link-%d.yaml", e.n/20))
		if os.Remove(link) != nil {
			os.Symlink("nowhere.yaml", link)
		}
		return "a link that leads nowhere comes or goes"
	}
	e.finishedAs(dir, "specs", fmt.Sprintf("new-%d", e.n), finishedDAGs+e.n, "true")
	return "add a DAG"
}

// dormant counts the objects that a run leaves.
func (e *edits) dormant() int {
	s := e.open(e.dir, false)
	defer s.Close()
	s.Fresh()
	tree, _, _, err := s.LoadChanged(e.t.Context(), true)
	if err != nil {
		return 0
	}
	return countDormant(tree)
}

func (e *edits) dormantOf(kind string) (n int) {
	s := e.open(e.dir, false)
	defer s.Close()
	s.Fresh()
	if tree, _, _, err := s.LoadChanged(e.t.Context(), true); err == nil {
		n, _ = tree.CountDormant(kind)
	}
	return n
}

func countDormant(t *state.Tree) (n int) {
	for range t.Dormant(schemas.DAGKind.Name) {
		n++
	}
	return n
}

// compare runs the tree, and a copy of it of which nothing is known, and counts the nodes that ran.
func (e *edits) compare(done string) int {
	whole := filepath.Join(e.t.TempDir(), "tree")
	e.copyTo(whole)
	e.compareAnswers(done)
	ranHere, ranThere := e.run(e.dir, false), e.run(whole, true)
	if !slices.Equal(ranHere, ranThere) {
		e.t.Fatalf("after %s: ran %v, and %v where everything is decided", done, ranHere, ranThere)
	}
	if differ := compareTrees(e.t, e.dir, whole); differ != "" {
		e.t.Fatalf("after %s: %s", done, differ)
	}
	if differ := e.compareReport(); differ != "" {
		e.t.Fatalf("after %s: %s", done, differ)
	}
	return len(ranHere)
}

// compareAnswers compares what is ready and planned by what the last run kept with what is by the whole tree.
func (e *edits) compareAnswers(done string) {
	ask := func(s *state.Store, t *state.Tree, dirty []schemas.Ref) string {
		answer, err := json.MarshalIndent([]any{work.Ready(t, e.now, dirty), controllers.Plan(t, e.now, nil, dirty), work.Waits(t, nil, e.now),
			readiness.Verdict(t, nil), t.Problems()}, "", " ")
		return fmt.Sprint(string(answer), err, s.Close())
	}
	s := e.open(e.dir, false)
	s.Fresh()
	tree, changed, was, err := s.LoadChanged(e.t.Context(), true)
	if err != nil {
		e.t.Fatal(err)
	}
	if was != nil {
		changed = append([]schemas.Ref{}, changed...)
		e.answers++
	} else {
		changed = nil
	}
	some := ask(s, tree, settle.Doubtful(tree, changed))
	s = e.open(e.dir, true)
	all, err := s.Load(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	if whole := ask(s, all, nil); some != whole {
		e.t.Fatalf("after %s the answers are\n%s\nof the whole tree\n%s", done, some, whole)
	}
	e.compareLooks(done, all)
	defer e.busy(all)()
	e.compareLooks(done+", with a journal", all)
}

// compareLooks compares what commands that look see, which load objects as they ask for them, with the whole tree.
func (e *edits) compareLooks(done string, refs *state.Tree) {
	read := func(load func(s *state.Store) (*state.Tree, error)) *state.Tree {
		s := e.open(e.dir, false)
		t, err := load(s)
		if err = errors.Join(err, s.Close()); err != nil {
			e.t.Fatal(err)
		}
		return controllers.Current(t, e.now, s.Journaled())
	}
	all := read(func(s *state.Store) (*state.Tree, error) { return s.Load(e.t.Context()) })
	objects := e.look(all, all)
	for range 2 { // by objects in different orders
		s := e.open(e.dir, false)
		lazy, err := s.LoadLazily(e.t.Context())
		if err != nil {
			e.t.Fatal(err)
		}
		if lazy.LeavesDormant() {
			e.lazy++
		}
		for ref, is := range e.look(controllers.Current(lazy, e.now, s.Journaled()), all) {
			if is != objects[ref] {
				e.t.Fatalf("after %s, %s is\n%s\nin the whole tree\n%s", done, ref, is, objects[ref])
			}
		}
		if err := s.Close(); err != nil {
			e.t.Fatal(err)
		}
	}
}

// busy has another process begin effects of some objects, and end effects of others. Afterwards its journal is lost.
func (e *edits) busy(all *state.Tree) (stop func()) {
	s := e.open(e.dir, false)
	j, err := s.Journal()
	if err != nil {
		e.t.Fatal(err)
	}
	entries := slices.Concat(all.Entries(schemas.DAGKind.Name), all.Entries(schemas.ClarificationRequestKind.Name))
	for _, i := range e.rnd.Perm(len(entries))[:min(4, len(entries))] {
		owner := entries[i].Ref
		run := schemas.Run{Key: fmt.Sprintf("%s/%s/a-0-%d", settle.TableOf(all).Row(owner.Kind).Plural, owner.Name, e.n), Owner: owner.String(), Node: "a",
			Seq: 1, StartedAt: schemas.NewTime(e.now)}
		err := j.Claim([]schemas.Run{run})
		if run.Outcome, run.FinishedAt = schemas.OutcomeSucceeded, run.StartedAt; err == nil && i%2 == 0 {
			err = j.Finish([]schemas.Run{run})
		}
		if err != nil {
			e.t.Fatal(err)
		}
	}
	return func() {
		if err := errors.Join(os.Remove(filepath.Join(e.dir, ".reconcile/journal", j.ID()+".journal")), s.Close()); err != nil {
			e.t.Fatal(err)
		}
	}
}

// look returns what there is to know about objects: some of all, in any order, and then those of some kinds.
func (e *edits) look(t, all *state.Tree) map[schemas.Ref]string {
	out := map[schemas.Ref]string{}
	read := func(x *state.Entry, ref schemas.Ref) {
		if x == nil {
			out[ref] = "none"
			return
		}
		var spec any
		if x.Object != nil {
			spec = []any{x.Object.Path, x.Object.Metadata, x.Object.Canonical()}
		}
		text, err := json.Marshal([]any{spec, x.Problems, x.Refs, x.Status(), x.Runs(), x.Claims, x.Inputs, x.Missing, t.Referrers(ref),
			t.Exists(ref), readiness.Why(x, t), settle.TableOf(t).Details(x)})
		out[ref] = fmt.Sprint(string(text), err)
	}
	kinds := all.Kinds()
	var refs []schemas.Ref
	for _, kind := range kinds {
		for _, x := range all.Entries(kind) {
			refs = append(refs, x.Ref)
		}
	}
	refs = append(refs, schemas.DAGKind.Ref("not-there"))
	for _, i := range e.rnd.Perm(len(refs)) {
		if t == all || i%3 > 0 {
			read(t.Entry(refs[i]), refs[i])
		}
	}
	for _, i := range e.rnd.Perm(len(kinds)) {
		if t == all || i%2 > 0 {
			for _, x := range t.Entries(kinds[i]) {
				read(x, x.Ref)
			}
		}
	}
	return out
}

// compareReport compares what the next run reports, which reads no object, with what the whole tree says.
func (e *edits) compareReport() string {
	s := e.open(e.dir, false)
	defer s.Close()
	sum, fresh := s.Fresh()
	if !fresh {
		return ""
	}
	tree, err := s.Load(e.t.Context())
	if err != nil {
		return err.Error()
	}
	verdict := readiness.Verdict(tree, nil)
	if sum.Exit != int(verdict) {
		return fmt.Sprintf("exit code %d, want %d", sum.Exit, verdict)
	}
	if verdict == readiness.ExitReady {
		return ""
	}
	e.reported++
	if want, err := json.Marshal(readiness.ReportOf(tree)); err != nil || !bytes.Equal(sum.Report, want) {
		return fmt.Sprintf("the report is\n%s\nwant\n%s, %v", sum.Report, want, err)
	}
	return ""
}

// edits changes a tree at random.
type edits struct {
	t   *testing.T
	dir string
	rnd *rand.Rand
	now time.Time
	n   int
	// during is what a node does to a dormant object while it runs, and 1; 0: nothing.
	during int
	left   int // objects that the last run in dir left
	// timed is set if there are an archive and a memory, and if a run over a tree that is as it was settled does nothing; idle is 1 if the
	// last one in dir did not.
	timed bool
	idle  int
	// reported counts the reports that were compared, answers what was answered by what the last run kept, lazy the looks that left objects.
	reported, answers, lazy int
}

func (e *edits) put(name, kind, object, spec string) {
	put(e.t, e.dir, name, fmt.Sprintf(envelope, kind, object, spec))
}

// report records work of an agent outside of reconcile.
func (e *edits) report(i int) string {
	s := e.open(e.dir, true)
	defer s.Close()
	t, err := s.Load(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	name := fmt.Sprintf("a%d", i%3)
	agent := t.Entry(schemas.AgentKind.Ref(name))
	if agent == nil || agent.Object == nil {
		return "no report of an agent that is not there"
	}
	outcome := []string{schemas.OutcomeStarted, schemas.OutcomeDone}[e.rnd.IntN(2)]
	run := agents.NewHook(agent, outcome, e.rnd.IntN(3), e.now)
	data, err := state.EncodeRun(&run)
	if err != nil {
		e.t.Fatal(err)
	}
	put(e.t, e.dir, s.RunPath(run.Key), string(data))
	return "a report of " + name + ": " + outcome
}

func (e *edits) begin() {
	for i := range 3 {
		e.put(fmt.Sprintf("specs/agents/a%d.yaml", i), "Agent", fmt.Sprintf("a%d", i),
			fmt.Sprintf("  canClarify: [a%d]\n  runner: {human: {}}", (i+1)%3))
		e.session(i%2, "Active")
		e.dag(i)
		e.request(i)
	}
	put(e.t, e.dir, "src/one.txt", "1")
}

func (e *edits) session(i int, phase string) {
	e.put(fmt.Sprintf("specs/sessions/s%d.yaml", i), "Session", fmt.Sprintf("s%d", i), "  phase: "+phase+"\n  issue: 7")
}

func (e *edits) dag(i int) {
	e.n++
	e.put(fmt.Sprintf("specs/d%d.yaml", i), "DAG", fmt.Sprintf("d%d", i), fmt.Sprintf("  session: s%d\n  description: edit %d\n"+
		"  policy: {timeout: 48h}\n  nodes:\n    - {name: a, run: [echo, \"%d\"], inputs: [\"src/%d*.txt\", \"src/one.txt\"]}\n"+
		"    - {name: b, run: [\"true\"], needs: [a], outputs: {files: [out/d%d]}}\n    - {name: c, agent: a%d, prompt: look, needs: [b]}",
		e.rnd.IntN(2), e.n, e.rnd.IntN(3), i, i, e.rnd.IntN(3)))
}

func (e *edits) request(i int) {
	e.put(fmt.Sprintf("specs/questions/q%d.yaml", i), "ClarificationRequest", fmt.Sprintf("q%d", i),
		fmt.Sprintf("  {issue: %d, from: a%d, to: a%d, topic: T%d, question: \"What is %d?\", blocking: %v}",
			7+i%2, i%3, (i+1)%3, i, e.rnd.IntN(100), i%2 == 0))
}

// some does one to three things and says what.
func (e *edits) some() string {
	var done []string
	for range 1 + e.rnd.IntN(2) {
		what := e.one(e.rnd.IntN(34), e.rnd.IntN(5))
		done = append(done, what)
	}
	return strings.Join(done, ", ")
}

func (e *edits) one(what, i int) string {
	e.n++
	dag := fmt.Sprintf("specs/d%d.yaml", i)
	switch what {
	case 32, 33:
		return e.report(i)
	case 0, 1, 20, 21:
		e.dag(i)
		return "edit d" + fmt.Sprint(i)
	case 22, 23, 24:
		e.session(i%2, "Active")
		return "start a session"
	case 25, 26:
		put(e.t, e.dir, "src/one.txt", fmt.Sprint(e.n))
		return "edit the input of all"
	case 27, 28:
		return "remove " + e.removeSome("out")
	case 29, 30:
		return "empty " + e.emptyLedger()
	case 2:
		os.Remove(filepath.Join(e.dir, dag))
		return "remove " + dag
	case 3:
		put(e.t, e.dir, dag, "kind: [")
		return "break " + dag
	case 4:
		os.Rename(filepath.Join(e.dir, dag), filepath.Join(e.dir, "specs", fmt.Sprintf("moved-%d.yaml", e.n)))
		return "move " + dag
	case 5:
		e.put(fmt.Sprintf("specs/D%d.yaml", i), "DAG", fmt.Sprintf("d%d", e.rnd.IntN(5)),
			"  session: s1\n  nodes:\n    - {name: x, run: [\"true\"]}")
		return fmt.Sprintf("a file that differs from %s by case", dag)
	case 6:
		e.session(i%3, []string{"Active", "Paused", "Completed", "Suspended"}[e.rnd.IntN(4)])
		return "edit a session"
	case 7:
		os.Remove(filepath.Join(e.dir, fmt.Sprintf("specs/sessions/s%d.yaml", i%3)))
		return "remove a session"
	case 8:
		return "remove " + e.removeSome("state/dags", "state/sessions", "state/clarificationrequests", "state/actions")
	case 9:
		return "damage " + e.changeSome("state/dags", "state/sessions", "state/agents")
	case 10:
		return "remove " + e.removeSome(fmt.Sprintf("state/runs/dags/d%d", i))
	case 11:
		return "remove " + e.removeSome("state/clarifications")
	case 12:
		put(e.t, e.dir, fmt.Sprintf("src/%d.txt", i), fmt.Sprint(e.n))
		return "edit an input"
	case 13:
		return "remove " + e.removeSome("src")
	case 14:
		return "remove " + e.removeSome("out")
	case 15:
		e.put(fmt.Sprintf("specs/actions/act-%d.yaml", e.n), "Action", fmt.Sprintf("act-%d", e.n), fmt.Sprintf(
			"  {target: dag/d%d, node: c, verb: %s}", i, []string{"approve", "hold", "skip", "retry"}[e.rnd.IntN(4)]))
		return "act on d" + fmt.Sprint(i)
	case 16:
		e.put(fmt.Sprintf("specs/replies/r-%d.yaml", e.n), "Reply", fmt.Sprintf("r-%d", e.n), fmt.Sprintf(
			"  {clarification: q%d, type: %s, from: a%d, body: \"It is so.\"}", i, []string{"answer", "resolution"}[i%2], (i+1)%3))
		return "reply to q" + fmt.Sprint(i)
	case 17:
		e.request(i)
		return "edit q" + fmt.Sprint(i)
	case 18:
		os.Remove(filepath.Join(e.dir, fmt.Sprintf("specs/agents/a%d.yaml", i%3)))
		if e.rnd.IntN(2) == 0 {
			e.put(fmt.Sprintf("specs/agents/a%d.yaml", i%3), "Agent", fmt.Sprintf("a%d", i%3), "  runner: {human: {}}")
		}
		return "edit an agent"
	}
	e.now = e.now.Add(time.Duration(1+e.rnd.IntN(50)) * time.Hour)
	return "wait"
}

// anyOf names a file in some folders, by chance; "" if there is none.
func (e *edits) anyOf(folders []string) string {
	var all []string
	for _, f := range folders {
		list, _ := filepath.Glob(filepath.Join(e.dir, f, "*"))
		all = append(all, list...)
	}
	if len(all) == 0 {
		return ""
	}
	return all[e.rnd.IntN(len(all))]
}

func (e *edits) removeSome(folders ...string) string {
	p := e.anyOf(folders)
	os.Remove(p)
	return filepath.Base(p)
}

// changeSome changes a status by hand, or leaves half of it.
func (e *edits) changeSome(folders ...string) string {
	p := e.anyOf(folders)
	data, err := os.ReadFile(p)
	if err != nil {
		return "nothing"
	}
	if e.rnd.IntN(2) == 0 {
		data = data[:len(data)/2]
	} else {
		data = bytes.ReplaceAll(data, []byte(`"phase": "`), []byte(`"phase": "S`))
		data = bytes.ReplaceAll(data, []byte(`"Succeeded"`), []byte(`"Failed"`))
	}
	put(e.t, e.dir, strings.TrimPrefix(p, e.dir+"/"), string(data))
	return filepath.Base(p)
}

// emptyLedger does what another program may do that writes over a ledger.
func (e *edits) emptyLedger() string {
	p := e.anyOf([]string{"state/clarifications"})
	if issue, ok := strings.CutPrefix(strings.TrimSuffix(filepath.Base(p), ".json"), "issue-"); ok {
		put(e.t, e.dir, "state/clarifications/"+filepath.Base(p), "{\"issueNumber\": "+issue+", \"clarifications\": []}\n")
	}
	return filepath.Base(p)
}

// keeper restores outputs from the cache.
type keeper struct{ root *os.Root }

func (k keeper) Restore(ctx context.Context, r settle.Restore) error {
	for _, o := range r.Outputs {
		if err := outputs.Restore(ctx, k.root, o); err != nil {
			return err
		}
	}
	return nil
}

func (keeper) Keep(context.Context, *state.Tree) error { return nil }

func (keeper) Publish(context.Context, *state.Tree) error { return nil }

func (keeper) Sweep(*state.Tree) error { return nil }

func (e *edits) open(dir string, whole bool) *state.Store {
	s, err := state.Open(dir, state.Options{Kinds: controllers.Schemas(), Now: func() time.Time { return e.now },
		FileNow: time.Now, NoCache: whole, Build: "test", DormantFrom: 1})
	if err != nil {
		e.t.Fatal(err)
	}
	return s
}

// settled reports whether a run knows what differs from the settled tree.
func (e *edits) settled() bool {
	s := e.open(e.dir, false)
	defer s.Close()
	_, _, was, err := s.LoadChanged(e.t.Context(), true)
	return err == nil && was != nil
}

// run runs once and returns what ran.
func (e *edits) run(dir string, whole bool) []string {
	s := e.open(dir, whole)
	defer s.Close()
	_, fresh := s.Fresh()
	if !whole {
		e.idle = 0
	}
	if fresh && e.timed {
		e.idle = 1
		return nil
	}
	p := newActor(always(0, schemas.OutcomeSucceeded))
	p.now = func() time.Time { return e.now }
	p.edit = func(r *schemas.Run) {
		if r.Owner == "dag/meddler" && e.during > 0 {
			e.meddle(dir, e.during-1, e.n%finishedDAGs)
		}
		r.StartedAt, r.FinishedAt = schemas.NewTime(e.now), schemas.NewTime(e.now)
		if r.Node == "b" {
			_, name, _ := strings.Cut(r.Owner, "/")
			put(e.t, dir, "out/"+name, "made")
			made, err := outputs.Put(context.Background(), s.Root(), s.Root(), "out/"+name, 1<<20)
			if err != nil {
				e.t.Error(err)
			}
			r.Outputs = []schemas.Output{made}
		}
	}
	l := &Loop{Store: s, Perform: p, Outputs: keeper{s.Root()}, Now: func() time.Time { return e.now }, CPUs: 2}
	if e.timed {
		l.Archivable, l.Memory = movable, &shelf{store: s, dir: dir}
	}
	is, err := l.Once(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	if !whole {
		e.left = countDormant(is.Tree)
	}
	ran := p.done()
	slices.Sort(ran)
	return ran
}

func (e *edits) copyTo(dir string) {
	if data, err := os.ReadFile(filepath.Join(e.dir, schemas.SettingsPath)); err == nil {
		put(e.t, dir, schemas.SettingsPath, string(data))
	}
	for _, folder := range []string{"specs", "state", "src", "out", outputs.Dir} {
		if _, err := os.Stat(filepath.Join(e.dir, folder)); err != nil {
			continue
		}
		if err := os.CopyFS(filepath.Join(dir, folder), os.DirFS(filepath.Join(e.dir, folder))); err != nil {
			e.t.Fatal(err)
		}
	}
}

// compareTrees names a file in which two trees differ; "" if there is none.
func compareTrees(t *testing.T, a, b string) string {
	here, there := filesOf(t, a), filesOf(t, b)
	for p, text := range here {
		if other, ok := there[p]; !ok || other != text {
			return fmt.Sprintf("%s:\n%s\nwhere everything is decided:\n%s", p, text, other)
		}
	}
	for p, text := range there {
		if _, ok := here[p]; !ok {
			return fmt.Sprintf("%s is missing; where everything is decided:\n%s", p, text)
		}
	}
	return ""
}

// virtualStart is left out of comparisons: it depends on what this process has claimed before.
var virtualStart = regexp.MustCompile(`\n *"virtualStart": \d+,`)

func filesOf(t *testing.T, dir string) map[string]string {
	files := map[string]string{}
	for _, folder := range []string{"specs", "state", "out"} {
		err := fs.WalkDir(os.DirFS(dir), folder, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil //nolint:nilerr // a folder that does not exist holds nothing
			}
			if d.Type()&fs.ModeSymlink != 0 {
				files[p], err = os.Readlink(filepath.Join(dir, p))
				return err
			}
			data, err := os.ReadFile(filepath.Join(dir, p))
			files[p] = virtualStart.ReplaceAllString(string(data), "")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}
