package runner

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/regular"
)

// Workspaces makes folders in which runs work instead of the tree. It is safe for concurrent use.
type Workspaces interface {
	// Open returns the prepared workspace of a run: a new one, or that of an earlier attempt that has not succeeded. A nil
	// Workspace means that the run works in the tree, and why. The error is a *NotReadyError if the run cannot start now and
	// has not failed.
	Open(ctx context.Context, q WorkspaceRequest) (w Workspace, why string, err error)
	// WatchTree is Workspace.Watch for a run in the tree itself: only for what people and reconcile write there, and no run.
	WatchTree(ctx context.Context) (changed func(ctx context.Context, shared bool) ([]string, error), err error)
}

// WorkspaceRequest asks for the workspace of a run.
type WorkspaceRequest struct {
	Effect settle.Effect
	Task   *settle.Command
	// Env is the environment of programs that prepare the workspace, and Lease a file that they inherit: it tells the next
	// runner that they still live.
	Env     []string
	Lease   *os.File
	Starter Starter
}

// Starter starts a program that prepares a workspace, confined as those of the run are; top is the folder that it may change.
type Starter interface {
	StartSetup(cmd *exec.Cmd, top string) error
}

// Workspace is the folder of its own of one run.
type Workspace interface {
	// Dir is the absolute path of the folder that represents the root of the tree.
	Dir() string
	// Top is the absolute path of the folder that the run may change, with Dir in it or the same.
	Top() string
	// Env are the variables that describe it.
	Env() []string
	// Watch notes how the places outside of the workspace are that no one but people and reconcile may write. The returned
	// function lists those that a run changed since; shared says that other runs may have changed the tree's own files.
	Watch(ctx context.Context) (changed func(ctx context.Context, shared bool) ([]string, error), err error)
	// Commit records what the run changed there. Declared outputs that are not part of the commit are copied into the tree.
	// claimed are the files that the run says it changed; nil if it says nothing.
	Commit(ctx context.Context, at time.Time, outputs, claimed []string) (*schemas.RunWorkspace, error)
	// Changes returns what differs there from the commit that it was made from: the paths, and the text of git diff.
	Changes(ctx context.Context) (files []string, diff []byte, err error)
	// Close ends the use of the workspace by this run.
	Close() error
}

// NotReadyError says why a run cannot start in its workspace now; nothing is recorded.
type NotReadyError struct{ Why string }

func (e *NotReadyError) Error() string { return e.Why }

// place is the folder in which an attempt works: the tree, or a workspace.
type place struct {
	dir  string // absolute
	root *os.Root
	ws   Workspace // nil for the tree
}

func (p *place) absolute(name string) string { return filepath.Join(p.dir, filepath.FromSlash(name)) }

func (p *place) env() []string {
	if p.ws == nil {
		return nil
	}
	return p.ws.Env()
}

// openWorkspace makes the workspace of the attempt, if its task has one. If that fails, the attempt cannot run elsewhere.
func (a *attempt) openWorkspace() error {
	if a.task.Workspace == nil {
		return nil
	}
	if a.runner.o.Workspaces == nil {
		return errors.New("it needs a workspace, and this program cannot make one")
	}
	ctx, cancel := a.untilStopped()
	defer cancel()
	q := WorkspaceRequest{Effect: a.job.effect, Task: a.task, Lease: a.lease.file, Env: a.environment(), Starter: a}
	ws, why, err := a.runner.o.Workspaces.Open(ctx, q)
	if late := (*NotReadyError)(nil); errors.As(err, &late) {
		a.interrupted = late.Why
		return nil
	}
	if ctx.Err() != nil && err != nil {
		a.interrupted = "interrupted: reconcile was told to end"
		return nil
	}
	if err != nil {
		return err
	}
	if ws == nil {
		a.record.Workspace = &schemas.RunWorkspace{Kind: schemas.WorkspaceInPlace, Why: why}
		return nil
	}
	root, err := regular.Root(ws.Dir())
	if err != nil {
		return errors.Join(err, ws.Close())
	}
	a.place = place{dir: ws.Dir(), root: root, ws: ws}
	return nil
}

// untilStopped returns a context that ends when the runner starts to close.
func (a *attempt) untilStopped() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-a.runner.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// keepChanges commits what a successful run changed in its workspace.
func (a *attempt) keepChanges(report *schemas.AgentReport) (err error) {
	if a.place.ws == nil {
		return nil
	}
	var claimed []string
	if report != nil {
		claimed = report.FilesChanged
	}
	ctx := context.Background() // once it has begun it is short, and its result counts
	a.record.Workspace, err = a.place.ws.Commit(ctx, a.runner.o.Now(), a.task.OutputPaths(), claimed)
	return err
}

// closeWorkspace returns the attempt to the tree.
func (a *attempt) closeWorkspace() {
	if a.place.ws == nil {
		return
	}
	if err := errors.Join(a.place.root.Close(), a.place.ws.Close()); err != nil {
		a.warning = join(a.warning, err.Error())
	}
	a.place = place{dir: a.runner.dir, root: a.runner.root}
}
