package loop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// victimVar makes this test program a process that claims a node of the tree in that folder and waits to be killed.
const victimVar = "RECONCILE_TEST_VICTIM"

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimVar); dir != "" {
		fmt.Println(claimSlow(dir))
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // it is killed before, or its parent has ended
		return
	}
	os.Exit(m.Run())
}

// claimSlow claims the node slow as a loop would, and says that it runs.
func claimSlow(dir string) error {
	s, err := state.Open(dir, state.Options{Kinds: controllers.Schemas(), Now: time.Now, NoCache: true})
	if err != nil {
		return err
	}
	t, err := s.Load(context.Background())
	if err != nil {
		return err
	}
	effects := settle.Tree(t, time.Now(), nil).Outs[schemas.Ref{Kind: "DAG", Name: "job"}].Effects
	i := slices.IndexFunc(effects, func(e settle.Effect) bool { return e.Node == "slow" })
	j, err := s.Journal()
	if err != nil {
		return err
	}
	return errors.Join(j.Claim([]schemas.Run{effects[i].Claim()}), j.Started(effects[i].Key, time.Now(), os.Getpid()))
}

// reaper is an actor that notes what it is told to reap, and cannot once it is closed.
type reaper struct {
	*actor
	closed bool
	reaped []string
}

func (r *reaper) ReapAll(_ context.Context, orphans []state.Orphan) error {
	for _, o := range orphans {
		r.reaped = append(r.reaped, o.Node)
	}
	if r.closed {
		return os.ErrClosed
	}
	return nil
}

func (r *reaper) Close(ctx context.Context) error {
	r.closed = true
	return r.actor.Close(ctx)
}

// TestKilledWhileWaitedFor kills a process once the loop waits for nothing else: what it left is ended first, and then run.
func TestKilledWhileWaitedFor(t *testing.T) {
	dir := tree(t, "    - {name: quick, run: [x]}\n    - {name: slow, run: [x]}")
	victim := startVictim(t, dir)
	r := &reaper{actor: newActor(always(time.Millisecond, schemas.OutcomeSucceeded))}
	l := newLoop(t, dir, r)
	kill := sync.OnceValue(victim.Process.Kill)
	l.Observe = func(_ []settle.Report, tr *state.Tree) {
		if e := tr.Entry(schemas.Ref{Kind: "DAG", Name: "job"}); e.HasStatus() && job(t, tr).Nodes.Of("quick").State == schemas.NodeSucceeded {
			if err := kill(); err != nil {
				t.Error(err)
			}
		}
	}
	got, err := l.Once(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if st := job(t, got.Tree); st.Phase != schemas.DAGSucceeded || !slices.Equal(r.done(), []string{"quick Succeeded", "slow Succeeded"}) {
		t.Errorf("%s, ran %q", st.Phase, r.done())
	}
	if !slices.Equal(r.reaped, []string{"slow"}) || len(l.Store.Journals()) > 0 {
		t.Errorf("reaped %q, left %v", r.reaped, l.Store.Journals())
	}
}

func startVictim(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimVar+"="+dir)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // it was killed
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "<nil>\n" {
		t.Fatalf("the victim said %q: %v", line, err)
	}
	return cmd
}
