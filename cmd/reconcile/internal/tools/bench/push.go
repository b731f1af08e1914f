package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo/message"
)

// Reconcilers that push to one branch as often as they can, and how often each does.
const (
	sharers    = 8
	sharedEach = 50
)

// push: one reconciler that pushes a turn over file, and several that share one branch over smart HTTP. What the race is
// compared with are the figures of plain retries, with go-git, by as many processes.
func (b *bench) push(ctx context.Context, sizes []int) error {
	if err := b.pushTurn(ctx, sizes[len(sizes)-1]); err != nil {
		return err
	}
	for _, same := range []bool{true, false} {
		if err := b.pushRace(ctx, same); err != nil {
			return err
		}
	}
	return nil
}

// pushRace has all of them push to the same file, or each to one of its own.
func (b *bench) pushRace(ctx context.Context, same bool) error {
	dir, err := os.MkdirTemp("", "reconcile-bench-push")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := b.pushedRepository(ctx, dir); err != nil {
		return err
	}
	server, err := serveGit(ctx, dir)
	if err != nil {
		return err
	}
	defer server.Close()
	pushes, err := pushTogether(ctx, dir, server.URL+"/bare.git", same)
	if err != nil {
		return err
	}
	name, plain, bound := "different files", "", 1.3
	if same {
		name, plain, bound = "one file", "1.77; 33 s", 1.8
	}
	var tries int
	var waits, calls []time.Duration
	for _, p := range pushes {
		tries += p.tries
		waits, calls = append(waits, p.wait), append(calls, p.call)
	}
	each := float64(tries) / float64(len(pushes))
	of := fmt.Sprintf("push: %d processes, %d each, %s, ", sharers, sharedEach, name)
	b.row(of+"tries a commit", fmt.Sprintf("%.2f", each), plain, fmt.Sprintf("%.2f", each), each, bound, "")
	longest, p50, p99 := quantile(waits, 1), quantile(waits, 0.5), quantile(calls, 0.99)
	b.row(of+"longest wait (p50)", short(p50), "", short(longest), longest.Seconds(), 5, " s")
	b.row(of+"one push (p50; p99)", short(quantile(calls, 0.5)), "", short(p99), ms(p99), 0, " ms")
	return nil
}

// pushedRepository makes dir/bare.git with a first commit.
func (b *bench) pushedRepository(ctx context.Context, dir string) error {
	work := filepath.Join(dir, "work")
	if err := writeFile(filepath.Join(work, "README"), "shared\n"); err != nil {
		return err
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-q", "--no-gpg-sign", "-m", "first"},
		{"clone", "-q", "--bare", ".", "../bare.git"}, {"--git-dir=../bare.git", "config", "http.receivepack", "true"},
		{"--git-dir=../bare.git", "config", "gc.auto", "0"}} {
		if _, err := process(gitCommand(ctx, work, args...)); err != nil {
			return err
		}
	}
	return nil
}

// serveGit serves the repositories below dir over smart HTTP on loopback.
func serveGit(ctx context.Context, dir string) (*httptest.Server, error) {
	out, err := exec.CommandContext(ctx, "git", "--exec-path").Output()
	if err != nil {
		return nil, fmt.Errorf("git --exec-path: %w", err)
	}
	return httptest.NewServer(http.Handler(&cgi.Handler{
		Path:   filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"),
		Env:    append(environment(), "GIT_PROJECT_ROOT="+dir, "GIT_HTTP_EXPORT_ALL=1"),
		Stderr: io.Discard,
	})), nil
}

// pushed is one commit that got to the remote.
type pushed struct {
	tries int
	wait  time.Duration // from when it was wanted, with everything
	call  time.Duration // the push that succeeded
}

// pushTogether runs the processes, each on a clone of its own, and checks that every commit is on the branch.
func pushTogether(ctx context.Context, dir, url string, same bool) ([]pushed, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmds := make([]*exec.Cmd, sharers)
	outs := make([]bytes.Buffer, sharers)
	for i := range cmds {
		clone := filepath.Join(dir, fmt.Sprint("clone-", i))
		if _, err := process(gitCommand(ctx, dir, "clone", "-q", url, clone)); err != nil {
			return nil, err
		}
		file := "state/dags/count.json"
		if !same {
			file = fmt.Sprintf("state/dags/count-%d.json", i)
		}
		cmds[i] = exec.CommandContext(ctx, self, "share", clone, fmt.Sprint(i), strconv.Itoa(sharedEach), file)
		cmds[i].Env, cmds[i].Stdout, cmds[i].Stderr = environment(), &outs[i], os.Stderr
	}
	for _, c := range cmds {
		if err = c.Start(); err != nil {
			return nil, err
		}
	}
	var all []pushed
	for i, c := range cmds {
		err = errors.Join(err, c.Wait())
		for line := range strings.Lines(outs[i].String()) {
			var p pushed
			if _, scan := fmt.Sscan(line, &p.tries, &p.wait, &p.call); scan != nil {
				err = errors.Join(err, scan)
			}
			all = append(all, p)
		}
	}
	if err != nil {
		return nil, err
	}
	count, err := gitCommand(ctx, filepath.Join(dir, "bare.git"), "rev-list", "--count", "--first-parent", "main").Output()
	if want := fmt.Sprint(sharers*sharedEach + 1); err == nil && strings.TrimSpace(string(count)) != want {
		err = fmt.Errorf("%s commits are on the branch, want %s", bytes.TrimSpace(count), want)
	}
	return all, err
}

