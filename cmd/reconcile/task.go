package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
)

// actionTextLimit bounds the text of an Action, in bytes.
const actionTextLimit = 70000

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
				return a.queryTask(cmd.Context(), q.Name)
			}
			return a.task(cmd.Context(), q)
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

// textIn returns the text in a file that a flag names; "-" is standard input.
func (a *app) textIn(flag, file string) (string, error) {
	if file == stdinText {
		return a.textOf(file)
	}
	data, err := readUpTo(a.env().CallerPath(file), actionTextLimit+1)
	switch {
	case err != nil:
		return "", badUsage("%s: %v", flag, err)
	case len(data) > actionTextLimit:
		return "", badUsage("%s %s: the text has more than %d bytes", flag, file, actionTextLimit)
	}
	text, err := a.textOf(" " + string(data)) // a file with a dash does not mean standard input
	return strings.TrimPrefix(text, " "), err
}

// readUpTo reads a file, or the beginning of one that has more bytes than most, or no end.
func readUpTo(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

func (a *app) task(ctx context.Context, q ops.TaskRequest) error {
	r, err := ops.Task(ctx, a.env(), q)
	if r.Path == "" {
		return err
	}
	if a.global.output != formatTable {
		if printed := a.print(r); err == nil {
			err = printed
		}
	} else {
		fmt.Fprintf(a.stdout, "%s: %s\n", r.Node, r.Note)
	}
	if err == nil && r.Run != nil {
		err = a.ended(*r.Run)
	}
	return err
}

func (a *app) queryTask(ctx context.Context, name string) error {
	v, err := ops.QueryTask(ctx, a.env(), name)
	if err != nil {
		return err
	}
	if a.global.output != formatTable {
		return a.print(v)
	}
	return render.Task(a.stdout, &v)
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
