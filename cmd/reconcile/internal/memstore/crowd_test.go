package memstore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/state"
)

const writerEnv = "MEMSTORE_TEST_WRITER" // directory, then the writer's name

func TestMain(m *testing.M) {
	if dir, name, ok := strings.Cut(os.Getenv(writerEnv), "|"); ok {
		if err := writeOn(dir, name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const perWriter = 40

// writeOn is one of several processes: it captures into an issue of all and into one of its own in turn, and says what it
// has captured.
func writeOn(dir, name string) error {
	store, err := state.Open(dir, state.Options{Kinds: controllers.Schemas(), Now: time.Now, Build: "test"})
	if err != nil {
		return err
	}
	files := memstore.Open(store, memstore.Options{Now: time.Now, Kinds: controllers.Schemas()})
	for i := range perWriter {
		issue := 1
		if i%2 == 1 {
			issue = 2 + int(name[0]-'a')
		}
		content := fmt.Sprintf("Writer %s said thing %d", name, i)
		if _, err := files.Capture(context.Background(), spec("agent-"+name[:1], issue, noon.Add(time.Duration(i)*time.Second), content)); err != nil {
			return err
		}
		fmt.Println(content)
	}
	return errors.Join(files.Close(), store.Close())
}

// startWriter starts a writer; said gets what it captured, and ends with it.
func startWriter(t *testing.T, dir, name string) (*exec.Cmd, <-chan string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), writerEnv+"="+dir+"|"+name)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	said := make(chan string, perWriter)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		close(said)
		return cmd, said
	}
	go func() {
		defer close(said)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			said <- lines.Text()
		}
		if err := cmd.Wait(); err != nil && stderr.Len() > 0 {
			t.Errorf("writer %s: %v\n%s", name, err, stderr.String())
		}
	}()
	return cmd, said
}

// Several processes capture at once, into the same and into different issues, and are killed at random. Nothing that was
// acknowledged is lost, and whoever reads meanwhile finds whole files.
func TestT4_ConcurrentCaptures(t *testing.T) {
	x := newTree(t)
	stop := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() { readOn(t, x.dir, stop) })
	var mu sync.Mutex
	acknowledged := map[string]bool{}
	random := rand.New(rand.NewPCG(4, 29))
	var writers sync.WaitGroup
	for w := range 4 {
		kills := []int{random.IntN(perWriter), random.IntN(perWriter / 2), perWriter}
		writers.Go(func() {
			for life, most := range kills {
				cmd, said := startWriter(t, x.dir, fmt.Sprintf("%c%d", 'a'+w, life))
				n := 0
				for content := range said {
					mu.Lock()
					acknowledged[content] = true
					mu.Unlock()
					if n++; n == most {
						_ = cmd.Process.Kill() // it may have ended by itself
					}
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		writers.Wait()
	}()
	for running := true; running; {
		x.settle()
		select {
		case <-ended:
			running = false
		default:
		}
	}
	close(stop)
	reader.Wait()
	for range 2 { // what was held waits for the next run
		x.settle()
	}
	x.check()
	found := map[string]bool{}
	y := openTree(t, x.dir)
	issues := []int{1, 2, 3, 4, 5}
	for _, issue := range issues {
		all, err := y.ByIssue(t.Context(), issue)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range all {
			found[o.Content] = true
		}
	}
	for content := range acknowledged {
		if !found[content] {
			t.Errorf("lost: %s", content)
		}
	}
	if len(acknowledged) < 4*perWriter {
		t.Errorf("only %d captures were acknowledged", len(acknowledged))
	}
	if again := y.settle(); again.Wrote {
		t.Errorf("settled again: %+v", again)
	}
	litter, err := filepath.Glob(filepath.Join(x.dir, "state/memory/*.lock"))
	if err != nil || len(litter) > 0 {
		t.Errorf("locks are left: %q, %v", litter, err)
	}
}

// readOn reads the files of the memory until it is told to stop: each is whole.
func readOn(t *testing.T, dir string, stop <-chan struct{}) {
	seen := map[string]bool{}
	for {
		select {
		case <-stop:
			return
		default:
		}
		for _, p := range []string{"manifest.json", "issue-1.json", "issue-2.json", "issue-5.json"} {
			data, err := os.ReadFile(filepath.Join(dir, "state/memory", p))
			if errors.Is(err, fs.ErrNotExist) && !seen[p] {
				continue
			}
			seen[p] = true
			if err == nil && p == "manifest.json" {
				_, err = memory.ParseManifest(data)
			} else if err == nil {
				_, err = memory.Parse(data)
			}
			if err != nil {
				t.Errorf("%s: %v", p, err)
				return
			}
		}
	}
}
