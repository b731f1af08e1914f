package share

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/claims"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/loop"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/ownership"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// simClaim is how long a claim stands in the simulation.
const simClaim = 12 * time.Second

// simHub is a remote in memory: a history that only grows, and claims. What the loop, the keeper of claims, the rules of
// ownership and of what is committed make of it is the real thing.
type simHub struct {
	mu      sync.Mutex
	history []map[string]string // the files of each commit
	claims  map[string]simClaimed
	beat    int
	runs    map[string]int // how often each effect runs now
	wrong   []string       // what must not happen and did
}

type simClaimed struct {
	by   string
	beat int
}

func (h *simHub) head() map[string]string { return h.history[len(h.history)-1] }

// simClone is one reconciler on a tree of its own.
type simClone struct {
	hub    *simHub
	name   string
	dir    string
	chance *rand.Rand
	faults bool // the remote goes away, and answers get lost

	store  *state.Store
	keeper *claims.Keeper
	base   int               // the commit that the tree stands on
	tip    int               // that the remote was seen at
	commit map[string]string // what is committed here and not pushed; nil: nothing
	seen   map[string]simSight
}

type simSight struct {
	beat int
	at   time.Time
}

var errSimAway = fmt.Errorf("hub: %w", gitrepo.ErrUnreachable)

// trouble draws whether a call of the remote fails.
func (c *simClone) trouble() bool { return c.faults && c.chance.IntN(5) == 0 }

// Fetch implements loop.Share.
func (c *simClone) Fetch(context.Context, bool) (bool, error) {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	if c.trouble() {
		return false, errSimAway
	}
	c.tip = len(c.hub.history) - 1
	var others []claims.Claim
	for key, claim := range c.hub.claims {
		if claim.by != c.name {
			others = append(others, claims.Claim{Key: key, Until: c.until(key)})
		}
	}
	c.keeper.Seen(others)
	return c.tip != c.base, nil
}

// until is when a claim runs out as this clone sees it; the hub is locked.
func (c *simClone) until(key string) time.Time {
	if beat := c.hub.claims[key].beat; c.seen[key].beat != beat {
		c.seen[key] = simSight{beat, time.Now()}
	}
	return c.seen[key].at.Add(simClaim)
}

// Adopt implements loop.Share.
func (c *simClone) Adopt(_ context.Context, t *state.Tree) (bool, error) {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	was, is := c.hub.history[c.base], c.hub.history[c.tip]
	mine := ownership.Owners(c.store, t).Of
	moved := false
	for path := range c.hub.all(was, is) {
		now, there := is[path]
		if old, had := was[path]; had == there && old == now {
			continue
		}
		if mine(path) == gitrepo.None {
			c.hub.wrong = append(c.hub.wrong, path+" is nobody's and changed")
		}
		if mine(path) == gitrepo.Record && !there {
			continue
		}
		moved = true
		if err := c.put(path, now, there); err != nil {
			return moved, err
		}
	}
	c.base, c.commit = c.tip, nil
	return moved, nil
}

func (h *simHub) all(trees ...map[string]string) map[string]bool {
	paths := map[string]bool{}
	for _, tree := range trees {
		for p := range tree {
			paths[p] = true
		}
	}
	return paths
}

