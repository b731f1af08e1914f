package main

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
)

func newTaskCmd(a *app) *cobra.Command {
	q, file := ops.TaskRequest{}, ""
	cmd := &cobra.Command{
		Use:   "task NAME query|prompt|interrupt|ignore-inspector|ignore-tester|handoff|stop-handoff [TEXT]",
		Short: "Ask about the task of an agent, tell it something, or steer its pipeline",
		Long: `Ask about the task of an agent, tell it something, or steer its pipeline. NAME is dag/NAME:NODE, or the name of a node or of an
agent, if it is unique.

query says how the task is: its state, the loops of its pipeline, open findings, the use of the context, what the agent reported last,
and what differs in its workspace now. All of that is from records and files: it neither interrupts the agent nor asks
a model, and the agent hears nothing of it. Only for query, a name that is misspelled counts if it is like only one.

prompt brings the text into the running turn where the agent takes texts while it works; otherwise the text is part of the
prompt of its next turn. A turn that ends without it is followed by one with it, in the same session where the agent can.
interrupt ends the running turn at once; the text is part of the next turn. That uses up no attempt.

ignore-inspector and ignore-tester take the present change whatever that step of its pipeline says, for the reason in TEXT; with --digest no
other one than you have seen, as query shows it. The next change is verified as before.

handoff ends the running turn as interrupt does, and a new conversation goes on in the same workspace, with what records tell of the work;
the text is part of its first turn. stop-handoff stops a hand-off that is not complete yet, and later ones, until handoff is asked for.

Except for query, the command writes an Action to specs/actions/ and then runs the tree once to apply it; while another run is active, that run
applies it. The Action's status and the node's description say when and how the text arrived. A text may arrive twice if a run
is killed, but is not lost. In a run the command is refused: an agent does not act as a person.`,
		Example: "  reconcile task dag/checks:implement query\n" +
			"  reconcile task dag/checks:implement prompt \"Handle errors first\" --wait 1m\n" +
			"  reconcile task implement interrupt \"Stop, the interface has changed\"\n" +
			"  reconcile task engineer prompt -f review.md",
		Args: arguments(2, 3, "a NAME and what is to be done"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			q.Name, q.Verb = args[0], strings.ReplaceAll(args[1], "_", "-")
			switch {
			case len(args) == 3 && file != "":
				return badUsage("give the text either as an argument or with -f, not both")
			case len(args) == 3:
				q.Text, err = a.textOf(args[2])
			case file != "":
				q.Text, err = a.textIn("-f", file)
			}
			if err != nil {
				return err
			}
			if q.Verb == ops.VerbQuery {
				v, err := ops.QueryTask(cmd.Context(), a.env(), q.Name)
				return a.result(v, err, func() error { return render.Task(a.stdout, &v) })
			}
			r, err := ops.Task(cmd.Context(), a.env(), q)
			if r.Path == "" {
				return err
			}
			printed := a.result(r, nil, func() error {
				a.printf("%s: %s\n", r.Node, r.Note)
				return nil
			})
			return a.acted(r.Run, cmp.Or(err, printed))
		},
		ValidArgsFunction: a.completeTasks,
	}
	f := cmd.Flags()
	f.StringVarP(&file, "file", "f", "", "read the text from a `FILE`; - is standard input")
	f.StringVar(&q.Digest, "digest", "", "the `DIGEST` of the change that you have seen: ignore what is said of no other one")
	f.StringVar(&q.By, "by", "", "the `NAME` of the acting person (default: the user's login name)")
	f.BoolVar(&q.NoRun, "no-run", false, "only write the action; the next run applies it")
	f.DurationVar(&q.Wait, "wait", 0, "wait for at most this `TIME` until the text has arrived, and print the receipt")
	return cmd
}

