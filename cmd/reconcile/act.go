package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/controllers/permits"
	"reconcile.dev/reconcile/schemas"
)

func newVerbCmd(a *app, v ops.Verb) *cobra.Command {
	q, exclusive, session, always, file := &ops.ActRequest{Verb: v.Name}, false, false, false, ""
	targets := []schemas.Kind{schemas.DAGKind}
	if v.Session {
		targets = append(targets, schemas.SessionKind)
	}
	if v.Answers {
		targets = append(targets, schemas.PlanChangeKind)
	}
	least, needs := 1, "a target"
	if !v.WholeDAG && !v.Answers {
		least, needs = 2, "a dag and a node"
	}
	cmd := &cobra.Command{
		Use:   v.Usage(),
		Short: v.Short,
		Long: v.Short + `.

The command writes an Action to specs/actions/ and then runs the tree once to apply it. While another run is active it
only writes: that run applies it.`,
		Example: verbExample(v),
		Args:    func(cmd *cobra.Command, args []string) error { return arguments(least, 2, needs)(cmd, target(args)) },
		RunE: func(cmd *cobra.Command, args []string) error {
			args = target(args)
			if q.Target = args[0]; len(args) == 2 {
				q.Node = args[1]
			}
			switch {
			case session && always:
				return badUsage("--session and --always exclude each other")
			case session:
				q.For = schemas.PermitSession
			case always:
				q.For = ops.PermitAlways
			}
			if file != "" {
				var err error
				if q.Answer, err = a.answerIn(file); err != nil {
					return err
				}
			}
			if exclusive {
				return a.resumeExclusively(cmd, q)
			}
			return a.act(cmd.Context(), *q)
		},
		ValidArgsFunction: a.completeNodes(targets...),
	}
	cmd.Flags().StringVar(&q.Reason, "reason", "", "the `REASON`, for the record")
	cmd.Flags().StringVar(&q.By, "by", "", "the `NAME` of the acting person; in a run its agent (default: the user's login name)")
	switch v.Name {
	case schemas.VerbResume:
		cmd.Long += `

--exclusive makes a session the only active one of its owner: it sets the phase in its spec to Active, and in the owner's
other active sessions to Paused. Nothing else changes in their files. Then the tree runs once.`
		cmd.Flags().BoolVar(&exclusive, "exclusive", false, "make the session its owner's only active one, and pause the others")
	case schemas.VerbApprove:
		cmd.Long += `

An agent that asks for a permission waits until a person allows or denies it; "reconcile ready" shows the request. approve allows
this one request. --session allows the same to the agent in all of the session, --always by a rule in reconcile.yaml.`
		cmd.Long += `

A node with approve is a gate: "reconcile describe" shows what there is to approve, with its digest. The approval is for what the gate
shows now; with --digest it is refused if that has changed. --answer, or -f with a file of text, JSON or YAML, is checked by the form in
approve.form; the answer to a person's task is its result.`
		cmd.Long += `

Of a plan change, approve accepts the suggestions, or the edit in --answer or -f: an object with edit, instructions and reason. Any other
text is for the node that escalated.`
		cmd.Flags().StringVar(&q.Answer, "answer", "", "the answer, as `JSON` or text")
		cmd.Flags().StringVarP(&file, "file", "f", "", "read the answer from `FILE`; - is standard input")
		cmd.Flags().StringVar(&q.Digest, "digest", "", "the `DIGEST` of what you have seen: approve nothing else")
		cmd.MarkFlagsMutuallyExclusive("answer", "file")
		cmd.Flags().BoolVar(&session, "session", false, "allow the same request of the agent in all of the session")
		cmd.Flags().BoolVar(&always, "always", false, "allow the command by a rule in reconcile.yaml")
	case schemas.VerbDeny:
		cmd.Long += `

The agent learns that its request is refused, with the reason, and goes on without it. --session refuses the same in all of the session.
A plan change that is refused changes nothing; a node that escalated goes on with the reason.`
		cmd.Flags().BoolVar(&session, "session", false, "refuse the same request of the agent in all of the session")
	case schemas.VerbRetry:
		cmd.Long += `

What depends on a node runs again after it. With --alone, a node that succeeded runs again, and what depends on it stays as it is.`
		cmd.Flags().BoolVar(&q.All, "all", false, "run every node of the DAG again, including succeeded ones")
		cmd.Flags().BoolVar(&q.Alone, "alone", false, "leave what depends on the node as it is")
	case schemas.VerbCancel:
		cmd.Long += `

--mode graceful asks what runs to end, and kills it after runs.grace; immediate kills it; wait lets it end by itself, and starts nothing
more.`
		cmd.Flags().StringVar(&q.Mode, "mode", "", "end what runs in a `MODE`: graceful, immediate or wait (default graceful)")
	}
	if v.Session {
		cmd.Long += "\n\nThe target all stands for all sessions that there are."
	}
	cmd.Flags().BoolVar(&q.NoRun, "no-run", false, "only write the action; the next run applies it")
	return cmd
}