func (c *simClone) put(path, text string, there bool) error {
	p := filepath.Join(c.dir, path)
	if !there {
		err := os.Remove(p)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(p+".temp~", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(p+".temp~", p)
}

// record is what the loop has for a commit.
func (c *simClone) record(_ context.Context, t *state.Tree, scope loop.Scope) (loop.Committed, error) {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	base := c.commit
	if base == nil {
		base = c.hub.history[c.base]
	}
	next := maps.Clone(base)
	left := ownership.Unsettled(t, scope.Open)
	here := c.files()
	for path := range c.hub.all(base, here) {
		text, there := here[path]
		switch owned := ownership.Owners(c.store, t).Of(path) != gitrepo.None; {
		case !owned || left(path):
		case there:
			next[path] = text
		default:
			delete(next, path)
		}
	}
	if maps.Equal(base, next) {
		return loop.Committed{}, nil
	}
	c.commit = next
	return loop.Committed{Hash: "simulated"}, nil
}

// files are the files of specs and state.
func (c *simClone) files() map[string]string {
	files := map[string]string{}
	for _, dir := range []string{"specs", "state"} {
		_ = filepath.WalkDir(filepath.Join(c.dir, dir), func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(p, ".lock") {
				return nil //nolint:nilerr // a folder that does not exist yet
			}
			data, err := os.ReadFile(p)
			rel, _ := filepath.Rel(c.dir, p)
			files[filepath.ToSlash(rel)] = string(data)
			return err
		})
	}
	return files
}

// Push implements loop.Share.
func (c *simClone) Push(_ context.Context, done []string) (sent, again bool, err error) {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	switch {
	case c.trouble():
		return false, false, errSimAway
	case c.commit == nil:
	case c.base != len(c.hub.history)-1:
		return false, true, nil
	default:
		for path, text := range c.hub.head() {
			if c.commit[path] != text && strings.HasPrefix(path, "state/runs/") {
				c.hub.wrong = append(c.hub.wrong, c.name+" changes "+path)
			}
		}
		c.hub.history = append(c.hub.history, c.commit)
		if c.trouble() { // it is there, and the answer got lost
			return false, false, errSimAway
		}
		c.base, c.tip, c.commit = len(c.hub.history)-1, len(c.hub.history)-1, nil
		sent = true
	}
	c.keeper.Pushed(done)
	return sent, false, nil
}

// Leave implements loop.Share.
func (c *simClone) PushPending(context.Context) error { return nil }

// Owed implements loop.Share.
func (c *simClone) Unpushed(context.Context) (keys []string, err error) {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	for key, claim := range c.hub.claims {
		path := c.store.RunPath(key)
		if _, err := c.store.Root().Lstat(path); claim.by == c.name && err == nil && c.hub.head()[path] == "" {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// Elsewhere implements loop.Share.
func (c *simClone) OtherClaims() map[string]time.Time { return c.keeper.OtherClaims() }

// Holds implements loop.Share: nothing in the simulation has a budget.
func (c *simClone) Holds() ([]budgets.Hold, int, bool) { return nil, 0, false }

// Reserve implements claims.Remote.
func (c *simClone) Reserve(context.Context, []settle.Effect) ([]claims.Claim, []string, error) {
	return nil, nil, nil
}

// Take implements claims.Remote.
func (c *simClone) Take(_ context.Context, keys []string) (refused []claims.Claim, err error) {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	if c.trouble() {
		return nil, errSimAway
	}
	for _, key := range keys {
		claim, taken := c.hub.claims[key]
		if until := c.until(key); taken && claim.by != c.name && time.Now().Before(until) {
			refused = append(refused, claims.Claim{Key: key, Until: until})
			continue
		}
		c.hub.beat++
		c.hub.claims[key] = simClaimed{c.name, c.hub.beat}
	}
	if c.trouble() {
		return nil, errSimAway
	}
	return refused, nil
}

// Renew implements claims.Remote.
func (c *simClone) Renew(_ context.Context, keys []string) (lost []string, err error) {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	if c.trouble() {
		return nil, errSimAway
	}
	for _, key := range keys {
		if c.hub.claims[key].by != c.name {
			lost = append(lost, key)
			continue
		}
		c.hub.beat++
		c.hub.claims[key] = simClaimed{c.name, c.hub.beat}
	}
	return lost, nil
}

// Drop implements claims.Remote.
func (c *simClone) Drop(_ context.Context, keys []string) error {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	if c.trouble() {
		return errSimAway
	}
	for _, key := range keys {
		if c.hub.claims[key].by == c.name {
			delete(c.hub.claims, key)
		}
	}
	return nil
}

// Done implements claims.Remote.
func (c *simClone) Done(_ context.Context, keys []string) (done []string, err error) {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	if c.trouble() {
		return nil, errSimAway
	}
	for _, key := range keys {
		if _, there := c.hub.head()["state/runs/"+key+".json"]; there {
			done = append(done, key)
		}
	}
	return done, nil
}

// simWorker performs effects by waiting.
type simWorker struct {
	clone   *simClone
	mu      sync.Mutex
	reports []settle.Report
	notify  chan struct{}
	cancel  map[string]context.CancelFunc
	closed  bool
	wait    sync.WaitGroup
}

// Submit notes what must not happen: that an effect runs twice at once, or again although its result is on the branch.
func (w *simWorker) Submit(e settle.Effect) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel[e.Key] != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel[e.Key] = cancel
	h := w.clone.hub
	h.mu.Lock()
	if _, done := h.head()["state/runs/"+e.Key+".json"]; done {
		h.wrong = append(h.wrong, w.clone.name+" runs "+e.Key+" again")
	}
	if h.runs[e.Key]++; h.runs[e.Key] > 1 {
		h.wrong = append(h.wrong, e.Key+" runs twice at once")
	}
	takes := time.Duration(1+w.clone.chance.IntN(20)) * time.Second
	h.mu.Unlock()
	w.wait.Go(func() { w.perform(ctx, e, takes) })
}

func (w *simWorker) perform(ctx context.Context, e settle.Effect, takes time.Duration) {
	run := e.Claim()
	run.StartedAt = schemas.NewTime(time.Now())
	w.report(settle.Report{Kind: settle.Started, Key: e.Key, At: time.Now(), PID: 1})
	run.Outcome = schemas.OutcomeSucceeded
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		run.Outcome = schemas.OutcomeCancelled
	}
	w.clone.hub.mu.Lock()
	w.clone.hub.runs[e.Key]--
	w.clone.hub.mu.Unlock()
	run.FinishedAt = schemas.NewTime(time.Now())
	w.mu.Lock()
	ending := w.closed
	delete(w.cancel, e.Key)
	w.mu.Unlock()
	r := settle.Report{Kind: settle.Finished, Key: e.Key, At: time.Now(), Run: &run}
	if ending && run.Outcome == schemas.OutcomeCancelled {
		r = settle.Report{Kind: settle.Released, Key: e.Key}
	}
	w.report(r)
}

func (w *simWorker) report(r settle.Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reports = append(w.reports, r)
	select {
	case w.notify <- struct{}{}:
	default:
	}
}

func (w *simWorker) Hurry(string)            {}
func (w *simWorker) Withdraw(string, string) {}

func (w *simWorker) Cancel(key, _ string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if cancel := w.cancel[key]; cancel != nil {
		cancel()
	}
}

func (w *simWorker) Drain() []settle.Report {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.reports
	w.reports = nil
	return out
}

func (w *simWorker) Close(context.Context) error {
	w.mu.Lock()
	w.closed = true
	for _, cancel := range w.cancel {
		cancel()
	}
	w.mu.Unlock()
	w.wait.Wait()
	return nil
}

func (w *simWorker) Notify() <-chan struct{}                             { return w.notify }
func (w *simWorker) Backlog() int                                        { return 0 }
func (w *simWorker) SetLimits(*schemas.RunSettings, int, map[string]int) {}
func (w *simWorker) Tell(string, []settle.Message)                       {}
func (w *simWorker) ReapAll(context.Context, []state.Orphan) error       { return nil }

// run lets the clone reconcile once, or until ctx ends.
func (c *simClone) run(ctx context.Context) (loop.Result, error) {
	store, err := state.Open(c.dir, state.Options{Kinds: controllers.Schemas(), Now: time.Now, NoCache: true})
	if err != nil {
		return loop.Result{}, err
	}
	defer store.Close()
	c.store = store
	w := &simWorker{clone: c, notify: make(chan struct{}, 1), cancel: map[string]context.CancelFunc{}}
	health := &health{warn: func(string) {}, name: "hub"}
	c.keeper = claims.New(claims.Options{Inner: w, Remote: c, For: simClaim, Retry: health.retry})
	l := &loop.Loop{Store: store, Perform: c.keeper, Now: time.Now, CPUs: 2, Share: c,
		Commit: c.record, Transient: Transient}
	r, err := l.Once(ctx)
	c.keeper.Stop(context.Background())
	return r, err
}

// simTree is what is declared: chains of nodes that meet at the end.
func simTree() map[string]string {
	files := map[string]string{"specs/work.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: work}\nspec: {}\n"}
	var nodes strings.Builder
	for chain := range 4 {
		for i := range 3 {
			needs := "[]"
			if i > 0 {
				needs = fmt.Sprintf("[c%dn%d]", chain, i-1)
			}
			fmt.Fprintf(&nodes, "    - {name: c%dn%d, run: [x], needs: %s}\n", chain, i, needs)
		}
	}
	nodes.WriteString("    - {name: last, run: [x], needs: [c0n2, c1n2, c2n2, c3n2]}\n")
	files["specs/job.yaml"] = "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: job}\nspec:\n  session: work\n  nodes:\n" +
		nodes.String()
	return files
}

// clone makes a new clone of the hub as it is.
func (h *simHub) clone(t *testing.T, name string, chance *rand.Rand) *simClone {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &simClone{hub: h, name: name, dir: t.TempDir(), chance: chance, seen: map[string]simSight{}}
	c.base = len(h.history) - 1
	c.tip = c.base
	for path, text := range h.head() {
		if err := c.put(path, text, true); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// TestSimulatedReconcilers lets four reconcilers share a remote that goes away, loses answers and is slow to tell, and ends
// and replaces them by chance. No effect runs twice at once, or again once its result is on the branch; no record ever
// changes; and when the faults stop, all of them end with what the branch has, at their next run.
func TestSimulatedReconcilers(t *testing.T) {
	seeds := 3
	if testing.Short() {
		seeds = 1
	}
	for range seeds {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { simulate(t, seed) })
		})
	}
}

func simulate(t *testing.T, seed uint64) {
	h := &simHub{history: []map[string]string{simTree()}, claims: map[string]simClaimed{}, runs: map[string]int{}}
	clones := make([]*simClone, 4)
	var wg sync.WaitGroup
	for i := range clones {
		chance := rand.New(rand.NewPCG(seed, uint64(i)))
		clones[i] = h.clone(t, fmt.Sprint("r", i), chance)
		wg.Go(func() { clones[i] = hostile(t, clones[i], chance) })
	}
	wg.Wait()
	for range 2 { // once all know what all have, nobody has anything to do
		for _, c := range clones {
			c.faults = false
			r, err := c.run(t.Context())
			if err != nil || !r.Pushed {
				t.Errorf("%s in calm: pushed %t, %v", c.name, r.Pushed, err)
			}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, what := range h.wrong {
		t.Error(what)
	}
	for _, c := range clones {
		here := c.files()
		if !maps.Equal(here, h.head()) {
			t.Errorf("%s ends with %q, the branch with %q", c.name, slices.Sorted(maps.Keys(here)), slices.Sorted(maps.Keys(h.head())))
		}
	}
	if n := len(h.head()); n != 2+13+2 || !strings.Contains(h.head()["state/dags/job.json"], `"phase": "Succeeded"`) {
		t.Errorf("on the branch are %q; want 13 records and two statuses beside the specs", slices.Sorted(maps.Keys(h.head())))
	}
}

// hostile runs a clone some times under faults; each time it may be told to end, and thrown away.
func hostile(t *testing.T, c *simClone, chance *rand.Rand) *simClone {
	for n := range 4 {
		c.faults = true
		ctx, stop := context.WithTimeout(t.Context(), time.Duration(1+chance.IntN(60))*time.Second)
		_, err := c.run(ctx)
		stop()
		if err != nil && !Transient(err) && !errors.Is(err, state.ErrBusy) {
			t.Errorf("%s: %v", c.name, err)
		}
		if chance.IntN(4) == 0 {
			c = c.hub.clone(t, fmt.Sprint(c.name, "x", n), chance)
		}
	}
	return c
}
