package claims

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers"
)

// Bounds of the worker.
const (
	gather   = 10 * time.Millisecond // effects that are submitted within it are claimed by one push
	firstTry = time.Second           // before the remote is tried again; doubled each time
	lastTry  = 15 * time.Second
)

const (
	lostText = "another reconciler has taken the claim over"
	fellText = "the claim could not be renewed in time: the remote cannot be reached"
)

// backOff says when a remote that failed is tried again.
type backOff struct {
	wait time.Duration
	at   time.Time
}

func (b *backOff) failed(now time.Time) {
	b.wait = min(max(2*b.wait, firstTry), lastTry)
	b.at = now.Add(b.wait/2 + rand.N(b.wait/2)) // so that many who lost sight of it do not come back at once
}

// work talks to the remote, for as long as the Keeper lives.
func (k *Keeper) work() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	k.gone.Go(func() {
		select {
		case <-k.stop:
			cancel()
		case <-ctx.Done():
		}
	})
	for {
		next := k.step(ctx)
		timer := time.NewTimer(next)
		select {
		case <-k.stop:
			timer.Stop()
			return
		case <-timer.C:
		case <-k.wake:
			timer.Stop()
			if !k.pause(gather) {
				return
			}
		}
	}
}

// pause reports whether the Keeper still lives after a while.
func (k *Keeper) pause(d time.Duration) bool {
	select {
	case <-k.stop:
		return false
	case <-time.After(d):
		return true
	}
}

// step does what is due, and returns when there is more to do.
func (k *Keeper) step(ctx context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, k.o.For/2)
	defer cancel()
	k.renew(ctx)
	k.giveBack(ctx)
	k.take(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	next := k.o.For
	for _, it := range k.items {
		if it.held {
			next = min(next, it.renewed.Add(k.o.For/3).Sub(now))
		}
	}
	if len(k.drop) > 0 || len(k.sortedKeys(isWaiting)) > 0 {
		next = min(next, firstTry)
	}
	if wait := k.retry.at.Sub(now); wait > 0 {
		next = max(next, wait)
	}
	return max(next, gather)
}

func isWaiting(it *item) bool { return it.stage == waiting }

// ready reports whether the remote may be tried now.
func (k *Keeper) ready() bool { return !time.Now().Before(k.retry.at) }

// heard takes in how a call of the remote ended, and reports whether it may be repeated if it failed; k.mu is not held.
func (k *Keeper) heard(ctx context.Context, err error) bool {
	if err != nil && ctx.Err() != nil {
		select {
		case <-k.stop:
			return true // it is this end that gave up
		default:
		}
	}
	again := k.o.Retry(err)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.retry = backOff{}
	} else {
		k.retry.failed(time.Now())
	}
	return again
}

// renew pushes the claims that are a third of the way to their end.
func (k *Keeper) renew(ctx context.Context) {
	at := time.Now()
	k.mu.Lock()
	due := k.sortedKeys(func(it *item) bool { return it.held && !at.Before(it.renewed.Add(k.o.For/3)) })
	if !k.ready() {
		due = nil
	}
	if len(due) > 0 { // one push for all costs as much as for one
		due = k.sortedKeys(func(it *item) bool { return it.held })
	}
	k.mu.Unlock()
	if len(due) == 0 {
		return
	}
	lost, err := k.o.Remote.Renew(ctx, due)
	k.heard(ctx, err)
	if err != nil {
		return // the fences fall in time
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range due {
		it := k.items[key]
		switch {
		case it == nil || !it.held:
		case slices.Contains(lost, key):
			k.elsewhere[key] = at.Add(k.o.For)
			k.lose(key, it, lostText)
		default:
			k.hold(key, it, at)
		}
	}
}

// hold notes that a claim is ours, as of a time before it was pushed; k.mu is held.
func (k *Keeper) hold(key string, it *item, at time.Time) {
	it.held, it.renewed = true, at
	if it.stage == ended {
		return
	}
	left := time.Until(at.Add(k.patience()))
	if it.fence == nil {
		it.fence = time.AfterFunc(left, func() { k.fall(key) })
	} else {
		it.fence.Reset(left)
	}
}

// patience is how long a claim that cannot be renewed is relied on: what runs has to end before others take it over.
func (k *Keeper) patience() time.Duration { return max(k.o.For/2, k.o.For-k.o.Grace-time.Second) }

// fall ends what rests on a claim that could not be renewed in time.
func (k *Keeper) fall(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	it := k.items[key]
	if it == nil || !it.held || it.stage == ended || time.Since(it.renewed) < k.patience() {
		return
	}
	k.lose(key, it, fellText)
}

// lose lets go of a claim that cannot be relied on any more; k.mu is held.
func (k *Keeper) lose(key string, it *item, why string) {
	it.held = false
	switch it.stage {
	case handed:
		it.lost = true
		k.o.Inner.Cancel(key, why)
	case ended:
		delete(k.items, key) // the result is on record; nothing is left to protect
	}
}

// giveBack drops the claims that are not needed any more.
func (k *Keeper) giveBack(ctx context.Context) {
	k.mu.Lock()
	ready := k.ready()
	k.mu.Unlock()
	if !ready {
		return
	}
	keys := k.toDrop()
	if len(keys) == 0 {
		return
	}
	err := k.o.Remote.Drop(ctx, keys)
	if k.heard(ctx, err); err == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range keys {
		if k.items[key] == nil {
			k.drop[key] = true
		}
	}
}

// toDrop takes the claims that are to be given back. What is wanted again meanwhile keeps its claim.
func (k *Keeper) toDrop() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.drop, func(key string, _ bool) bool { return k.items[key] != nil })
	keys := slices.Sorted(maps.Keys(k.drop))
	clear(k.drop)
	return keys
}

