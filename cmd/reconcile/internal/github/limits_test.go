package github_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/githubtest"
)

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// limitedAnswers are the ways in which GitHub says that a limit is reached, and for how long that is. Times are by its
// own clock, which is an hour ahead of ours.
func limitedAnswers(now time.Time) map[string]struct {
	fault githubtest.Fault
	want  time.Duration
} {
	there := now.Add(time.Hour).UTC()
	date := there.Format(http.TimeFormat)
	reset := func(d time.Duration) string { return fmt.Sprint(there.Truncate(time.Second).Add(d).Unix()) }
	secondary := `{"message":"You have exceeded a secondary rate limit. Please wait."}`
	return map[string]struct {
		fault githubtest.Fault
		want  time.Duration
	}{
		"429 with seconds": {githubtest.Fault{Status: 429, Header: header("Retry-After", "7", "Date", date)}, 7 * time.Second},
		"429 with a date": {githubtest.Fault{Status: 429, Header: header("Date", date,
			"Retry-After", there.Add(9*time.Second).Format(http.TimeFormat))}, 9 * time.Second},
		"429 that says nothing": {githubtest.Fault{Status: 429, Header: header("Date", date)}, time.Minute},
		"403, primary": {githubtest.Fault{Status: 403, Header: header("Date", date, "X-RateLimit-Remaining", "0",
			"X-RateLimit-Reset", reset(11*time.Second))}, 11 * time.Second},
		"429, primary": {githubtest.Fault{Status: 429, Header: header("Date", date, "X-RateLimit-Remaining", "0",
			"X-RateLimit-Reset", reset(13*time.Second))}, 13 * time.Second},
		"403, secondary, with seconds": {githubtest.Fault{Status: 403, Header: header("Retry-After", "5", "Date", date)}, 5 * time.Second},
		"403, secondary, in words": {githubtest.Fault{Status: 403, Body: secondary,
			Header: header("Content-Type", "application/json", "Date", date, "X-RateLimit-Remaining", "4000")}, time.Minute},
		"over already": {githubtest.Fault{Status: 429, Header: header("Date", date, "X-RateLimit-Remaining", "0",
			"X-RateLimit-Reset", reset(-time.Hour))}, time.Second},
	}
}

func TestLimitsAreWaitedFor(t *testing.T) {
	t.Parallel()
	rig, _, _ := begin(t, nil)
	issue := rig.Issue(t, githubtest.Owner, "an issue")
	start := time.Now()
	for name, l := range limitedAnswers(start) {
		now := &clock{now: start}
		c := connect(t, rig, now, func(o *github.Options) { o.Pace = -1 })
		rig.Fail(1, "GET", "/issues/", l.fault)
		must[*github.Issue](t)(c.Issue(t.Context(), issue))
		if got := now.slept(); got != l.want {
			t.Errorf("%s: waited %s before reading, want %s", name, got, l.want)
		}
		now.now = start
		rig.Fail(1, "POST", "/comments", l.fault)
		rig.Journal()
		must[*github.Comment](t)(c.CreateComment(t.Context(), issue, "once"))
		if got := now.slept(); got != l.want {
			t.Errorf("%s: waited %s before writing, want %s", name, got, l.want)
		}
		if got := statuses(rig.Journal()); !slices.Equal(got, []int{l.fault.Status, 201}) {
			t.Errorf("%s: the answers were %v", name, got)
		}
	}
}

func TestALimitThatLastsIsLeftToTheNextRun(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	rig, c, now := begin(t, func(o *github.Options) { o.Cache = cache })
	issue := rig.Issue(t, githubtest.Owner, "an issue")
	until := now.now.Add(40 * time.Minute)
	rig.Fail(1, "", "", githubtest.Fault{Status: 403, Header: header("X-RateLimit-Remaining", "0",
		"Date", now.now.UTC().Format(http.TimeFormat), "X-RateLimit-Reset", fmt.Sprint(until.Unix()))})
	refused := func(c *github.Client, requests int) {
		t.Helper()
		rig.Journal()
		_, err := c.CreateComment(t.Context(), issue, "later")
		var limited *github.Limited
		if !errors.As(err, &limited) || !github.Later(err) {
			t.Fatalf("the error is %v", err)
		}
		if d := limited.Until.Sub(until).Abs(); d > 2*time.Second {
			t.Errorf("limited until %s, want %s", limited.Until, until)
		}
		if n := len(rig.Journal()); n != requests || now.slept() != 0 {
			t.Errorf("%d requests, want %d", n, requests)
		}
	}
	refused(c, 1)
	refused(c, 0) // nothing is sent before it is over,
	next := func() *github.Client { return connect(t, rig, now, func(o *github.Options) { o.Cache = cache }) }
	refused(next(), 0) // nor by another process;
	other := connect(t, rig, now, func(o *github.Options) {
		o.Cache, o.Token = cache, githubtest.Token(githubtest.Mona)
	})
	must[*github.Issue](t)(other.Issue(t.Context(), issue)) // other accounts have limits of their own.
	now.now = until.Add(time.Second)
	must[*github.Comment](t)(next().CreateComment(t.Context(), issue, "now"))
}

func TestAClockThatWasWrongDoesNotLockOut(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	rig, c, now := begin(t, func(o *github.Options) { o.Cache = cache })
	issue := rig.Issue(t, githubtest.Owner, "an issue")
	right := now.now
	now.now = right.Add(1000 * time.Hour)
	rig.Fail(1, "", "", githubtest.Fault{Status: 429, Header: header("Retry-After", "3000000")})
	if _, err := c.Issue(t.Context(), issue); !github.Later(err) {
		t.Fatal(err)
	}
	now.now = right
	c = connect(t, rig, now, func(o *github.Options) { o.Cache = cache })
	must[*github.Issue](t)(c.Issue(t.Context(), issue))
}

