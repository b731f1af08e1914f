package gitrepo

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestWorkTreesAsGit: what differs from the commit, and which files there are, as git says it, whatever was done in the work tree.
func TestWorkTreesAsGit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("bin/run", "#!/bin/sh\n")
	f.write("logs/kept", "tracked in an ignored folder\n")
	if err := os.Chmod(f.path("bin/run"), 0o755); err != nil {
		t.Fatal(err)
	}
	f.git("add", "--all")
	f.git("commit", "-q", "-m", "more")
	decided := 0
	for name, change := range map[string]string{
		"nothing":      ":",
		"changed":      "echo more >> README.md && chmod -x bin/run && rm src/main.go && echo new > new && mkdir -p a/b && echo x > a/b/c",
		"same size":    "printf '#!/bin/no\n' > bin/run",
		"staged":       "echo more >> README.md && echo new > new && git add --all && echo newer > new",
		"staged back":  "cp README.md old && echo more >> README.md && git add README.md && mv old README.md",
		"staged as is": "echo new > new && git add new && rm new && git rm -q --cached README.md",
		"last file":    "git rm -q --cached src/main.go",
		"added last":   "echo new > zz && git add zz",
		"intended":     "echo new > new && git add -N new",
		"ignores":      "echo logs/ > .gitignore && echo x > logs/new && mkdir -p a/logs && echo x > a/logs/b && echo '!b' > a/.gitignore",
		"link":         "rm README.md && ln -s nowhere README.md && ln -s nowhere new",
		"folder":       "rm README.md && mkdir README.md && echo x > README.md/x",
		"file":         "rm -r src && echo x > src",
		"repository":   "git init -q inner && echo x > inner/x",
		"no commit":    "git checkout -q --orphan none",
		"detached":     "git checkout -q --detach && echo x > README.md",
		"conflict":     "git checkout -q -b one && echo 1 > README.md && git commit -qam 1 && git checkout -q main && echo 2 > README.md && git commit -qam 2; git merge -q one || true",
		"forged":       "echo evil > README.md && cp .git/index saved && git add README.md && git commit -qm evil && cp .git/index forged && git reset -q --soft HEAD~ && cp forged .git/index && rm saved forged",
	} {
		t.Run(name, func(t *testing.T) {
			in := &fixture{t, filepath.Join(resolved(t, t.TempDir()), "tree")}
			f.git("clone", "-q", f.dir, in.dir)
			program := exec.CommandContext(t.Context(), "sh", "-c", change)
			program.Dir, program.Env = in.dir, append(os.Environ(), "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@b")
			if out, err := program.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			say := func(r *Repo) []any {
				changed, err := r.Changed(t.Context())
				untracked, err1 := r.Untracked(t.Context())
				tracked, others, err2 := r.WorkFiles(t.Context())
				return []any{slices.Sorted(slices.Values(changed)), err != nil, untracked, err1, slices.Compact(tracked), others, err2}
			}
			got, want := say(in.open()), say(in.byCommand())
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%v\ngit: %v", got, want)
			}
			alone := in.open()
			alone.command.(*command).git = filepath.Join(t.TempDir(), "git")
			if fmt.Sprint(say(alone)) == fmt.Sprint(want) {
				decided++
			}
		})
	}
	if decided < 8 {
		t.Errorf("only %d work trees were read without git", decided)
	}
}
