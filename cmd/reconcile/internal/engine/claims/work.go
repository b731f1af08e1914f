package claims

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
)

// Bounds of the worker.
const (
	batchDelay = 10 * time.Millisecond // effects submitted within this time are claimed by one push
	firstTry   = time.Second           // before the first retry; doubled each time
	lastTry    = 15 * time.Second
)

const (
	lostText    = "another reconciler has taken the claim over"
	expiredText = "the claim could not be renewed in time: the remote cannot be reached"
)

// backOff determines when a failed remote is retried.
type backOff struct {
	wait time.Duration
	at   time.Time
}

func (b *backOff) failed(now time.Time) {
	b.wait = min(max(2*b.wait, firstTry), lastTry)
	b.at = now.Add(b.wait/2 + rand.N(b.wait/2)) // random, so that many reconcilers do not return at once
}

// work calls the remote until the Keeper stops.
func (k *Keeper) work() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	k.workers.Go(func() {
		select {
		case <-k.stop:
			cancel()
		case <-ctx.Done():
		}
	})
	for {
		next := k.runOnce(ctx)
		timer := time.NewTimer(next)
		select {
		case <-k.stop:
			timer.Stop()
			return
		case <-timer.C:
		case <-k.wake:
			timer.Stop()
			if !k.pause(batchDelay) {
				return
			}
		}
	}
}

// pause waits, and reports whether the Keeper still runs.
func (k *Keeper) pause(d time.Duration) bool {
	select {
	case <-k.stop:
		return false
	case <-time.After(d):
		return true
	}
}

// runOnce does the work that is due, and returns the time until the next work.
func (k *Keeper) runOnce(ctx context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, k.o.For/2)
	defer cancel()
	k.renew(ctx)
	k.dropClaims(ctx)
	k.claimWaiting(ctx)
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
	return max(next, batchDelay)
}

func isWaiting(it *item) bool { return it.stage == waiting }

// ready reports whether the remote may be called now.
func (k *Keeper) ready() bool { return !time.Now().Before(k.retry.at) }

