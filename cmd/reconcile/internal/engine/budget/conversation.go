package budget

import (
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/memory"
)

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
