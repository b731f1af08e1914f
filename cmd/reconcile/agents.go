package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
)

func newStateCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "state",
		Short: "Show the activity of the agents: who works, asks, answers or waits",
		Long: `Show the activity of the agents from state/agent-status.json: who works on which issue, who waits for an answer, and who
answers. It only reads: nothing runs, and no question becomes stale.

-o json and yaml print the content of the file.`,
		Example: "  reconcile state\n  reconcile state -o json",
		Args:    arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := ops.Agents(cmd.Context(), a.env())
			return a.result(r.File, err, func() error {
				if len(r.Agents) == 0 {
					a.note("no agents")
				}
				return render.AgentTable(a.stdout, a.palette(), r.Agents, a.now())
			})
		},
	}
}

func newPromptCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "prompt KIND/NAME NODE",
		Short: "Print what the agent of a node would be told now, with the tokens of each part",
		Long: `Print what the agent of a node would be told if the node ran now, part by part, with the tokens of each: who it is, its
instructions, the task, the work that it belongs to, when it is done, results and answers, what failed before, files, rules,
whom it may ask and how, how to report, and the recalled memory. Nothing is run and nothing is changed.

Results of needs are left out, with a note, where the prompt would exceed the agent's promptTokens. Tokens are counted with
o200k_base, offline.`,
		Example: "  reconcile prompt dag/checks review\n  reconcile prompt dag checks review -o json",
		Args:    arguments(1, 3, "a DAG and a node"),
		RunE: func(cmd *cobra.Command, args []string) error {
			args = withRef(args)
			q := ops.PromptRequest{DAG: args[0]}
			switch len(args) {
			case 1:
			case 2:
				q.Node = args[1]
			default:
				return badUsage("prompt takes KIND/NAME and a NODE, not %q", args[2])
			}
			r, err := ops.Prompt(cmd.Context(), a.env(), q)
			return a.result(r, err, func() error {
				err := render.Prompt(a.stdout, a.palette(), r.Parts)
				a.printf("%s in all; at most %s without artifacts and memory\n", render.GroupedPlural(r.Tokens, "token"), render.Grouped(r.Limit))
				return err
			})
		},
		ValidArgsFunction: a.completeNodes(schemas.DAGKind),
	}
}

func newBudgetCmd(a *app) *cobra.Command {
	q, issue, conversation := &ops.BudgetRequest{}, issueFlag{}, ""
	cmd := &cobra.Command{
		Use:   "budget --agent AGENT",
		Short: "Show the content of an agent's context in tokens, against the window of its model",
		Long: `Show the content of an agent's context in tokens: instructions, skills, the agent's definition, templates, the memory
that it would recall now, and the conversation, compared with the agent's contextWindow.

All files that agent programs read on their own are counted; a file with several names counts once. From 70 % of the
window compaction is recommended, from 90 % the level is critical. Tokens are counted with o200k_base, offline.`,
		Example: "  reconcile budget --agent engineer\n" +
			"  reconcile budget --agent engineer --issue 29 --conversation session.jsonl\n" +
			"  reconcile budget --agent engineer --fail-on 90 -o json",
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.Issue = issue.number; conversation != "" {
				text := a.textFrom(cmd.Context(), conversation)
				q.Conversation = &text
			}
			b, err := ops.Budget(cmd.Context(), a.env(), *q)
			if b.Agent == "" {
				return err
			}
			return cmp.Or(a.result(b, nil, func() error { return render.BudgetText(a.stdout, a.palette(), b) }), err)
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.Agent, "agent", "", "the `AGENT`")
	f.Var(&issue, "issue", "the issue of the work that memory is recalled for")
	f.StringVar(&conversation, "conversation", "",
		"a transcript, or any `FILE` (- for standard input), as the conversation (default: the log of the agent's last run)")
	f.IntVar(&q.FailOn, "fail-on", 0, "exit with code 1 from `PERCENT` of the window")
	_ = cmd.RegisterFlagCompletionFunc("agent", a.completeNamesOf(schemas.AgentKind))
	return cmd
}

func newWorkspaceCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workspace",
		Short: "List, look into and delete the folders in which agents work",
		Long: `An agent with workspace: clone (or worktree) works in a folder of its own, outside of the repository. NAME is the name of a
workspace, the beginning of it, or the node that works there (build, or dag/checks:build).`,
		Example: "  reconcile workspace list",
		RunE:    noSubcommand,
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Aliases: []string{"ls"}, Short: "List the workspaces of the tree", Args: arguments(0, 0, ""),
			Example: "  reconcile workspace list\n  reconcile workspace list -o json",
			RunE: func(cmd *cobra.Command, _ []string) error {
				list, err := ops.Workspaces(cmd.Context(), a.env())
				return a.result(list, err, func() error {
					return a.table(len(list), "there is no workspace", func(i int) []string {
						w, state := list[i], list[i].State
						if w.Gone {
							state += " (removed)"
						}
						return []string{w.Name, state, w.Owner + ":" + w.Node, w.Agent, render.Bytes(w.Bytes), render.Age(a.now().Sub(w.Since))}
					}, "NAME", "STATE", "NODE", "AGENT", "SIZE", "SINCE")
				})
			},
		},
		&cobra.Command{
			Use: "open NAME", Short: "Print the path of a workspace, for example to enter it", Args: arguments(1, 1, "the name of a workspace"),
			Example: `  cd "$(reconcile workspace open build)"`,
			RunE: func(cmd *cobra.Command, args []string) error {
				w, err := ops.FindWorkspace(cmd.Context(), a.env(), args[0])
				return a.result(w, err, func() error {
					if w.Gone {
						return fmt.Errorf("%s was removed; reconcile workspace drop %s removes its record", clean(w.Dir), w.Name)
					}
					a.printf("%s\n", w.Dir)
					return nil
				})
			},
		},
		&cobra.Command{
			Use: "diff NAME", Short: "Show what changed in a workspace since the commit that it was made from", Args: arguments(1, 1, "the name of a workspace"),
			Example: "  reconcile workspace diff build",
			RunE: func(cmd *cobra.Command, args []string) error {
				diff, err := ops.DiffWorkspace(cmd.Context(), a.env(), args[0])
				if err == nil {
					a.printf("%s", clean(string(diff)))
				}
				return err
			},
		},
		&cobra.Command{
			Use: "drop NAME", Short: "Delete a workspace; what is not committed there is kept in a reference", Args: arguments(1, 1, "the name of a workspace"),
			Long: `Delete a workspace. What is not committed there is first committed to refs/reconcile/parked/NAME in the repository. A
workspace in which a run works is not deleted.`,
			Example: "  reconcile workspace drop build\n  git show refs/reconcile/parked/checks.build-0123456789abcdef-1",
			RunE: func(cmd *cobra.Command, args []string) error {
				r, err := ops.DropWorkspace(cmd.Context(), a.env(), args[0])
				return a.result(r, err, func() error {
					kept := ""
					if r.Parked != "" {
						kept = "; what was not committed is in " + r.Parked
					}
					a.note("deleted %s%s", r.Name, kept)
					return nil
				})
			},
		},
	)
	return cmd
}

const formatPrometheus = "prometheus"

func newMetricsCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "metrics",
		Short: "Show how work waits, how long it runs and what it uses",
		Long: `Show, by lane, by session and by agent, how many nodes wait for a place and run, how long runs waited and took, and what agents used. The
figures come from the statuses and the records of runs that are kept (runs.keep); records of earlier versions do not say how long
a run waited. -o prometheus prints them for a collector of text files.`,
		Example: "  reconcile metrics\n  reconcile metrics -o json\n  reconcile metrics -o prometheus > /var/lib/node_exporter/reconcile.prom",
		Args:    arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := ops.Metrics(cmd.Context(), a.env())
			if err == nil && a.global.output == formatPrometheus {
				return render.MetricsPrometheus(a.stdout, m)
			}
			return a.result(m, err, func() error { return render.MetricsText(a.stdout, a.palette(), m) })
		},
	}
	a.outputFlag(cmd, cmd.Flags(), formatTable, formatJSON, formatYAML, formatPrometheus)
	return cmd
}
