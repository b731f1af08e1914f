package gitrepo

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"
)

// TestPicksAsGit asks the same of both backends: of histories that were made at random, with files that become folders,
// renames, executables and links.
func TestPicksAsGit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	here := f.open()
	byGit := f.byCommand()
	random := rand.New(rand.NewPCG(25112401, 1))
	decided := 0
	for round := range 12 {
		base := f.git("rev-parse", "HEAD")
		theirs := f.scramble(random, "theirs", round)
		f.git("checkout", "-q", "-B", "ours", base)
		onto := f.scramble(random, "ours", round)
		pick := Pick{Commit: theirs, Base: base, Onto: onto, When: noon, Author: "A <a@b>", Sign: "never"}
		got, err := here.PickOnto(t.Context(), pick)
		want, err2 := byGit.PickOnto(t.Context(), pick)
		if err != nil || err2 != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d: %+v, %v; git: %+v, %v\n%s\n%s", round, got, err, want, err2,
				f.git("diff", "--name-status", base, theirs), f.git("diff", "--name-status", base, onto))
		}
		s := newObjectStore(here.layout)
		if _, err := here.native.(*native).pick(t.Context(), s, pick); err == nil {
			decided++
		}
		s.close()
		f.ask(here, byGit, base, theirs, onto)
		f.git("checkout", "-q", "-B", "main", onto)
	}
	if decided < 3 {
		t.Errorf("only %d of the picks were made without git", decided)
	}
}

// scramble makes a commit of random changes on a branch, whose message names the round.
func (f *fixture) scramble(random *rand.Rand, branch string, round int) string {
	f.Helper()
	f.git("checkout", "-q", "-B", branch)
	for range 1 + random.IntN(3) {
		name := fmt.Sprintf("%c/%c%d", 'a'+random.IntN(3), 'a'+random.IntN(3), random.IntN(3))
		at := f.path(name)
		switch random.IntN(8) {
		case 0:
			_ = os.RemoveAll(at)
		case 1:
			_ = os.RemoveAll(at)
			f.write(name+"/inside", fmt.Sprintf("%d\n", random.IntN(3)))
		case 2:
			_, _ = f.try("mv", name, fmt.Sprintf("a/moved%d", random.IntN(9)))
		case 3:
			_ = os.RemoveAll(at)
			_ = os.MkdirAll(filepath.Dir(at), 0o777)
			if err := os.Symlink("somewhere", at); err != nil {
				f.Fatal(err)
			}
		default:
			_ = os.RemoveAll(at)
			f.write(name, fmt.Sprintf("%s %d\n1\n2\n3\n4\n", branch, random.IntN(5)))
			if err := os.Chmod(at, 0o666|os.FileMode(random.IntN(2)*0o111)); err != nil {
				f.Fatal(err)
			}
		}
	}
	f.git("add", "--all")
	f.git("commit", "-q", "--allow-empty", "--author", "Grace H. <g@h>", "-m", fmt.Sprintf("%s %d\nof more\n\nReconcile-Run: %d\n", branch, round, round))
	return f.git("rev-parse", "HEAD")
}

// ask compares what both backends say of commits.
func (f *fixture) ask(here, byGit *Repo, base, theirs, onto string) {
	f.Helper()
	say := func(r *Repo) []any {
		files, err := r.ChangedFiles(f.Context(), theirs, onto)
		log, err2 := r.Between(f.Context(), base, onto, 10)
		author, err3 := r.Author(f.Context(), theirs)
		same, err4 := r.SameTree(f.Context(), theirs, onto)
		open, err5 := r.Uncommitted(f.Context(), theirs, []string{"README.md", "a/a0", "b/b1", "none"}, nil)
		for i := range log {
			log[i].Body = firstLine(log[i].Body)
		}
		out := []any{files, log, author, same, open, err, err2, err3, err4, err5}
		for _, name := range append(files, "none", "src") {
			data, err := r.Blob(f.Context(), onto, name)
			out = append(out, string(data), err != nil)
		}
		return out
	}
	if a, b := say(here), say(byGit); fmt.Sprint(a) != fmt.Sprint(b) {
		f.Fatalf("%v\ngit: %v", a, b)
	}
}

