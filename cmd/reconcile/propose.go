package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/schemas"
)

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

// editIn reads an edit, which is YAML or JSON, as JSON.
func (a *app) editIn(file string) (string, error) {
	text, err := a.textIn("-f", file)
	if err != nil {
		return "", err
	}
	data, err := schemas.JSONOfYAML(file, []byte(text))
	return string(data), err
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
	if a.global.output != formatTable {
		if err := a.print(r); err != nil {
			return err
		}
		return exitWith(int(r.Verdict))
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
	if _, err := fmt.Fprintln(a.stdout, strings.ReplaceAll(text, ": : ", ": ")); err != nil {
		return err
	}
	return exitWith(int(r.Verdict))
}
