// Package budget counts what fills an agent's context, in tokens: files that its program reads, the memory that it would be
// given, and the conversation.
package budget

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/tokens"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Request says whose context is counted.
type Request struct {
	Agent        string
	Issue        int   // of the work that memory is recalled for
	Conversation *Text // nil: the log of the agent's last run
}

// Text is a text that is read when all else of a request is known to be right.
type Text struct {
	Name string
	io.Reader
}

// ErrNoAgent says that the agent is neither an object of the tree nor defined by a file of an agent program.
var ErrNoAgent = errors.New("no such agent")

// Count collects what fills the context. The recall of the memory counts as none.
func Count(ctx context.Context, s *state.Store, t *state.Tree, m *memstore.Files, r Request) (render.Budget, error) {
	b := render.Budget{Agent: r.Agent, IssueNumber: r.Issue, ContextWindow: schemas.DefaultContextWindow}
	files := &contextFiles{root: s.Root()}
	e := t.Entry(schemas.Ref{Kind: schemas.AgentKind.Name, Name: r.Agent})
	definition := files.definition(e, r.Agent)
	if len(definition) == 0 && (e == nil || e.Gone()) {
		return b, ErrNoAgent
	}
	if e != nil && e.Object != nil {
		b.ContextWindow = schemas.SpecAs[*schemas.AgentSpec](e.Object).ContextWindow
	}
	memory, displaced, err := memoryItems(ctx, m, r)
	if err != nil {
		return b, err
	}
	conversation, err := conversationItems(s.Root(), t, r)
	if err != nil {
		return b, err
	}
	b.DisplacedTokens = displaced
	b.Sections = []render.BudgetSection{
		{Name: "instructions", Items: files.matching(instructionFiles...)},
		{Name: "skills", Items: files.matching(skillFiles...)},
		{Name: "agent definition", Items: definition},
		{Name: "templates", Items: files.templates(t, r.Agent)},
		{Name: "memory", Items: memory},
		{Name: "conversation", Items: conversation},
	}
	sumUp(&b)
	return b, nil
}

// memoryItems is the recall as the agent would be given it now, and what it displaces.
func memoryItems(ctx context.Context, m *memstore.Files, r Request) ([]render.BudgetItem, int, error) {
	found, err := m.Recall(ctx, memstore.Request{Agent: r.Agent, Issue: r.Issue, Dry: true})
	if errors.Is(err, memstore.ErrDisabled) {
		err = nil
	}
	if err != nil || found.Text == "" {
		return nil, 0, err
	}
	return []render.BudgetItem{{
		Name: "recalled-observations", Tokens: found.Tokens, Note: render.Plural(len(found.IDs), "observation"),
	}}, found.Displaced, nil
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

// conversationItems are the conversation so far: the one that was given, else what the agent printed in its last run.
func conversationItems(root *os.Root, t *state.Tree, r Request) ([]render.BudgetItem, error) {
	if r.Conversation != nil {
		data, err := io.ReadAll(r.Conversation)
		if err != nil {
			return nil, err
		}
		return []render.BudgetItem{conversationItem(r.Conversation.Name, data)}, nil
	}
	run := lastRunOf(t, r.Agent)
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
	for step := range controllers.WorkflowSteps(t) {
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
