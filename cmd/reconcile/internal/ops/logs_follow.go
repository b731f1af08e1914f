package ops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// How often a log that is followed is looked at, and, less often, the tree.
const (
	logLook  = 100 * time.Millisecond
	treeLook = 300 * time.Millisecond
)

// LogPart is a part of a log that is followed. An empty one says that there is nothing new.
type LogPart struct {
	Text    io.Reader // what was added; to be read before the next part. nil: nothing
	Attempt int       // the number of another attempt, which begins here; 0: none does
	Node    string    // of that attempt
	Lines   int       // how many of the last lines of Ended to show; negative: all
	Ended   *Attempt  // the node has ended, and this is on record of it; nil: it goes on, or the end was in its log
}

// errStopped says that the caller of an iterator has seen enough.
var errStopped = errors.New("stopped")

// logFollower yields what the attempts of one node print, until the node has ended.
type logFollower struct {
	env   Env
	yield func(LogPart) error // errStopped: the caller has seen enough
	store *state.Store
	tree  *state.Tree
	ref   schemas.Ref
	node  string
	tail  int

	key  string   // of the attempt that is printed; "" before the first
	log  *os.File // nil while it is not there
	told string   // what was said last of why nothing is printed
}

// FollowLog yields what a node prints until it ends, whichever process runs it, beginning with the last lines of what it has
// printed, or all with a negative number. It also yields empty parts, some a second, so that a caller can stop. The end of ctx
// is no error.
func FollowLog(ctx context.Context, env Env, q LogsRequest, lines int) iter.Seq2[LogPart, error] {
	return func(yield func(LogPart, error) bool) {
		err := env.followLog(ctx, q, lines, func(p LogPart) error {
			if !yield(p, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(LogPart{}, typed(err))
		}
	}
}

func (e Env) followLog(ctx context.Context, q LogsRequest, lines int, yield func(LogPart) error) error {
	s, t, err := e.load(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	found, err := logged(t, q.Object)
	if err != nil {
		return err
	}
	node, err := nodeToFollow(found, q.Node)
	if err != nil {
		return err
	}
	f := &logFollower{env: e, yield: yield, store: s, tree: t, ref: found.Ref, node: node, tail: lines}
	defer f.close()
	return f.run(context.WithoutCancel(ctx), ctx.Done())
}

// nodeToFollow is the node that is named, or the only one there is.
func nodeToFollow(e *state.Entry, node string) (string, error) {
	names := controllers.NodeNames(e)
	switch {
	case node == "" && len(names) == 1:
		return names[0], nil
	case node == "":
		return "", badField("follow", " needs a node of %s: %s", e.Ref, schemas.Shorten(names, 20))
	case e.Kind == schemas.DAGKind.Name:
		return node, findNode(e, node)
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
	}
}

// look brings the tree up to date, prints what is new, and reports whether the node has ended.
func (f *logFollower) look(ctx context.Context) (over bool, err error) {
	// What was claimed is known before it is looked who lives: so nobody is missed who ends in between.
	if f.tree, _, err = f.store.Refresh(ctx, f.tree, []string{}); err != nil {
		return false, err
	}
	e := f.env.decided(f.tree, f.ref).Entry(f.ref)
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
		f.env.note("%s %s %s", f.ref, f.node, why)
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
		if err := f.yield(LogPart{Attempt: r.Seq, Node: f.node}); err != nil {
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
		return f.yield(LogPart{})
	}
	if f.log == nil {
		log, err := openLog(f.store.Root(), state.LogPath(f.key))
		if errors.Is(err, fs.ErrNotExist) {
			return f.yield(LogPart{})
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
	return errors.Join(err, f.yield(LogPart{Text: f.log}))
}

// printEnd prints what is on record of a node that has ended and has no log here.
func (f *logFollower) printEnd(e *state.Entry) error {
	at, ok := attemptOf(e, f.node, false)
	if !ok {
		f.env.note("%s %s has ended and never ran; \"reconcile describe %s\" says why", f.ref, f.node, f.ref)
		return nil
	}
	return f.yield(LogPart{Ended: &at, Lines: f.tail})
}

func (f *logFollower) close() {
	if f.log != nil {
		f.log.Close()
		f.log = nil
	}
}
