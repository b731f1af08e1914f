// Package ops has the use cases of the program: functions from a typed request to a typed result, without flags,
// streams or process exit codes. A surface parses the user's input, calls one operation, and renders the result. Every
// error of an operation is an [*Error].
package ops

import (
	"context"
	"fmt"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/caller"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/sandbox"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Env is the environment of an operation.
type Env struct {
	Tree   tree.Config   // opens the tree, and has the clock
	Prefix string        // the caller's folder in the tree, which file names are relative to; "": the root
	Caller caller.Caller // the calling person or run
	Sink   Sink          // nil: no reports
	// Attended says that the caller is a person at a terminal, who may answer what agents ask for during a run.
	Attended bool

	// Sandbox confines the programs of agents; nil: it cannot.
	Sandbox *sandbox.Host
	// View shows a run of the loop in progress, and with talk also its clarification events; nil: runs are not shown.
	View func(talk bool) View
	// Engine runs the loop; nil: [engine.Run].
	Engine func(context.Context, engine.Options, engine.Request) (engine.Result, error)
}

// Sink receives the reports of an operation besides its result. Its methods may be called from any goroutine.
type Sink interface {
	// Note is called with notes for the user.
	Note(text string)
	// Warn is called with problems that do not end the operation.
	Warn(text string)
	// Count is called repeatedly with the progress of long work.
	Count(step string, done, total int)
}

// kinds are the kinds for reading the tree.
func (e Env) kinds() schemas.Kinds { return e.Tree.Table().Schemas() }

func (e Env) note(format string, args ...any) {
	if e.Sink != nil {
		e.Sink.Note(fmt.Sprintf(format, args...))
	}
}

func (e Env) warn(text string) {
	if e.Sink != nil {
		e.Sink.Warn(text)
	}
}

// open opens and reads the tree. The caller closes the store.
func (e Env) open(ctx context.Context) (o *openTree, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	o = &openTree{}
	o.store, o.tree, o.reader, err = e.Tree.Load(ctx)
	return o, err
}

// load opens and reads the tree. The caller closes the store.
func (e Env) load(ctx context.Context) (*state.Store, *state.Tree, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	s, t, _, err := e.Tree.Load(ctx)
	return s, t, err
}

// Version returns the build of the program that this process runs.
func Version(_ context.Context, _ Env) process.Build { return process.ReadBuild() }

func (e Env) logWarning(about, text string) {
	if e.Tree.Log != nil {
		e.Tree.Log.Warn(about, "message", text)
	}
}
