package main

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// verb is one command that writes an Action.
type verb struct {
	name     string
	short    string
	session  bool // also of sessions
	wholeDAG bool // also without a node
	node     bool // also of a node
	people   bool // for people only: refused inside of a run
}

// verbs are the commands that steer what runs.
var verbs = []verb{
	{schemas.VerbCancel, "End what runs and start nothing more, until a retry", true, true, true, false},
	{schemas.VerbRetry, "Run again what failed or was cancelled, or one node whatever its state", true, true, true, false},
	{schemas.VerbPause, "Start nothing new, and let what runs finish", true, true, false, false},
	{schemas.VerbResume, "Go on after a pause", true, true, false, false},
	{schemas.VerbSkip, "Go on without a node, as if it had succeeded", false, false, true, true},
	{schemas.VerbHold, "Keep a DAG or node from starting until it is approved", false, true, true, false},
	{schemas.VerbApprove, "Let a held node start, or say that a person's task is done", false, true, true, true},
}

// actionOptions are the flags of the verbs.
type actionOptions struct {
	reason string
	by     string
	noRun  bool
	all    bool
}

func newVerbCmd(a *app, v verb) *cobra.Command {
	o := &actionOptions{}
	targets := []schemas.Kind{schemas.DAGKind}
	if v.session {
		targets = append(targets, schemas.SessionKind)
	}
	cmd := &cobra.Command{
		Use:   v.usage(),
		Short: v.short,
		Long: v.short + `.

The command writes an Action into specs/actions/ and then runs the tree once, so that it takes effect. While another
run is at work it only writes: that run takes it from there.`,
		Example:           v.example(),
		Args:              arguments(v.least(), 2, v.words()),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.act(cmd.Context(), v, args, *o) },
		ValidArgsFunction: a.completeNodes(targets...),
	}
	cmd.Flags().StringVar(&o.reason, "reason", "", "the `REASON`, for the record")
	cmd.Flags().StringVar(&o.by, "by", "", "the `NAME` of who asks; in a run its agent (default: the user's login name)")
	if v.name == schemas.VerbRetry {
		cmd.Flags().BoolVar(&o.all, "all", false, "run every node of the DAG again, also those that succeeded")
	}
	cmd.Flags().BoolVar(&o.noRun, "no-run", false, "only write the action; the next run applies it")
	return cmd
}

func (v verb) usage() string {
	s := v.name + " dag/NAME"
	switch {
	case !v.wholeDAG:
		s += " NODE"
	case v.node:
		s += " [NODE]"
	}
	if v.session {
		s += "|session/NAME"
	}
	return s
}

func (v verb) example() string {
	s := "  reconcile " + v.name + " dag/checks"
	if v.node {
		s += " unit_tests"
	}
	return s + " --reason \"see #42\""
}

// words says what the command needs.
func (v verb) words() string {
	if v.wholeDAG {
		return "a target"
	}
	return "a dag and a node"
}

func (v verb) least() int {
	if v.wholeDAG {
		return 1
	}
	return 2
}

