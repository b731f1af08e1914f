package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/tokens"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// budgetOptions are the flags of budget.
type budgetOptions struct {
	agent        string
	issue        issueFlag
	conversation string
	failOn       int
}

func newBudgetCmd(a *app) *cobra.Command {
	o := &budgetOptions{}
	cmd := &cobra.Command{
		Use:   "budget --agent AGENT",
		Short: "Show what fills an agent's context, against the window of its model",
		Long: `Show what fills an agent's context: instructions, skills, the definition of the agent, templates, the memory that
it would be given now, and the conversation, each in tokens, against the agent's contextWindow.

All files that an agent program may read by itself are counted, a file that has several names once. From 70 % of the
window on compaction is recommended, from 90 % on the level is critical. Tokens are counted with o200k_base, offline.`,
		Example: "  reconcile budget --agent engineer\n" +
			"  reconcile budget --agent engineer --issue 29 --conversation session.jsonl\n" +
			"  reconcile budget --agent engineer --fail-on 90 -o json",
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.budget(cmd.Context(), *o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.agent, "agent", "", "the `AGENT`")
	f.Var(&o.issue, "issue", "the issue of the work that memory is recalled for")
	f.StringVar(&o.conversation, "conversation", "",
		"a transcript, or any `FILE` (- for standard input), as the conversation (default: the log of the agent's last run)")
	f.IntVar(&o.failOn, "fail-on", 0, "end with exit code 1 from `PERCENT` of the window on")
	_ = cmd.RegisterFlagCompletionFunc("agent", a.completeNamesOf(schemas.AgentKind))
	return cmd
}

func (o *budgetOptions) check() error {
	switch {
	case o.agent == "":
		return badUsage("reconcile budget needs --agent; for example: reconcile budget --agent engineer")
	case schemas.CheckName(o.agent) != nil:
		return badUsage("--agent %q: %v", o.agent, schemas.CheckName(o.agent))
	case o.failOn < 0 || o.failOn > 100:
		return badUsage("--fail-on %d: write a share of the window in percent, 1 to 100", o.failOn)
	}
	return nil
}

func (a *app) budget(ctx context.Context, o budgetOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	s, t, err := a.load(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	if e := t.Entry(agentRef(o.agent)); e != nil && e.Broken() {
		return a.invalid(e)
	}
	b, err := a.newBudget(ctx, s, t, o)
	if err != nil {
		return err
	}
	if a.global.output != formatTable {
		err = a.print(b)
	} else {
		err = render.BudgetText(a.stdout, a.palette(), b)
	}
	if err == nil && o.failOn > 0 && b.Percent >= float64(o.failOn) {
		return fmt.Errorf("the context of %s is filled to %.1f %%, and --fail-on %d was asked for: shorten what it is "+
			"given, or give the agent a larger contextWindow", o.agent, b.Percent, o.failOn)
	}
	return err
}

// invalid refuses to go by an object that cannot be used: what it says may not be what was meant.
func (a *app) invalid(e *state.Entry) error {
	for _, p := range e.Problems {
		fmt.Fprintln(a.stderr, "reconcile: "+clean(p.Error()))
	}
	fmt.Fprintf(a.stderr, "reconcile: %s cannot be used as it is, so that nothing can be said of its context\n", e.Ref)
	return exitWith(exitInvalid)
}

// newBudget collects what fills the context.
func (a *app) newBudget(ctx context.Context, s *state.Store, t *state.Tree, o budgetOptions) (render.Budget, error) {
	b := render.Budget{Agent: o.agent, IssueNumber: o.issue.number, ContextWindow: schemas.DefaultContextWindow}
	files := &contextFiles{root: s.Root()}
	e := t.Entry(agentRef(o.agent))
	definition := files.definition(e, o.agent)
	if len(definition) == 0 && (e == nil || e.Gone()) {
		return b, notFound(t, agentRef(o.agent))
	}
	if e != nil && e.Object != nil {
		b.ContextWindow = schemas.SpecAs[*schemas.AgentSpec](e.Object).ContextWindow
	}
	memory, displaced, err := a.memoryItems(ctx, s, o)
	if err != nil {
		return b, err
	}
	conversation, err := a.conversationItems(s.Root(), t, o)
	if err != nil {
		return b, err
	}
	b.DisplacedTokens = displaced
	b.Sections = []render.BudgetSection{
		{Name: "instructions", Items: files.matching(instructionFiles...)},
		{Name: "skills", Items: files.matching(skillFiles...)},
		{Name: "agent definition", Items: definition},
		{Name: "templates", Items: files.templates(t, o.agent)},
		{Name: "memory", Items: memory},
		{Name: "conversation", Items: conversation},
	}
	sumUp(&b)
	return b, nil
}

// sumUp fills in sums, shares and the level.
func sumUp(b *render.Budget) {
	for i := range b.Sections {
		sec := &b.Sections[i]
		if sec.Items == nil {
			sec.Items = []render.BudgetItem{}
		}
		for _, it := range sec.Items {
			sec.Tokens += it.Tokens
		}
		sec.Percent = shareOf(sec.Tokens, b.ContextWindow)
		b.TotalTokens += sec.Tokens
	}
	b.Percent = shareOf(b.TotalTokens, b.ContextWindow)
	b.Level = budgetLevel(b.TotalTokens, b.ContextWindow)
}

// budgetLevel is the level of a context with so many tokens in a window: 70 % and 90 % are the thresholds.
func budgetLevel(total, window int) string {
	switch {
	case total*10 >= window*9:
		return render.BudgetCritical
	case total*10 >= window*7:
		return render.BudgetCompact
	}
	return render.BudgetOK
}

// shareOf is what part of the window n tokens are, in percent with one decimal, rounded down so that a share never
// shows a threshold that it has not reached.
func shareOf(n, window int) float64 {
	return math.Floor(float64(n)*1000/float64(max(window, 1))) / 10
}

// conversationItems are the conversation so far: the file that was given, else what the agent printed in its last run.
func (a *app) conversationItems(root *os.Root, t *state.Tree, o budgetOptions) ([]render.BudgetItem, error) {
	if o.conversation != "" {
		data, err := a.readInput(o.conversation)
		if err != nil {
			return nil, err
		}
		return []render.BudgetItem{conversationItem(o.conversation, data)}, nil
	}
	run := lastRunOf(t, o.agent)
	if run == nil {
		return nil, nil
	}
	text, err := readBeginning(root, run.Log)
	if err != nil {
		return []render.BudgetItem{{
			Name: run.Key, Tokens: tokens.Count(run.Output), Note: "the end of its output; the log is gone",
		}}, nil
	}
	it := text.item(run.Log)
	it.Note = "the log of the last run"
	return []render.BudgetItem{it}, nil
}

// lastRunOf is the run of an agent that ended last; nil for none.
func lastRunOf(t *state.Tree, agent string) *schemas.Run {
	var last *schemas.Run
	for _, k := range []schemas.Kind{schemas.DAGKind, schemas.ClarificationRequestKind} {
		for _, e := range t.Entries(k.Name) {
			for _, r := range e.Runs() {
				if r.Agent == agent && (last == nil || r.FinishedAt.After(last.FinishedAt.Time)) {
					last = r
				}
			}
		}
	}
	return last
}

// definition lists the files that define an agent: its spec, and those of agent programs.
func (c *contextFiles) definition(e *state.Entry, agent string) []render.BudgetItem {
	var out []render.BudgetItem
	if e != nil && e.Object != nil {
		out = c.named(e.Object.Path)
	}
	return append(out, c.matching(".claude/agents/"+agent+".md", ".github/agents/"+agent+".md",
		".github/agents/"+agent+".*.md")...)
}

// templates lists the templates that the agent's steps name, or, where none does, all that the tree has.
func (c *contextFiles) templates(t *state.Tree, agent string) []render.BudgetItem {
	var out []render.BudgetItem
	for step := range workflowSteps(t) {
		if step.Agent != agent || step.Template == "" {
			continue
		}
		found := c.named(step.Template)
		if len(found) == 0 && !c.exists(step.Template) {
			found = c.named(path.Join(templateFolder, step.Template), path.Join(templateFolder, step.Template+".md"))
		}
		out = append(out, found...)
	}
	if out == nil {
		out = c.matching(templateFolder + "/*.md")
	}
	return out
}

func (c *contextFiles) exists(name string) bool {
	_, err := c.root.Stat(name)
	return !errors.Is(err, fs.ErrNotExist)
}