// TestCapturesAsGit captures checkouts with both backends: the same commit, or the same refusal.
func TestCapturesAsGit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	here := f.open()
	byGit := f.byCommand()
	f.write("bin/run", "#!/bin/sh\n")
	f.write("logs/kept", "tracked in an ignored folder\n")
	if err := errors.Join(os.Chmod(f.path("bin/run"), 0o755), os.Symlink("README.md", f.path("bin/link"))); err != nil {
		t.Fatal(err)
	}
	f.git("add", "--all")
	f.git("commit", "-q", "-m", "more kinds of files")
	base := f.git("rev-parse", "HEAD")
	for name, change := range map[string]string{
		"nothing":    ":",
		"same-size":  "printf '#!/bin/no\n' > bin/run",
		"modes":      "chmod -x bin/run && chmod +x src/main.go",
		"link":       "rm bin/link && ln -s elsewhere bin/link",
		"link-gone":  "rm bin/link && echo x > bin/link",
		"outside":    "rm -r src && ln -s / src",
		"folders":    "mkdir -p a/b/c a.d empty && echo x > a/b/c/d && echo y > a.d/e && echo z > a0",
		"ignores":    "echo logs/ > .gitignore && echo x > logs/new && echo y > logs/kept && mkdir -p a/logs && echo x > a/logs/b && echo '!b' > a/.gitignore",
		"lines":      "echo '* text=auto' > .gitattributes && printf 'a\r\nb\r\n' > crlf && printf 'a\r\n' > README.md",
		"pipe":       "mkfifo pipe",
		"files":      "echo new > new && echo more >> README.md && rm src/main.go",
		"folder":     "rm README.md && mkdir README.md && echo x > README.md/x",
		"file":       "rm -r src && echo x > src",
		"links":      "ln -s nowhere a-link && chmod +x README.md",
		"repository": "git init -q inner && echo x > inner/x && git -C inner add . && git -C inner -c user.name=A -c user.email=a@b commit -qm x",
		"empty":      "rm -r README.md src state",
		"ignored":    "echo '*.tmp' > .gitignore && echo x > x.tmp",
		"excepted":   "echo x > excepted && echo y > kept",
		"only":       "echo x > excepted",
	} {
		t.Run(name, func(t *testing.T) {
			var got [2]Captured
			var errs [2]error
			var listed [2]string
			for i, r := range []*Repo{here, byGit} {
				co := Checkout{Dir: filepath.Join(t.TempDir(), "ws"), Index: filepath.Join(t.TempDir(), "index")}
				if err := r.Clone(t.Context(), co, base, "reconcile/a/b"); err != nil {
					t.Fatal(err)
				}
				in := &fixture{t, co.Dir}
				listed[i] = in.git("ls-files", "--stage", "--debug")
				if status := in.git("status", "--porcelain", "--branch"); status != "## reconcile/a/b" {
					t.Errorf("%q", status)
				}
				program := exec.CommandContext(t.Context(), "sh", "-c", change)
				program.Dir = co.Dir
				if out, err := program.CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				changed, err := r.Uncaptured(t.Context(), co)
				if err != nil {
					t.Fatal(err)
				}
				if there, err := byGit.Uncaptured(t.Context(), co); err != nil || !sameSet(changed, there) {
					t.Errorf("uncaptured: %q, git: %q, %v", changed, there, err)
				}
				c := Capture{Checkout: co, Base: base, Except: []string{"excepted"}, Changed: changed,
					Message: "Do it\n\nReconcile-Run: x\n", Author: "A <a@b>", When: noon}
				got[i], errs[i] = r.Capture(t.Context(), c)
				c.Changed, err = r.Uncaptured(t.Context(), co)
				if again, err2 := r.Capture(t.Context(), c); errs[i] == nil && (err != nil || err2 != nil || !reflect.DeepEqual(again, got[i])) {
					t.Errorf("%d captured %+v, then %+v of %q, %v, %v", i, got[i], again, c.Changed, err, err2)
				}
			}
			if entries := regexp.MustCompile(`(?m)^\d+ \w+ .*`); fmt.Sprint(entries.FindAllString(listed[0], -1)) != fmt.Sprint(entries.FindAllString(listed[1], -1)) {
				t.Errorf("%s\ngit: %s", listed[0], listed[1])
			}
			if !reflect.DeepEqual(got[0], got[1]) || fmt.Sprint(errs[0]) != fmt.Sprint(errs[1]) {
				t.Errorf("%+v, %v\ngit: %+v, %v", got[0], errs[0], got[1], errs[1])
			}
			if got[0].Commit != "" {
				f.git("fsck", "--strict", "--no-dangling")
				if err := here.SetRef(t.Context(), "refs/heads/reconcile/"+name, got[0].Commit, noon); err != nil {
					t.Error(err)
				}
				if at := f.git("rev-parse", "reconcile/"+name); at != got[0].Commit {
					t.Error(at)
				}
			}
		})
	}
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Compact(slices.Sorted(slices.Values(a))), slices.Compact(slices.Sorted(slices.Values(b))))
}

// TestFewFilesNeedNoGit makes and captures a checkout where every start of git fails.
func TestFewFilesNeedNoGit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.open()
	r.command.(*command).git = filepath.Join(t.TempDir(), "git")
	base := f.git("rev-parse", "HEAD")
	co := Checkout{Dir: filepath.Join(t.TempDir(), "ws"), Index: filepath.Join(t.TempDir(), "index")}
	if err := r.Clone(t.Context(), co, base, "reconcile/a/b"); err != nil {
		t.Fatal(err)
	}
	(&fixture{t, co.Dir}).write("new", "x\n")
	changed, err := r.Uncaptured(t.Context(), co)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Capture(t.Context(), Capture{Checkout: co, Base: base, Changed: changed, Message: "Do it\n", Author: "A <a@b>", When: noon})
	if err != nil || !slices.Equal(got.Files, []string{"new"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if err := r.Renew(t.Context(), co, got.Commit, "reconcile/a/c"); err != nil {
		t.Error(err)
	}
}

// TestCopiesOfIndexes: a copy is not younger than the index. Git, which compares whole seconds, would take what an agent changed in the second of
// the checkout, without another size, for unchanged.
func TestCopiesOfIndexes(t *testing.T) {
	t.Parallel()
	from, to, was := filepath.Join(t.TempDir(), "index"), filepath.Join(t.TempDir(), "copy"), noon.Add(time.Millisecond)
	if err := copyFile(from, to); err != nil {
		t.Error("an empty commit has no index:", err)
	}
	if err := errors.Join(os.WriteFile(from, []byte("DIRC"), 0o600), os.Chtimes(from, was, was), copyFile(from, to)); err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(to); err != nil || !fi.ModTime().Equal(was) {
		t.Errorf("the copy is of %v, the index of %s; %v", fi.ModTime(), was, err)
	}
}
