package github_test

import (
	"context"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/githubtest"
)

// clock is a clock that moves only when somebody sleeps.
type clock struct {
	now  time.Time
	naps []time.Duration
}

func (c *clock) Now() time.Time { return c.now }

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.naps = append(c.naps, d)
	c.now = c.now.Add(d)
	return ctx.Err()
}

// slept is how long, in all, since it was asked last.
func (c *clock) slept() time.Duration {
	var sum time.Duration
	for _, d := range c.naps {
		sum += d
	}
	c.naps = nil
	return sum
}

// begin returns a rig, and a client of it that speaks for the bot. change may be nil.
func begin(t *testing.T, change func(*github.Options)) (*githubtest.Rig, *github.Client, *clock) {
	t.Helper()
	rig := githubtest.Start(t)
	now := &clock{now: time.Now()}
	c := connect(t, rig, now, change)
	return rig, c, now
}

func connect(t *testing.T, rig *githubtest.Rig, now *clock, change func(*github.Options)) *github.Client {
	t.Helper()
	o := github.Options{
		Repo: rig.Repo, BaseURL: rig.URL, Token: githubtest.Token(githubtest.Bot), Cache: t.TempDir(),
		Now: now.Now, Sleep: now.Sleep, Rand: func() float64 { return 1 },
	}
	if change != nil {
		change(&o)
	}
	c, err := github.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// must returns a function that ends the test when there is an error.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestWhatPeopleSee(t *testing.T) {
	t.Parallel()
	rig, c, _ := begin(t, nil)
	ctx := t.Context()
	me := must[github.User](t)(c.Viewer(ctx))
	if me.Login != githubtest.Bot || me.ID == 0 || me.Bot {
		t.Errorf("the viewer is %+v", me)
	}
	label := github.Label{Name: "clarification:active", Color: "0e8a16", Description: "an agent waits for an answer"}
	for range 2 {
		if err := c.EnsureLabel(ctx, label); err != nil {
			t.Fatal(err)
		}
	}
	i := must[*github.Issue](t)(c.CreateIssue(ctx, github.NewIssue{Title: "A title", Body: "A body", Labels: []string{label.Name}}))
	if i.Number == 0 || i.Title != "A title" || i.Body != "A body" || i.Author.Login != me.Login || !i.Open || len(i.Labels) != 1 {
		t.Errorf("the issue that was made is %+v", i)
	}
	if got := must[*github.Issue](t)(c.Issue(ctx, i.Number)); got.Body != i.Body || !got.Open {
		t.Errorf("the issue is %+v", got)
	}
	k := must[*github.Comment](t)(c.CreateComment(ctx, i.Number, "first"))
	if k.ID == 0 || k.Issue != i.Number || k.Author.ID != me.ID || k.Association != "COLLABORATOR" {
		t.Errorf("the comment that was made is %+v", k)
	}
	k = must[*github.Comment](t)(c.EditComment(ctx, k.ID, "second"))
	if got := must[*github.Comment](t)(c.GetComment(ctx, k.ID)); got.Body != "second" || *got != *k {
		t.Errorf("the comment is %+v, when it was edited it was %+v", got, k)
	}
	rig.Comment(t, githubtest.Stranger, i.Number, "hello")
	all := must[[]github.Comment](t)(c.Comments(ctx, i.Number, time.Time{}))
	if len(all) != 2 || all[0].Body != "second" || all[1].Author.Login != githubtest.Stranger || all[1].Association != "NONE" {
		t.Errorf("the comments are %+v", all)
	}
}
