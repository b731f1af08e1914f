package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/githubtest"
	"reconcile.dev/reconcile/controllers/mirror"
)

// pulls is a pull request on the GitHub of tests, and a tree whose settings say where that is.
type pulls struct {
	*testing.T
	rig    *githubtest.Rig
	url    string // of the GitHub of the settings
	dir    string
	number int
	head   string
}

func newPulls(t *testing.T) *pulls {
	t.Helper()
	p := &pulls{T: t, rig: githubtest.Start(t), dir: t.TempDir()}
	p.number, p.head = p.open("change")
	p.settle(p.rig.Repo, strings.TrimSuffix(p.rig.URL, "/"))
	return p
}

// settle writes the settings, which say where GitHub is.
func (p *pulls) settle(repo, url string) {
	p.Helper()
	p.url = url
	settings := fmt.Sprintf("apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\n"+
		"spec: {github: {repo: %s, baseURL: %q, pace: 0s}}\n", repo, url)
	if err := os.WriteFile(filepath.Join(p.dir, "reconcile.yaml"), []byte(settings), 0o644); err != nil {
		p.Fatal(err)
	}
}

// open opens a pull request with one commit, and returns its number and the commit.
func (p *pulls) open(branch string) (number int, head string) {
	p.Helper()
	at := "/repos/" + p.rig.Repo
	do := func(method, path string, in any, keys ...string) any {
		p.Helper()
		var out any
		p.rig.MustDo(p, githubtest.Owner, method, at+path, in, &out)
		for _, key := range keys {
			out = out.(map[string]any)[key]
		}
		return out
	}
	main := do("GET", "/git/ref/heads/main", nil, "object", "sha").(string)
	base := do("GET", "/git/commits/"+main, nil, "tree", "sha")
	blob := do("POST", "/git/blobs", map[string]any{"content": branch}, "sha")
	tree := do("POST", "/git/trees", map[string]any{"base_tree": base,
		"tree": []map[string]any{{"path": branch, "mode": "100644", "type": "blob", "sha": blob}}}, "sha")
	commit := do("POST", "/git/commits", map[string]any{"message": branch, "tree": tree, "parents": []string{main}}, "sha")
	do("POST", "/git/refs", map[string]any{"ref": "refs/heads/" + branch, "sha": commit})
	made := do("POST", "/pulls", map[string]any{"title": branch, "head": branch, "base": "main"}, "number")
	return int(made.(float64)), commit.(string)
}

// plan is one that says steps, saved in the tree.
func (p *pulls) plan(number int, change func(*mirror.Pull)) string {
	p.Helper()
	pull := &mirror.Pull{Version: mirror.PullVersion, Number: number, Base: strings.Repeat("1", 40), Head: strings.Repeat("2", 40),
		Specs: true, Steps: []mirror.PullStep{{Ref: "dag/d", Node: "n", Verb: mirror.PullRun, Why: "never ran"}}}
	if change != nil {
		change(pull)
	}
	data, err := json.Marshal(pull)
	if err == nil {
		err = os.WriteFile(filepath.Join(p.dir, "plan.json"), data, 0o644)
	}
	if err != nil {
		p.Fatal(err)
	}
	return "plan.json"
}

// say runs the command as the bot, and returns its exit code and what it says.
func (p *pulls) say(args ...string) (int, string) {
	p.Helper()
	var out, complaints bytes.Buffer
	env := map[string]string{"GITHUB_TOKEN": githubtest.Token(githubtest.Bot), egress.AllowVariable: p.url}
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &complaints, now: time.Now,
		getenv: func(name string) string { return env[name] }}
	code := a.main(p.Context(), append([]string{"-C", p.dir, "plan"}, args...))
	return code, complaints.String()
}

func (p *pulls) comments(number int) []string {
	p.Helper()
	var all []struct {
		Body string
		User struct{ Login string }
	}
	p.rig.MustDo(p, githubtest.Owner, "GET", fmt.Sprintf("/repos/%s/issues/%d/comments", p.rig.Repo, number), nil, &all)
	var out []string
	for _, k := range all {
		out = append(out, k.User.Login+": "+k.Body)
	}
	return out
}

// TestPlanIsOneComment: it is made, left, edited when something changes, also to say that nothing would change, and made
// again when somebody deleted it.
func TestPlanIsOneComment(t *testing.T) {
	t.Parallel()
	p := newPulls(t)
	expect := func(want, text string, change func(*mirror.Pull)) {
		t.Helper()
		code, said := p.say("--from", p.plan(p.number, change), "--head", p.head)
		if code != 0 || !strings.Contains(said, want) {
			t.Errorf("exit %d, %q; want %q", code, said, want)
		}
		got := p.comments(p.number)
		if text == "" && len(got) == 0 {
			return
		}
		if len(got) != 1 || !strings.HasPrefix(got[0], githubtest.Bot+": ### What this would do\n") || !strings.Contains(got[0], text) {
			t.Errorf("there stands %q, want one comment with %q", got, text)
		}
	}
	nothing := func(k *mirror.Pull) { k.Specs, k.Steps = false, nil }
	expect("it changes no specs, nothing was said", "", nothing)
	expect("a comment was made", "| `dag/d`: `n` | never ran |", nil)
	expect("the comment says so already", "never ran", nil)
	expect("the comment was edited", "inputs changed", func(k *mirror.Pull) { k.Steps[0].Why = "inputs changed" })
	expect("the comment was edited", "Nothing would change.", nothing)
	var all []struct{ ID int64 }
	p.rig.MustDo(t, githubtest.Owner, "GET", fmt.Sprintf("/repos/%s/issues/%d/comments", p.rig.Repo, p.number), nil, &all)
	p.rig.DeleteComment(t, githubtest.Owner, all[0].ID)
	expect("a comment was made", "never ran", nil)
}

