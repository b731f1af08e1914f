package github_test

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/githubtest"
)

func TestLabelsAndReactions(t *testing.T) {
	t.Parallel()
	rig, c, _ := begin(t, nil)
	ctx := t.Context()
	odd := "a/b c?d#e%2F:ü"
	if err := c.EnsureLabel(ctx, github.Label{Name: odd, Color: "ededed"}); err != nil {
		t.Fatal(err)
	}
	rig.Fail(5, "GET", "/labels/", githubtest.Fault{Status: 502})
	rig.Journal()
	err := c.EnsureLabel(ctx, github.Label{Name: "unknown", Color: "ededed"})
	if !errors.Is(err, github.ErrServer) || slices.ContainsFunc(rig.Journal(), func(r githubtest.Request) bool { return !r.Reads() }) {
		t.Errorf("a label of which nothing is known was made, %v", err)
	}
	issue := rig.Issue(t, githubtest.Owner, "an issue", odd, "theirs")
	if err := c.AddLabels(ctx, issue, []string{"ours", "theirs"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{odd, odd, "never there"} {
		if err := c.RemoveLabel(ctx, issue, name); err != nil {
			t.Errorf("removing %q: %v", name, err)
		}
	}
	labels := must[*github.Issue](t)(c.Issue(ctx, issue)).Labels
	slices.Sort(labels)
	if !slices.Equal(labels, []string{"ours", "theirs"}) {
		t.Errorf("the labels are %q", labels)
	}
	id := rig.Comment(t, githubtest.Mona, issue, "/retry build")
	mona := connect(t, rig, &clock{now: time.Now()}, func(o *github.Options) { o.Token = githubtest.Token(githubtest.Mona) })
	if err := mona.React(ctx, id, github.Eyes); err != nil {
		t.Fatal(err)
	}
	rig.Journal()
	for _, do := range []func() error{
		func() error { return c.React(ctx, id, github.Eyes) },
		func() error { return c.React(ctx, id, github.Eyes) },
		func() error { return c.React(ctx, id, github.ThumbsUp) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	if got := rig.Reactions(githubtest.Bot, id); !slices.Equal(got, []string{github.Eyes, github.ThumbsUp}) {
		t.Errorf("the reactions are %q", got)
	}
	rig.DeleteComment(t, githubtest.Mona, id)
	if err := c.React(ctx, id, github.ThumbsUp); !errors.Is(err, github.ErrGone) {
		t.Errorf("a reaction to a comment that is gone: %v", err)
	}
}

func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	rig, c, _ := begin(t, nil)
	ctx := t.Context()
	for login, want := range map[string]bool{githubtest.Mona: true, githubtest.Stranger: false, "nobody-at-all": false} {
		if got := must[bool](t)(c.InTeam(ctx, githubtest.Org, githubtest.Team, login)); got != want {
			t.Errorf("%s is in the team: %t", login, got)
		}
	}
	if got := must[bool](t)(c.InTeam(ctx, githubtest.Org, "no-such-team", githubtest.Mona)); got {
		t.Error("somebody is in a team that is not there")
	}
	for login, want := range map[string]string{githubtest.Owner: "admin", githubtest.Mona: "write", "nobody-at-all": "none"} {
		if got := must[string](t)(c.Permission(ctx, login)); got != want {
			t.Errorf("%s has %q, want %q", login, got, want)
		}
	}
	rig.Journal()
	for _, odd := range []string{"", "../../x", "a b", "mona/../../user", "x?y", strings.Repeat("x", 200)} {
		if _, err := c.Permission(ctx, odd); !errors.Is(err, github.ErrInvalid) {
			t.Errorf("the permission of %q: %v", odd, err)
		}
		if in, err := c.InTeam(ctx, githubtest.Org, githubtest.Team, odd); in || !errors.Is(err, github.ErrInvalid) {
			t.Errorf("%q in the team: %t, %v", odd, in, err)
		}
		if in, err := c.InTeam(ctx, odd, githubtest.Team, "mona"); in || !errors.Is(err, github.ErrInvalid) {
			t.Errorf("in a team of %q: %t, %v", odd, in, err)
		}
	}
	if n := len(rig.Journal()); n != 0 {
		t.Errorf("%d requests with names that are none", n)
	}
	// Invited is not a member; an error of GitHub's is no answer.
	rig.Fail(1, "GET", "/memberships/", githubtest.Fault{Status: 200, Body: `{"state":"pending","role":"member"}`,
		Header: header("Content-Type", "application/json")})
	if in := must[bool](t)(c.InTeam(ctx, githubtest.Org, githubtest.Team, githubtest.Mona)); in {
		t.Error("who is only invited counts as a member")
	}
	rig.Fail(1, "GET", "/memberships/", githubtest.Fault{Status: 403})
	if in, err := c.InTeam(ctx, githubtest.Org, githubtest.Team, githubtest.Mona); in || !errors.Is(err, github.ErrForbidden) {
		t.Errorf("%t, %v", in, err)
	}
}

func TestTheViewerOfAnAppsToken(t *testing.T) {
	t.Parallel()
	rig, c, _ := begin(t, nil)
	rig.Fail(1, "GET", "/user", githubtest.Fault{Status: 403})
	rig.Fail(1, "POST", "/graphql", githubtest.Fault{Status: 200, Header: header("Content-Type", "application/json"),
		Body: `{"data":{"viewer":{"login":"github-actions[bot]","databaseId":41898282}}}`})
	for range 2 { // asked once
		if me := must[github.User](t)(c.Viewer(t.Context())); me != (github.User{Login: "github-actions[bot]", ID: 41898282, Bot: true}) {
			t.Errorf("the viewer is %+v", me)
		}
	}
	if got := len(rig.Journal()); got != 2 {
		t.Errorf("%d requests, want 2", got)
	}
}

func TestPullRequest(t *testing.T) {
	t.Parallel()
	rig, c, _ := begin(t, nil)
	oid := head(t, rig, "main")
	repo := "/repos/" + rig.Repo
	rig.MustDo(t, githubtest.Owner, "POST", repo+"/git/refs", map[string]any{"ref": "refs/heads/topic", "sha": oid}, nil)
	k := github.CommitOnBranch{Branch: "topic", Head: oid, Headline: "Add a file", Write: []github.File{{Path: "new", Content: []byte("new")}}}
	topic := must[string](t)(c.CommitOnBranch(t.Context(), k))
	var made struct{ Number int }
	rig.MustDo(t, githubtest.Mona, "POST", repo+"/pulls", map[string]any{"title": "A topic", "head": "topic", "base": "main"}, &made)
	if at := must[string](t)(c.PullRequestHead(t.Context(), made.Number)); at != topic {
		t.Errorf("the pull request is at %s, want %s", at, topic)
	}
	issue := rig.Issue(t, githubtest.Owner, "no pull request")
	if _, err := c.PullRequestHead(t.Context(), issue); !errors.Is(err, github.ErrGone) {
		t.Errorf("an issue as a pull request: %v", err)
	}
	rig.Fail(1, "GET", "/issues/", githubtest.Fault{Status: 200, Header: header("Content-Type", "application/json"),
		Body: `{"number":1,"pull_request":{"url":"https://api.github.com/repos/octo/widgets/pulls/1"}}`}) // the emulator has none
	if i := must[*github.Issue](t)(c.Issue(t.Context(), made.Number)); !i.PullRequest {
		t.Errorf("the issue side of it is %+v", i)
	}
}

func TestCommitOnBranch(t *testing.T) {
	t.Parallel()
	rig, c, _ := begin(t, nil)
	ctx := t.Context()
	first := head(t, rig, "main")
	binary := "\x00\xff\n"
	k := github.CommitOnBranch{
		Branch: "main", Head: first, Headline: "Reconcile", Body: "2 objects",
		Write:  []github.File{{Path: "state/a.json", Content: []byte("{}\n")}, {Path: "deep/er/b", Content: []byte(binary)}, {Path: "empty"}},
		Delete: []string{"README.md"},
	}
	oid := must[string](t)(c.CommitOnBranch(ctx, k))
	if got := head(t, rig, "main"); got != oid || got == first {
		t.Errorf("the branch is at %s, the commit is %s", got, oid)
	}
	var commit struct {
		Message string
		Parents []struct{ SHA string }
	}
	rig.MustDo(t, githubtest.Owner, "GET", "/repos/"+rig.Repo+"/git/commits/"+oid, nil, &commit)
	if commit.Message != "Reconcile\n\n2 objects" || len(commit.Parents) != 1 || commit.Parents[0].SHA != first {
		t.Errorf("the commit is %+v", commit)
	}
	for path, want := range map[string]string{"state/a.json": "{}\n", "deep/er/b": binary, "empty": ""} {
		var file struct{ Content string }
		rig.MustDo(t, githubtest.Owner, "GET", "/repos/"+rig.Repo+"/contents/"+path, nil, &file)
		got, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(file.Content, "\n", ""))
		if err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v", path, got, err)
		}
	}
	if rig.Do(githubtest.Owner, "GET", "/repos/"+rig.Repo+"/contents/README.md", nil, nil) == nil {
		t.Error("README.md is still there")
	}
	_, err := c.CommitOnBranch(ctx, k) // on top of what is not the head any more
	var moved *github.HeadMoved
	if !errors.As(err, &moved) || moved.Expected != first || head(t, rig, "main") != oid {
		t.Errorf("the error is %v, want *HeadMoved", err)
	}
	k.Branch = "no-such-branch"
	if _, err := c.CommitOnBranch(ctx, k); !errors.Is(err, github.ErrForbidden) {
		t.Errorf("the error is %v, want ErrForbidden", err)
	}
}

func TestALostCommitOnBranchIsUncertain(t *testing.T) {
	t.Parallel()
	rig, c, _ := begin(t, nil)
	gaveUp := `{"data":null,"errors":[{"message":"Something went wrong while executing your query."}]}`
	for name, fault := range map[string]githubtest.Fault{
		"dropped":  {After: true},
		"502":      {After: true, Status: 502},
		"gave up":  {After: true, Status: 200, Body: gaveUp, Header: header("Content-Type", "application/json")},
		"no oid":   {After: true, Status: 200, Body: `{"data":{}}`, Header: header("Content-Type", "application/json")},
		"not JSON": {After: true, Status: 200, Body: "<", Header: header("Content-Type", "application/json")},
	} {
		before := head(t, rig, "main")
		rig.Fail(1, "POST", "/graphql", fault)
		rig.Journal()
		_, err := c.CommitOnBranch(t.Context(), github.CommitOnBranch{
			Branch: "main", Head: before, Headline: name, Write: []github.File{{Path: name, Content: []byte(name)}},
		})
		var uncertain *github.Uncertain
		if !errors.As(err, &uncertain) || len(rig.Journal()) != 1 {
			t.Errorf("%s: the error is %v, want *Uncertain after one request", name, err)
		}
		if head(t, rig, "main") == before {
			t.Errorf("%s: the commit was not made", name)
		}
	}
	rig.Fail(1, "POST", "/graphql", githubtest.Fault{Status: 200, Header: header("Content-Type", "application/json"),
		Body: `{"errors":[{"type":"UNPROCESSABLE","message":"A path was requested for deletion which does not exist"}]}`})
	if _, err := c.CommitOnBranch(t.Context(), github.CommitOnBranch{Branch: "main"}); !errors.Is(err, github.ErrInvalid) {
		t.Errorf("the error is %v, want ErrInvalid", err)
	}
}

func TestADryClientChangesNothing(t *testing.T) {
	t.Parallel()
	var said []string
	rig, c, now := begin(t, func(o *github.Options) { o.Dry = func(k github.Call) { said = append(said, k.String()) } })
	ctx := t.Context()
	issue := rig.Issue(t, githubtest.Owner, "an issue")
	id := rig.Comment(t, githubtest.Mona, issue, "hello")
	made := must[*github.Issue](t)(c.CreateIssue(ctx, github.NewIssue{Title: "T", Body: "B", Labels: []string{"l"}}))
	k := must[*github.Comment](t)(c.CreateComment(ctx, made.Number, strings.Repeat("ü", 1000)))
	if made.Number != 0 || made.Title != "T" || k.ID != 0 || len(k.Body) != 2000 {
		t.Errorf("a dry client made %+v and %+v", made, k)
	}
	if on := must[[]github.Comment](t)(c.Comments(ctx, made.Number, time.Time{})); len(on) != 0 {
		t.Errorf("there are comments on an issue that is not there: %+v", on)
	}
	if edited := must[*github.Comment](t)(c.EditComment(ctx, id, "bye")); edited.Body != "bye" || edited.ID != id {
		t.Errorf("a dry client edited %+v", edited)
	}
	for _, err := range []error{
		c.EditIssue(ctx, issue, "U", ""), c.EnsureLabel(ctx, github.Label{Name: "l", Color: "ffffff"}),
		c.AddLabels(ctx, issue, []string{"l"}), c.RemoveLabel(ctx, issue, "l"), c.React(ctx, id, github.Eyes),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if oid := must[string](t)(c.CommitOnBranch(ctx, github.CommitOnBranch{Branch: "main", Headline: "h"})); oid != "" {
		t.Errorf("a dry client committed %s", oid)
	}
	repo := "/repos/" + rig.Repo
	want := []string{
		"POST " + repo + `/issues {"title":"T","body":"B","labels":["l"]}`,
		"POST " + repo + `/issues/0/comments {"body":"ü`,
		"PATCH " + repo + "/issues/comments/",
		"PATCH " + repo + `/issues/1 {"title":"U"}`,
		"POST " + repo + `/labels {"name":"l","color":"ffffff"}`,
		"POST " + repo + "/issues/1/labels " + `{"labels":["l"]}`,
		"DELETE " + repo + "/issues/1/labels/l",
		"POST " + repo + "/issues/comments/",
		`POST /graphql {"query":"mutation($input: CreateCommitOnBranchInput!)`,
	}
	if len(said) != len(want) {
		t.Fatalf("%d calls were told:\n%s", len(said), strings.Join(said, "\n"))
	}
	for i, call := range said {
		if !strings.HasPrefix(call, want[i]) || len(call) > 600 || !utf8.ValidString(call) {
			t.Errorf("call %d is %s, want %s…", i, call, want[i])
		}
	}
	for _, r := range rig.Journal() {
		if !r.Reads() {
			t.Errorf("%s %s was sent", r.Method, r.Path)
		}
	}
	if got := must[*github.Issue](t)(c.Issue(ctx, issue)); len(got.Labels) != 0 || now.slept() != 0 {
		t.Errorf("the issue is %+v", got)
	}
}
