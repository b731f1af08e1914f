package mirroring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/rogpeppe/go-internal/txtar"
	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/derive"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/slash"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// talk is GitHub in memory with people who write.
type talk struct {
	*world
	reactions map[int64][]string
	team      []string // logins in acme/core
	writers   []string // logins that may write to the repository
	noAsking  bool     // the token may not ask who may what
	deleted   map[int64]bool
	watch     *Watch // that processes share, as the looks of one watcher do
	listed    []int  // issues whose comments were listed; 0 for those of all
	more      string // what is shown besides
}

func newTalk() *talk {
	return &talk{world: newWorld(42, 43), reactions: map[int64][]string{}, deleted: map[int64]bool{}}
}

// write has somebody write a comment, and returns its id.
func (k *talk) write(issue int, login, role, body string) int64 {
	k.clock = k.clock.Add(time.Second)
	c := k.say(issue, github.User{Login: login, ID: int64(len(login)) + 10, Bot: strings.HasSuffix(login, "[bot]")}, body)
	c.Association = role
	return c.ID
}

func (k *talk) Comments(ctx context.Context, issue int, since time.Time) ([]github.Comment, error) {
	k.listed = append(k.listed, issue)
	all, err := k.world.Comments(ctx, issue, since)
	return slices.DeleteFunc(all, func(c github.Comment) bool { return c.Updated.Before(since) || k.deleted[c.ID] }), err
}

func (k *talk) RecentComments(_ context.Context, since time.Time) (out []github.Comment, err error) {
	k.listed = append(k.listed, 0)
	err = k.call(false, func() error {
		for _, id := range slices.Sorted(maps.Keys(k.comments)) {
			if c := k.comments[id]; !k.deleted[id] && !c.Updated.Before(since) {
				out = append(out, *c)
			}
		}
		return nil
	}, "recent comments")
	return out, err
}

func (k *talk) React(_ context.Context, id int64, content string) error {
	return k.call(true, func() error {
		if k.deleted[id] {
			return github.ErrGone
		}
		if !slices.Contains(k.reactions[id], content) {
			k.reactions[id] = append(k.reactions[id], content)
		}
		return nil
	}, "react %s to %d", content, id)
}

func (k *talk) InTeam(_ context.Context, org, team, login string) (is bool, err error) {
	err = k.call(false, func() error {
		is = org+"/"+team == "acme/core" && slices.Contains(k.team, login)
		return nil
	}, "is %s in %s/%s", login, org, team)
	return is, err
}

func (k *talk) Permission(_ context.Context, login string) (may string, err error) {
	err = k.call(false, func() error {
		switch {
		case k.noAsking:
			return github.ErrForbidden
		case slices.Contains(k.writers, login):
			may = "write"
		default:
			may = "read" // as everybody may in a public repository
		}
		return nil
	}, "what may %s do", login)
	return may, err
}

const talkTree = `
-- reconcile.yaml --
apiVersion: reconcile.dev/v1alpha1
kind: Settings
metadata: {name: settings}
spec: {github: {repo: octo/widgets, commands: {allow: [acme/core]}}}
-- specs/agents/engineer.yaml --
apiVersion: reconcile.dev/v1alpha1
kind: Agent
metadata: {name: engineer}
spec: {role: engineer, canClarify: [ada], runner: {command: {argv: [run]}}}
-- specs/agents/ada.yaml --
apiVersion: reconcile.dev/v1alpha1
kind: Agent
metadata: {name: ada}
spec: {role: reviewer, runner: {human: {}}}
-- specs/sessions/health.yaml --
apiVersion: reconcile.dev/v1alpha1
kind: Session
metadata: {name: health}
spec: {title: Health, issue: 42}
-- specs/dags/checks.yaml --
apiVersion: reconcile.dev/v1alpha1
kind: DAG
metadata: {name: checks}
spec: {session: health, nodes: [{name: build, run: [make]}, {name: review, agent: ada, prompt: Look.}]}
-- specs/clarificationrequests/release.yaml --
apiVersion: reconcile.dev/v1alpha1
kind: ClarificationRequest
metadata: {name: release}
spec: {issue: 42, from: engineer, to: ada, topic: Release, question: "When?", blocking: true}
`

