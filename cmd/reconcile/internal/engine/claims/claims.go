package claims

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/loop"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/state"
)

// Claim is a claim that another reconciler has.
type Claim struct {
	Key   string
	Until time.Time // when it runs out unless it is renewed, by this process's clock
}

// Remote is where claims are kept. Its methods are called by one goroutine at a time.
type Remote interface {
	// Take claims keys, or renews claims that are ours already, and returns those that another reconciler has.
	Take(ctx context.Context, keys []string) (refused []Claim, err error)
	// Renew returns the keys whose claims are not ours any more.
	Renew(ctx context.Context, keys []string) (lost []string, err error)
	// Drop gives claims back; those that are not ours are left alone.
	Drop(ctx context.Context, keys []string) error
	// Done returns the keys whose results are on the remote's branch now.
	Done(ctx context.Context, keys []string) ([]string, error)
}

// Options say what a Keeper works with. All of them but Grace must be set.
type Options struct {
	Inner  loop.Performer
	Remote Remote
	// For is how long a claim stands without being renewed.
	For time.Duration
	// Grace is how long an effect may take to end.
	Grace time.Duration
	// Retry is told of each error of the remote. If it says no, the effects that were to be claimed are Broken; else they
	// are tried again later.
	Retry func(error) bool
}

// Keeper is a performer that claims effects on a remote first. Its methods may be called from any goroutine.
type Keeper struct {
	o      Options
	notify chan struct{} // one token while reports wait
	wake   chan struct{} // one token while the worker has something to do
	stop   chan struct{}
	end    sync.Once
	gone   sync.WaitGroup

	mu        sync.Mutex // guards what follows; taken before locks of Inner
	items     map[string]*item
	drop      map[string]bool // claims of ours to be given back
	elsewhere map[string]time.Time
	reports   []controllers.Report
	closed    bool
	retry     backOff
}

// stage is how far an effect has come.
type stage int

const (
	waiting stage = iota // to be claimed
	taking               // being claimed
	handed               // claimed, and performed by Inner
	ended                // its result is on record here, and not yet pushed
)

type item struct {
	effect  controllers.Effect
	stage   stage
	held    bool        // the claim is ours
	lost    bool        // it was, and what comes of the effect does not count
	renewed time.Time   // before the claim was last pushed
	fence   *time.Timer // fires when the claim has not been renewed for too long
}

// New returns a Keeper, which works until Stop.
func New(o Options) *Keeper {
	k := &Keeper{o: o, notify: make(chan struct{}, 1), wake: make(chan struct{}, 1), stop: make(chan struct{}),
		items: map[string]*item{}, drop: map[string]bool{}, elsewhere: map[string]time.Time{}}
	k.gone.Go(k.work)
	k.gone.Go(k.forward)
	return k
}

// Submit queues an effect: it is claimed with all others that wait, and then handed on.
func (k *Keeper) Submit(e controllers.Effect) {
	k.mu.Lock()
	defer k.mu.Unlock()
	it := k.items[e.Key]
	switch {
	case k.closed:
		k.release(e.Key, "reconcile is ending")
	case it == nil:
		k.items[e.Key] = &item{effect: e}
		poke(k.wake)
	case it.stage == handed:
		k.o.Inner.Submit(e)
	default:
		it.effect = e
	}
}

// Cancel gives an effect up, wherever it is.
func (k *Keeper) Cancel(key, why string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch it := k.items[key]; {
	case it == nil || it.stage == ended:
	case it.stage == handed:
		k.o.Inner.Cancel(key, why)
	default:
		k.forget(key, it)
		k.release(key, why)
	}
}

// Backlog counts the effects that have not started.
func (k *Keeper) Backlog() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.o.Inner.Backlog()
	for _, it := range k.items {
		if it.stage < handed {
			n++
		}
	}
	return n
}

// SetForeign is Inner's.
func (k *Keeper) SetForeign(usage map[string]int) { k.o.Inner.SetForeign(usage) }

