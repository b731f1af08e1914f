package github_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/githubtest"
)

// statuses returns the statuses of a journal's answers, in order.
func statuses(journal []githubtest.Request) []int {
	var all []int
	for _, r := range journal {
		all = append(all, r.Status)
	}
	return all
}

func TestAnUnchangedAnswerIsNotSentTwice(t *testing.T) {
	t.Parallel()
	rig, c, now := begin(t, func(o *github.Options) { o.Cache = "" })
	cache := t.TempDir()
	again := func() *github.Client {
		return connect(t, rig, now, func(o *github.Options) { o.Cache = cache })
	}
	issue := rig.Issue(t, githubtest.Owner, "an issue")
	first := rig.Comment(t, githubtest.Mona, issue, "one")
	ask := func(c *github.Client, want int, texts ...string) {
		t.Helper()
		rig.Journal()
		comments := must[[]github.Comment](t)(c.Comments(t.Context(), issue, time.Time{}))
		var got []string
		for _, k := range comments {
			got = append(got, k.Body)
		}
		if !slices.Equal(got, texts) {
			t.Errorf("the comments are %q, want %q", got, texts)
		}
		if got := statuses(rig.Journal()); !slices.Equal(got, []int{want}) {
			t.Errorf("the answers were %v, want %d", got, want)
		}
	}
	ask(again(), 200, "one")
	ask(again(), 304, "one") // another process
	rig.Comment(t, githubtest.Mona, issue, "two")
	ask(again(), 200, "one", "two")
	rig.EditComment(t, githubtest.Mona, first, "uno")
	ask(again(), 200, "uno", "two")
	ask(again(), 304, "uno", "two")
	ask(c, 200, "uno", "two") // keeps nothing
	ask(c, 200, "uno", "two")
	// What is kept for one account is not shown to another.
	ask(connect(t, rig, now, func(o *github.Options) {
		o.Cache, o.Token = cache, githubtest.Token(githubtest.Mona)
	}), 200, "uno", "two")
}

func TestADamagedCacheCostsARequestOnly(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	rig, c, _ := begin(t, func(o *github.Options) { o.Cache = cache })
	issue := rig.Issue(t, githubtest.Owner, "an issue")
	damages := map[string]func(data []byte) []byte{
		"as it was": func(data []byte) []byte { return data },
		"empty":     func([]byte) []byte { return nil },
		"torn":      func(data []byte) []byte { return data[:len(data)-1] },
		"a flipped": func(data []byte) []byte { data[len(data)-2] ^= 1; return data },
	}
	for name, damage := range damages {
		must[*github.Issue](t)(c.Issue(t.Context(), issue))
		files, err := filepath.Glob(filepath.Join(cache, "*"))
		if err != nil || len(files) != 1 {
			t.Fatalf("the cache holds %v, %v", files, err)
		}
		data := must[[]byte](t)(os.ReadFile(files[0]))
		if err := os.WriteFile(files[0], damage(data), 0o600); err != nil {
			t.Fatal(err)
		}
		rig.Journal()
		got := must[*github.Issue](t)(c.Issue(t.Context(), issue))
		want := 200
		if name == "as it was" {
			want = 304
		}
		if got.Title != "an issue" || !slices.Equal(statuses(rig.Journal()), []int{want}) {
			t.Errorf("%s: read %+v, want status %d", name, got, want)
		}
	}
}

func TestOldAnswersAreThrownAway(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	rig, c, now := begin(t, func(o *github.Options) { o.Cache = cache })
	used, unused := rig.Issue(t, githubtest.Owner, "used"), rig.Issue(t, githubtest.Owner, "unused")
	must[*github.Issue](t)(c.Issue(t.Context(), used))
	must[*github.Issue](t)(c.Issue(t.Context(), unused))
	now.now = now.now.Add(20 * 24 * time.Hour)
	must[*github.Issue](t)(c.Issue(t.Context(), used))
	now.now = now.now.Add(20 * 24 * time.Hour)
	c = connect(t, rig, now, func(o *github.Options) { o.Cache = cache })
	must[*github.Issue](t)(c.Issue(t.Context(), rig.Issue(t, githubtest.Owner, "new")))
	files, err := filepath.Glob(filepath.Join(cache, "*"))
	if err != nil || len(files) != 2 {
		t.Errorf("the cache holds %v, %v; want what is new and what was used", files, err)
	}
}