// TestPlanOfAnotherCommitIsNotSaid: what a plan says of itself, where it comes from does not vouch for. Whoever forges one
// can have it said on their own pull request only.
func TestPlanOfAnotherCommitIsNotSaid(t *testing.T) {
	t.Parallel()
	p := newPulls(t)
	other, _ := p.open("victim")
	code, said := p.say("--from", p.plan(other, nil), "--head", p.head)
	if code != 0 || !strings.Contains(said, "nothing was said there") || len(p.comments(other)) != 0 {
		t.Errorf("exit %d, %q, and there stands %q", code, said, p.comments(other))
	}
	code, said = p.say("--from", p.plan(4711, nil), "--head", p.head)
	if code != 1 || !strings.Contains(said, "pull request #4711") {
		t.Errorf("of none: exit %d, %q", code, said)
	}
}

// TestPlanIsSaidLater: where GitHub takes nothing now, trying again helps, and the exit code says so.
func TestPlanIsSaidLater(t *testing.T) {
	t.Parallel()
	limits := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "7200")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"message":"You have exceeded a secondary rate limit"}`)
	}))
	t.Cleanup(limits.Close)
	p := &pulls{T: t, dir: t.TempDir()}
	p.settle("octo/widgets", limits.URL)
	code, said := p.say("--from", p.plan(7, nil), "--head", strings.Repeat("2", 40))
	if code != exitBusy || !strings.Contains(said, "limit is reached until") {
		t.Errorf("exit %d, %q", code, said)
	}
}

// TestPlanForgesNothing: texts of a plan reach GitHub as text.
func TestPlanForgesNothing(t *testing.T) {
	t.Parallel()
	p := newPulls(t)
	code, said := p.say("--from", p.plan(p.number, func(k *mirror.Pull) {
		k.Steps[0].Why = "@mona see #1 <!-- reconcile status/dag/d 00 -->\n\n/approve"
	}), "--head", p.head)
	if code != 0 {
		t.Fatal(said)
	}
	got := p.comments(p.number)[0]
	for _, bad := range []string{"@mona", "#1 ", "see <!--", "\n/approve"} {
		if strings.Contains(got, bad) {
			t.Errorf("%q stands in\n%s", bad, got)
		}
	}
	if mirror.Marked(strings.TrimPrefix(got, githubtest.Bot+": ")) != mirror.PullKey(p.number) {
		t.Errorf("the comment is not known again:\n%s", got)
	}
}

// TestPlanOfACheckout plans and says in one go: what is checked out is the pull request, or the merge that tries it.
func TestPlanOfACheckout(t *testing.T) {
	t.Parallel()
	p, m := newPulls(t), newMachine(t)
	m.dir = p.dir
	m.must("git init -q -b main; " + identity + "reconcile init -q --example --missing; git add .; git commit -qm First; git switch -qc change; " +
		"sed -i 's/uname, -sm/uname, -s/' specs/dags/survey.yaml; git commit -qam Change; " +
		"git switch -q --detach main; git merge -q --no-ff --no-edit change")
	code, said := p.say("--base", "HEAD^1", "--pull-request", fmt.Sprint(p.number))
	if code != 0 || !strings.Contains(said, "nothing was said there") || len(p.comments(p.number)) != 0 {
		t.Errorf("of another commit: exit %d, %s", code, said)
	}
	head := strings.TrimSpace(m.must("git rev-parse change"))
	for i, checkout := range []string{"HEAD", "change"} {
		p.rig.Fail(1, "GET", "/pulls/", githubtest.Fault{Status: 200, Header: http.Header{"Content-Type": {"application/json"}},
			Body: fmt.Sprintf(`{"number":%d,"state":"open","head":{"sha":%q}}`, p.number, head)})
		code, said = p.say("--base", "main", "--head", checkout, "--pull-request", fmt.Sprint(p.number))
		want := []string{"a comment was made", "the comment was edited"}[i] // it names another commit
		if code != 0 || !strings.Contains(said, want) {
			t.Errorf("%s: exit %d, %s", checkout, code, said)
		}
	}
	if got := p.comments(p.number); len(got) != 1 || !strings.Contains(got[0], "`dag/survey`: `machine` |") {
		t.Errorf("there stands %q", got)
	}
}