// ReapAll is Inner's.
func (k *Keeper) ReapAll(ctx context.Context, orphans []state.Orphan) error {
	return k.o.Inner.ReapAll(ctx, orphans)
}

// Notify returns a channel that has a token whenever reports wait to be drained.
func (k *Keeper) Notify() <-chan struct{} { return k.notify }

// Drain returns the reports since the last call.
func (k *Keeper) Drain() []controllers.Report {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := k.reports
	k.reports = nil
	for _, r := range k.o.Inner.Drain() {
		out = append(out, k.hear(r))
	}
	return out
}

// hear follows what Inner says of an effect. What a run came to whose claim was lost is not a result: another reconciler
// performs it, or has.
func (k *Keeper) hear(r controllers.Report) controllers.Report {
	it := k.items[r.Key]
	if it == nil || r.Kind == controllers.Started {
		return r
	}
	if r.Kind == controllers.Finished && !it.lost {
		it.stage = ended
		it.fence.Stop()
		return r
	}
	if r.Kind == controllers.Finished {
		r = controllers.Report{Kind: controllers.Released, Key: r.Key, At: r.At, Why: lostText}
	}
	k.forget(r.Key, it)
	return r
}

// Close ends everything, as Inner does. Claims of what has finished are kept, and renewed, until Stop.
func (k *Keeper) Close(ctx context.Context) error {
	k.mu.Lock()
	k.closed = true
	for key, it := range k.items {
		if it.stage < handed {
			k.forget(key, it)
			k.release(key, "reconcile is ending")
		}
	}
	k.mu.Unlock()
	return k.o.Inner.Close(ctx)
}

// Pushed says that the results of these effects are on the remote: their claims are given back.
func (k *Keeper) Pushed(keys []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range keys {
		if it := k.items[key]; it != nil && it.stage == ended {
			k.forget(key, it)
		}
	}
}

// Seen takes over what stands on the remote: the claims of other reconcilers.
func (k *Keeper) Seen(others []Claim) {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.elsewhere)
	for _, c := range others {
		k.elsewhere[c.Key] = c.Until
	}
}

// Elsewhere names the effects that other reconcilers perform, and until when their claims stand.
func (k *Keeper) OtherClaims() map[string]time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(k.elsewhere, func(_ string, until time.Time) bool { return !now.Before(until) })
	return maps.Clone(k.elsewhere)
}

// Has reports whether an effect is in this Keeper's hands.
func (k *Keeper) Has(key string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.items[key] != nil || k.drop[key]
}

// Stop ends the Keeper after Close. Claims that are not needed any more are given back; those of results that were not
// pushed are left to run out. It returns when that is done or ctx is.
func (k *Keeper) Stop(ctx context.Context) {
	k.end.Do(func() { close(k.stop) })
	k.gone.Wait()
	if keys := k.toDrop(); len(keys) > 0 {
		_ = k.o.Remote.Drop(ctx, keys) // they run out by themselves
	}
}

// forward lets those who wait for this Keeper know that Inner has something to say.
func (k *Keeper) forward() {
	for {
		select {
		case <-k.o.Inner.Notify():
			poke(k.notify)
		case <-k.stop:
			return
		}
	}
}

// release reports that an effect is not performed here; k.mu is held.
func (k *Keeper) release(key, why string) {
	k.report(controllers.Report{Kind: controllers.Released, Key: key, At: time.Now(), Why: why})
}

func (k *Keeper) report(r controllers.Report) {
	k.reports = append(k.reports, r)
	poke(k.notify)
}

// forget drops an effect, and the claim on it if it is ours; k.mu is held.
func (k *Keeper) forget(key string, it *item) {
	delete(k.items, key)
	if it.fence != nil {
		it.fence.Stop()
	}
	if it.held {
		k.drop[key] = true
		poke(k.wake)
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// sortedKeys lists the keys of effects in one of the stages, in order.
func (k *Keeper) sortedKeys(wanted func(*item) bool) []string {
	var out []string
	for key, it := range k.items {
		if wanted(it) {
			out = append(out, key)
		}
	}
	slices.SortFunc(out, strings.Compare)
	return out
}
