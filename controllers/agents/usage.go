package agents

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/actions"
	"reconcile.dev/reconcile/controllers/breaker"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/turns"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// UsageTotals sums up the recorded turns of each agent of a tree, by its name.
func UsageTotals(t *state.Tree) map[string]*turns.Total {
	totals := map[string]*turns.Total{}
	for _, k := range settle.TableOf(t) {
		if !k.Performs {
			continue
		}
		for _, e := range t.Entries(k.Name) {
			if !e.RunsHave(state.OfAgent) {
				continue
			}
			for _, r := range e.Runs() {
				if r.Agent == "" || r.Turn == nil {
					continue
				}
				if totals[r.Agent] == nil {
					totals[r.Agent] = new(turns.Total)
				}
				totals[r.Agent].Add(r.Turn)
			}
		}
	}
	return totals
}

// running returns the usage of the turns that run now, by agent and key.
func running(t *state.Tree) map[string]map[string]*schemas.Turn {
	out := map[string]map[string]*schemas.Turn{}
	for _, k := range settle.TableOf(t) {
		if !k.Performs {
			continue
		}
		for _, e := range t.Entries(k.Name) {
			for i := range e.Claims {
				c := &e.Claims[i]
				if c.Agent == "" || c.Turn == nil {
					continue
				}
				if out[c.Agent] == nil {
					out[c.Agent] = map[string]*schemas.Turn{}
				}
				out[c.Agent][c.Key] = c.Turn
			}
		}
	}
	return out
}

// contexts describes the use of the contexts of an agent's running turns.
func contexts(of map[string]*schemas.Turn) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(of)) {
		if s := turns.Context(of[key]); s != "" {
			all = append(all, s)
		}
	}
	return strings.Join(all, ", ")
}

// NodeTurns returns the latest recorded turn of each node of an object, by name.
func NodeTurns(e *state.Entry) map[string]*schemas.Turn {
	var latest map[string]*schemas.Run
	for _, r := range e.Runs() {
		if was := latest[r.Node]; r.Turn != nil && (was == nil || !r.FinishedAt.Before(was.FinishedAt.Time)) {
			if latest == nil {
				latest = map[string]*schemas.Run{}
			}
			latest[r.Node] = r
		}
	}
	if latest == nil {
		return nil
	}
	out := make(map[string]*schemas.Turn, len(latest))
	for node, r := range latest {
		out[node] = r.Turn
	}
	return out
}

// Wide returns a table of kinds with the columns that are too wide for every list: whether agents can work, and their usage.
func Wide(t settle.Table, tree *state.Tree, now time.Time) settle.Table {
	totals, live, breakers := UsageTotals(tree), running(tree), breaker.BreakersOf(new(settle.Values), tree, now)
	of := func(head string, text func(*turns.Total) string) settle.Column {
		return settle.Column{Head: head, Text: func(e *state.Entry) string {
			if total := totals[e.Name]; total != nil {
				return text(total)
			}
			return ""
		}}
	}
	wide := slices.Clone(t)
	if row := wide.Row(schemas.AgentKind.Name); row != nil {
		row.Columns = append(slices.Clone(row.Columns),
			settle.Column{Head: "CONTEXT", Text: func(e *state.Entry) string { return contexts(live[e.Name]) }},
			settle.Column{Head: "HEALTH", Text: healthWord},
			settle.Column{Head: "BREAKER", Text: func(e *state.Entry) string { return breakerText(breakers.At(e.Name)) }},
			of("TURNS", func(t *turns.Total) string { return strconv.Itoa(t.Turns) }),
			of("TOKENS", (*turns.Total).Tokens), of("COST", (*turns.Total).Cost))
	}
	return wide
}

// UsageDetails are lines about what an object's agents used, for its description.
func UsageDetails(t *state.Tree, e *state.Entry, now time.Time) []settle.Column {
	line := func(head, text string) settle.Column {
		return settle.Column{Head: head, Text: func(*state.Entry) string { return text }}
	}
	if e.Kind == schemas.AgentKind.Name {
		var out []settle.Column
		if text := contexts(running(t)[e.Name]); text != "" {
			out = append(out, line("Context", text))
		}
		if text := checkpoints(t, e.Name); text != "" {
			out = append(out, line("Checkpoints", text))
		}
		if b := breaker.BreakersOf(new(settle.Values), t, now).At(e.Name); b.Failures > 0 {
			out = append(out, line("Breaker", breakerText(b)))
		}
		if total := UsageTotals(t)[e.Name]; total != nil {
			out = append(out, line("Turns", strconv.Itoa(total.Turns)), line("Tokens", total.Tokens()))
			if counted := total.Counted(); counted != "" {
				out = append(out, line("Counted", counted))
			}
			out = append(out, line("Cost", total.CostBy()))
		}
		return out
	}
	var out []settle.Column
	for i := range e.Claims {
		if c := &e.Claims[i]; c.Turn != nil {
			text := strings.TrimSuffix("session "+c.Turn.SessionID+", context "+turns.Context(c.Turn), ", context ")
			out = append(out, line("Running turn of "+c.Node, text))
		}
	}
	for _, a := range schemas.AppliedTo(e.Status()) {
		if schemas.IsMessage(a.Verb) {
			out = append(out, line("Told "+a.Node, messageText(a)))
		}
	}
	for _, r := range substitutes(e) {
		out = append(out, line("Agent of "+r.Node, r.Instead.By(r.Agent)))
	}
	latest := NodeTurns(e)
	for _, node := range slices.Sorted(maps.Keys(latest)) {
		out = append(out, line("Turn of "+node, turns.Line(latest[node])))
	}
	return out
}

// checkpoints says how many checkpoints an agent has, and of what the last one is; "" without any.
func checkpoints(t *state.Tree, agent string) string {
	n, last := 0, (*schemas.Checkpoint)(nil)
	for _, c := range t.Checkpoints() {
		if c.Agent == agent {
			if n++; last == nil || !c.Timestamp.Before(last.Timestamp.Time) {
				last = c
			}
		}
	}
	if last == nil {
		return ""
	}
	at := fmt.Sprintf("at %d %%", last.Threshold)
	if last.Handoff != nil {
		at = "of a hand-off"
	}
	return fmt.Sprintf("%d, the last one %s (%s): %s", n, at, last.Node, last.Name())
}

// messageText says what a person told an agent by an action, and when and how it arrived.
func messageText(a schemas.AppliedAction) string {
	text := a.Verb
	if a.By != "" {
		text += " by " + schemas.Acting(a.By, a.Proof)
	}
	switch {
	case a.Delivery != nil:
		text += ", " + actions.Receipt(a.Delivery)
	case a.Moot:
		text += ", part of its prompt if it runs again"
	default:
		text += ", part of its next turn"
	}
	return text + " (action/" + a.Name + ")"
}
