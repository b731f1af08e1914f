package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// matter is one clarification: as it is shown, and the request that it comes from.
type matter struct {
	render.Clarification
	request *state.Entry // nil for what another program wrote into a ledger
}

// mattersOf lists clarifications by issue and number: the records of the ledgers, and after those of their issue the
// requests that no ledger has yet. Only matters of the issue are listed, or of all issues with -1, and with active only
// those that are open.
func mattersOf(t *state.Tree, issue int, active bool) []matter {
	var out []matter
	recorded := map[string]bool{}
	imports := refusedImports(t)
	for _, l := range t.Ledgers() {
		if issue >= 0 && l.Issue != issue || active && l.Open == 0 {
			continue
		}
		for i := range l.Records() {
			c := &l.Records()[i]
			if active && !c.Open() {
				continue
			}
			m := recordOf(t, l.Issue, c)
			if e := imports[c.ID]; e != nil && m.request == nil {
				recorded[e.Name], m.Why = true, cmp.Or(m.Why, controllers.Untaken(e))
			}
			if m.request != nil {
				recorded[m.request.Name] = true
			}
			out = append(out, m)
		}
	}
	for _, e := range t.Entries(schemas.ClarificationRequestKind.Name) {
		spec := requestSpec(e)
		if spec == nil || recorded[e.Name] || issue >= 0 && spec.Issue != issue {
			continue
		}
		if m := requestOf(t, e); !active || m.Open() && !m.refused() {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, compareMatters)
	return out
}

// decidedMatters is [mattersOf] for a tree that was decided and is not written yet: its statuses know all that the ledgers
// say, and more.
func decidedMatters(t *state.Tree, issue int, active bool) []matter {
	all := mattersOf(t, issue, false)
	for i := range all {
		all[i].follow()
	}
	if active {
		all = slices.DeleteFunc(all, func(m matter) bool { return !m.Open() || m.refused() })
	}
	return all
}

// follow brings a record up to date with the status of its request.
func (m *matter) follow() {
	spec := requestSpec(m.request)
	if spec == nil || m.ID == "" {
		return
	}
	st := requestStatus(m.request)
	if st.ID != m.ID || st.ObservedDigest != m.request.Object.Digest {
		return
	}
	m.Clarification.Clarification = clarify.Record(m.request.Name, spec, st)
	m.Thread = st.Thread
}

// refusedImports are the requests for questions of other programs that may not be asked here, by their ids.
func refusedImports(t *state.Tree) map[string]*state.Entry {
	out := map[string]*state.Entry{}
	for _, e := range t.Entries(schemas.ClarificationRequestKind.Name) {
		m := matter{request: e}
		if spec := requestSpec(e); spec != nil && spec.Imported != "" && requestStatus(e).ID == "" && m.refused() {
			out[spec.Imported] = e
		}
	}
	return out
}

// compareMatters orders by issue and number; what has no number yet comes last, by name.
func compareMatters(a, b matter) int {
	return cmp.Or(cmp.Compare(a.IssueNumber, b.IssueNumber), cmp.Compare(sequenceOf(a.ID), sequenceOf(b.ID)),
		strings.Compare(a.ID, b.ID), strings.Compare(a.Request, b.Request))
}

// sequenceOf is 7 of CLR-42-007; of no id it is larger than any.
func sequenceOf(id string) int {
	if _, seq, ok := clarify.ParseID(id); ok {
		return seq
	}
	return math.MaxInt
}

func requestSpec(e *state.Entry) *schemas.ClarificationRequestSpec {
	if e == nil || e.Object == nil {
		return nil
	}
	return schemas.SpecAs[*schemas.ClarificationRequestSpec](e.Object)
}

func requestStatus(e *state.Entry) *schemas.ClarificationRequestStatus {
	st, ok := e.Status().(*schemas.ClarificationRequestStatus)
	if !ok {
		return &schemas.ClarificationRequestStatus{}
	}
	return st
}

// recordOf is a record of a ledger with what the status of its request adds.
func recordOf(t *state.Tree, issue int, c *schemas.Clarification) matter {
	m := matter{Clarification: render.Clarification{IssueNumber: issue, Clarification: *c, Human: isHuman(t, c.To)}}
	st := &schemas.ClarificationRequestStatus{}
	if e := t.Entry(requestRef(c.Request)); e != nil && requestStatus(e).ID == c.ID {
		m.request, st = e, requestStatus(e)
		m.Escalation, m.Summary = st.Escalation, st.Summary
	} else if why := controllers.Unroutable(t, c); why != "" {
		m.Why = why
	} else if c.Open() && controllers.Orphaned(t, c) {
		m.Why = fmt.Sprintf("request %q is not in the tree any more; put its file back, and then settle or abandon it", c.Request)
	}
	m.Thread = make([]schemas.ThreadEntry, len(c.Thread))
	for i, turn := range c.Thread {
		m.Thread[i] = schemas.ThreadEntry{ClarificationTurn: turn, Source: sourceOf(st.Thread, turn)}
	}
	return m
}

// sourceOf is where a turn of a ledger came from, as the status of the request has it.
func sourceOf(thread []schemas.ThreadEntry, turn schemas.ClarificationTurn) string {
	for i := range thread {
		if thread[i].ClarificationTurn == turn {
			return thread[i].Source
		}
	}
	return "ledger"
}

// requestOf is a request that no ledger has: it is new, was refused, or its ledger is to be written again.
func requestOf(t *state.Tree, e *state.Entry) matter {
	spec, st := requestSpec(e), requestStatus(e)
	m := matter{request: e, Clarification: render.Clarification{
		IssueNumber: spec.Issue, Escalation: st.Escalation, Summary: st.Summary, Human: isHuman(t, spec.To),
		Clarification: schemas.Clarification{
			ID: st.ID, From: spec.From, To: spec.To, Topic: spec.Topic, Blocking: spec.Blocking, Status: st.Phase,
			Round: st.Round, MaxRounds: st.MaxRounds, Created: st.Created, StaleAfter: st.StaleAfter,
			ResolvedAt: st.ResolvedAt, Request: e.Name,
		},
		Thread: st.Thread,
	}}
	if len(m.Thread) == 0 {
		first := schemas.ClarificationTurn{Round: 1, From: spec.From, Type: schemas.TurnQuestion, Body: spec.Question}
		m.Thread, m.Round = []schemas.ThreadEntry{{ClarificationTurn: first, Source: "request"}}, 1
	}
	m.Why = controllers.Untaken(e)
	return m
}

// refused reports whether a request was never taken: its agent may not ask there, or it is broken.
func (m *matter) refused() bool {
	return m.ID == "" && m.request != nil && controllers.Untaken(m.request) != ""
}

func requestRef(name string) schemas.Ref {
	return schemas.Ref{Kind: schemas.ClarificationRequestKind.Name, Name: name}
}

// isHuman reports whether a person answers for an agent.
func isHuman(t *state.Tree, agent string) bool {
	e := t.Entry(schemas.Ref{Kind: schemas.AgentKind.Name, Name: agent})
	return e != nil && e.Object != nil && schemas.SpecAs[*schemas.AgentSpec](e.Object).Runner.Human != nil
}

// matterArguments is [arguments] for commands whose first one names a clarification. What can be neither an id nor a name
// is a wrong command line, which is told before anything is read or run.
func matterArguments(least, most int, words string) cobra.PositionalArgs {
	number := arguments(least, most, words)
	return func(cmd *cobra.Command, args []string) error {
		for i := range args {
			args[i] = strings.TrimPrefix(args[i], guard)
		}
		if len(args) > most && most > 1 {
			return badUsage("%s takes one text, and here are %d words: put the text in quotes; usage: %s", cmd.CommandPath(),
				len(args)-1, cmd.UseLine())
		}
		if err := number(cmd, args); err != nil {
			return err
		}
		if _, _, ok := clarify.ReadID(args[0]); !ok && schemas.CheckName(args[0]) != nil {
			return noID(args[0])
		}
		return nil
	}
}

// noID says that a word is not of the form of an id, nor the name of a request.
func noID(word string) error {
	return badUsage("%s is neither the id of a clarification, which is CLR-ISSUE-NUMBER as CLR-42-001, nor the name of "+
		"a request", argumentName(word))
}

// argumentName is an argument for messages, which do not repeat what is a text rather than a name.
func argumentName(word string) string {
	const most = 63 // bytes, as a name has
	if len(word) > most || strings.ContainsFunc(word, unicode.IsSpace) {
		return "a text of " + schemas.Count(utf8.RuneCountInString(word), "character")
	}
	return strconv.Quote(word)
}

// findMatter returns the clarification that a word names: by its id, in any case and without leading zeros if they are
// left out, or by the name of its request.
func findMatter(t *state.Tree, word string) (matter, error) {
	if id, issue, ok := clarify.ReadID(word); ok {
		for _, m := range mattersOf(t, issue, false) {
			if m.ID == id {
				return m, nil
			}
		}
		return matter{}, noMatter(t, id, issue)
	}
	e := t.Entry(requestRef(word))
	switch {
	case e != nil && requestSpec(e) != nil:
	case strings.HasPrefix(word, "clr-"):
		return matter{}, noID(word)
	default:
		return matter{}, noMatter(t, word, -1)
	}
	issue, id := requestSpec(e).Issue, requestStatus(e).ID
	for _, m := range mattersOf(t, issue, false) {
		if m.request == e && m.ID == id {
			return m, nil
		}
	}
	return requestOf(t, e), nil
}

// noMatter says that there is no such clarification, and which was probably meant.
func noMatter(t *state.Tree, word string, issue int) error {
	var names []string
	for _, m := range mattersOf(t, issue, false) {
		names = append(names, m.Title())
		if m.ID != "" && m.Request != "" {
			names = append(names, m.Request)
		}
	}
	hint := didYouMean(word, names)
	switch {
	case hint != "":
	case issue >= 0 && len(names) == 0:
		hint = fmt.Sprintf("; nothing was asked about issue %d", issue)
	case issue >= 0:
		hint = fmt.Sprintf("; \"reconcile clarify --issue %d\" shows what was asked there", issue)
	default:
		hint = `; "reconcile clarify" lists what is open`
	}
	err := clarify.NewNotFound(word)
	err.Message += hint
	return err
}

// completeMatters offers the ids of the open clarifications.
func (a *app) completeMatters(
	cmd *cobra.Command, args []string, _ string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	t := a.loadQuietly(cmd)
	if t == nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []cobra.Completion
	for _, m := range mattersOf(t, -1, true) {
		out = append(out, cobra.CompletionWithDesc(m.Title(), render.Line(m.Topic)))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
