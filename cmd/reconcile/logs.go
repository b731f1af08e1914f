package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
)

func newLogsCmd(a *app) *cobra.Command {
	q, follow, tail := &ops.LogsRequest{}, false, -1
	cmd := &cobra.Command{
		Use:   "logs KIND/NAME [NODE]",
		Short: "Print the output of the commands of a DAG",
		Long: `Print the output of the commands of a DAG: for each node, or for one, the current attempt, which is the latest one with
the node's present definition and inputs, even if another one ran after it. For a clarification request, print the output
of the asked agent, in each round or in one (round_1).

Full logs are local to the clone that ran the command (.reconcile/logs). If a log does not exist here, the end of the
output is printed from the record.`,
		Example: "  reconcile logs dag/checks\n  reconcile logs dag checks unit_tests --tail 50\n" +
			"  reconcile logs dag/checks unit_tests -f\n  reconcile logs --failed\n  reconcile logs request/db-layer round_1",
		Args: arguments(0, 3, "a DAG or a clarification request"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch args = withRef(args); {
			case tail < 0 && cmd.Flags().Changed("tail"):
				return badUsage("--tail %d: the number of lines is at least 0; without --tail, logs prints all", tail)
			case len(args) > 2:
				return badUsage("logs takes KIND/NAME and a NODE, not %q", args[2])
			case follow && (q.Failed || q.Previous):
				return badUsage("--follow shows what runs now; it excludes --failed and --previous")
			case follow && a.global.output != formatTable:
				return badUsage("--follow prints the log as it is; it does not go with -o %s", a.global.output)
			case len(args) == 2:
				q.Node = args[1]
				fallthrough
			case len(args) == 1:
				q.Object = args[0]
			}
			if follow && q.Object != "" {
				return a.followLog(cmd.Context(), *q, tail)
			}
			return a.logs(cmd.Context(), *q, tail)
		},
		ValidArgsFunction: a.completeNodes(schemas.DAGKind, schemas.ClarificationRequestKind),
	}
	f := cmd.Flags()
	f.BoolVarP(&follow, "follow", "f", false, "print the output of a node until it ends, whichever process runs it")
	f.BoolVar(&q.Failed, "failed", false, "only nodes that failed; without a name, of all DAGs")
	f.BoolVar(&q.Previous, "previous", false, "the attempt before the current one")
	f.IntVar(&tail, "tail", -1, "only the last `N` lines of each log")
	hideDefaults(f, "tail")
	return cmd
}

func (a *app) logs(ctx context.Context, q ops.LogsRequest, tail int) error {
	r, err := ops.Logs(ctx, a.env(), q)
	switch {
	case err != nil:
		return err
	case a.global.output != formatTable:
		return a.print(r.Attempts)
	case len(r.Attempts) == 0 && q.Failed:
		a.note("no node has failed")
	case len(r.Attempts) == 0:
		a.note("nothing of %s has run yet", r.Of)
	}
	for i, at := range r.Attempts {
		if q.Node == "" {
			head := strings.TrimSpace(fmt.Sprintf("%s, %s %s", at.Node, at.State, at.Took))
			if q.Object == "" {
				head = at.Owner + " " + head
			}
			if i > 0 {
				fmt.Fprintln(a.stdout)
			}
			fmt.Fprintf(a.stdout, "==> %s <==\n", render.Line(head))
		}
		if err := a.printLog(ctx, at, tail); err != nil {
			return err
		}
	}
	return nil
}

// printLog prints one attempt, from its log or from its record.
func (a *app) printLog(ctx context.Context, at ops.Attempt, tail int) error {
	if at.Former {
		a.note("%s %s has not run since it was changed; this is the attempt before", at.Owner, at.Node)
	}
	text, whole, err := ops.ReadLog(ctx, a.env(), at, tail)
	if err != nil {
		return err
	}
	defer text.Close()
	err = a.copyText(a.stdout, text)
	if at.State == schemas.NodeFailed && at.Output == "" {
		a.note("%s %s printed nothing, and failed: %s", at.Owner, at.Node, at.Message)
	}
	if !whole && at.Log != "" && at.State != schemas.NodeRunning {
		a.note("the log of %s %s is not here (%s): logs stay where the node ran, and go with its record; this is the end "+
			"of the output, which the record keeps. \"reconcile retry %s %s\" runs it again here", at.Owner, at.Node, at.Log, at.Owner, at.Node)
	}
	return err
}

// followLog prints the output of a node until it ends, or the reader of stdout has gone.
func (a *app) followLog(ctx context.Context, q ops.LogsRequest, tail int) error {
	signal.Ignore(syscall.SIGPIPE)
	for part, err := range ops.FollowLog(ctx, a.env(), q, tail) {
		switch {
		case err != nil:
			return err
		case part.Ended != nil:
			err = a.printLog(ctx, *part.Ended, part.Lines)
		case part.Attempt > 0:
			_, err = fmt.Fprintf(a.stdout, "==> %s, attempt %d <==\n", render.Line(part.Node), part.Attempt)
		case part.Text != nil:
			err = a.copyText(a.stdout, part.Text)
		}
		if err != nil {
			return unlessGone(err)
		}
		if unread(a.stdout) {
			return nil
		}
	}
	return nil
}

// copyText copies output: unchanged to files and pipes, escaped to a terminal.
func (a *app) copyText(w io.Writer, r io.Reader) error {
	if !isTerminal(a.stdout) {
		_, err := io.Copy(w, r)
		return err
	}
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if _, werr := io.WriteString(w, render.Text(string(line))); werr != nil {
			return werr
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}