func (a *app) act(ctx context.Context, v verb, args []string, o actionOptions) error {
	if v.people {
		if err := a.caller().OnlyPeople(v.name); err != nil {
			return err
		}
	}
	by, err := a.caller().Actor("--by", o.by)
	if err != nil {
		return err
	}
	s, t, err := a.load(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	spec := schemas.ActionSpec{Verb: v.name, Reason: a.discreet("--reason", o.reason), By: by, At: schemas.NewTime(a.now())}
	if len(args) == 2 {
		spec.Node = args[1]
	}
	if spec.Target, err = v.target(t, args[0], spec.Node); err != nil {
		return err
	}
	if spec.All = o.all; o.all && (spec.Node != "" || !strings.HasPrefix(spec.Target, "dag/")) {
		return badUsage("--all is about a whole DAG; usage: reconcile retry dag/NAME --all")
	}
	if v.name == schemas.VerbApprove {
		if err := a.approvable(t, spec); err != nil {
			return err
		}
	}
	where, err := specs.Write(s, t, schemas.ActionKind, actionName(spec), &spec)
	if err != nil {
		return err
	}
	a.note("wrote %s", where)
	err = a.follow(ctx, t, o.noRun)
	if moot := a.mootAction(ctx, strings.TrimSuffix(path.Base(where), ".yaml")); moot != "" {
		a.note("%s", moot)
	}
	return err
}

// approvable refuses an approval that would change nothing, and says what waits for one.
func (a *app) approvable(t *state.Tree, spec schemas.ActionSpec) error {
	ref, err := spec.TargetRef()
	if err != nil || controllers.Approvable(t, ref, spec.Node, a.now()) {
		return err
	}
	what := strings.TrimSpace(spec.Target + " " + spec.Node)
	var waits []string
	for _, w := range controllers.Waits(t) {
		if strings.HasPrefix(w.Command, "reconcile "+schemas.VerbApprove) {
			waits = append(waits, w.Command)
		}
	}
	if len(waits) == 0 {
		return fmt.Errorf("there is nothing to approve of %s, nor does anything else wait for an approval", what)
	}
	return fmt.Errorf("there is nothing to approve of %s; what waits: %s", what, schemas.Shorten(waits, 3))
}

// mootAction says of an action that changed nothing, which a run does not list, that it did not; else it is empty.
func (a *app) mootAction(ctx context.Context, name string) string {
	s, t, err := a.load(ctx)
	if err != nil {
		return "" // what went wrong was said by the run
	}
	defer s.Close()
	for _, e := range t.Entries(schemas.DAGKind.Name) {
		st, ok := e.Status().(*schemas.DAGStatus)
		if ok && slices.ContainsFunc(st.Actions, func(x schemas.AppliedAction) bool { return x.Name == name && x.Moot }) {
			return controllers.Because(t.Entry(schemas.Ref{Kind: schemas.ActionKind.Name, Name: name}))
		}
	}
	return ""
}

// target checks what a verb is about, before anything is written.
func (v verb) target(t *state.Tree, word, node string) (string, error) {
	e, err := ops.Find(t, word)
	if err != nil {
		return "", err
	}
	switch {
	case e.Kind == schemas.SessionKind.Name && v.session && node == "":
	case e.Kind == schemas.SessionKind.Name && node != "":
		return "", badUsage("%s is a session and has no nodes; leave %q out", e.Ref, node)
	case e.Kind != schemas.DAGKind.Name:
		return "", badUsage("%s cannot be told to %s; usage: reconcile %s", e.Ref, v.name, v.usage())
	case node != "" && !v.node:
		return "", badUsage("a node cannot be told to %s; usage: reconcile %s", v.name, v.usage())
	case node != "" && e.Object != nil:
		err = ops.FindNode(e, node)
	}
	return e.Ref.String(), err
}

// actionName is retry-checks-20260227t100000z-1a2b3c: verb, target, time, and a digest that tells apart what is asked
// in one second. The target is cut where the name would get too long.
func actionName(spec schemas.ActionSpec) string {
	const most = 30
	_, name, _ := strings.Cut(spec.Target, "/")
	name = strings.TrimRight(name[:min(len(name), most)], "-._")
	digest := specs.NameDigest(3, spec.Target, spec.Node, spec.Verb, spec.By, spec.Reason, spec.At.UnixMilli(), spec.All)
	return strings.Join([]string{spec.Verb, name, spec.At.UTC().Format("20060102t150405z"), digest}, "-")
}

// follow makes what was written take effect: by a run, unless one is at work that will see it.
func (a *app) follow(ctx context.Context, before *state.Tree, noRun bool) error {
	switch {
	case noRun:
		return nil
	case anyClaim(before):
		a.note("another run is at work and takes it from here")
		return nil
	}
	return a.run(ctx, runOptions{}, nil)
}

// anyClaim reports whether a live process performs something in this tree.
func anyClaim(t *state.Tree) bool {
	for _, e := range entries(t) {
		if len(e.Claims) > 0 {
			return true
		}
	}
	return false
}