// target joins the words of a target and leaves "all" as it is.
func target(args []string) []string {
	if len(args) > 0 && args[0] == schemas.TargetAll {
		return args
	}
	return withRef(args)
}

func verbExample(v ops.Verb) string {
	s := "  reconcile " + v.Name + " dag/checks"
	if v.Node {
		s += " unit_tests"
	}
	return s + " --reason \"see #42\""
}

func (a *app) act(ctx context.Context, q ops.ActRequest) error {
	r, err := ops.Act(ctx, a.env(), q)
	if r.Answered != nil && r.Path != "" {
		word := "allowed"
		if q.Verb == schemas.VerbDeny {
			word = "refused"
		}
		a.note("%s: %s", word, permits.Describe(r.Answered))
	}
	err = a.acted(r.Run, err)
	if r.Moot != "" {
		a.note("%s", r.Moot)
	}
	return err
}

// resumeExclusively makes a session the only active one of its owner. It edits the specs of the owner's sessions, which
// cannot record a reason.
func (a *app) resumeExclusively(cmd *cobra.Command, q *ops.ActRequest) error {
	if given := changed(cmd, "reason", "by"); len(given) > 0 || q.Node != "" {
		return badUsage("--exclusive edits the specs of sessions: name a session, without %s", strings.Join(append(given, "a node"), ", "))
	}
	r, err := ops.Switch(cmd.Context(), a.env(), ops.SwitchRequest{Session: q.Target, NoRun: q.NoRun})
	if r.Session.Name != "" && len(r.Edits) == 0 {
		a.note("%s is the active one already", r.Session)
	}
	for _, ed := range r.Edits {
		a.printf("%s: phase %s (%s)\n", ed.Ref, ed.Phase, ed.Path)
	}
	return a.acted(r.Run, err)
}

func newStartCmd(a *app) *cobra.Command {
	q, file := ops.StartRequest{}, ""
	var params []string
	cmd := &cobra.Command{
		Use:   "start WORKFLOW --issue N",
		Short: "Start a workflow for an issue",
		Long: `Start a workflow for an issue. Each step becomes a node of a new DAG in a new session, both named for the workflow and the issue,
such as feature-42. A start for an issue whose run has not ended joins that run, unless it asks for other values of parameters or
other steps; after its end, another start makes feature-42-2.

The text of the issue is that of a file, whose first heading is the title, that of an earlier run, or that of the repository on GitHub
that the settings name (github.repo): then a run with a token reads it once. It is kept in the session. Without any the start is refused.

The command writes an Action to specs/actions/ and then runs the tree once to apply it; while another run is active, that run
applies it. Anyone can commit such an Action. In a run the command is refused: an agent starts no workflows.`,
		Example: "  reconcile start feature --issue 42\n" +
			"  reconcile start feature --issue 42 --issue-file issue.md --skip design\n" +
			"  reconcile start feature --issue-file idea.md --no-run",
		Args: arguments(1, 1, "a workflow"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if q.Workflow = args[0]; file != "" {
				if q.Text, err = a.textIn("--issue-file", file); err != nil {
					return err
				}
			}
			if q.Params, err = paramValues(params); err != nil {
				return err
			}
			r, err := ops.Start(cmd.Context(), a.env(), q)
			switch {
			case r.Path == "":
				return err
			case r.DAG.Name == "" && r.Run == nil:
				a.note("the next run of the tree starts it")
			case r.New:
				a.note("started %s", r.DAG)
			case r.DAG.Name != "":
				a.note("joined %s, which has not ended", r.DAG)
			}
			return a.acted(r.Run, err)
		},
		ValidArgsFunction: a.completeNamesOf(schemas.WorkflowKind),
	}
	f := cmd.Flags()
	f.IntVar(&q.Issue, "issue", 0, "the number `N` of the issue")
	f.StringVar(&file, "issue-file", "", "read the issue from a `FILE`, with its title as the first heading; - is standard input")
	f.StringSliceVar(&q.Skip, "skip", nil, "leave out the optional `STEP`")
	f.StringArrayVar(&params, "param", nil, "give a parameter of the workflow a value, as `NAME=VALUE`")
	f.StringVar(&q.Reason, "reason", "", "the `REASON`, for the record")
	f.StringVar(&q.By, "by", "", "the `NAME` of the acting person (default: the user's login name)")
	f.BoolVar(&q.NoRun, "no-run", false, "only write the action; the next run applies it")
	return cmd
}

// paramValues reads the values of parameters.
func paramValues(given []string) (map[string]any, error) {
	var out map[string]any
	for _, pair := range given {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, badUsage("--param %s: write NAME=VALUE", pair)
		}
		if out == nil {
			out = map[string]any{}
		}
		if _, twice := out[name]; twice {
			return nil, badUsage("--param %s: the parameter %s has two values", pair, name)
		}
		out[name] = value
	}
	return out, nil
}
