// Package ops has the use cases of the program: functions from a typed request to a typed result, without flags,
// streams or process exit codes. A surface parses the user's input, calls one operation, and renders the result. Every
// error of an operation is an [*Error].
package ops

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/caller"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/sandbox"
	"reconcile.dev/reconcile/controllers/agents"
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
	// Explain says that results of runs list all objects that are not ready.
	Explain bool

	// Sandbox confines the programs of agents; nil: it cannot.
	Sandbox *sandbox.Host
	// View shows a run of the loop in progress, and with talk also its clarification events; nil: runs are not shown.
	View func(talk bool) View
	// Engine runs the loop; nil: [engine.Run].
	Engine func(context.Context, engine.Options, engine.Request) (engine.Result, error)
}

// View shows a run of the loop in progress.
type View interface {
	engine.Sink
	Close()
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

// Version returns the build of the program that this process runs.
func Version(_ context.Context, _ Env) process.Build { return process.ReadBuild() }

func (e Env) logWarning(about, text string) {
	if e.Tree.Log != nil {
		e.Tree.Log.Warn(about, "message", text)
	}
}

// person returns the acting person: by, which a run cannot choose, or else the caller. In a run without an agent it is
// the login name.
func (e Env) person(by string) (string, error) {
	acting, err := e.Caller.Actor("--by", by)
	if err != nil {
		return "", err
	}
	who := cmp.Or(acting.Name, e.Caller.Login())
	return who, specs.CheckSecret("--by", who)
}

// CallerPath resolves a path relative to the caller's folder.
func (e Env) CallerPath(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(e.Tree.Dir, e.Prefix, p)
}

// mayWrite refuses, inside a run, changes that only people may make. was is nil for a new object, after for a removal.
func (e Env) mayWrite(t *state.Tree, ref schemas.Ref, was *state.Entry, after *schemas.Object) error {
	var before *schemas.Object
	if was != nil && was.Object != nil {
		before = was.Object.Declared()
	}
	if was != nil && was.Broken() {
		if err := e.Caller.OnlyPeople("replace the invalid " + ref.String()); err != nil {
			return err
		}
	}
	if in := e.Caller.Run(); in != nil {
		dag, node, _ := schemas.SplitRunKey(in.Key)
		if in.Unproved {
			dag = "" // it may name another run than its own
		}
		if what := agents.Bounds(t, t.Entry(schemas.DAGKind.Ref(dag)), node, in.Agent).OnlyPeople(ref, before, after); what != "" {
			return caller.NotInRun(what, in)
		}
	}
	return e.mayName(before, after)
}

// mayName refuses a spec that names someone who acts, or a proof, that the caller cannot prove. Unchanged fields may stay.
func (e Env) mayName(before, after *schemas.Object) error {
	name, proof := schemas.ActingOf(after)
	if wasName, was := schemas.ActingOf(before); wasName == name && was == proof {
		return nil
	}
	who, err := e.Caller.Actor("the name", name)
	if err == nil && proof != "" && proof != schemas.ProofClaimed && (proof != who.Proof || name != who.Name) {
		err = badRequest("proof: %s cannot be given for %q; leave it out, reconcile writes it", proof, name)
	}
	return err
}

// work returns the agent and the issue of a command: from the request, or else from the environment of a run.
func (e Env) work(command, agent string, issue *int) (string, int, error) {
	agent = cmp.Or(agent, e.Tree.Getenv("RECONCILE_AGENT"))
	if n, err := strconv.ParseInt(e.Tree.Getenv("RECONCILE_ISSUE"), 10, 32); err == nil && n >= 0 && issue == nil {
		of := int(n)
		issue = &of
	}
	if agent == "" || issue == nil {
		return "", 0, badRequest("reconcile memory %s needs --agent and --issue (0 for none); for example: "+
			"reconcile memory %[1]s --agent engineer --issue 29", command)
	}
	if err := specs.CheckSecret("--agent", agent); err != nil {
		return "", 0, err
	}
	if err := schemas.CheckName(agent); err != nil {
		return "", 0, badField("agent", " %q: %v", agent, err)
	}
	return agent, *issue, nil
}