// noteResult records the result of a call of the remote, and reports whether a failed call may be repeated; k.mu is not
// held.
func (k *Keeper) noteResult(ctx context.Context, err error) bool {
	if err != nil && ctx.Err() != nil {
		select {
		case <-k.stop:
			return true // stopped by this process
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

// renew renews the claims after a third of their lifetime.
func (k *Keeper) renew(ctx context.Context) {
	at := time.Now()
	k.mu.Lock()
	due := k.sortedKeys(func(it *item) bool { return it.held && !at.Before(it.renewed.Add(k.o.For/3)) })
	if !k.ready() {
		due = nil
	}
	if len(due) > 0 { // one push for all costs the same
		due = k.sortedKeys(func(it *item) bool { return it.held })
	}
	k.mu.Unlock()
	if len(due) == 0 {
		return
	}
	lost, err := k.o.Remote.Renew(ctx, due)
	k.noteResult(ctx, err)
	if err != nil {
		return // the fences fire in time
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range due {
		it := k.items[key]
		switch {
		case it == nil || !it.held:
		case slices.Contains(lost, key):
			k.otherClaims[key] = at.Add(k.o.For)
			k.loseClaim(key, it, lostText)
		default:
			k.markHeld(key, it, at)
		}
	}
}

// markHeld notes that a claim is ours, as of a time before it was pushed; k.mu is held.
func (k *Keeper) markHeld(key string, it *item, at time.Time) {
	it.held, it.renewed = true, at
	if it.stage == ended {
		return
	}
	left := time.Until(at.Add(k.renewTimeout()))
	if it.fence == nil {
		it.fence = time.AfterFunc(left, func() { k.expire(key) })
	} else {
		it.fence.Reset(left)
	}
}

// renewTimeout is how long a claim is trusted without renewal: its effect must end before others take it over.
func (k *Keeper) renewTimeout() time.Duration {
	return max(k.o.For/2, k.o.For-time.Duration(k.grace.Load())-time.Second)
}

// expire stops the effect of a claim that could not be renewed in time.
func (k *Keeper) expire(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	it := k.items[key]
	if it == nil || !it.held || it.stage == ended || time.Since(it.renewed) < k.renewTimeout() {
		return
	}
	k.loseClaim(key, it, expiredText)
}

// loseClaim gives up a claim that is no longer reliable; k.mu is held.
func (k *Keeper) loseClaim(key string, it *item, why string) {
	it.held = false
	switch it.stage {
	case submitted:
		it.lost = true
		k.o.Inner.Cancel(key, why)
	case ended:
		delete(k.items, key) // the result is recorded; the claim is not needed any more
	}
}

// dropClaims releases unneeded claims.
func (k *Keeper) dropClaims(ctx context.Context) {
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
	if k.noteResult(ctx, err); err == nil {
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

// toDrop removes and returns the claims to release. Claims of effects that are wanted again are kept.
func (k *Keeper) toDrop() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.drop, func(key string, _ bool) bool { return k.items[key] != nil })
	keys := slices.Sorted(maps.Keys(k.drop))
	clear(k.drop)
	return keys
}

// claimWaiting claims the waiting effects, checks which have results meanwhile, and starts the rest.
func (k *Keeper) claimWaiting(ctx context.Context) {
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
	keys, refused, err := k.take(ctx, keys)
	var done []string
	if err == nil {
		k.noteTaken(keys, refused, at)
		if keys = k.stillClaimed(keys); len(keys) > 0 {
			done, err = k.o.Remote.Done(ctx, keys)
		}
	}
	if again := k.noteResult(ctx, err); err != nil {
		k.requeue(keys, err, again)
		return
	}
	k.startClaimed(keys, done)
}

// take claims effects on the remote. It returns the keys without those that have to be admitted again: they are released.
func (k *Keeper) take(ctx context.Context, keys []string) (left []string, refused []Claim, err error) {
	plain, reserving := k.split(keys)
	if len(plain) > 0 {
		refused, err = k.o.Remote.Take(ctx, plain)
	}
	if err != nil || len(reserving) == 0 {
		return keys, refused, err
	}
	more, again, err := k.o.Remote.Reserve(ctx, reserving)
	if err == nil {
		keys = k.releaseAll(keys, again, "other reconcilers have reserved a part of its budget, or its group, meanwhile")
	}
	return keys, append(refused, more...), err
}

// split divides waiting effects into those that reserve nothing, and those that reserve a part of a budget or a concurrency group.
func (k *Keeper) split(keys []string) (plain []string, reserving []settle.Effect) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range keys {
		if it := k.items[key]; it != nil && it.effect.Reserves() {
			reserving = append(reserving, it.effect)
		} else {
			plain = append(plain, key)
		}
	}
	return plain, reserving
}

// releaseAll releases effects that were not claimed, and returns the other keys.
func (k *Keeper) releaseAll(keys, given []string, why string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range given {
		if it := k.items[key]; it != nil {
			k.remove(key, it)
			k.release(key, why)
		}
	}
	return slices.DeleteFunc(keys, func(key string) bool { return slices.Contains(given, key) })
}

// noteTaken records the result of pushing claims.
func (k *Keeper) noteTaken(keys []string, refused []Claim, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	until := map[string]time.Time{}
	for _, c := range refused {
		until[c.Key] = c.Until
	}
	for _, key := range keys {
		it, theirs := k.items[key], false
		if _, theirs = until[key]; theirs {
			k.otherClaims[key] = until[key]
		}
		switch {
		case it == nil && !theirs:
			k.drop[key] = true // cancelled meanwhile
		case it == nil:
		case theirs:
			delete(k.items, key)
			k.release(key, "another reconciler performs it")
		default:
			delete(k.otherClaims, key)
			k.markHeld(key, it, at)
		}
	}
}

// stillClaimed are the keys that are claimed and still wanted.
func (k *Keeper) stillClaimed(keys []string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
		it := k.items[key]
		return it == nil || !it.held
	})
}

// requeue requeues effects that could not be claimed, or gives them up: the first is reported as Broken, which ends the
// run, and the others, which fail for the same reason, as Released.
func (k *Keeper) requeue(keys []string, err error, again bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	reported := false
	for _, key := range keys {
		it := k.items[key]
		switch {
		case it == nil:
		case again:
			it.stage = waiting
		case reported:
			k.remove(key, it)
			k.release(key, "it could not be claimed on the remote")
		default:
			reported = true
			k.remove(key, it)
			k.report(settle.Report{Kind: settle.Broken, Key: key, At: time.Now(),
				Err: fmt.Errorf("claim it on the remote: %w", err)})
		}
	}
}

// startClaimed starts the claimed effects, except those that another reconciler has performed already.
func (k *Keeper) startClaimed(keys, done []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range keys {
		it := k.items[key]
		switch {
		case it == nil:
		case slices.Contains(done, key):
			k.remove(key, it)
			k.otherClaims[key] = time.Now().Add(k.o.For) // until the result arrives
			k.release(key, "another reconciler has performed it")
		case !it.held:
			it.stage = waiting
		default:
			it.stage = submitted
			k.o.Inner.Submit(it.effect)
		}
	}
}
