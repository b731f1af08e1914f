package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	gogit "github.com/go-git/go-git/v5"
	gogitobject "github.com/go-git/go-git/v5/plumbing/object"

	"reconcile.dev/reconcile/state/durable"
)

// programs are what this test binary does instead of testing when GITREPO_TEST_<name> holds an argument: real
// processes, to be raced and killed.
var programs = map[string]func(string) error{"WRITER": writer, "CRASH": crashCommit, "STOCK": stockCommit, "ADOPT": crashAdopt, "SETTLE": settle, "RACER": racer, "PULL": crashPull}

func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// writer is a process that commits a file of its own several times.
func writer(spec string) error {
	var id, rounds int
	var dir string
	if _, err := fmt.Sscanf(spec, "%d %d %s", &id, &rounds, &dir); err != nil {
		return err
	}
	r, err := OpenToCommit(dir)
	if err != nil {
		return err
	}
	path := fmt.Sprintf("state/writer-%d.json", id)
	for i := range rounds {
		if err := os.WriteFile(dir+"/"+path, fmt.Appendf(nil, "%d\n", i), 0o666); err != nil {
			return err
		}
		res, err := r.Commit(context.Background(), Commit{Paths: []string{path}, Message: "m", When: noon})
		if err != nil {
			return err
		}
		if res.Warning != "" && i == rounds-1 {
			return errors.New(res.Warning)
		}
	}
	return nil
}

// crashCommit is what the struck process does: commit what is dirty, as a run of reconcile does.
func crashCommit(dir string) error {
	r, err := OpenToCommit(dir)
	if err != nil {
		return err
	}
	r.native.(*native).lockTimeout = 50 * time.Millisecond
	dirty, err := r.Dirty(context.Background(), "", []string{"state"})
	if err != nil {
		return err
	}
	res, err := r.Commit(context.Background(), Commit{Paths: dirty, Message: "crash", When: noon})
	if errors.Is(err, ErrNothing) {
		return nil
	}
	if err == nil && res.Warning != "" {
		err = errors.New(res.Warning)
	}
	return err
}

// stockCommit is the mutant: the same with go-git's own worktree, as its documentation says.
func stockCommit(dir string) error {
	r, err := gogit.PlainOpen(dir)
	if err != nil {
		return err
	}
	w, err := r.Worktree()
	if err != nil {
		return err
	}
	for _, p := range []string{checks, "state/dags/new.json"} {
		if _, err := w.Add(p); err != nil {
			return err
		}
	}
	if _, err := w.Remove("state/sessions/health.json"); err != nil && !errors.Is(err, os.ErrNotExist) {
		_, err = w.Add("state/sessions/health.json")
		if err != nil {
			return err
		}
	}
	who := &gogitobject.Signature{Name: "a", Email: "b@c", When: noon}
	_, err = w.Commit("crash", &gogit.CommitOptions{Author: who})
	if errors.Is(err, gogit.ErrEmptyCommit) {
		return nil
	}
	return err
}

// crashAdopt is what the struck process does: put its branch on top of the remote's, as a run of reconcile does, which
// sweeps its temporary files first.
func crashAdopt(dir string) error {
	r, err := OpenToCommit(dir)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := durable.Sweep(root, ".reconcile/tmp"); err != nil {
		return err
	}
	r.native.(*native).lockTimeout = 50 * time.Millisecond
	m, err := r.Remote(context.Background(), "", "")
	if err != nil {
		return err
	}
	tip, err := m.Fetch(context.Background())
	if err != nil {
		return err
	}
	got, err := m.Adopt(context.Background(), tip, ours)
	if err == nil && got.Warning != "" {
		err = errors.New(got.Warning)
	}
	return err
}

// settle is what any command does first.
func settle(dir string) error {
	r, err := OpenToCommit(dir)
	if err != nil {
		return err
	}
	return r.Settle(context.Background())
}

// crashPull is the mutant: what git has for the same.
func crashPull(dir string) error {
	out, err := exec.Command("git", "-C", dir, "pull", "-q", "--rebase", "--autostash", "origin", "main").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("git pull: %w: %s", err, out)
	}
	return err
}
