// Package budget counts the tokens in an agent's context: files that its program reads, recalled memory, and the
// conversation.
package budget

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/controllers/tokens"
	"reconcile.dev/reconcile/controllers/workflows"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Request selects the agent and the work whose context is counted.
type Request struct {
	Agent        string
	Issue        int   // the issue that memory is recalled for
	Conversation *Text // nil: the log of the agent's last run
}

// Text is a named reader. It is read only after the rest of a request was checked.
type Text struct {
	Name string
	io.Reader
}

// ErrNoAgent says that the agent is neither an object of the tree nor defined by a file of an agent program.
var ErrNoAgent = errors.New("no such agent")

// Count counts the context of an agent by sections. Its recall of the memory is a dry run and not recorded.
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
	computeTotals(&b)
	return b, nil
}

// memoryItems returns the recall that the agent would get now, and the tokens that it displaces.
func memoryItems(ctx context.Context, m *memstore.Files, r Request) ([]render.BudgetItem, int, error) {
	found, err := m.Recall(ctx, memstore.Request{Agent: r.Agent, Issue: r.Issue, Dry: true})
	if errors.Is(err, memstore.ErrDisabled) {
		err = nil
	}
	if err != nil || found.Text == "" {
		return nil, 0, err
	}
	return []render.BudgetItem{{
		Name: "recalled-observations", Tokens: found.Tokens, Note: schemas.Count(len(found.IDs), "observation"),
	}}, found.Displaced, nil
}

// computeTotals fills in totals, percentages and the level.
func computeTotals(b *render.Budget) {
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

// budgetLevel returns the level for a number of tokens in a window; the thresholds are 70 % and 90 %.
func budgetLevel(total, window int) string {
	switch {
	case total*10 >= window*9:
		return render.BudgetCritical
	case total*10 >= window*7:
		return render.BudgetCompact
	}
	return render.BudgetOK
}

// shareOf returns the percentage of the window that n tokens use, rounded down to one decimal so that it never shows a
// threshold before it is reached.
func shareOf(n, window int) float64 {
	return math.Floor(float64(n)*1000/float64(max(window, 1))) / 10
}

// conversationItems counts the conversation: the given one, or else the output of the agent's last run.
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

// lastRunOf returns the run of an agent that ended last, or nil.
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

// definition counts the files that define an agent: its spec, and those of agent programs.
func (c *contextFiles) definition(e *state.Entry, agent string) []render.BudgetItem {
	var out []render.BudgetItem
	if e != nil && e.Object != nil {
		out = c.named(e.Object.Path)
	}
	return append(out, c.matching(".claude/agents/"+agent+".md", ".github/agents/"+agent+".md",
		".github/agents/"+agent+".*.md")...)
}

// templates counts the templates that the agent's steps name, or else all templates of the tree.
func (c *contextFiles) templates(t *state.Tree, agent string) []render.BudgetItem {
	var out []render.BudgetItem
	for step := range workflows.Steps(t) {
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

// conversationItem counts the messages of a transcript, or the whole text if it is not a transcript.
func conversationItem(name string, data []byte) render.BudgetItem {
	messages, err := memory.ReadConversation(data)
	if err != nil {
		return boundedText{string(data[:min(len(data), budgetFileLimit)]), int64(len(data))}.item(name)
	}
	var said strings.Builder
	size := int64(0)
	for _, m := range messages {
		size += int64(len(m.Content))
		if said.Len() < budgetFileLimit {
			said.WriteString(m.Content + "\n")
		}
	}
	it := boundedText{said.String(), size}.item(name)
	it.Note = schemas.Count(len(messages), "message")
	return it
}
