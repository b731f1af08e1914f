package claims

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

const claimFor = 12 * time.Second

var errAway = errors.New("no route to host")

// branch is a remote in memory that several reconcilers share: claims, and the results that were pushed.
type branch struct {
	mu      sync.Mutex
	claims  map[string]held
	results map[string]bool
	pushes  int
}

type held struct {
	by    string
	value int // changes with each renewal
}

// view is how one reconciler sees a branch. A claim is expired for it when it has not changed for claimFor since it was
// first looked at.
type view struct {
	branch *branch
	me     string
	first  map[string]sight
	away   bool
	fails  error // of Take, beside away
	// reserves counts the reservations of others.
	reserves int
}

type sight struct {
	value int
	at    time.Time
}

func newBranch() *branch { return &branch{claims: map[string]held{}, results: map[string]bool{}} }

func (b *branch) view(me string) *view { return &view{branch: b, me: me, first: map[string]sight{}} }

func (v *view) until(key string, h held) time.Time {
	if s := v.first[key]; s.value != h.value {
		v.first[key] = sight{h.value, time.Now()}
	}
	return v.first[key].at.Add(claimFor)
}

func (v *view) Take(_ context.Context, keys []string) ([]Claim, error) {
	v.branch.mu.Lock()
	defer v.branch.mu.Unlock()
	if v.away || v.fails != nil {
		return nil, errors.Join(errAway, v.fails)
	}
	v.branch.pushes++
	var refused []Claim
	for _, key := range keys {
		h, taken := v.branch.claims[key]
		if until := v.until(key, h); taken && h.by != v.me && time.Now().Before(until) {
			refused = append(refused, Claim{key, until})
			continue
		}
		v.branch.claims[key] = held{v.me, v.branch.pushes}
	}
	return refused, nil
}

// Reserve implements Remote. While another has reserved more than was seen, nothing is claimed.
func (v *view) Reserve(ctx context.Context, effects []settle.Effect) (refused []Claim, again []string, err error) {
	v.branch.mu.Lock()
	reserves := v.reserves
	v.branch.mu.Unlock()
	var keys []string
	for _, e := range effects {
		if e.Seen == reserves {
			keys = append(keys, e.Key)
		} else {
			again = append(again, e.Key)
		}
	}
	refused, err = v.Take(ctx, keys)
	return refused, again, err
}

func (v *view) Renew(_ context.Context, keys []string) (lost []string, err error) {
	v.branch.mu.Lock()
	defer v.branch.mu.Unlock()
	if v.away {
		return nil, errAway
	}
	v.branch.pushes++
	for _, key := range keys {
		if v.branch.claims[key].by != v.me {
			lost = append(lost, key)
			continue
		}
		v.branch.claims[key] = held{v.me, v.branch.pushes}
	}
	return lost, nil
}

func (v *view) Drop(_ context.Context, keys []string) error {
	v.branch.mu.Lock()
	defer v.branch.mu.Unlock()
	if v.away {
		return errAway
	}
	for _, key := range keys {
		if v.branch.claims[key].by == v.me {
			delete(v.branch.claims, key)
		}
	}
	return nil
}

func (v *view) Done(_ context.Context, keys []string) (done []string, err error) {
	v.branch.mu.Lock()
	defer v.branch.mu.Unlock()
	if v.away {
		return nil, errAway
	}
	for _, key := range keys {
		if v.branch.results[key] {
			done = append(done, key)
		}
	}
	return done, nil
}

func (v *view) setAway(away bool) {
	v.branch.mu.Lock()
	defer v.branch.mu.Unlock()
	v.away = away
}

