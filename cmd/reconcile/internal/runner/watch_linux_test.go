package runner

import (
	"context"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/sandbox"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// lookout is a workspace whose first look waits for another run to end.
type lookout struct {
	dir      string
	looks    chan struct{} // gets one at the first look
	goOn     chan struct{} // closed when that may end
	isShared chan bool     // gets what the second look is told
}

func (l *lookout) Open(context.Context, WorkspaceRequest) (Workspace, string, error) {
	return l, "", nil
}

func (l *lookout) WatchTree(context.Context) (func(context.Context, bool) ([]string, error), error) {
	return nil, nil
}

func (l *lookout) Watch(context.Context) (func(context.Context, bool) ([]string, error), error) {
	l.looks <- struct{}{}
	<-l.goOn
	return func(_ context.Context, shared bool) ([]string, error) {
		l.isShared <- shared
		return nil, nil
	}, nil
}

func (l *lookout) Dir() string   { return l.dir }
func (l *lookout) Top() string   { return l.dir }
func (l *lookout) Env() []string { return nil }
func (l *lookout) Close() error  { return nil }

func (l *lookout) Commit(context.Context, time.Time, []string, []string) (*schemas.RunWorkspace, error) {
	return &schemas.RunWorkspace{Kind: schemas.WorkspaceClone}, nil
}

func (l *lookout) Changes(context.Context) ([]string, []byte, error) { return nil, nil, nil }

// TestRunsInTheTreeAreNotBlamedOnOthers: what a run in the tree writes is not taken for that of one in a workspace, also if it ends
// before that one has begun.
func TestRunsInTheTreeAreNotBlamedOnOthers(t *testing.T) {
	l := &lookout{t.TempDir(), make(chan struct{}, 1), make(chan struct{}), make(chan bool, 1)}
	g := newRig(t, Options{Sandbox: sandbox.NewHost(""), Workspaces: l, Slots: 4})
	inTree := actor("tree", "exits")
	gate := g.fifo("gate")
	g.stage(inTree, g.fifo("pids"), []string{"exits"})
	other := effect("dags/checks/other-0123456789abcdef-1", "echo", "done")
	other.Agent, other.Node = "coder", "other"
	other.Command().Output, other.Command().Workspace = "text", &settle.Workspace{Kind: schemas.WorkspaceClone}
	other.Command().Sandbox = &settle.Sandbox{Sandbox: schemas.Sandbox{Level: schemas.SandboxNone}}
	g.Submit(other)
	<-l.looks
	gate.release()
	g.await(inTree.Key)
	close(l.goOn)
	if !<-l.isShared {
		t.Error("what the run in the tree wrote is taken for that of the other one")
	}
	g.await(other.Key)
}
