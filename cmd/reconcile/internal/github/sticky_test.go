package github_test

import (
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/githubtest"
)

func marked(body string) bool { return strings.HasSuffix(body, "<!-- ours -->") }

// standing are the bodies of the comments on an issue.
func standing(t *testing.T, c *github.Client, issue int) string {
	t.Helper()
	var all []string
	for _, k := range must[[]github.Comment](t)(c.Comments(t.Context(), issue, time.Time{})) {
		all = append(all, k.Author.Login+": "+k.Body)
	}
	return strings.Join(all, "\n")
}

func TestStickKeepsOneComment(t *testing.T) {
	t.Parallel()
	rig, c, _ := begin(t, func(o *github.Options) { o.Pace = -1 })
	issue := rig.Issue(t, githubtest.Owner, "a pull request")
	stick := func(text string, create bool, want github.Stuck, stand string) {
		t.Helper()
		did, err := c.Stick(t.Context(), issue, marked, text+" <!-- ours -->", create)
		if err != nil || did != want {
			t.Errorf("%s: did %v, %v; want %v", text, did, err, want)
		}
		if got := standing(t, c, issue); got != stand {
			t.Errorf("%s: there stands\n%s\nwant\n%s", text, got, stand)
		}
	}
	rig.Comment(t, githubtest.Mona, issue, "forged <!-- ours -->")
	rig.Comment(t, githubtest.Bot, issue, "something else of the account's")
	others := githubtest.Mona + ": forged <!-- ours -->\n" + githubtest.Bot + ": something else of the account's"
	ours := "\n" + githubtest.Bot + ": "
	stick("not yet", false, github.StuckNothing, others)
	stick("one", true, github.StuckCreated, others+ours+"one <!-- ours -->")
	stick("one", true, github.StuckSame, others+ours+"one <!-- ours -->")
	stick("two", false, github.StuckEdited, others+ours+"two <!-- ours -->")
	for _, k := range must[[]github.Comment](t)(c.Comments(t.Context(), issue, time.Time{})) {
		if marked(k.Body) && k.Author.Login == githubtest.Bot {
			rig.DeleteComment(t, githubtest.Owner, k.ID)
		}
	}
	stick("three", true, github.StuckCreated, others+ours+"three <!-- ours -->")
}

// TestStickLooksBeforeItCreatesAgain: a lost answer does not make a second comment, whether or not the first was made.
func TestStickLooksBeforeItCreatesAgain(t *testing.T) {
	t.Parallel()
	rig, c, _ := begin(t, func(o *github.Options) { o.Pace = -1 })
	for name, l := range losses {
		issue := rig.Issue(t, githubtest.Owner, name)
		rig.Fail(1, "POST", "/comments", l.fault)
		if _, err := c.Stick(t.Context(), issue, marked, "once <!-- ours -->", true); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := standing(t, c, issue); got != githubtest.Bot+": once <!-- ours -->" {
			t.Errorf("%s: there stands\n%s", name, got)
		}
	}
}

// TestStickOnADeletedComment: what was deleted between the look and the edit is made again.
func TestStickOnADeletedComment(t *testing.T) {
	t.Parallel()
	rig, c, _ := begin(t, func(o *github.Options) { o.Pace = -1 })
	issue := rig.Issue(t, githubtest.Owner, "a pull request")
	rig.Comment(t, githubtest.Bot, issue, "old <!-- ours -->")
	rig.Fail(1, "PATCH", "/comments", githubtest.Fault{Status: 404})
	did, err := c.Stick(t.Context(), issue, marked, "new <!-- ours -->", true)
	if err != nil || did != github.StuckCreated {
		t.Errorf("did %v, %v", did, err)
	}
}