// shareAll is the command bench share: change a status and push it, again and again, concurrently with others.
func shareAll(ctx context.Context, args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("usage: bench share DIR NAME COUNT FILE")
	}
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	repo, err := gitrepo.OpenToCommit(args[0])
	if err != nil {
		return err
	}
	remote, err := repo.Remote(ctx, "", "")
	if err != nil {
		return err
	}
	for i := range n {
		begun := time.Now()
		s := sharer{repo: repo, remote: remote, dir: args[0], paths: []string{args[3], fmt.Sprintf("state/runs/%s/%d.json", args[1], i)}}
		p, err := s.share(ctx)
		if err != nil {
			return err
		}
		p.wait = time.Since(begun)
		fmt.Println(p.tries, int64(p.wait), int64(p.call))
	}
	return remote.Close(ctx)
}

// sharer pushes one change.
type sharer struct {
	repo   *gitrepo.Repo
	remote *gitrepo.Remote
	dir    string
	paths  []string // a status that counts, and records
}

func (s *sharer) share(ctx context.Context) (p pushed, err error) {
	for {
		p.tries++
		tip, err := s.remote.Turn(ctx)
		if err != nil {
			return p, err
		}
		if _, err := s.remote.Adopt(ctx, tip, gitrepo.Owners{Of: ownedByAll}); err != nil {
			return p, err
		}
		if err := s.change(); err != nil {
			return p, err
		}
		res, err := s.repo.Commit(ctx, gitrepo.Commit{Paths: s.paths, Message: message.New(nil), When: time.Now(), Sign: "never"})
		if err != nil {
			return p, err
		}
		start := time.Now()
		err = s.remote.Push(ctx, res.Hash)
		p.call = time.Since(start)
		if !errors.Is(err, gitrepo.ErrRefused) {
			return p, err
		}
	}
}

// change makes the next decision: the number after the current one.
func (s *sharer) change() error {
	was, _ := os.ReadFile(filepath.Join(s.dir, s.paths[0])) // none: 0
	n, _ := strconv.Atoi(strings.TrimSpace(string(was)))
	for _, p := range s.paths {
		if err := writeFile(filepath.Join(s.dir, p), fmt.Sprintln(n+1)); err != nil {
			return err
		}
	}
	return nil
}

func ownedByAll(path string) gitrepo.Ownership {
	if strings.HasPrefix(path, "state/runs/") {
		return gitrepo.Record
	}
	return gitrepo.Status
}

// pushTurn: the cost of a turn of ten statuses beyond git push, in a large tree, over file: finding changes,
// commit, and push.
func (b *bench) pushTurn(ctx context.Context, n int) error {
	dir, err := b.tree(ctx, n)
	if err != nil {
		return err
	}
	bare := filepath.Join(b.trees, fmt.Sprintf("%d.git", n))
	if err := os.RemoveAll(bare); err != nil {
		return err
	}
	for _, args := range [][]string{{"clone", "-q", "--bare", ".", bare}, {"config", "remote.bench.url", bare}} {
		if _, err := process(gitCommand(ctx, dir, args...)); err != nil {
			return err
		}
	}
	paths, err := filepath.Glob(filepath.Join(dir, "state", "dags", "*.json"))
	if err != nil {
		return err
	}
	paths = paths[:min(10, len(paths))]
	for i, p := range paths {
		paths[i] = "state/dags/" + filepath.Base(p)
	}
	after := func(f func() (usage, error)) func() (usage, error) {
		return func() (usage, error) {
			for _, p := range paths {
				if err := appendLine(filepath.Join(dir, p)); err != nil {
					return usage{}, err
				}
			}
			return f()
		}
	}
	got, err := alternate(b.runs, after(func() (usage, error) { return pushHere(ctx, dir, paths) }), after(func() (usage, error) {
		if _, err := commitHere(ctx, dir, paths); err != nil {
			return usage{}, err
		}
		return process(gitCommand(ctx, dir, "push", "-q", "bench", "HEAD"))
	}))
	if err != nil {
		return err
	}
	beyond := got[0].wall - got[1].wall
	b.row(fmt.Sprintf("push: turn of %d statuses of %d objects, beyond git push", len(paths), n), short(got[0].wall), short(got[1].wall),
		short(beyond), ms(beyond), 150, " ms")
	return nil
}

// pushHere shares a turn as a run of reconcile does.
func pushHere(ctx context.Context, dir string, paths []string) (usage, error) {
	start := time.Now()
	repo, err := gitrepo.OpenToCommit(dir)
	if err != nil {
		return usage{}, err
	}
	remote, err := repo.Remote(ctx, "bench", "")
	if err != nil {
		return usage{}, err
	}
	tip, err := remote.Turn(ctx)
	if err != nil {
		return usage{}, err
	}
	if _, err := remote.Adopt(ctx, tip, gitrepo.Owners{Of: ownedByAll}); err != nil {
		return usage{}, err
	}
	res, err := repo.Commit(ctx, gitrepo.Commit{Paths: paths, Message: message.New(nil), When: start, Sign: "never"})
	if err == nil {
		err = remote.Push(ctx, res.Hash)
	}
	return usage{wall: time.Since(start)}, err
}