// shownOn42 is what the mirror shows before anybody writes.
var shownOn42 = []mirror.Issue{{Number: 42, Comments: []mirror.Comment{
	{Key: "status/dag/checks", Body: "It stands."}, {Key: "round/CLR-42-001/1", Body: "When?"}}}}

// newTree makes a tree on disk whose issue 42 is mirrored.
func newTree(t *testing.T, k *talk) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(talkTree)).Files {
		p := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, f.Data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := run(t, dir, k.world, shownOn42); err != nil {
		t.Fatal(err)
	}
	return dir
}

// process is one process: it reads what is new, a run decides, and it tells what became of it. write may fail.
func process(t *testing.T, dir string, k *talk, write func(p string, do func() error) error) error {
	t.Helper()
	store, err := state.Open(dir, state.Options{Kinds: controllers.Schemas(), Now: time.Now, FileNow: time.Now, Agent: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // everything is on disk
	in := &Inbox{
		Mirror: &Mirror{Remote: k, Records: NewRecords(store, testRepo, false, func(s string) { t.Error(s) }),
			Now: func() time.Time { return k.clock }},
		Client: k, Known: memory.Source{}, Watch: k.watch,
		Write: func(s derive.Spec) error {
			return write(s.Path, func() error { return writeNew(store, s) })
		},
		Show: func(_ *state.Tree, v slash.View) string {
			return fmt.Sprintf("It is shown: %s %v", v.Verb, v.Objects) + k.more
		},
	}
	if in.Mirror.Keys, err = in.Mirror.Records.Keys(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	in.Commands = store.Settings().GitHub.Commands
	in.Tree = func(ctx context.Context) (*state.Tree, error) {
		tree, err := store.Load(ctx)
		if err != nil {
			return nil, err
		}
		return settle.Tree(tree, k.clock, nil).Tree, nil
	}
	heard, err := in.Read(t.Context())
	if err == nil && heard.Later == nil {
		heard, err = in.Answer(t.Context())
	}
	for _, n := range heard.Notes {
		t.Log(n)
	}
	return errors.Join(err, heard.Later)
}

func writeNew(store *state.Store, s derive.Spec) error {
	src, err := json.Marshal(map[string]any{"apiVersion": schemas.APIVersion, "kind": s.Ref.Kind,
		"metadata": schemas.Metadata{Name: s.Ref.Name}, "spec": s.Spec})
	if err != nil {
		return err
	}
	was, err := store.PutNew(s.Path, append(src, '\n'))
	if err == nil && was != nil && string(was) != string(src)+"\n" {
		return fmt.Errorf("%s says something else: %s", s.Path, was)
	}
	return err
}

func always(_ string, do func() error) error { return do() }

// heardFiles are the specs that came of comments, by path.
func heardFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(filepath.Join(dir, "specs"), func(p string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasPrefix(d.Name(), "gh-") {
			return err
		}
		data, err := os.ReadFile(p)
		rel, _ := filepath.Rel(dir, p)
		out[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// replies are the replies of ours, by the comment that they answer; each stands there once.
func (k *talk) replies(t *testing.T, dir string) map[string]string {
	t.Helper()
	keys := keysOf(t, dir)
	out := map[string]string{}
	for _, id := range slices.Sorted(maps.Keys(k.comments)) {
		c := k.comments[id]
		key, ok := keys.Open(c.Body)
		if !ok || !strings.HasPrefix(key, "reply/") {
			continue
		}
		if out[key] != "" {
			t.Errorf("%s stands there twice", key)
		}
		out[key], _, _ = strings.Cut(c.Body, "\n")
	}
	return out
}

// people write what the tests of the inbox read: by id of the comment, what becomes of it.
func (k *talk) people() map[int64]string {
	k.team = []string{"tess"}
	return map[int64]string{
		k.write(42, "octo", "OWNER", "/hold build until Monday\n/remember the port is 5432"): "eyes +1",
		k.write(42, "mallory", "NONE", "/cancel"):                                            "confused",
		k.write(42, "mallory", "NONE", "Nice work."):                                         "",
		k.write(42, "ci[bot]", "MEMBER", "/cancel"):                                          "",
		k.write(42, "octo", "MEMBER", "/retry nothing"):                                      "confused",
		k.write(42, "tess", "NONE", "/status"):                                               "+1",
		k.write(42, "octo", "OWNER", "On Monday."):                                           "eyes +1",
		k.write(42, "octo", "OWNER", "Nobody asks any more."):                                "",
		k.write(42, "octo", "OWNER", "/resolve clear\n/explain"):                             "eyes +1",
		k.write(43, "octo", "OWNER", "/cancel"):                                              "", // it is not mirrored
	}
}

// few are people who write one comment of each sort.
func (k *talk) few() map[int64]string {
	return map[int64]string{
		k.write(42, "octo", "OWNER", "/hold build\n/remember the port is 5432\n/status"): "eyes +1",
		k.write(42, "mallory", "NONE", "/cancel"):                                        "confused",
		k.write(42, "octo", "OWNER", "On Monday."):                                       "eyes +1",
	}
}

// checkTold checks the receipts, and that one more process changes nothing and writes nothing to GitHub.
func checkTold(t *testing.T, dir string, k *talk, want map[int64]string) {
	t.Helper()
	for id, w := range want {
		if got := strings.Join(k.reactions[id], " "); got != w {
			t.Errorf("reactions to %q: %q, want %q", k.comments[id].Body, got, w)
		}
	}
	calls := len(k.calls)
	before := treeText(t, dir)
	if err := process(t, dir, k, always); err != nil {
		t.Error(err)
	}
	if after := treeText(t, dir); after != before || len(k.calls) != calls {
		t.Errorf("a process without news: calls %q", k.calls[calls:])
	}
}

func treeFile(t *testing.T, dir, p string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, p))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// treeText is every file of specs and of the mirror.
func treeText(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	for _, folder := range []string{"specs", "state/github"} {
		err := filepath.WalkDir(filepath.Join(dir, folder), func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(p)
			fmt.Fprintf(&b, "%s: %s\n", p, data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func TestInbox(t *testing.T) {
	t.Parallel()
	k := newTalk()
	k.write(42, "octo", "OWNER", "/cancel was for another program, before the issue was mirrored")
	dir := newTree(t, k)
	want := k.people()
	if err := process(t, dir, k, always); err != nil {
		t.Fatal(err)
	}
	checkTold(t, dir, k, want)
	files := heardFiles(t, dir)
	var names []string
	for p, src := range files {
		kind, _, _ := strings.Cut(strings.TrimPrefix(p, "specs/"), "/")
		names = append(names, kind)
		if !strings.Contains(src, "octo") {
			t.Errorf("%s does not say who: %s", p, src)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"actions", "observations", "replies", "replies"}) {
		t.Errorf("files %q", slices.Sorted(maps.Keys(files)))
	}
	var said []string
	for _, r := range k.replies(t, dir) {
		said = append(said, r)
	}
	slices.Sort(said)
	wantSaid := []string{
		"It is shown: explain [clarificationrequest/release dag/checks session/health]",
		"It is shown: status [clarificationrequest/release dag/checks session/health]",
		"Nothing of this was done. `/retry nothing`: there is no node `nothing` here; there are `build`, `review`.",
		"Nothing of this was done. mallory may not give commands here: github.commands in `reconcile.yaml` says who may. " +
			"GitHub does not show a membership that is private: who has one counts if he may write to the repository, or is listed there.",
	}
	if !slices.Equal(said, wantSaid) {
		t.Errorf("said\n%s\nwant\n%s", strings.Join(said, "\n"), strings.Join(wantSaid, "\n"))
	}
}

// TestInboxEditedAndDeleted: what became of a comment stands, whatever becomes of the comment.
// TestInboxPrivateMember: GitHub tells of members whose membership is private that they are strangers. What they may do in
// the repository says who they are, where the token may ask.
func TestInboxPrivateMember(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		writers  []string
		noAsking bool
		want     string // the reactions
		asked    int
	}{
		"may write":             {[]string{"priya"}, false, "eyes +1", 1},
		"may not write":         {nil, false, "confused", 1},
		"the token may not ask": {[]string{"priya"}, true, "confused", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTalk()
			dir := newTree(t, k)
			k.writers, k.noAsking = c.writers, c.noAsking
			asked := 0
			k.fail = func(_ int, call string, _ bool) (before, after error) {
				if strings.HasPrefix(call, "what may ") {
					asked++
				}
				return nil, nil
			}
			hold := k.write(42, "priya", "CONTRIBUTOR", "/hold build")
			k.write(42, "priya", "CONTRIBUTOR", "/explain") // the same person is asked for once
			if err := process(t, dir, k, always); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(k.reactions[hold], " "); got != c.want || asked != c.asked {
				t.Errorf("reactions %q, want %q; asked %d times, want %d", got, c.want, asked, c.asked)
			}
		})
	}
}

func TestInboxEditedAndDeleted(t *testing.T) {
	t.Parallel()
	k := newTalk()
	dir := newTree(t, k)
	aside := k.write(42, "octo", "OWNER", "Two questions: is it nice? Is it good?")
	edited, gone := k.write(42, "octo", "OWNER", "/hold build"), k.write(42, "octo", "OWNER", "/hold review")
	k.comments[aside].Body = "/explain" // before it was read
	k.comments[aside].Updated = k.comments[aside].Created.Add(2 * time.Second)
	if err := process(t, dir, k, always); err != nil {
		t.Fatal(err)
	}
	files := heardFiles(t, dir)
	if r := strings.Join(k.reactions[aside], " "); r != "confused" || len(files) != 2 {
		t.Fatalf("edited before it was read: %q, %d files", r, len(files))
	}
	k.clock = k.clock.Add(time.Minute)
	k.comments[edited].Body, k.comments[edited].Updated = "/cancel", k.clock
	k.deleted[gone] = true
	checkTold(t, dir, k, map[int64]string{edited: "eyes +1", gone: "eyes +1"})
	if !maps.Equal(heardFiles(t, dir), files) {
		t.Error("the files changed")
	}
	// One that is deleted while it is handled has nobody who waits.
	last := k.write(42, "octo", "OWNER", "/retry nothing")
	k.fail = func(_ int, call string, _ bool) (error, error) {
		if strings.HasPrefix(call, "react") {
			k.deleted[last] = true
		}
		return nil, nil
	}
	if err := process(t, dir, k, always); err != nil {
		t.Fatal(err)
	}
	k.fail = nil
	checkTold(t, dir, k, map[int64]string{last: ""})
}

// TestInboxKilled: killed at any call to GitHub, before it takes effect or before its answer comes, and at any file that
// it writes, each comment acts once, and each receipt arrives.
func TestInboxKilled(t *testing.T) {
	t.Parallel()
	k := newTalk()
	dir := newTree(t, k)
	want := k.few()
	if err := process(t, dir, k, always); err != nil {
		t.Fatal(err)
	}
	files, replies := heardFiles(t, dir), k.replies(t, dir)
	for name, after := range map[string]bool{"before": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := 1; killedAt(t, n, after, want, files, replies); n++ {
			}
		})
	}
}

// killedAt kills a process at its n-th step, and goes on with the next one; false if there are less than n steps.
func killedAt(t *testing.T, n int, after bool, want map[int64]string, files, replies map[string]string) bool {
	t.Helper()
	k := newTalk()
	dir := newTree(t, k)
	k.few()
	steps, killed := 0, false
	step := func() (before, later error) {
		if steps++; steps != n {
			return nil, nil
		}
		killed = true
		if after {
			return nil, errKilled
		}
		return errKilled, nil
	}
	k.fail = func(int, string, bool) (error, error) { return step() }
	write := func(_ string, do func() error) error {
		before, later := step()
		if before != nil {
			return before
		}
		return errors.Join(do(), later)
	}
	err := process(t, dir, k, write)
	k.fail = nil
	if killed != errors.Is(err, errKilled) {
		t.Fatalf("step %d: killed %v, %v", n, killed, err)
	}
	if err := process(t, dir, k, always); err != nil {
		t.Fatalf("step %d: %v", n, err)
	}
	checkTold(t, dir, k, want)
	if got := heardFiles(t, dir); !maps.Equal(got, files) {
		t.Errorf("step %d (after: %v): files %q, want %q", n, after, got, files)
	}
	if got := k.replies(t, dir); !maps.Equal(got, replies) {
		t.Errorf("step %d (after: %v): replies %q, want %q", n, after, got, replies)
	}
	return killed
}

// TestInboxLater: a limit leaves the rest to the next run, and loses nothing.
func TestInboxLater(t *testing.T) {
	t.Parallel()
	const apart = 3
	for n, reached := 1, true; reached; n += apart {
		k := newTalk()
		dir := newTree(t, k)
		want := k.few()
		calls := 0
		k.fail = func(int, string, bool) (error, error) {
			if calls++; calls >= n {
				return &github.Limited{Until: k.clock.Add(time.Hour)}, nil
			}
			return nil, nil
		}
		err := process(t, dir, k, always)
		k.fail = nil
		var limited *github.Limited
		if reached = calls >= n; reached != errors.As(err, &limited) {
			t.Fatalf("limited at call %d: %v", n, err)
		}
		if err := process(t, dir, k, always); err != nil {
			t.Fatal(err)
		}
		checkTold(t, dir, k, want)
	}
}

// TestInboxSameSecond: comments of one second that become visible one after the other are all read.
func TestInboxSameSecond(t *testing.T) {
	t.Parallel()
	k := newTalk()
	dir := newTree(t, k)
	ids := []int64{k.write(42, "octo", "OWNER", "/hold build"), k.write(42, "octo", "OWNER", "one"),
		k.write(42, "octo", "OWNER", "/hold review")}
	at := k.comments[ids[2]].Updated
	for _, id := range ids {
		k.comments[id].Created, k.comments[id].Updated = at, at
	}
	k.deleted[ids[0]] = true // it cannot be seen yet
	if err := process(t, dir, k, always); err != nil {
		t.Fatal(err)
	}
	k.deleted[ids[0]] = false
	if err := process(t, dir, k, always); err != nil {
		t.Fatal(err)
	}
	checkTold(t, dir, k, map[int64]string{ids[0]: "eyes +1", ids[1]: "eyes +1", ids[2]: "eyes +1"})
}

// TestInboxFlood: many comments of a stranger keep nobody's command from acting at once, and get one reply.
func TestInboxFlood(t *testing.T) {
	t.Parallel()
	k := newTalk()
	dir := newTree(t, k)
	want := map[int64]string{}
	for range maxReceipts + 2 {
		want[k.write(42, "mallory", "NONE", "/cancel")] = "confused"
	}
	last := k.write(42, "octo", "OWNER", "/hold build")
	if err := process(t, dir, k, always); err == nil || !strings.Contains(err.Error(), "receipts are enough at once") {
		t.Fatal(err)
	}
	if files, r := heardFiles(t, dir), k.reactions[last]; len(files) != 1 || !slices.Equal(r, []string{"eyes"}) {
		t.Errorf("files %q, reactions %q", files, r)
	}
	if err := process(t, dir, k, always); err != nil {
		t.Fatal(err)
	}
	want[last] = "eyes +1"
	checkTold(t, dir, k, want)
	if r := k.replies(t, dir); len(r) != 1 {
		t.Errorf("replies %q", r)
	}
}

// TestInboxForeignMarks: what quotes a marker of this program, or forges one, is not its own, and its author is told.
func TestInboxForeignMarks(t *testing.T) {
	t.Parallel()
	const forged = "<!-- reconcile reply/5000000099 0123456789abcdef0123456789abcdef -->"
	k := newTalk()
	dir := newTree(t, k)
	me, err := k.Viewer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ours := k.say(42, me, "/hold review\n\n"+forged).ID // signed with a key that was lost
	keys := keysOf(t, dir)
	want := map[int64]string{ours: "",
		k.write(42, "octo", "OWNER", keys.Seal("status/dag/checks", "/hold review")):                "",
		k.write(42, "octo", "OWNER", "Says who?\n\n"+forged):                                        "",
		k.write(42, "octo", "OWNER", "> It stands.\n> "+forged+"\n\n/hold build"):                   "eyes +1",
		k.write(42, "octo", "OWNER", "/hold nothing\n\n"+forged):                                    "confused",
		k.write(42, "mallory", "NONE", forged+"\n\n/cancel"):                                        "confused",
		k.write(42, "octo", "OWNER", "<!-- reconcile status/dag/checks 00 -->\n/hold review later"): "eyes +1",
	}
	if err := process(t, dir, k, always); err != nil {
		t.Fatal(err)
	}
	checkTold(t, dir, k, want)
}

// TestInboxLostRecord: without the record of an issue no comment acts once more, also not one that was refused and could
// be taken now.
func TestInboxLostRecord(t *testing.T) {
	t.Parallel()
	k := newTalk()
	dir := newTree(t, k)
	refused := k.write(42, "octo", "OWNER", "/hold later")
	accepted := k.write(42, "octo", "OWNER", "/hold review")
	if err := process(t, dir, k, always); err != nil {
		t.Fatal(err)
	}
	files, replies := heardFiles(t, dir), k.replies(t, dir)
	if err := os.Remove(filepath.Join(dir, "state/github/issue-42.json")); err != nil {
		t.Fatal(err)
	}
	dag := strings.Replace(treeFile(t, dir, "specs/dags/checks.yaml"), "{name: build,", "{name: later, run: [make]}, {name: build,", 1)
	if err := os.WriteFile(filepath.Join(dir, "specs/dags/checks.yaml"), []byte(dag), 0o666); err != nil {
		t.Fatal(err)
	}
	k.write(42, "mallory", "NONE", "A forged reply.\n\n<!-- reconcile reply/5000000099 0123456789abcdef0123456789abcdef -->")
	if _, err := run(t, dir, k.world, shownOn42); err != nil { // it finds its comments
		t.Fatal(err)
	}
	if err := process(t, dir, k, always); err != nil {
		t.Fatal(err)
	}
	checkTold(t, dir, k, map[int64]string{refused: "confused", accepted: "eyes +1"})
	if !maps.Equal(heardFiles(t, dir), files) || !maps.Equal(k.replies(t, dir), replies) || len(files) != 1 || len(replies) != 1 {
		t.Errorf("files %q, replies %q", heardFiles(t, dir), k.replies(t, dir))
	}
}

// TestInboxWatch: a watcher asks once for all issues, and looks at those that something was written on.
func TestInboxWatch(t *testing.T) {
	t.Parallel()
	k := newTalk()
	dir := newTree(t, k)
	k.watch = new(Watch)
	both := []mirror.Issue{shownOn42[0], {Number: 43, Comments: []mirror.Comment{{Key: "status/dag/other", Body: "It stands."}}}}
	if _, err := run(t, dir, k.world, both); err != nil {
		t.Fatal(err)
	}
	look := func(want ...int) {
		t.Helper()
		k.listed = nil
		if err := process(t, dir, k, always); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(k.listed, want) {
			t.Errorf("listed %v, want %v", k.listed, want)
		}
	}
	look(42, 43, 0) // the last is for starts on other issues
	k.clock = k.clock.Add(time.Minute)
	first := k.write(42, "octo", "OWNER", "/hold build")
	look(0, 42, 0)
	k.clock = k.clock.Add(time.Minute)
	k.write(44, "octo", "OWNER", "of another issue")
	look(0, 0)
	look(0, 0)
	second := k.write(43, "octo", "OWNER", "/clarify")
	look(0, 43, 0, 43) // before it says something, the mirror looks whether it stands there
	if a, b := k.reactions[first], k.reactions[second]; !slices.Equal(a, []string{"eyes", "+1"}) || !slices.Equal(b, []string{"+1"}) {
		t.Errorf("reactions %q and %q", a, b)
	}
	k.clock = k.clock.Add(time.Minute)
	k.fail = func(_ int, call string, _ bool) (error, error) {
		if call == "recent comments" {
			return github.ErrServer, nil
		}
		return nil, nil
	}
	third := k.write(42, "octo", "OWNER", "/hold review")
	if err := process(t, dir, k, always); !errors.Is(err, github.ErrServer) || len(k.reactions[third]) > 0 {
		t.Errorf("%v, reactions %q", err, k.reactions[third])
	}
	k.fail = nil
	look(0, 42, 43, 0) // on which there is news: our reply
	look(0, 0)
}

// TestInboxApps: no app gives a command, whatever GitHub calls it and whoever lists it, and none is answered: two programs
// that read each other would never end.
func TestInboxApps(t *testing.T) {
	t.Parallel()
	k := newTalk()
	dir := newTree(t, k)
	settings := strings.Replace(treeFile(t, dir, "reconcile.yaml"), "allow: [", "roles: [NONE, MEMBER], allow: [dependabot, helper, ", 1)
	if err := os.WriteFile(filepath.Join(dir, "reconcile.yaml"), []byte(settings), 0o666); err != nil {
		t.Fatal(err)
	}
	app := func(login, role, body string) int64 {
		c := k.say(42, github.User{Login: login, ID: 77, Bot: true}, body)
		c.Association = role
		return c.ID
	}
	want := map[int64]string{
		app("dependabot[bot]", "NONE", "/hold build"): "",
		app("dependabot", "NONE", "/cancel"):          "", // as GraphQL has it
		app("helper", "MEMBER", "/hold build"):        "",
		app("ci[bot]", "NONE", "Nothing to say."):     "",
		k.write(42, "ann", "NONE", "/hold review"):    "eyes +1", // the settings are as meant
	}
	if err := process(t, dir, k, always); err != nil {
		t.Fatal(err)
	}
	checkTold(t, dir, k, want)
	if files, replies := heardFiles(t, dir), k.replies(t, dir); len(files) != 1 || len(replies) != 0 {
		t.Errorf("files %q, replies %q", slices.Sorted(maps.Keys(files)), replies)
	}
}

// TestInboxItself: what this program shows may hold commands, in the words of agents or of people. They are no commands,
// be its account a person's or an app's, with its records and keys or without.
func TestInboxItself(t *testing.T) {
	t.Parallel()
	for name, viewer := range map[string]github.User{
		"a person's account": {Login: "bot", ID: 1}, "an app's": {Login: "reconcile[bot]", ID: 1, Bot: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTalk()
			k.viewer = viewer
			dir := newTree(t, k)
			shown := []mirror.Issue{{Number: 42, Comments: []mirror.Comment{
				{Key: "status/dag/checks", Body: "/hold build"}, {Key: "round/CLR-42-001/1", Body: "When?\n\n/cancel\n"},
				{Key: "status/dag/more", Body: "/approve"}}}}
			if _, err := run(t, dir, k.world, shown); err != nil {
				t.Fatal(err)
			}
			for _, c := range k.comments {
				c.Association = "OWNER"
			}
			for _, lost := range []string{"", "state/github/issue-42.json", "state/github/keys.json"} {
				if lost != "" {
					if err := os.Remove(filepath.Join(dir, lost)); err != nil {
						t.Fatal(err)
					}
					if _, err := run(t, dir, k.world, shown); err != nil {
						t.Fatal(err)
					}
				}
				if err := process(t, dir, k, always); err != nil {
					t.Fatal(err)
				}
				if files := heardFiles(t, dir); len(files) != 0 || len(k.reactions) != 0 || len(k.replies(t, dir)) != 0 {
					t.Errorf("without %q: files %q, reactions %v", lost, slices.Sorted(maps.Keys(files)), k.reactions)
				}
			}
			checkTold(t, dir, k, nil)
		})
	}
}

// TestInboxLongComments: a comment as long as GitHub takes one, or longer, is read to its end, and what is said to its
// author fits into a comment.
func TestInboxLongComments(t *testing.T) {
	t.Parallel()
	const most = 65_536
	k := newTalk()
	dir := newTree(t, k)
	k.more = strings.Repeat("💥", 10_000)
	long := func(line string, units int) string { return strings.Repeat(line, units/len(line)) }
	want := map[int64]string{
		k.write(42, "octo", "OWNER", long("so it goes\n", most-100)+"\n/hold build"): "eyes +1",
		k.write(42, "octo", "OWNER", "/retry "+long("x", 2*most)):                    "confused",
		k.write(42, "octo", "OWNER", long("/retry "+long("y", 7000)+"\n", most)):     "confused",
		k.write(42, "octo", "OWNER", strings.Repeat("/explain\n", 9)):                "+1",
		k.write(42, "mallory", "NONE", long("/cancel 💥\n", 2*most)):                  "confused",
	}
	if err := process(t, dir, k, always); err != nil {
		t.Fatal(err)
	}
	checkTold(t, dir, k, want)
	for id, c := range k.comments {
		if n := len(utf16.Encode([]rune(c.Body))); sameUser(c.Author, k.viewer) && n > most {
			t.Errorf("comment %d of ours has %d characters", id, n)
		}
	}
	if files := heardFiles(t, dir); len(files) != 1 {
		t.Errorf("files %q", slices.Sorted(maps.Keys(files)))
	}
}
