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

	"reconcile.dev/reconcile/controllers/nodes"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// How often a followed log is polled, and, less often, the tree.
const (
	logInterval  = 100 * time.Millisecond
	treeInterval = 300 * time.Millisecond
)

// LogPart is a part of a followed log. An empty one means that there is nothing new.
type LogPart struct {
	Text    io.Reader // the appended text; to be read before the next part. nil: none
	Attempt int       // the number of another attempt, which starts here; 0: none
	Node    string    // of that attempt
	Lines   int       // how many of the last lines of Ended to show; negative: all
	Ended   *Attempt  // the record of an ended node without a log; nil: it continues, or its log was shown
}

// errStopped says that the caller of an iterator has stopped.
var errStopped = errors.New("stopped")

// logFollower yields the output of the attempts of one node until the node has ended.
type logFollower struct {
	env   Env
	yield func(LogPart) error // errStopped: the caller has stopped
	store *state.Store
	tree  *state.Tree
	ref   schemas.Ref
	node  string
	tail  int

	key      string   // of the current attempt; "" before the first
	log      *os.File // nil while it does not exist
	lastNote string   // last note about why there is no output
}

// FollowLog follows the log of a node: it yields a LogPart for new lines, until the node ends, whichever process runs
// it. It starts with the last lines, or with all for a negative number. It also yields empty parts several times a
// second, so that a caller can stop. The end of ctx is not an error.
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

// nodeToFollow returns the named node, or the only one.
func nodeToFollow(e *state.Entry, node string) (string, error) {
	names := nodes.NodeNames(e)
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
	ticker := time.NewTicker(logInterval)
	defer ticker.Stop()
	var looked time.Time
	for {
		if time.Since(looked) >= treeInterval {
			over, err := f.poll(ctx)
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

// poll refreshes the tree, yields new output, and reports whether the node has ended.
func (f *logFollower) poll(ctx context.Context) (over bool, err error) {
	// Claims are read before live processes are listed, so that a process that ends in between is not missed.
	if f.tree, _, err = f.store.Refresh(ctx, f.tree, []string{}); err != nil {
		return false, err
	}
	e := f.env.decided(f.tree, f.ref).Entry(f.ref)
	if e == nil || e.Gone() {
		return true, fmt.Errorf("%s was removed", f.ref)
	}
	list, fits := nodes.Attempts(e, f.node)
	runs := len(list) > 0 && !list[len(list)-1].Done()
	over, why := f.ended(e)
	if n := len(list); n > 0 && (fits > 0 || runs || f.ref.Kind != schemas.DAGKind.Name) && list[n-1].Key != f.key {
		if err := f.begin(list[n-1]); err != nil {
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
	if why != f.lastNote {
		f.env.note("%s %s %s", f.ref, f.node, why)
		f.lastNote = why
	}
	return false, nil
}

// ended reports whether the node produces no more output without another run; if not, why describes its state.
func (f *logFollower) ended(e *state.Entry) (over bool, why string) {
	st, ok := e.Status().(*schemas.DAGStatus)
	if !ok {
		return true, ""
	}
	n := st.Nodes.Of(f.node)
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

// anyoneAlive reports whether a process runs the tree.
func (f *logFollower) anyoneAlive() bool {
	return slices.ContainsFunc(f.store.Journals(), func(j state.JournalInfo) bool { return j.Alive })
}

// begin switches to another attempt, after the rest of the previous one was yielded.
func (f *logFollower) begin(r *schemas.Run) error {
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
	f.key, f.lastNote = r.Key, ""
	return nil
}

// copyNew yields the text that was appended to the log. The log may not exist before the first output.
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

// printEnd yields the record of an ended node without a log.
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

func interruptedIn(entries []*state.Entry, attended bool) map[schemas.Ref][]string {
	out := map[schemas.Ref][]string{}
	for _, e := range entries {
		if names := nodes.Interrupted(e, attended); len(names) > 0 {
			out[e.Ref] = names
		}
	}
	return out
}
