package main

import (
	"context"
	"errors"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/state"
)

// memoryItems is the recall as the agent would be given it now, which counts as no recall, and what it displaces.
func (a *app) memoryItems(ctx context.Context, s *state.Store, o budgetOptions) ([]render.BudgetItem, int, error) {
	m := a.memoryOf(s)
	found, err := m.Recall(ctx, memstore.Request{Agent: o.agent, Issue: o.issue.number, Dry: true})
	if errors.Is(err, memstore.ErrDisabled) {
		err = nil
	}
	if err = errors.Join(err, m.Close()); err != nil || found.Text == "" {
		return nil, 0, refused(err)
	}
	return []render.BudgetItem{{
		Name: "recalled-observations", Tokens: found.Tokens, Note: render.Plural(len(found.IDs), "observation"),
	}}, found.Displaced, nil
}

// conversationItem counts a transcript by what was said in it, and any other text as it is.
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
	it.Note = render.Plural(len(messages), "message")
	return it
}
