package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
)

func newReadyCmd(a *app) *cobra.Command {
	q, claim, issue := &ops.ReadyRequest{}, false, issueFlag{}
	cmd := &cobra.Command{
		Use:   "ready",
		Short: "Show what can be worked on now, or claim one item",
		Long: `Show what can be worked on now, the most urgent first: tasks of people, questions that wait for a person, nodes that wait
for their turn, and work that is blocked by an open question. The statuses are updated first, unless another run is active;
nothing is started, and nothing is waited for.

--claim claims the first free item of the agent, so that no other agent gets it; "reconcile hook finish" releases it. If
there is none, it prints a note, and null with -o json. Claimed items are listed only with --explain.`,
		Example: "  reconcile ready --explain\n" +
			"  reconcile ready --claim --agent engineer -o json\n" +
			"  reconcile ready --issue 42",
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.Issue = issue.pointer(); claim {
				return a.claim(cmd.Context(), *q)
			}
			items, err := ops.Ready(cmd.Context(), a.env(), *q)
			return a.result(items, err, func() error {
				if len(items) == 0 {
					a.note("nothing is ready")
				}
				return render.ReadyTable(a.stdout, a.palette(), items, q.Taken, a.now())
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&q.Taken, "explain", false,
		"also the reason for each item, when it is decided again, and who claimed it")
	f.BoolVar(&claim, "claim", false, "claim the first free item for the agent of --agent")
	f.StringVar(&q.Agent, "agent", "", "only items for this `AGENT`")
	f.Var(&issue, "issue", "only items about this issue")
	f.BoolVar(&q.NoRun, "no-run", false, "do not update the tree first")
	_ = cmd.RegisterFlagCompletionFunc("agent", a.completeNamesOf(schemas.AgentKind))
	return cmd
}

func (a *app) claim(ctx context.Context, q ops.ReadyRequest) error {
	r, err := ops.Claim(ctx, a.env(), q)
	if err != nil && r.Item == nil {
		return err
	}
	for _, it := range r.Unroutable {
		a.note("%s is not assigned: %s", it.Name, it.Message)
	}
	return errors.Join(err, a.result(r.Item, nil, func() error {
		if r.Item == nil {
			a.note("nothing is ready for %s", r.Agent)
		} else {
			a.printf("%s: %s\n", r.Item.Name, render.Line(r.Item.Task))
		}
		return nil
	}))
}

func newHookCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hook start|finish",
		Short: "Report that an agent starts or ends work outside of reconcile",
		Long: `Report that an agent starts or ends work outside of reconcile: a chat, an editor, a person. The command runs the tree once
and prints information for the agent: what blocks it, answers to its questions, questions that wait for it, and, at the
start, the recall of earlier work. An end releases what the agent claimed for the issue with "reconcile ready --claim", and
captures what it learned.`,
		Example: "  reconcile hook start --agent engineer --issue 42",
		RunE:    noSubcommand,
	}
	cmd.AddCommand(
		newHookPhaseCmd(a, "start", "Report that an agent starts work on an issue", false),
		newHookPhaseCmd(a, "finish", "Report that an agent has ended its work on an issue", true),
	)
	return cmd
}

func newHookPhaseCmd(a *app, name, short string, finish bool) *cobra.Command {
	q, issue, transcript := &ops.HookRequest{Finish: finish}, issueFlag{}, ""
	cmd := &cobra.Command{
		Use:     name,
		Short:   short,
		Example: "  reconcile hook " + name + " --agent engineer --issue 42",
		Args:    arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.Issue = issue.pointer(); transcript != "" {
				text := a.textFrom(cmd.Context(), transcript)
				q.Transcript = &text
			}
			r, err := ops.Hook(cmd.Context(), a.env(), *q)
			if err != nil {
				return err
			}
			return errors.Join(a.printHook(r), exitWith(int(r.Verdict)))
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.Agent, "agent", "", "the working `AGENT`")
	f.Var(&issue, "issue", "the issue that the work is about; 0 for none")
	f.StringVar(&q.Note, "note", "", "a remark for the record, a `TEXT`")
	f.BoolVar(&q.NoRun, "no-run", false, "only write the record; the next run applies it")
	_ = cmd.RegisterFlagCompletionFunc("agent", a.completeNamesOf(schemas.AgentKind))
	if !finish {
		return cmd
	}
	cmd.Long = `Report that an agent has ended its work on an issue, and capture what it learned: --transcript names the conversation, as
JSON lines with role and content, or in the format of Claude Code, Codex, Copilot or Gemini; - is standard input. Standard
input may also be the input of Claude Code's Stop and SessionEnd hooks, which names the file and the session. Secrets and
everything between <private> and </private> are removed before anything is written. A file that a hook's input names must be
a conversation. While another process holds the memory's locks, the capture stays in specs/, the next run adds it to the
memory, and the exit code is 75.`
	cmd.Example += "\n  reconcile hook finish --agent engineer --issue 42 --transcript session.jsonl" +
		"\n  reconcile hook finish --agent engineer --issue 42 --transcript -   # as the command of a SessionEnd hook"
	f.StringVar(&transcript, "transcript", "", "the conversation of the session, a `FILE` or - for standard input")
	f.StringVar(&q.Session, "session", "", "the `SESSION` of the work, one of the tree or of the agent's program")
	return cmd
}

func (a *app) printHook(r ops.HookResult) error {
	if r.Outcome == schemas.OutcomeDone {
		for _, c := range r.Blocked {
			a.note("warning: %s ends its work while its blocking question %s is open", r.Agent, c.ID)
		}
	}
	return a.result(r, nil, func() error {
		about, rest := "no issue", ""
		if r.Issue > 0 {
			about = fmt.Sprintf("issue %d", r.Issue)
		}
		if r.Memory != "" {
			rest = "\n" + strings.TrimRight(r.Memory, "\n") + "\n"
		}
		if l := r.Learned; l != nil && l.Path != "" {
			rest += "\n" + l.String() + "\n"
		}
		a.printf("%s", clean(fmt.Sprintf("%s: %s, %s\n%s%s", r.Agent, strings.ToLower(r.Outcome), about, r.Brief.Text(), rest)))
		return nil
	})
}
