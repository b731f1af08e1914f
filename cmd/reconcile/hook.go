package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// hookOptions are the flags of the hooks.
type hookOptions struct {
	agent string
	issue issueFlag
	note  string
	noRun bool
}

func newHookCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hook start|finish",
		Short: "Say that an agent takes up work outside of reconcile, or ends it",
		Long: `Say that an agent takes up work outside of reconcile, or ends it: a chat, an editor, a person. The tree is run
once, and what the agent must know is printed: what blocks it, answers to its questions, and questions that wait for it.
An end gives back what the agent took for the issue with "reconcile ready --claim".`,
		Example: "  reconcile hook start --agent engineer --issue 42",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return badUsage("reconcile hook needs start or finish; for example: %s", strings.TrimSpace(cmd.Example))
			}
			return badUsage("there is no hook %q%s", args[0], didYouMean(args[0], []string{"start", "finish"}))
		},
	}
	cmd.AddCommand(
		newHookPhaseCmd(a, "start", "Say that an agent takes up work on an issue", schemas.OutcomeStarted),
		newHookPhaseCmd(a, "finish", "Say that an agent has ended its work on an issue", schemas.OutcomeDone),
	)
	return cmd
}

func newHookPhaseCmd(a *app, name, short, outcome string) *cobra.Command {
	o := &hookOptions{}
	cmd := &cobra.Command{
		Use:     name,
		Short:   short,
		Example: "  reconcile hook " + name + " --agent engineer --issue 42",
		Args:    arguments(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.hook(cmd.Context(), outcome, *o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.agent, "agent", "", "the `AGENT` that works")
	f.Var(&o.issue, "issue", "the issue that the work is about; 0 for none")
	f.StringVar(&o.note, "note", "", "a remark for the record")
	f.BoolVar(&o.noRun, "no-run", false, "only write the record; the next run takes it up")
	_ = cmd.RegisterFlagCompletionFunc("agent", a.completeNamesOf(schemas.AgentKind))
	return cmd
}

// hookReport is what a hook prints for machines.
type hookReport struct {
	Agent string `json:"agent"`
	Issue int    `json:"issue"`
	// Outcome is Started or Done, Record the key of the record.
	Outcome string `json:"outcome"`
	Record  string `json:"record"`
	controllers.Brief
}

func (a *app) hook(ctx context.Context, outcome string, o hookOptions) error {
	if err := o.check(outcome); err != nil {
		return err
	}
	s, t, err := a.load(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	report := hookReport{Agent: o.agent, Issue: o.issue.number, Outcome: outcome}
	var since schemas.Time
	t, err = a.recordHook(ctx, s, t, func(t *state.Tree) (*schemas.Run, error) {
		agent, err := findAgent(t, o.agent)
		if err != nil {
			return nil, err
		}
		if last := controllers.LastHook(agent); last != nil {
			since = last.FinishedAt
		}
		r := controllers.NewHook(agent, outcome, o.issue.number, a.now())
		r.Message = o.note
		report.Record = r.Key
		return &r, nil
	})
	if err != nil {
		return err
	}
	if t, err = a.monitor(ctx, s, t, o.noRun); err != nil {
		return err
	}
	report.Brief = controllers.NewBrief(t, o.agent, o.issue.number, since)
	return a.printHook(report)
}

func (o *hookOptions) check(outcome string) error {
	word := "start"
	if outcome == schemas.OutcomeDone {
		word = "finish"
	}
	const most = 1000
	switch {
	case o.agent == "" || !o.issue.given:
		return badUsage("reconcile hook %s needs --agent and --issue; for example: "+
			"reconcile hook %[1]s --agent engineer --issue 42", word)
	case len(o.note) > most:
		return badUsage("--note has %d bytes, at most %d are allowed", len(o.note), most)
	}
	return nil
}

func (a *app) printHook(r hookReport) error {
	if r.Outcome == schemas.OutcomeDone {
		for _, c := range r.Blocked {
			a.note("warning: %s ends its work while its blocking question %s is open", r.Agent, c.ID)
		}
	}
	if a.global.output != formatTable {
		return a.print(r)
	}
	_, err := fmt.Fprint(a.stdout, render.Text(hookText(r)))
	return err
}

// hookText is what the agent must know, a paragraph for each question.
func hookText(r hookReport) string {
	var b strings.Builder
	about := "no issue"
	if r.Issue > 0 {
		about = fmt.Sprintf("issue %d", r.Issue)
	}
	fmt.Fprintf(&b, "%s: %s, %s\n", r.Agent, strings.ToLower(r.Outcome), about)
	for i := range r.Blocked {
		fmt.Fprintf(&b, "\n%s\n", controllers.BlockedLine(&r.Blocked[i]))
		turnText(&b, "Q", lastTurn(&r.Blocked[i], schemas.TurnQuestion))
	}
	for i := range r.Answered {
		c := &r.Answered[i]
		fmt.Fprintf(&b, "\n%s %s: %s\n", c.ID, c.Status, c.Topic)
		turnText(&b, "Q", lastTurn(c, schemas.TurnQuestion))
		turnText(&b, "A", lastTurn(c, schemas.TurnAnswer, schemas.TurnResolution))
	}
	for i := range r.Asked {
		c := &r.Asked[i]
		fmt.Fprintf(&b, "\n%s asked by %s: %s\n", c.ID, c.From, c.Topic)
		turnText(&b, "Q", lastTurn(c, schemas.TurnQuestion))
		fmt.Fprintf(&b, "  reconcile clarify answer %s TEXT\n", c.ID)
	}
	return b.String()
}

// lastTurn is the latest turn of one of the types; nil when there is none.
func lastTurn(c *schemas.Clarification, types ...string) *schemas.ClarificationTurn {
	for i := range slices.Backward(c.Thread) {
		if slices.Contains(types, c.Thread[i].Type) {
			return &c.Thread[i]
		}
	}
	return nil
}

// turnText writes what was said, indented, so that it cannot pass for a line of the report.
func turnText(b *strings.Builder, mark string, t *schemas.ClarificationTurn) {
	if t == nil {
		return
	}
	body := strings.Join(strings.Split(strings.TrimSpace(t.Body), "\n"), "\n     ")
	fmt.Fprintf(b, "  %s: %s\n", mark, body)
}
