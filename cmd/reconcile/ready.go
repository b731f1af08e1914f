package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// readyOptions are the flags of ready.
type readyOptions struct {
	explain bool
	claim   bool
	agent   string
	issue   issueFlag
	noRun   bool
}

func newReadyCmd(a *app) *cobra.Command {
	o := &readyOptions{}
	cmd := &cobra.Command{
		Use:   "ready",
		Short: "Show what can be worked on now, or take one item of it",
		Long: `Show what can be worked on now, the most urgent first: tasks of people, questions that wait for a person,
nodes that wait for their turn, and what cannot go on because a question is open. What follows from the files is decided
and written before, unless another run is at work; nothing is started, and nothing is waited for.

--claim takes the first free item of the agent, so that nobody else is given it; "reconcile hook finish" gives it back.
With nothing to take it says so, and prints null with -o json. Items that somebody took are listed with --explain only.`,
		Example: "  reconcile ready --explain\n" +
			"  reconcile ready --claim --agent engineer -o json\n" +
			"  reconcile ready --issue 42",
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.ready(cmd.Context(), *o) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.explain, "explain", false,
		"also why each item stands as it does, when it is looked at again, and who took it")
	f.BoolVar(&o.claim, "claim", false, "take the first free item for the agent that --agent names")
	f.StringVar(&o.agent, "agent", "", "only what this `AGENT` can do")
	f.Var(&o.issue, "issue", "only what is about this issue")
	f.BoolVar(&o.noRun, "no-run", false, "only look")
	_ = cmd.RegisterFlagCompletionFunc("agent", a.completeNamesOf(schemas.AgentKind))
	return cmd
}

// issueFlag is the number of an issue, or not given.
type issueFlag struct {
	number int
	given  bool
}

func (f *issueFlag) String() string {
	if !f.given {
		return ""
	}
	return strconv.Itoa(f.number)
}

func (f *issueFlag) Type() string { return "N" }

func (f *issueFlag) Set(s string) error {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 0 {
		return errors.New("must be the number of an issue; 0 means none")
	}
	f.number, f.given = int(n), true
	return nil
}