func TestListsAreReadToTheEnd(t *testing.T) {
	t.Parallel()
	rig, c, _ := begin(t, nil)
	issue := rig.Issue(t, githubtest.Owner, "a long one")
	for n := range 100 {
		rig.Comment(t, githubtest.Mona, issue, fmt.Sprint(n))
	}
	read := func(want int, answers ...int) {
		t.Helper()
		rig.Journal()
		comments := must[[]github.Comment](t)(c.Comments(t.Context(), issue, time.Time{}))
		for n, k := range comments {
			if k.Body != fmt.Sprint(n) {
				t.Fatalf("comment %d is %q", n, k.Body)
			}
		}
		if len(comments) != want {
			t.Errorf("%d comments, want %d", len(comments), want)
		}
		if got := statuses(rig.Journal()); !slices.Equal(got, answers) {
			t.Errorf("the answers were %v, want %v", got, answers)
		}
	}
	read(100, 200)
	read(100, 304, 200) // the first page is full and did not change: there may be a second one
	read(100, 304, 304)
	rig.Comment(t, githubtest.Mona, issue, "100") // on a page that was empty when it was kept
	read(101, 304, 200)
	read(101, 304, 304)
	for n := range 120 {
		rig.Comment(t, githubtest.Mona, issue, fmt.Sprint(101+n))
	}
	read(221, 304, 200, 200)
}

func TestSinceLeavesOutWhatIsOlder(t *testing.T) {
	t.Parallel()
	rig, c, _ := begin(t, nil)
	one, two := rig.Issue(t, githubtest.Owner, "one", "bug"), rig.Issue(t, githubtest.Owner, "two")
	old := must[*github.Comment](t)(c.GetComment(t.Context(), rig.Comment(t, githubtest.Mona, one, "old")))
	rig.Comment(t, githubtest.Mona, two, "elsewhere")
	// The emulator compares times as text: whole seconds apart, so that it does not matter how they are written.
	later := old.Updated.Add(2 * time.Second)
	all := must[[]github.Comment](t)(c.RecentComments(t.Context(), old.Created.Add(-time.Hour)))
	if len(all) != 2 || all[0].Issue != one || all[1].Issue != two {
		t.Errorf("the comments on all issues are %+v", all)
	}
	if got := must[[]github.Comment](t)(c.RecentComments(t.Context(), later)); len(got) != 0 {
		t.Errorf("after %s there are %+v", later, got)
	}
	if got := must[[]github.Comment](t)(c.Comments(t.Context(), one, later)); len(got) != 0 {
		t.Errorf("after %s there are %+v", later, got)
	}
	if got := must[[]github.Comment](t)(c.Comments(t.Context(), one, old.Updated)); len(got) != 1 {
		t.Errorf("from its own time on there are %+v", got)
	}
	if got := must[[]github.Issue](t)(c.FindIssues(t.Context(), "bug", time.Time{})); len(got) != 1 || got[0].Number != one {
		t.Errorf("the issues with the label are %+v", got)
	}
	if got := must[[]github.Issue](t)(c.FindIssues(t.Context(), "", later)); len(got) != 0 {
		t.Errorf("the issues that changed later are %+v", got)
	}
}

func TestANoOpLookCostsOneUnchangedAnswerForEachIssue(t *testing.T) {
	t.Parallel()
	rig, c, now := begin(t, nil)
	var issues []int
	for n := range 100 {
		issues = append(issues, rig.Issue(t, githubtest.Owner, fmt.Sprint(n)))
		rig.Comment(t, githubtest.Mona, issues[n], "a word")
	}
	since := now.Now().Add(-time.Hour)
	look := func() []githubtest.Request {
		rig.Journal()
		for _, i := range issues {
			must[[]github.Comment](t)(c.Comments(t.Context(), i, since))
		}
		return rig.Journal()
	}
	look()
	journal := look()
	if len(journal) != len(issues) {
		t.Errorf("%d requests for %d issues", len(journal), len(issues))
	}
	for _, r := range journal {
		if r.Status != http.StatusNotModified || !r.Conditional {
			t.Errorf("%s %s: %d, on condition: %t", r.Method, r.Path, r.Status, r.Conditional)
		}
	}
	if d := now.slept(); d != 0 {
		t.Errorf("reading waited for %s", d)
	}
}
