package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/events"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/cmd/reconcile/internal/watch"
	"reconcile.dev/reconcile/schemas/document"
)

// How soon a line of the log is seen: at once where the file system tells of it, else at the next look.
const (
	followDebounce = 20 * time.Millisecond
	followLook     = time.Second
)

// followEvents prints what the log has, and then what is added to it, until ctx ends or nobody reads any more.
func (a *app) followEvents(ctx context.Context, filter events.Filter) error {
	done := ctx.Done() // from here on a signal is a normal end
	signal.Ignore(syscall.SIGPIPE)
	root, err := a.root()
	if err != nil {
		return err
	}
	defer root.Close()
	// Nothing but the log is watched; its folder need not be there yet.
	watcher, err := watch.New(filepath.Join(a.global.dir, filepath.Dir(events.Path)), watch.Options{
		Paths: []string{filepath.Base(events.Path)}, Debounce: followDebounce, Rescan: followLook, Poll: followLook,
		Warn: func(err error) { a.note("%v", err) },
	})
	if err != nil {
		return err
	}
	defer watcher.Close()
	f := &follower{app: a, log: events.Follow(root, filter)}
	defer f.log.Close()
	return f.run(done, watcher.Hints())
}

// follower prints a log that grows.
type follower struct {
	*app
	log *events.Follower
}

// run prints what there is at each hint, and a last time when it is told to end.
func (f *follower) run(done <-chan struct{}, hints <-chan watch.Hint) error {
	for {
		if err := f.catchUp(); err != nil {
			return unlessGone(err)
		}
		select {
		case <-done:
			return unlessGone(f.catchUp())
		case <-hints:
		}
		if unread(f.stdout) {
			return nil
		}
	}
}

// catchUp prints everything that is there and was not printed yet.
func (f *follower) catchUp() error {
	for {
		b, err := f.log.Next()
		if err != nil {
			return err
		}
		if b.Missing != 0 {
			fmt.Fprintln(f.stderr, missingText(b.Missing))
		}
		if len(b.Events) > 0 {
			err = f.write(b.Events)
		}
		if err != nil || b.Missing == 0 && len(b.Events) == 0 {
			return err
		}
	}
}

func missingText(n int64) string {
	if n == events.Unknown {
		return "the log was cut or begun anew; events may be missing here"
	}
	return "missing here: " + render.Plural(int(n), "line") + " of the log, which was put aside more than once before all was read"
}

// write prints events at once: what is behind a pipe sees each as soon as it is there.
func (f *follower) write(list []events.Event) error {
	var b bytes.Buffer
	for i := range list {
		if err := f.line(&b, &list[i]); err != nil {
			return err
		}
	}
	_, err := f.stdout.Write(b.Bytes())
	return err
}

func (f *follower) line(b *bytes.Buffer, e *events.Event) error {
	switch f.global.output {
	case formatJSON:
		enc := json.NewEncoder(b)
		enc.SetEscapeHTML(false)
		return enc.Encode(e)
	case formatYAML:
		b.WriteString("---\n")
		return document.YAML(b, e)
	}
	kind := f.palette().Paint(eventColor(e), fmt.Sprintf("%-7s", render.Line(e.Type)))
	fmt.Fprintf(b, "%s  %s  %-12s  %-28s  %s\n", e.Time.UTC().Format(time.DateTime), kind, render.Line(e.Reason),
		render.Line(eventObject(e)), render.Line(e.Message))
	return nil
}

// unlessGone is err, or nil where it says that nobody reads any more.
func unlessGone(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
