package ops

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/events"
	"reconcile.dev/reconcile/cmd/reconcile/internal/watch"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/regular"
)

// How soon a new event is seen: after the debounce if the file system reports changes, otherwise at the next poll.
const (
	followDebounce = 20 * time.Millisecond
	followInterval = time.Second
)

// EventsRequest requests events.
type EventsRequest struct {
	Object string        // kind/name, or the id of a clarification; "": all
	Type   string        // one of [events.Types]; "": all
	Since  time.Duration // how far back the list starts; 0: at the oldest event
}

// Events reads the events of the event log that match an EventsRequest, oldest first.
func Events(ctx context.Context, env Env, q EventsRequest) ([]events.Event, error) {
	filter, err := env.eventFilter(ctx, q)
	if err != nil {
		return nil, typed(err)
	}
	root, err := regular.Root(env.Tree.Dir)
	if err != nil {
		return nil, typed(fmt.Errorf("open %s: %w", env.Tree.Dir, regular.Cause(err)))
	}
	defer root.Close()
	found, err := events.Read(root, filter)
	return found, typed(err)
}

// FollowEvents follows the event log: it yields batches of its events, and then of those that any process appends,
// until ctx ends, which is not an error. It also yields empty batches, at least every second, so that a caller can
// stop.
func FollowEvents(ctx context.Context, env Env, q EventsRequest) iter.Seq2[events.Batch, error] {
	return func(yield func(events.Batch, error) bool) {
		if err := env.followEvents(ctx, q, func(b events.Batch) bool { return yield(b, nil) }); err != nil {
			yield(events.Batch{}, typed(err))
		}
	}
}

func (e Env) followEvents(ctx context.Context, q EventsRequest, yield func(events.Batch) bool) error {
	filter, err := e.eventFilter(ctx, q)
	if err != nil {
		return err
	}
	root, err := regular.Root(e.Tree.Dir)
	if err != nil {
		return fmt.Errorf("open %s: %w", e.Tree.Dir, regular.Cause(err))
	}
	defer root.Close()
	// Only the log is watched; its folder need not exist yet.
	watcher, err := watch.New(filepath.Join(e.Tree.Dir, filepath.Dir(events.Path)), watch.Options{
		Paths: []string{filepath.Base(events.Path)}, Debounce: followDebounce, Rescan: followInterval, Poll: followInterval,
		Warn: func(err error) { e.note("%v", err) },
	})
	if err != nil {
		return err
	}
	defer watcher.Close()
	log := events.Follow(root, filter)
	defer log.Close()
	for done := ctx.Done(); ; {
		ended := false
		select {
		case <-done:
			ended = true
		default:
		}
		for {
			b, err := log.Next()
			if err != nil {
				return err
			}
			if !yield(b) {
				return nil
			}
			if b.Missing == 0 && len(b.Events) == 0 {
				break
			}
		}
		if ended {
			return nil
		}
		select {
		case <-done:
		case <-watcher.Hints():
		}
	}
}

func (e Env) eventFilter(ctx context.Context, q EventsRequest) (events.Filter, error) {
	filter := events.Filter{Type: q.Type}
	if q.Object != "" {
		ref, err := e.findRef(ctx, q.Object)
		if err != nil {
			return filter, err
		}
		filter.Ref = ref.String()
	}
	if types := events.Types(); q.Type != "" && !slices.Contains(types, q.Type) {
		return filter, badRequest("no event is of type %q%s; --type can be %s", q.Type, schemas.DidYouMean(q.Type, types),
			strings.Join(types, ", "))
	}
	if q.Since < 0 {
		return filter, badField("since", " %s is negative", q.Since)
	}
	if q.Since > 0 {
		filter.Since = e.Tree.Now().Add(-q.Since)
	}
	return filter, nil
}
