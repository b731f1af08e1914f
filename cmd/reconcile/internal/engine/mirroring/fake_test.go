package mirroring

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
)

// errKilled is the end of the process at a call.
var errKilled = errors.New("killed")

// world is GitHub in memory: what stands on issues, and what was called. It can fail at any call, before or after the call
// took effect.
type world struct {
	mu       sync.Mutex
	viewer   github.User
	issues   map[int]*github.Issue
	comments map[int64]*github.Comment
	repo     map[string]bool // labels
	calls    []string        // that changed something, or tried to
	reads    int
	next     int64
	clock    time.Time
	// fail is asked at each call, with its number from 1; before is an error that keeps it from taking effect, after one
	// that comes instead of its answer.
	fail func(n int, call string, changes bool) (before, after error)
}

func newWorld(issues ...int) *world {
	w := &world{viewer: github.User{Login: "bot", ID: 1}, issues: map[int]*github.Issue{}, comments: map[int64]*github.Comment{},
		repo: map[string]bool{}, clock: time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC)}
	for _, n := range issues {
		w.issues[n] = &github.Issue{Number: n, Title: "by a person", Author: github.User{Login: "ann", ID: 2}, Open: true}
	}
	return w
}

// call has do take effect, unless it is to fail.
func (w *world) call(changes bool, do func() error, format string, args ...any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := fmt.Sprintf(format, args...)
	if changes {
		w.calls = append(w.calls, name)
	} else {
		w.reads++
	}
	var before, after error
	if w.fail != nil {
		before, after = w.fail(len(w.calls)+w.reads, name, changes)
	}
	if before != nil {
		return before
	}
	w.clock = w.clock.Add(time.Second)
	if err := do(); err != nil {
		return err
	}
	return after
}

func (w *world) Viewer(context.Context) (github.User, error) { return w.viewer, nil }

func (w *world) Issue(_ context.Context, n int) (out *github.Issue, err error) {
	err = w.call(false, func() error {
		i := w.issues[n]
		if i == nil {
			return github.ErrGone
		}
		c := *i
		c.Labels = slices.Clone(i.Labels)
		out = &c
		return nil
	}, "issue %d", n)
	return out, err
}

func (w *world) FindIssues(_ context.Context, label string, _ time.Time) (out []github.Issue, err error) {
	err = w.call(false, func() error {
		for _, n := range slices.Sorted(maps.Keys(w.issues)) {
			if slices.Contains(w.issues[n].Labels, label) {
				out = append(out, *w.issues[n])
			}
		}
		return nil
	}, "find %s", label)
	return out, err
}

func (w *world) CreateIssue(_ context.Context, n github.NewIssue) (out *github.Issue, err error) {
	err = w.call(true, func() error {
		w.next++
		i := &github.Issue{Number: 1000 + int(w.next), Title: n.Title, Body: n.Body, Labels: slices.Clone(n.Labels), Author: w.viewer, Open: true}
		w.issues[i.Number], out = i, i
		return nil
	}, "create issue %q", n.Title)
	return out, err
}

func (w *world) EditIssue(_ context.Context, n int, title, body string) error {
	return w.call(true, func() error {
		i := w.issues[n]
		if i == nil {
			return github.ErrGone
		}
		i.Title, i.Body = cmp.Or(title, i.Title), cmp.Or(body, i.Body)
		return nil
	}, "edit issue %d %q", n, title)
}

func (w *world) Comments(_ context.Context, issue int, _ time.Time) (out []github.Comment, err error) {
	err = w.call(false, func() error {
		if w.issues[issue] == nil {
			return github.ErrGone
		}
		for _, id := range slices.Sorted(maps.Keys(w.comments)) {
			if c := w.comments[id]; c.Issue == issue {
				out = append(out, *c)
			}
		}
		return nil
	}, "comments %d", issue)
	return out, err
}

func (w *world) GetComment(_ context.Context, id int64) (out *github.Comment, err error) {
	err = w.call(false, func() error {
		if w.comments[id] == nil {
			return github.ErrGone
		}
		c := *w.comments[id]
		out = &c
		return nil
	}, "comment %d", id)
	return out, err
}

func (w *world) CreateComment(_ context.Context, issue int, body string) (out *github.Comment, err error) {
	err = w.call(true, func() error {
		if w.issues[issue] == nil {
			return github.ErrGone
		}
		c := *w.say(issue, w.viewer, body)
		out = &c
		return nil
	}, "comment on %d", issue)
	return out, err
}

// say puts a comment on an issue.
func (w *world) say(issue int, who github.User, body string) *github.Comment {
	w.next++
	c := &github.Comment{ID: 5_000_000_000 + w.next, Issue: issue, Author: who, Body: body, Created: w.clock, Updated: w.clock}
	w.comments[c.ID] = c
	return c
}

func (w *world) EditComment(_ context.Context, id int64, body string) (out *github.Comment, err error) {
	err = w.call(true, func() error {
		if w.comments[id] == nil {
			return github.ErrGone
		}
		w.comments[id].Body, w.comments[id].Updated = body, w.clock
		c := *w.comments[id]
		out = &c
		return nil
	}, "edit %d", id)
	return out, err
}

func (w *world) EnsureLabel(_ context.Context, l github.Label) error {
	return w.call(true, func() error { w.repo[l.Name] = true; return nil }, "label %s", l.Name)
}

func (w *world) AddLabels(_ context.Context, issue int, names []string) error {
	return w.call(true, func() error {
		i := w.issues[issue]
		if i == nil {
			return github.ErrGone
		}
		for _, n := range names {
			if !slices.Contains(i.Labels, n) {
				i.Labels = append(i.Labels, n)
			}
		}
		return nil
	}, "label %d %s", issue, names)
}

func (w *world) RemoveLabel(_ context.Context, issue int, name string) error {
	return w.call(true, func() error {
		if i := w.issues[issue]; i != nil {
			i.Labels = withoutLabels(i.Labels, name)
		}
		return nil
	}, "unlabel %d %s", issue, name)
}

type contextType = context.Context

// dryWorld is a GitHub that is only read, as a dry client does.
type dryWorld struct{ *world }

func (d *dryWorld) CreateIssue(contextType, github.NewIssue) (*github.Issue, error) {
	return &github.Issue{}, nil
}

func (d *dryWorld) CreateComment(contextType, int, string) (*github.Comment, error) {
	return &github.Comment{}, nil
}

func (d *dryWorld) EditIssue(contextType, int, string, string) error { return nil }

func (d *dryWorld) EnsureLabel(contextType, github.Label) error { return nil }

func (d *dryWorld) AddLabels(contextType, int, []string) error { return nil }
