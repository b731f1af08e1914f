// Package claims prevents two reconcilers that share a remote repository from performing one effect twice.
//
// A [Keeper] wraps the performer of effects. It claims an effect on the remote before it submits it, checks whether the
// result exists already, renews the claim while the effect runs and until the result was pushed, and then releases it.
// An effect that another reconciler has claimed is released at once, and [Keeper.OtherClaims] lists it until its claim
// ends or expires.
//
// # Why one effect is not performed twice
//
// Another reconciler may take over a claim that was not renewed for Options.For, after it has watched the claim for
// that long by its own clock. The holder counts from the time before it pushed the last renewal, and stops the effect
// before the claim expires: claims are exclusive as long as clocks run at the same speed, whatever time they show. A
// result is pushed before its claim is released, and looked up after a claim was taken: at least one of the two is
// always visible.
//
// A holder that is suspended for longer than Options.For, and continues before it notices, is not excluded. Its result
// is then not recorded.
package claims

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/loop"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Claim is a claim of another reconciler.
type Claim struct {
	Key   string
	Until time.Time // expiry unless it is renewed, by this process's clock
}

// Remote stores claims. Its methods are called by one goroutine at a time.
type Remote interface {
	// Take claims keys, or renews our own claims, and returns those that another reconciler holds.
	Take(ctx context.Context, keys []string) (refused []Claim, err error)
	// Reserve is Take for effects that reserve a part of a budget. again are the keys that were not claimed, since others have
	// reserved after the effects were admitted.
	Reserve(ctx context.Context, effects []settle.Effect) (refused []Claim, again []string, err error)
	// Renew returns the keys whose claims were lost.
	Renew(ctx context.Context, keys []string) (lost []string, err error)
	// Drop releases claims; it ignores claims of others.
	Drop(ctx context.Context, keys []string) error
	// Done returns the keys whose results are on the remote's branch.
	Done(ctx context.Context, keys []string) ([]string, error)
}

// Options configure a Keeper. All fields except Grace are required.
type Options struct {
	Inner  loop.Performer
	Remote Remote
	// For is how long a claim is valid without renewal.
	For time.Duration
	// Grace is how long an effect may take to end, until SetLimits says another time.
	Grace time.Duration
	// Retry is called with the result of each call of the remote. If it returns false for an error, the waiting
	// effects are reported as Broken; otherwise they are retried later.
	Retry func(error) bool
}

// Keeper is a performer that first claims effects on a remote. Its methods may be called from any goroutine.
type Keeper struct {
	o       Options
	notify  chan struct{} // one token while reports are pending
	wake    chan struct{} // one token while the worker has work
	stop    chan struct{}
	end     sync.Once
	workers sync.WaitGroup
	grace   atomic.Int64 // as Options.Grace

	mu          sync.Mutex // guards the fields below; locked before locks of Inner
	items       map[string]*item
	drop        map[string]bool // our claims that must be released
	otherClaims map[string]time.Time
	reports     []settle.Report
	closed      bool
	retry       backOff
}

// stage is the progress of an effect.
type stage int

const (
	waiting   stage = iota // not claimed yet
	taking                 // being claimed
	submitted              // claimed, and submitted to Inner
	ended                  // its result is recorded here and not pushed yet
)

type item struct {
	effect  settle.Effect
	stage   stage
	held    bool        // the claim is ours
	lost    bool        // the claim was lost: the result is discarded
	renewed time.Time   // time before the claim was last pushed
	fence   *time.Timer // fires when the claim has not been renewed in time
}

// New returns a Keeper of claims, and starts the workers that claim and forward effects until Stop.
func New(o Options) *Keeper {
	k := &Keeper{o: o, notify: make(chan struct{}, 1), wake: make(chan struct{}, 1), stop: make(chan struct{}),
		items: map[string]*item{}, drop: map[string]bool{}, otherClaims: map[string]time.Time{}}
	k.grace.Store(int64(o.Grace))
	k.workers.Go(k.work)
	k.workers.Go(k.forward)
	return k
}

// Submit queues an effect as an item of the Keeper, which claims it together with all other waiting effects, and then
// submits it to Inner.
func (k *Keeper) Submit(e settle.Effect) {
	k.mu.Lock()
	defer k.mu.Unlock()
	it := k.items[e.Key]
	switch {
	case k.closed:
		k.release(e.Key, "reconcile is ending")
	case it == nil:
		k.items[e.Key] = &item{effect: e}
		poke(k.wake)
	case it.stage == submitted:
		k.o.Inner.Submit(e)
	default:
		it.effect = e
	}
}

// Withdraw is Cancel for an effect that is queued: a submitted item is withdrawn from Inner.
func (k *Keeper) Withdraw(key, why string) { k.cancel(key, why, k.o.Inner.Withdraw) }

// Cancel cancels an effect by its key: a submitted item in Inner, otherwise the Keeper removes the item and releases
// it.
func (k *Keeper) Cancel(key, why string) { k.cancel(key, why, k.o.Inner.Cancel) }