func (b *branch) keys() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var keys []string
	for key := range b.claims {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// worker performs effects by waiting; running tells how many run of a key, over all workers that share it.
type worker struct {
	running *running
	takes   time.Duration

	mu      sync.Mutex
	cancel  map[string]context.CancelFunc
	reports []settle.Report
	notify  chan struct{}
	wait    sync.WaitGroup
}

type running struct {
	mu    sync.Mutex
	now   map[string]int
	most  map[string]int
	total map[string]int
}

func newRunning() *running {
	return &running{now: map[string]int{}, most: map[string]int{}, total: map[string]int{}}
}

func (r *running) add(key string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now[key] += n
	r.most[key] = max(r.most[key], r.now[key])
	r.total[key] += max(n, 0)
}

func (r *running) of(key string) (now, total int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now[key], r.total[key]
}

func newWorker(r *running, takes time.Duration) *worker {
	return &worker{running: r, takes: takes, cancel: map[string]context.CancelFunc{}, notify: make(chan struct{}, 1)}
}

func (w *worker) Submit(e settle.Effect) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel[e.Key] != nil {
		return // it runs already
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel[e.Key] = cancel
	w.running.add(e.Key, 1)
	w.wait.Go(func() {
		r := e.Claim()
		r.Outcome = schemas.OutcomeSucceeded
		select {
		case <-time.After(w.takes):
		case <-ctx.Done():
			r.Outcome = schemas.OutcomeCancelled
			time.Sleep(time.Second)
		}
		cancel()
		w.running.add(e.Key, -1)
		w.report(settle.Report{Kind: settle.Finished, Key: e.Key, Run: &r})
	})
}

func (w *worker) report(r settle.Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.cancel, r.Key)
	w.reports = append(w.reports, r)
	poke(w.notify)
}

func (w *worker) Hurry(string)            {}
func (w *worker) Withdraw(string, string) {}

func (w *worker) Cancel(key, _ string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if cancel := w.cancel[key]; cancel != nil {
		cancel()
	}
}

func (w *worker) Drain() []settle.Report {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.reports
	w.reports = nil
	return out
}

func (w *worker) Close(context.Context) error {
	w.wait.Wait()
	return nil
}

func (w *worker) Notify() <-chan struct{}                             { return w.notify }
func (w *worker) Backlog() int                                        { return 0 }
func (w *worker) SetLimits(*schemas.RunSettings, int, map[string]int) {}
func (w *worker) Tell(string, []settle.Message)                       {}
func (w *worker) ReapAll(context.Context, []state.Orphan) error       { return nil }

// start makes a Keeper that ends with the test.
func start(t *testing.T, v *view, w *worker) *Keeper {
	t.Helper()
	k := New(Options{Inner: w, Remote: v, For: claimFor, Grace: time.Second,
		Retry: func(err error) bool { return err == nil || errors.Is(err, errAway) && !errors.Is(err, errDenied) }})
	t.Cleanup(func() {
		if err := k.Close(context.Background()); err != nil {
			t.Error(err)
		}
		k.Drain()
		k.Stop(context.Background())
	})
	return k
}

var errDenied = errors.New("permission denied")

func effect(key string) settle.Effect { return settle.Effect{Key: key} }

// next waits for reports that are no starts, and returns them as "key kind".
func next(t *testing.T, k *Keeper) []string {
	t.Helper()
	var out []string
	for len(out) == 0 {
		select {
		case <-k.Notify():
		case <-time.After(10 * time.Minute):
			t.Fatal("no report for ten minutes")
		}
		synctest.Wait() // for all that happens at this moment
		for _, r := range k.Drain() {
			out = append(out, fmt.Sprint(r.Key, " ", r.Kind))
		}
	}
	slices.Sort(out)
	return out
}

var (
	finished = fmt.Sprint(" ", settle.Finished)
	released = fmt.Sprint(" ", settle.Released)
	isBroken = fmt.Sprint(" ", settle.Broken)
)

