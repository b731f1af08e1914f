package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"reconcile.dev/reconcile/state/mutants"
)

// racer is a process that shares a branch with others: it changes a status, adds a record, and pushes both, until they
// are on the remote, again and again. It prints how many pushes that took.
func racer(spec string) error {
	var name, dir, file string
	var rounds int
	if _, err := fmt.Sscanf(spec, "%s %d %s %s", &name, &rounds, &file, &dir); err != nil {
		return err
	}
	r, err := OpenToCommit(dir)
	if err != nil {
		return err
	}
	ctx := context.Background()
	m, err := r.Remote(ctx, "", "")
	if err != nil {
		return err
	}
	tries := 0
	for i := range rounds {
		n, err := raceOnce(ctx, r, m, dir, file, fmt.Sprintf("state/runs/%s/%d.json", name, i))
		if tries += n; err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
	}
	fmt.Println(tries)
	return m.Close(ctx)
}

// raceOnce counts the status up, and records that. The status says how many records there are, so that a lost one shows.
func raceOnce(ctx context.Context, r *Repo, m *Remote, dir, file, record string) (tries int, err error) {
	for {
		tries++
		tip, err := m.Turn(ctx)
		if err != nil {
			return tries, err
		}
		if _, err := m.Adopt(ctx, tip, ours); err != nil {
			return tries, err
		}
		was, _ := os.ReadFile(filepath.Join(dir, file)) // none: 0
		n, _ := strconv.Atoi(strings.TrimSpace(string(was)))
		for p, content := range map[string]string{file: fmt.Sprintln(n + 1), record: record + "\n"} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, p)), 0o777); err != nil {
				return tries, err
			}
			if err := os.WriteFile(filepath.Join(dir, p), []byte(content), 0o666); err != nil {
				return tries, err
			}
		}
		res, err := r.Commit(ctx, Commit{Paths: []string{file, record}, Message: byUs, When: time.Now()})
		if err != nil {
			return tries, err
		}
		if err = m.Push(ctx, res.Hash); !errors.Is(err, ErrRefused) {
			return tries, err
		}
	}
}

// TestRace: eight reconcilers push to one branch at once, over smart HTTP to the same status, and over file to different
// ones: each record and each increment is there at the end, in one line of commits. That is no question of how often:
// it is the bench that has each of them push fifty times.
func TestRace(t *testing.T) {
	t.Parallel()
	rounds := mutants.Size(1, 1, 2)
	t.Run("http, same", func(t *testing.T) { race(t, "http", "same", 8, rounds) })
	t.Run("file, different", func(t *testing.T) { race(t, "file", "different", 8, rounds) })
}

func race(t *testing.T, over, to string, racers, rounds int) {
	_, _, bare := shared(t)
	url := bare
	if over == "http" {
		url = gitServer(t, filepath.Dir(bare), nil) + filepath.Base(bare)
	}
	on := &fixture{t, bare}
	begin := on.git("rev-parse", "main")
	outs := make([]string, racers)
	clones := make([]*fixture, racers)
	for i := range clones { // git cannot copy a repository to which somebody pushes
		clones[i] = on.clone(url)
	}
	var wg sync.WaitGroup
	for i, f := range clones {
		file := "state/dags/count.json"
		if to == "different" {
			file = fmt.Sprintf("state/dags/count-%d.json", i)
		}
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), self(t))
			cmd.Env = append(os.Environ(), fmt.Sprintf("GITREPO_TEST_RACER=r%d %d %s %s", i, rounds, file, f.dir))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("racer %d: %v\n%s", i, err, out)
			}
			outs[i] = strings.TrimSpace(string(out))
		})
	}
	wg.Wait()
	all := fmt.Sprint(racers * rounds)
	on.equal("commits", on.git("rev-list", "--count", "--first-parent", begin+"..main"), all)
	on.equal("all commits", on.git("rev-list", "--count", begin+"..main"), all)
	records := strings.Fields(on.git("ls-tree", "-r", "--name-only", "main", "state/runs"))
	on.equal("records", fmt.Sprint(len(records)), all)
	sum := 0
	for name := range strings.FieldsSeq(on.git("ls-tree", "-r", "--name-only", "main", "state/dags")) {
		if strings.Contains(name, "count") {
			n, _ := strconv.Atoi(on.git("cat-file", "blob", "main:"+name))
			sum += n
		}
	}
	on.equal("increments", fmt.Sprint(sum), all)
	on.equal("tickets", on.git("for-each-ref", "refs/reconcile"), "")
	t.Logf("pushes of each, for %d commits: %s", rounds, strings.Join(outs, " "))
	on.sound()
}

// TestAdoptBesideAUser: while others push, and this clone follows, its user edits, stages and commits with git. Nothing of
// that is lost, and every commit of the user's is on top in the end.
func TestAdoptBesideAUser(t *testing.T) {
	t.Parallel()
	rounds := 8
	if testing.Short() {
		rounds = 3
	}
	f, other, _ := shared(t)
	f.write("draft.txt", "never committed\n")
	f.write("staged.txt", "never committed either\n")
	f.git("add", "staged.txt")
	status := f.git("status", "--porcelain")
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(over)
		for i := range rounds {
			f.write(fmt.Sprintf("user/%d.txt", i), fmt.Sprintln(i))
			f.untilFree("add", fmt.Sprintf("user/%d.txt", i))
			f.untilFree("commit", "-q", "-m", "user", "--", fmt.Sprintf("user/%d.txt", i))
		}
	})
	m := f.remote()
	for i, going := 0, true; going; i++ {
		select {
		case <-over:
			going = false // and once more
		default:
		}
		other.author("theirs", map[string]string{fmt.Sprintf("their/%d.txt", i): "x\n", "README.md": fmt.Sprintln("theirs", i)})
		other.record(map[string]string{checks: fmt.Sprintln(i)})
		other.push()
		if _, err := m.pull(f); err != nil && !errors.Is(err, ErrBusy) {
			t.Fatal(err)
		}
	}
	wg.Wait()
	if _, err := m.pull(f); err != nil {
		t.Fatal(err)
	}
	f.equal("the remote's head", f.git("merge-base", "HEAD", "origin/main"), other.git("rev-parse", "HEAD"))
	f.equal("commits of the user", f.git("rev-list", "--count", "origin/main..HEAD"), fmt.Sprint(rounds))
	for i := range rounds {
		f.equal("file of the user", f.git("cat-file", "blob", fmt.Sprintf("HEAD:user/%d.txt", i)), fmt.Sprint(i))
	}
	f.equal("status", f.git("status", "--porcelain"), status)
	f.sound()
}