func (k *Keeper) cancel(key, why string, inner func(key, why string)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch it := k.items[key]; {
	case it == nil || it.stage == ended:
	case it.stage == submitted:
		inner(key, why)
	default:
		k.remove(key, it)
		k.release(key, why)
	}
}

// Hurry ends the time of grace of an effect that Inner performs.
func (k *Keeper) Hurry(key string) { k.o.Inner.Hurry(key) }

// Tell gives texts to an effect that Inner performs.
func (k *Keeper) Tell(key string, all []settle.Message) { k.o.Inner.Tell(key, all) }

// Backlog counts the effects that the Keeper and its Inner have not started: items before the submitted stage.
func (k *Keeper) Backlog() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.o.Inner.Backlog()
	for _, it := range k.items {
		if it.stage < submitted {
			n++
		}
	}
	return n
}

// SetLimits delegates to Inner.
func (k *Keeper) SetLimits(runs *schemas.RunSettings, slots int, foreign map[string]int) {
	k.grace.Store(int64(runs.Grace.Std()))
	k.o.Inner.SetLimits(runs, slots, foreign)
}

// ReapAll delegates to Inner.
func (k *Keeper) ReapAll(ctx context.Context, orphans []state.Orphan) error {
	return k.o.Inner.ReapAll(ctx, orphans)
}

// Notify returns the channel on which the Keeper notifies that there are reports to drain.
func (k *Keeper) Notify() <-chan struct{} { return k.notify }

// Drain returns the reports of the Keeper and of Inner since the last call.
func (k *Keeper) Drain() []settle.Report {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := k.reports
	k.reports = nil
	for _, r := range k.o.Inner.Drain() {
		out = append(out, k.convertReport(r))
	}
	return out
}

// convertReport updates the state of an effect from a report of Inner. The result of a run whose claim was lost is
// discarded: another reconciler performs the effect, or already has.
func (k *Keeper) convertReport(r settle.Report) settle.Report {
	it := k.items[r.Key]
	if it == nil || !r.Kind.Ends() {
		return r
	}
	if r.Kind == settle.Finished && !it.lost {
		it.stage = ended
		it.fence.Stop()
		return r
	}
	if r.Kind == settle.Finished {
		r = settle.Report{Kind: settle.Released, Key: r.Key, At: r.At, Why: lostText}
	}
	k.remove(r.Key, it)
	return r
}

// Close closes the Keeper: it releases the items that are not submitted, and closes Inner, which stops all effects.
// Claims of finished effects are kept and renewed until Stop.
func (k *Keeper) Close(ctx context.Context) error {
	k.mu.Lock()
	k.closed = true
	for key, it := range k.items {
		if it.stage < submitted {
			k.remove(key, it)
			k.release(key, "reconcile is ending")
		}
	}
	k.mu.Unlock()
	return k.o.Inner.Close(ctx)
}

// Pushed removes the ended items with these keys from the Keeper, since their results were pushed to the remote: their
// claims are released.
func (k *Keeper) Pushed(keys []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range keys {
		if it := k.items[key]; it != nil && it.stage == ended {
			k.remove(key, it)
		}
	}
}

// Seen replaces the other reconcilers' claims that the Keeper knows of with the seen ones.
func (k *Keeper) Seen(others []Claim) {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.otherClaims)
	for _, c := range others {
		k.otherClaims[c.Key] = c.Until
	}
}

// OtherClaims returns the unexpired claims of other reconcilers: the key of each effect, with the time until which it
// is claimed.
func (k *Keeper) OtherClaims() map[string]time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(k.otherClaims, func(_ string, until time.Time) bool { return !now.Before(until) })
	return maps.Clone(k.otherClaims)
}

// Has reports whether the Keeper has an effect with this key, or has yet to drop its claim.
func (k *Keeper) Has(key string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.items[key] != nil || k.drop[key]
}

// Stop stops the workers of the Keeper after Close, and drops unneeded claims from the remote. Claims of results that
// were not pushed are left to expire. It returns when that is done or ctx ends.
func (k *Keeper) Stop(ctx context.Context) {
	k.end.Do(func() { close(k.stop) })
	k.workers.Wait()
	if keys := k.toDrop(); len(keys) > 0 {
		_ = k.o.Remote.Drop(ctx, keys) // they expire otherwise
	}
}

// forward notifies the readers of this Keeper of reports of Inner.
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
	k.report(settle.Report{Kind: settle.Released, Key: key, At: time.Now(), Why: why})
}

func (k *Keeper) report(r settle.Report) {
	k.reports = append(k.reports, r)
	poke(k.notify)
}

// remove removes an effect, and releases its claim if it is ours; k.mu is held.
func (k *Keeper) remove(key string, it *item) {
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

// sortedKeys lists the keys of the wanted effects in order.
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