func TestTheLastRequestOfALimitIsHeeded(t *testing.T) {
	t.Parallel()
	rig, c, now := begin(t, nil)
	issue := rig.Issue(t, githubtest.Owner, "an issue")
	body := fmt.Sprintf(`{"number":%d,"title":"the last one"}`, issue)
	rig.Fail(1, "GET", "/issues/", githubtest.Fault{Status: 200, Body: body, Header: header("Content-Type", "application/json",
		"Date", now.now.UTC().Format(http.TimeFormat), "X-RateLimit-Remaining", "0",
		"X-RateLimit-Reset", fmt.Sprint(now.now.Truncate(time.Second).Add(20*time.Second).Unix()))})
	if i := must[*github.Issue](t)(c.Issue(t.Context(), issue)); i.Title != "the last one" || now.slept() != 0 {
		t.Errorf("read %+v", i)
	}
	must[*github.Issue](t)(c.Issue(t.Context(), issue))
	if d := now.slept(); d != 20*time.Second {
		t.Errorf("waited %s for the next one, want 20s", d)
	}
}

func TestASecondaryLimitThatSaysNothingIsWaitedForLongerEachTime(t *testing.T) {
	t.Parallel()
	rig, c, now := begin(t, func(o *github.Options) { o.MaxWait = time.Hour })
	issue := rig.Issue(t, githubtest.Owner, "an issue")
	rig.Fail(5, "GET", "/issues/", githubtest.Fault{Status: 429})
	must[*github.Issue](t)(c.Issue(t.Context(), issue))
	want := []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 8 * time.Minute}
	if !slices.Equal(now.naps, want) {
		t.Errorf("waited %v, want %v", now.naps, want)
	}
}

func TestPatienceIsForTheWholeCall(t *testing.T) {
	t.Parallel()
	rig, c, now := begin(t, func(o *github.Options) { o.MaxWait = 25 * time.Second })
	rig.Fail(10, "GET", "/issues/", githubtest.Fault{Status: 429, Header: header("Retry-After", "10")})
	_, err := c.Issue(t.Context(), rig.Issue(t, githubtest.Owner, "an issue"))
	var limited *github.Limited
	if !errors.As(err, &limited) || now.slept() != 20*time.Second {
		t.Errorf("%v, after %v", err, now.naps)
	}
}

func TestWritesKeepAPace(t *testing.T) {
	t.Parallel()
	rig, c, now := begin(t, nil)
	issue := rig.Issue(t, githubtest.Owner, "an issue")
	k := must[*github.Comment](t)(c.CreateComment(t.Context(), issue, "1"))
	if d := now.slept(); d != 0 {
		t.Errorf("the first write waited %s", d)
	}
	for n := range 3 {
		must[*github.Comment](t)(c.EditComment(t.Context(), k.ID, fmt.Sprint(n)))
		must[*github.Comment](t)(c.GetComment(t.Context(), k.ID))
		if d := now.slept(); d != time.Second {
			t.Errorf("write and read %d waited %s, want a second", n, d)
		}
	}
	now.now = now.now.Add(400 * time.Millisecond)
	must[*github.Comment](t)(c.EditComment(t.Context(), k.ID, "x"))
	if d := now.slept(); d != 600*time.Millisecond {
		t.Errorf("waited %s for what is left of a second", d)
	}
	now.now = now.now.Add(-time.Hour) // the clock is set back
	must[*github.Comment](t)(c.EditComment(t.Context(), k.ID, "y"))
	if d := now.slept(); d != time.Second {
		t.Errorf("waited %s after the clock was set back, want a second", d)
	}
	free := connect(t, rig, now, func(o *github.Options) { o.Pace = -1 })
	for range 3 {
		must[*github.Comment](t)(free.EditComment(t.Context(), k.ID, "z"))
	}
	if d := now.slept(); d != 0 {
		t.Errorf("without a pace writes waited %s", d)
	}
}

func TestLimitsOfGraphQL(t *testing.T) {
	t.Parallel()
	rig, c, now := begin(t, nil)
	rig.Fail(1, "POST", "/graphql", githubtest.Fault{Status: 200,
		Header: header("Content-Type", "application/json", "Retry-After", "3"),
		Body:   `{"errors":[{"type":"RATE_LIMITED","message":"API rate limit exceeded"}]}`})
	k := github.CommitOnBranch{Branch: "main", Head: head(t, rig, "main"), Headline: "h"}
	k.Write = []github.File{{Path: "a", Content: []byte("a")}}
	if _, err := c.CommitOnBranch(t.Context(), k); err != nil || now.slept() != 3*time.Second {
		t.Errorf("%v, after %v", err, now.naps)
	}
}

// head returns the commit that a branch is at.
func head(t *testing.T, rig *githubtest.Rig, branch string) string {
	t.Helper()
	var ref struct{ Object struct{ SHA string } }
	rig.MustDo(t, githubtest.Owner, "GET", "/repos/"+rig.Repo+"/git/ref/heads/"+branch, nil, &ref)
	if len(ref.Object.SHA) != 40 || strings.Trim(ref.Object.SHA, "0") == "" {
		t.Fatalf("%s is at %q", branch, ref.Object.SHA)
	}
	return ref.Object.SHA
}