// take claims what waits, looks whether it was done meanwhile, and hands on what is left.
func (k *Keeper) take(ctx context.Context) {
	k.mu.Lock()
	var keys []string
	if k.ready() {
		keys = k.sortedKeys(isWaiting)
	}
	for _, key := range keys {
		k.items[key].stage = taking
	}
	k.mu.Unlock()
	if len(keys) == 0 {
		return
	}
	at := time.Now()
	refused, err := k.o.Remote.Take(ctx, keys)
	var done []string
	if err == nil {
		k.taken(keys, refused, at)
		if keys = k.claimed(keys); len(keys) > 0 {
			done, err = k.o.Remote.Done(ctx, keys)
		}
	}
	if again := k.heard(ctx, err); err != nil {
		k.putBack(keys, err, again)
		return
	}
	k.handOn(keys, done)
}

// taken notes what became of a push of claims.
func (k *Keeper) taken(keys []string, refused []Claim, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	until := map[string]time.Time{}
	for _, c := range refused {
		until[c.Key] = c.Until
	}
	for _, key := range keys {
		it, theirs := k.items[key], false
		if _, theirs = until[key]; theirs {
			k.elsewhere[key] = until[key]
		}
		switch {
		case it == nil && !theirs:
			k.drop[key] = true // it was given up meanwhile
		case it == nil:
		case theirs:
			delete(k.items, key)
			k.release(key, "another reconciler performs it")
		default:
			delete(k.elsewhere, key)
			k.hold(key, it, at)
		}
	}
}

// claimed are the keys that are claimed and still wanted.
func (k *Keeper) claimed(keys []string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
		it := k.items[key]
		return it == nil || !it.held
	})
}

// putBack lets effects that could not be claimed wait for the next try, or gives them up: the first is reported as Broken,
// which ends the run, and the others, which fail for the same cause, as Released.
func (k *Keeper) putBack(keys []string, err error, again bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	told := false
	for _, key := range keys {
		it := k.items[key]
		switch {
		case it == nil:
		case again:
			it.stage = waiting
		case told:
			k.forget(key, it)
			k.release(key, "it could not be claimed on the remote")
		default:
			told = true
			k.forget(key, it)
			k.report(controllers.Report{Kind: controllers.Broken, Key: key, At: time.Now(),
				Err: fmt.Errorf("claim it on the remote: %w", err)})
		}
	}
}

// handOn starts what was claimed, but for what another reconciler has done already.
func (k *Keeper) handOn(keys, done []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range keys {
		it := k.items[key]
		switch {
		case it == nil:
		case slices.Contains(done, key):
			k.forget(key, it)
			k.elsewhere[key] = time.Now().Add(k.o.For) // until the result is here
			k.release(key, "another reconciler has performed it")
		case !it.held:
			it.stage = waiting
		default:
			it.stage = handed
			k.o.Inner.Submit(it.effect)
		}
	}
}
