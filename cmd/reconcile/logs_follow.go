package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// How often a log that is followed is looked at, and, less often, the tree.
const (
	logLook  = 100 * time.Millisecond
	treeLook = 300 * time.Millisecond
)

// logFollower prints what the attempts of one node print, until the node has ended.
type logFollower struct {
	*app
	store *state.Store
	tree  *state.Tree
	ref   schemas.Ref
	node  string
	tail  int

	key  string   // of the attempt that is printed; "" before the first
	log  *os.File // nil while it is not there
	told string   // what was said last of why nothing is printed
}

// followLog prints what a node prints until it ends, whichever process runs it.
func (a *app) followLog(ctx context.Context, s *state.Store, t *state.Tree, e *state.Entry, node string, o logsOptions) error {
	if a.global.output != formatTable {
		return badUsage("--follow prints the log as it is; it does not go with -o %s", a.global.output)
	}
	node, err := nodeToFollow(e, node)
	if err != nil {
		return err
	}
	done := ctx.Done() // from here on a signal is a normal end
	signal.Ignore(syscall.SIGPIPE)
	f := &logFollower{app: a, store: s, tree: t, ref: e.Ref, node: node, tail: o.tail}
	defer f.close()
	return unlessGone(f.run(context.WithoutCancel(ctx), done))
}

// nodeToFollow is the node that is named, or the only one there is.
func nodeToFollow(e *state.Entry, node string) (string, error) {
	names := controllers.NodeNames(e)
	switch {
	case node == "" && len(names) == 1:
		return names[0], nil
	case node == "":
		return "", badUsage("--follow needs a node of %s: %s", e.Ref, schemas.Shorten(names, 20))
	case e.Kind == schemas.DAGKind.Name:
		return node, ops.FindNode(e, node)
	case !slices.Contains(names, node):
		return "", fmt.Errorf("%s has no round %q; it has %s", e.Ref, node, schemas.Shorten(names, 20))
	}
	return node, nil
}

func (f *logFollower) run(ctx context.Context, done <-chan struct{}) error {
	ticker := time.NewTicker(logLook)
	defer ticker.Stop()
	var looked time.Time
	for {
		if time.Since(looked) >= treeLook {
			over, err := f.look(ctx)
			if err != nil || over {
				return err
			}
			looked = time.Now()
		} else if err := f.copyNew(); err != nil {
			return err
		}
		select {
		case <-done:
			return f.copyNew()
		case <-ticker.C:
		}
		if unread(f.stdout) {
			return nil
		}
	}
}

// look brings the tree up to date, prints what is new, and reports whether the node has ended.
func (f *logFollower) look(ctx context.Context) (over bool, err error) {
	// What was claimed is known before it is looked who lives: so nobody is missed who ends in between.
	if f.tree, _, err = f.store.Refresh(ctx, f.tree, []string{}); err != nil {
		return false, err
	}
	e := f.decided(f.tree, f.ref).Entry(f.ref)
	if e == nil || e.Gone() {
		return true, fmt.Errorf("%s was removed", f.ref)
	}
	list, fits := controllers.Attempts(e, f.node)
	runs := len(list) > 0 && !list[len(list)-1].Done()
	over, why := f.ended(e)
	if n := len(list); n > 0 && (fits > 0 || runs || f.ref.Kind != schemas.DAGKind.Name) && list[n-1].Key != f.key {
		if err := f.begin(e, list[n-1]); err != nil {
			return false, err
		}
	}
	if err := f.copyNew(); err != nil {
		return false, err
	}
	switch {
	case runs:
		return false, nil
	case over && f.log == nil:
		return true, f.printEnd(e)
	case over:
		return true, nil
	case !f.anyoneAlive():
		return true, fmt.Errorf("%s %s has not ended, and no run is at work that would go on with it; it %s. \"reconcile\" starts one",
			f.ref, f.node, why)
	}
	if why != f.told {
		f.note("%s %s %s", f.ref, f.node, why)
		f.told = why
	}
	return false, nil
}

// ended reports whether nothing more comes of the node by itself; if not, why says how it stands.
func (f *logFollower) ended(e *state.Entry) (over bool, why string) {
	st, ok := e.Status().(*schemas.DAGStatus)
	if !ok {
		return true, ""
	}
	n := st.Nodes[f.node]
	switch n.State {
	case schemas.NodeSucceeded, schemas.NodeFailed, schemas.NodeSkipped, schemas.NodeCancelled:
		return true, ""
	case "":
		return false, "was not looked at by a run yet"
	}
	why = "is " + n.State
	if n.Message != "" {
		why += ": " + n.Message
	}
	return false, why
}

// anyoneAlive reports whether some process runs the tree.
func (f *logFollower) anyoneAlive() bool {
	return slices.ContainsFunc(f.store.Journals(), func(j state.JournalInfo) bool { return j.Alive })
}

// begin turns to another attempt, once all of the one before is printed.
func (f *logFollower) begin(e *state.Entry, r *schemas.Run) error {
	if err := f.copyNew(); err != nil {
		return err
	}
	if f.key != "" {
		if _, err := fmt.Fprintf(f.stdout, "==> %s, attempt %d <==\n", render.Line(f.node), r.Seq); err != nil {
			return err
		}
		f.tail = -1
	}
	f.close()
	f.key, f.told = r.Key, ""
	return nil
}

// copyNew prints what was added to the log. There is none before something is printed.
func (f *logFollower) copyNew() error {
	if f.key == "" {
		return nil
	}
	if f.log == nil {
		log, err := openLog(f.store.Root(), state.LogPath(f.key))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		f.log = log
		if err := seekTail(log, f.tail); err != nil {
			return err
		}
	}
	at, err := f.log.Seek(0, io.SeekCurrent)
	if info, serr := f.log.Stat(); serr == nil && info.Size() < at {
		err = rewind(f.log, 0) // the attempt was interrupted, and runs again
	}
	return errors.Join(err, f.copyText(f.stdout, f.log))
}

// printEnd prints what is on record of a node that has ended and has no log here.
func (f *logFollower) printEnd(e *state.Entry) error {
	at, ok := attemptOf(e, f.node, false)
	if !ok {
		f.note("%s %s has ended and never ran; \"reconcile describe %s\" says why", f.ref, f.node, f.ref)
		return nil
	}
	return f.printLog(f.store.Root(), at, "", false, f.tail)
}

func (f *logFollower) close() {
	if f.log != nil {
		f.log.Close()
		f.log = nil
	}
}