// TestClaimedOnceAmongTwo lets two reconcilers want the same effects: each is performed by one of them, and its claim
// stands until the result was pushed.
func TestClaimedOnceAmongTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := newBranch(), newRunning()
		one := start(t, b.view("one"), newWorker(r, time.Minute))
		two := start(t, b.view("two"), newWorker(r, time.Minute))
		one.Submit(effect("a"))
		one.Submit(effect("b"))
		time.Sleep(time.Second)
		synctest.Wait()
		if b.pushes != 1 {
			t.Errorf("%d pushes for two effects that were submitted at once", b.pushes)
		}
		two.Submit(effect("a"))
		two.Submit(effect("c"))
		if got := next(t, two); !slices.Equal(got, []string{"a" + released}) {
			t.Errorf("the second one heard %q", got)
		}
		if until := two.OtherClaims()["a"]; !until.After(time.Now()) || len(two.OtherClaims()) != 1 {
			t.Errorf("elsewhere: %v", two.OtherClaims())
		}
		if got := next(t, one); !slices.Equal(got, []string{"a" + finished, "b" + finished}) {
			t.Errorf("the first one heard %q", got)
		}
		time.Sleep(time.Minute)
		if got := b.keys(); !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("claims on %q while results are not pushed", got)
		}
		one.Pushed([]string{"a"})
		time.Sleep(time.Second)
		synctest.Wait()
		if got := b.keys(); !slices.Equal(got, []string{"b", "c"}) {
			t.Errorf("claims on %q after the first result was pushed", got)
		}
		if _, total := r.of("a"); total != 1 {
			t.Errorf("a was performed %d times", total)
		}
	})
}

// TestDoneMeanwhileIsNotRepeated gives a claim that was free because the effect was done and its claim given back.
func TestDoneMeanwhileIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := newBranch(), newRunning()
		b.results["a"] = true
		k := start(t, b.view("one"), newWorker(r, time.Second))
		k.Submit(effect("a"))
		if got := next(t, k); !slices.Equal(got, []string{"a" + released}) {
			t.Errorf("heard %q", got)
		}
		if _, total := r.of("a"); total != 0 || k.OtherClaims()["a"].IsZero() {
			t.Errorf("performed %d times; elsewhere %v", total, k.OtherClaims())
		}
		time.Sleep(time.Second)
		if len(b.keys()) != 0 {
			t.Errorf("a claim is left on %q", b.keys())
		}
	})
}

// TestPartition cuts a reconciler off while it performs something. It ends that before another one may begin, and what it
// came to is no result.
func TestPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := newBranch(), newRunning()
		cut := b.view("one")
		one := start(t, cut, newWorker(r, time.Hour))
		two := start(t, b.view("two"), newWorker(r, time.Minute))
		one.Submit(effect("a"))
		time.Sleep(time.Minute) // it is renewed all the while
		two.Submit(effect("a"))
		if got := next(t, two); !slices.Equal(got, []string{"a" + released}) {
			t.Fatalf("the second one heard %q", got)
		}
		cut.setAway(true)
		for next := 0; next == 0; { // as the loop does: it tries again when the claim has run out
			time.Sleep(100 * time.Millisecond)
			if two.Drain(); two.OtherClaims()["a"].IsZero() {
				two.Submit(effect("a"))
			}
			_, next = r.of("a")
			next--
		}
		if got := next(t, one); !slices.Equal(got, []string{"a" + released}) {
			t.Errorf("the one that was cut off reports %q", got)
		}
		if r.most["a"] != 1 {
			t.Errorf("%d at once", r.most["a"])
		}
		cut.setAway(false)
		if got := next(t, two); !slices.Equal(got, []string{"a" + finished}) {
			t.Errorf("the second one heard %q", got)
		}
	})
}

// TestStolenClaim takes a claim away from who holds it: the effect is ended, and there is no result, whatever its command
// says.
func TestStolenClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := newBranch(), newRunning()
		k := start(t, b.view("one"), newWorker(r, time.Minute))
		k.Submit(effect("a"))
		time.Sleep(time.Second)
		b.mu.Lock()
		b.claims["a"] = held{"thief", 99}
		b.mu.Unlock()
		if got := next(t, k); !slices.Equal(got, []string{"a" + released}) {
			t.Errorf("heard %q", got)
		}
		if k.OtherClaims()["a"].IsZero() {
			t.Error("it is not known to be elsewhere")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if b.claims["a"].by != "thief" {
			t.Error("the other one's claim was dropped")
		}
	})
}