// completeTasks completes NAME and the verb.
func (a *app) completeTasks(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return a.completeNamesOf(schemas.AgentKind)(cmd, args, typed)
	case 1:
		return append([]string{ops.VerbQuery}, ops.TaskVerbs...), cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

const proposeLong = `Ask for a change of the plan of a DAG or a session: writes a PlanChange to specs/planchanges/, and runs the tree.

An agent with the role architect answers it, or a person with "reconcile approve planchange/NAME" or "reconcile deny". What is accepted
is applied to the file of the DAG; what has succeeded stays, and what only people may change cannot be changed by it.

-f has the suggestions, as YAML or JSON: add (nodes), modify (fields by node), remove (names), needs (names by node), text.

Inside a run the command only writes the request, and the run goes on.`

func newProposeCmd(a *app) *cobra.Command {
	q, file := &ops.ProposeRequest{}, ""
	cmd := &cobra.Command{
		Use:   "propose [dag/NAME|session/NAME]",
		Short: "Ask for a change of a plan",
		Long:  proposeLong,
		Example: "  reconcile propose dag/checks --change fix --reason \"the linter is gone\" --failed lint -f edit.yaml\n" +
			"  reconcile propose dag/checks --change extend --reason \"benchmarks are missing\"",
		Args: arguments(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 1 {
				q.Target = args[0]
			}
			if file != "" {
				if q.Edit, err = a.editIn(file); err != nil {
					return err
				}
			}
			return a.propose(cmd.Context(), *q)
		},
		ValidArgsFunction: a.completeNodes(schemas.DAGKind, schemas.SessionKind),
	}
	f := cmd.Flags()
	f.StringVar(&q.Change, "change", schemas.ChangeModify, "the `KIND` of change: extend, modify, replace or fix")
	f.StringVar(&q.Reason, "reason", "", "why, a `TEXT` of at most 2000 characters")
	f.StringArrayVar(&q.Blocked, "blocked", nil, "a `NODE` that cannot go on; may be repeated")
	f.StringArrayVar(&q.Failed, "failed", nil, "a `NODE` that failed; may be repeated")
	f.StringVarP(&file, "file", "f", "", "read the suggestions from `FILE`; - is standard input")
	a.bindProposal(cmd, q)
	return cmd
}

const escalateLong = `Escalate a blocker of a node: writes a PlanChange that names what blocks it and what was tried.

The node is blocked until an agent with the role architect answers, or a person with "reconcile approve planchange/NAME --answer TEXT" or
"reconcile deny". Then it goes on, and its agent is told the answer. In a run of the node, end the run: the node runs again with the answer.`

func newEscalateCmd(a *app) *cobra.Command {
	q := &ops.ProposeRequest{Change: schemas.ChangeFix}
	cmd := &cobra.Command{
		Use:     "escalate [dag/NAME NODE]",
		Short:   "Name what blocks a node, and what was tried",
		Long:    escalateLong,
		Example: "  reconcile escalate dag/checks deploy --blocker \"no access to the cluster\" --tried \"the token of CI\"",
		Args:    arguments(0, 2, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.escalated(q, args); err != nil {
				return err
			}
			return a.propose(cmd.Context(), *q)
		},
		ValidArgsFunction: a.completeNodes(schemas.DAGKind),
	}
	f := cmd.Flags()
	f.StringVar(&q.Reason, "blocker", "", "what blocks the node, a `TEXT` of at most 2000 characters")
	f.StringVar(&q.BlockerType, "type", "", "the `TYPE` of the blocker: "+strings.Join(schemas.BlockerTypes(), ", "))
	f.StringArrayVar(&q.Tried, "tried", nil, "a `TEXT` that says what was tried; may be repeated")
	a.bindProposal(cmd, q)
	return cmd
}

func (a *app) bindProposal(cmd *cobra.Command, q *ops.ProposeRequest) {
	cmd.Flags().StringVar((*string)(&q.Priority), "priority", "", "the `PRIORITY` of the question: critical, high, normal, low or background (default high); "+
		"from a run, critical counts as high")
	cmd.Flags().StringToStringVar(&q.Context, "context", nil, "what else is to be known, a `NAME=TEXT`; may be repeated")
	cmd.Flags().StringVar(&q.By, "by", "", "the `NAME` of the acting person; in a run its agent (default: the user's login name)")
	cmd.Flags().BoolVar(&q.NoRun, "no-run", false, "only write the request; the next run takes it")
}

// escalated takes the node from the arguments, as dag/NAME NODE or dag/NAME:NODE; in a run of a node it is that node.
func (a *app) escalated(q *ops.ProposeRequest, args []string) error {
	switch _, node, ok := schemas.SplitRunKey(a.env().Caller.RunKey()); {
	case len(args) == 0 && ok:
		q.Node = node
		return nil
	case len(args) == 0:
		return badUsage("name the node that is blocked; usage: reconcile escalate dag/NAME NODE --blocker TEXT")
	}
	target, node, cut := strings.Cut(args[0], ":")
	if q.Target, q.Node = target, node; len(args) == 2 {
		q.Node = args[1]
	}
	if q.Node == "" || cut && len(args) == 2 {
		return badUsage("name one node of the DAG; usage: reconcile escalate dag/NAME NODE --blocker TEXT")
	}
	return nil
}

func (a *app) propose(ctx context.Context, q ops.ProposeRequest) error {
	r, err := ops.Propose(ctx, a.env(), q)
	if err != nil {
		return err
	}
	text := "planchange/" + r.Name
	switch {
	case r.Phase != "" || r.Message != "":
		text = strings.TrimSpace(text+": "+r.Phase) + ": " + r.Message
	case a.env().Caller.InRun() && q.Node != "":
		text += ": end this run; the node runs again with the answer"
	default:
		text += ": the next run takes it"
	}
	err = a.result(r, nil, func() error {
		a.printf("%s\n", strings.ReplaceAll(text, ": : ", ": "))
		return nil
	})
	return cmp.Or(err, exitWith(int(r.Verdict)))
}