func (a *app) ready(ctx context.Context, o readyOptions) error {
	var err error
	if o.claim {
		if o.agent, err = a.caller().Worker(o.agent); err != nil {
			return err
		}
		if o.agent == "" {
			return badUsage("--claim needs --agent, the name of who takes the item")
		}
	}
	s, t, err := a.load(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if o.agent != "" {
		if _, err := ops.FindAgent(t, o.agent); err != nil {
			return err
		}
	}
	if t, err = a.looked(ctx, s, t, o.noRun); err != nil {
		return err
	}
	if o.claim {
		return a.claim(ctx, s, t, o)
	}
	items := o.selected(t, controllers.Ready(t, a.now()))
	if a.global.output != formatTable {
		return a.print(items)
	}
	if len(items) == 0 {
		a.note("nothing is ready")
	}
	return render.ReadyTable(a.stdout, a.palette(), items, o.explain, a.now())
}

// selected are the items that the flags ask for; never nil.
func (o *readyOptions) selected(t *state.Tree, all []controllers.Item) []controllers.Item {
	person := isPerson(t, o.agent)
	out := []controllers.Item{}
	for _, it := range all {
		switch {
		case o.issue.given && it.Issue != o.issue.number:
		case o.agent != "" && it.Agent != o.agent && (it.Agent != "" || !person):
		case it.Claim != nil && it.Claim.By != o.agent && !o.explain:
		default:
			out = append(out, it)
		}
	}
	return out
}

func isPerson(t *state.Tree, agent string) bool {
	e := t.Entry(schemas.Ref{Kind: schemas.AgentKind.Name, Name: agent})
	if e == nil {
		return false
	}
	spec := schemas.SpecAs[*schemas.AgentSpec](e.Object)
	return spec != nil && spec.Runner.Human != nil
}

// claim takes the first free item for an agent, if there is one, and prints it.
func (a *app) claim(ctx context.Context, s *state.Store, t *state.Tree, o readyOptions) error {
	var taken *controllers.Item
	var all []controllers.Item
	t, err := a.recordHook(ctx, s, t, func(t *state.Tree) (*schemas.Run, error) {
		agent, err := ops.FindAgent(t, o.agent)
		if err != nil {
			return nil, err
		}
		all = controllers.Ready(t, a.now())
		taken = o.first(t, all)
		if taken == nil {
			return nil, nil
		}
		r := controllers.NewHook(agent, schemas.OutcomeStarted, taken.Issue, a.now())
		r.For = taken.Name
		taken.Claim = &controllers.ItemClaim{By: o.agent, Since: r.StartedAt}
		return &r, nil
	})
	if err != nil {
		return err
	}
	if taken == nil {
		a.noteUnroutable(o, all)
	}
	if err := a.printClaim(taken, o.agent); err != nil || taken == nil || anyClaim(t) {
		return err
	}
	_, err = a.looked(ctx, s, t, o.noRun)
	return err
}

// first is the first item that the agent can take; nil when there is none.
func (o *readyOptions) first(t *state.Tree, all []controllers.Item) *controllers.Item {
	person := isPerson(t, o.agent)
	i := slices.IndexFunc(all, func(it controllers.Item) bool {
		return it.Free(o.agent, person) && (!o.issue.given || it.Issue == o.issue.number)
	})
	if i < 0 {
		return nil
	}
	return &all[i]
}

// noteUnroutable says why questions to the agent are not handed out.
func (a *app) noteUnroutable(o readyOptions, all []controllers.Item) {
	for _, it := range all {
		if it.Reason == controllers.ReasonUnroutable && it.Agent == o.agent && (!o.issue.given || it.Issue == o.issue.number) {
			a.note("%s is not handed out: %s", it.Name, it.Message)
		}
	}
}

func (a *app) printClaim(taken *controllers.Item, agent string) error {
	switch {
	case a.global.output != formatTable:
		return a.print(taken)
	case taken == nil:
		a.note("nothing is ready for %s", agent)
		return nil
	}
	_, err := fmt.Fprintf(a.stdout, "%s: %s\n", taken.Name, render.Line(taken.Task))
	return err
}

// recordHook writes the hook record that decide makes of the tree as it is under its lock, so that of several who
// decide at once each sees what the others recorded. With nil nothing is written. It returns the tree that was seen.
func (a *app) recordHook(
	ctx context.Context, s *state.Store, t *state.Tree, decide func(*state.Tree) (*schemas.Run, error),
) (_ *state.Tree, err error) {
	lock, err := s.Lock(ctx)
	if err != nil {
		return nil, lockTimeout(err, "nothing was recorded, try again")
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if t, err = a.reader.Refresh(ctx, s, t, nil); err != nil {
		return nil, err
	}
	r, err := decide(t)
	if err != nil || r == nil {
		return t, err
	}
	data, err := state.EncodeRun(r)
	if err != nil {
		return t, err
	}
	_, err = s.Write(ctx, []state.Change{{Path: s.RunPath(r.Key), Data: data}})
	return t, err
}

// monitor runs the tree once, so that questions whose time is over are noticed and what was written takes effect, and
// returns it as it is then. While another run is at work, and as a part of one, it only looks: that run does the rest.
func (a *app) monitor(ctx context.Context, s *state.Store, t *state.Tree, noRun bool) (*state.Tree, error) {
	next, _, err := a.monitored(ctx, s, t, noRun)
	return next, err
}

// looked is monitor that starts nothing and waits for nothing.
func (a *app) looked(ctx context.Context, s *state.Store, t *state.Tree, noRun bool) (*state.Tree, error) {
	next, _, err := a.updated(ctx, s, t, noRun, engine.Request{DecideOnly: true})
	return next, err
}

// monitored is monitor that also tells whether a run has brought the memory in step with the tree.
func (a *app) monitored(ctx context.Context, s *state.Store, t *state.Tree, noRun bool) (*state.Tree, bool, error) {
	return a.updated(ctx, s, t, noRun, engine.Request{})
}

func (a *app) updated(ctx context.Context, s *state.Store, t *state.Tree, noRun bool, q engine.Request,
) (next *state.Tree, whole bool, err error) {
	switch {
	case noRun || a.caller().InRun():
	case anyClaim(t):
		a.note("another run is at work; this is how things stand")
	default:
		out, err := a.reconcile(ctx, q, false)
		if out.Busy != nil && q.DecideOnly {
			a.note("%v", out.Busy)
		} else {
			err = errors.Join(err, out.Busy)
		}
		if err != nil {
			return nil, false, lockTimeout(err, "what was written is kept, the next run takes it up")
		}
		whole = !out.Held
		if int(out.Verdict) == exitInvalid {
			a.note("some spec files cannot be used; \"reconcile validate\" lists them")
		}
	}
	next, err = a.reader.Refresh(ctx, s, t, nil)
	return next, whole, err
}

// lockTimeout gives an error of a lock that could not be had its kind, and says what became of the matter; other errors
// it leaves alone.
func lockTimeout(err error, so string) error {
	if !errors.Is(err, state.ErrBusy) {
		return err
	}
	why := strings.TrimPrefix(err.Error(), clarify.LockTimeout+": ")
	return &clarify.Error{Kind: clarify.LockTimeout, Message: why + "; " + so}
}