// TestAwayStartsNothing has a remote that cannot be reached at first, and one that refuses for good.
func TestAwayStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := newBranch(), newRunning()
		v := b.view("one")
		v.away = true
		k := start(t, v, newWorker(r, time.Second))
		k.Submit(effect("a"))
		k.Submit(effect("b"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, total := r.of("a"); total != 0 || k.Backlog() != 2 || b.pushes != 0 {
			t.Errorf("performed %d times, %d wait, %d pushes", total, k.Backlog(), b.pushes)
		}
		k.Cancel("b", "it is not wanted any more")
		if got := next(t, k); !slices.Equal(got, []string{"b" + released}) {
			t.Errorf("heard %q", got)
		}
		v.setAway(false)
		if got := next(t, k); !slices.Equal(got, []string{"a" + finished}) {
			t.Errorf("heard %q when the remote was back", got)
		}
		v.branch.mu.Lock()
		v.fails = errDenied
		v.branch.mu.Unlock()
		k.Submit(effect("c"))
		k.Submit(effect("d"))
		if got := next(t, k); !slices.Equal(got, []string{"c" + isBroken, "d" + released}) { // one cause is told once
			t.Errorf("heard %q of a remote that refuses", got)
		}
	})
}

// TestManyShareEverything runs several reconcilers over one set of effects, with remotes that go away and come back:
// whatever happens, no two perform one effect at the same time, and in the end each is done.
func TestManyShareEverything(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		b, r := newBranch(), newRunning()
		var wg sync.WaitGroup
		for i := range 4 {
			chance := rand.New(rand.NewPCG(seed, uint64(i)))
			v := b.view(fmt.Sprint("r", i))
			k := start(t, v, newWorker(r, time.Duration(1+i)*4*time.Second))
			wg.Go(func() { share(k, v, chance) })
		}
		wg.Wait()
		for i := range 20 {
			key := fmt.Sprint("k", i)
			if !b.results[key] || r.most[key] != 1 {
				t.Errorf("%s: done %t, %d at once, %d in all", key, b.results[key], r.most[key], r.total[key])
			}
		}
	})
}

// share wants every effect until all are done, as a loop does.
func share(k *Keeper, v *view, chance *rand.Rand) {
	mine := map[string]bool{}
	left := func(key string) bool {
		v.branch.mu.Lock()
		defer v.branch.mu.Unlock()
		return !v.branch.results[key]
	}
	for rest := true; rest; {
		v.setAway(chance.IntN(4) == 0)
		for _, report := range k.Drain() {
			delete(mine, report.Key)
			if report.Kind == settle.Finished && report.Run.Outcome == schemas.OutcomeSucceeded {
				v.branch.mu.Lock()
				v.branch.results[report.Key] = true
				v.branch.mu.Unlock()
				k.Pushed([]string{report.Key})
			}
		}
		elsewhere := k.OtherClaims()
		rest = false
		for i := range 20 {
			key := fmt.Sprint("k", i)
			if !left(key) {
				continue
			}
			rest = true
			if !mine[key] && elsewhere[key].IsZero() && len(mine) < 3 {
				mine[key] = true
				k.Submit(effect(key))
			}
		}
		time.Sleep(time.Duration(chance.IntN(8000)) * time.Millisecond)
	}
	v.setAway(false)
}

// TestReservesAreAdmittedAgain claims no effect whose part of a budget others have reserved meanwhile.
func TestReservesAreAdmittedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBranch()
		v := b.view("one")
		v.reserves = 7
		k := start(t, v, newWorker(newRunning(), time.Minute))
		late, now := effect("late"), effect("now")
		late.Reserved, late.Seen = &schemas.Budget{Tokens: 1}, 6
		now.Reserved, now.Seen = &schemas.Budget{Tokens: 1}, 7
		k.Submit(late)
		k.Submit(now)
		if got := next(t, k); !slices.Equal(got, []string{"late" + released}) {
			t.Errorf("first %q", got)
		}
		if got := b.keys(); !slices.Equal(got, []string{"now"}) {
			t.Errorf("claimed are %q", got)
		}
		if got := next(t, k); !slices.Equal(got, []string{"now" + finished}) {
			t.Errorf("then %q", got)
		}
	})
}
