package commits

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/state"
)

// TestListedFolders: what differs from the branch is the same, whether the folders are read again or not, and as git finds
// it with an index of its own.
func TestListedFolders(t *testing.T) {
	t.Parallel()
	dirty := 0
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			top := t.TempDir()
			g := &listedGame{T: t, dir: top, rnd: rand.New(rand.NewPCG(seed, 7)), index: filepath.Join(top, ".git", "index")}
			if seed%2 == 1 { // the tree is a part of the repository
				g.prefix = "deep/tree/"
				g.dir = filepath.Join(top, "deep", "tree")
				g.write("specs/b.txt", "")
			}
			g.git("init", "-q", top)
			g.git("commit", "-q", "--allow-empty", "-m", "none")
			g.write("specs/a.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: a}\nspec: {title: a}\n")
			g.write(".gitignore", "/.reconcile/\n*.tmp\nscratch/\n")
			for range 12 {
				g.edit()
			}
			g.git("add", "-A")
			g.git("commit", "-q", "--allow-empty", "-m", "first")
			g.commits = 0
			for range 15 {
				for range 1 + g.rnd.IntN(4) {
					g.edit()
				}
				dirty += g.compare()
			}
		})
	}
	if dirty < 60 {
		t.Errorf("only %d files differed", dirty)
	}
}

// listedGame edits a tree in a repository at random.
type listedGame struct {
	*testing.T
	dir string
	rnd *rand.Rand
	n   int // edits

	prefix string // of the tree in the repository
	index  string

	commits int // after the first
}

var listedFolders = []string{"state/dags", "state/runs", "state/sessions", "state/clarifications", "state/memory", "state/facts",
	"state/archive", "state/github", "specs"}

func (g *listedGame) git(args ...string) string {
	g.Helper()
	return g.gitWith(g.index, args...)
}

func (g *listedGame) gitWith(index string, args ...string) string {
	g.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "gc.auto=0"}, args...)...)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "GIT_INDEX_FILE="+index)
	out, err := cmd.CombinedOutput()
	if err != nil {
		g.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}

func (g *listedGame) write(p, content string) {
	g.Helper()
	at := filepath.Join(g.dir, filepath.FromSlash(p))
	if os.MkdirAll(filepath.Dir(at), 0o777) != nil {
		return // a file is in the way
	}
	if err := os.WriteFile(at, []byte(content), 0o666); err != nil && !strings.Contains(err.Error(), "directory") {
		g.Fatal(err)
	}
}

// link replaces a file by a link to one at the top of the tree.
func (g *listedGame) link(p string) {
	g.write("target.yaml", "{}")
	g.write(p, "") // makes its folder
	at := filepath.Join(g.dir, filepath.FromSlash(p))
	_ = os.Remove(at)
	_ = os.Symlink(strings.Repeat("../", strings.Count(p, "/"))+"target.yaml", at)
}

// edit changes one file, or what git knows.
func (g *listedGame) edit() {
	g.n++
	pick := func(of ...string) string { return of[g.rnd.IntN(len(of))] }
	p := pick(listedFolders...) + "/"
	inSpecs := p == "specs/"
	if strings.HasPrefix(p, "state/runs") {
		p += pick("dags/a/", "dags/b/", "dags/a/deep/", "sessions/a/", "dags/")
	}
	switch g.rnd.IntN(12) {
	case 0:
		p += pick("sub/", "scratch/")
	case 1:
		if !strings.HasPrefix(p, "state/archive/") && !inSpecs { // there it would be an error of the scan
			p += "a.json/"
		}
	}
	p += pick("a.json", "b.json", "c.json", "issue-1.json", "notes.txt", "x.tmp", ".hidden.json", "a.json~", "b.json.lock", "é.json")
	switch g.rnd.IntN(12) {
	case 0:
		_ = os.RemoveAll(filepath.Join(g.dir, filepath.FromSlash(p)))
	case 1:
		_ = os.RemoveAll(filepath.Join(g.dir, filepath.FromSlash(filepath.Dir(p))))
	case 2:
		_ = os.Chmod(filepath.Join(g.dir, filepath.FromSlash(p)), 0o755)
	case 3:
		g.git("add", "-A")
	case 4:
		g.git("add", "-A")
		g.git("commit", "-q", "--allow-empty", "-m", "some")
		g.commits++
	case 5:
		if g.commits > 0 {
			g.git("reset", "-q", "--soft", "HEAD~1")
			g.commits--
		}
	case 6:
		g.git("add", "-A", "-N")
	case 7:
		if inSpecs { // elsewhere links are errors of the scan
			g.link(p)
		}
	default:
		g.write(p, pick("{}", "{\"a\": 1}", "{\"b\": 2}"))
	}
}

// compare compares the three, and returns how many files differ.
func (g *listedGame) compare() int {
	g.Helper()
	open := func() *state.Store {
		s, err := state.Open(g.dir, state.Options{Kinds: controllers.Schemas(), Now: time.Now, FileNow: time.Now, Build: "test"})
		if err != nil {
			g.Fatal(err)
		}
		return s
	}
	s := open()
	if _, err := s.Load(g.Context()); err != nil {
		g.Fatal(err)
	}
	if err := s.Settle(state.Summary{}); err != nil {
		g.Fatal(err)
	}
	s.Close()
	s = open()
	defer s.Close()
	if _, ok := s.Fresh(); !ok {
		g.Fatal("the tree is not as it was settled")
	}
	l := s.Listing()
	r, err := gitrepo.OpenToCommit(g.dir)
	if err != nil || l == nil {
		g.Fatal(err, l)
	}
	read, err := r.Dirty(g.Context(), "", listedFolders)
	if err != nil {
		g.Fatal(err)
	}
	listed, err := r.DirtyListed(g.Context(), "", listedFolders, l.Folder)
	if err != nil {
		g.Fatal(err)
	}
	want := g.byGit()
	if !slices.Equal(read, want) || !slices.Equal(listed, want) {
		g.Fatalf("after %d edits:\nread   %q\nlisted %q\ngit    %q", g.n, read, listed, want)
	}
	return len(want)
}

// byGit lists what git add would change in an index that is as the branch.
func (g *listedGame) byGit() (out []string) {
	g.gitWith(g.index+"-2", "read-tree", "HEAD")
	g.gitWith(g.index+"-2", "add", "-A", ".")
	all := g.gitWith(g.index+"-2", "diff", "--cached", "--name-only", "--no-renames", "-z", "HEAD")
	for p := range strings.SplitSeq(strings.TrimSuffix(all, "\x00"), "\x00") {
		p := strings.TrimPrefix(p, g.prefix)
		ours := slices.ContainsFunc(listedFolders, func(dir string) bool { return strings.HasPrefix(p, dir+"/") })
		parts := strings.Split(p, "/")
		if ours && !slices.ContainsFunc(parts, func(name string) bool { return name[0] == '.' || strings.HasSuffix(name, ".lock") }) {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}
