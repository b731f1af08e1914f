package ops

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/eventlog"
	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/controllers/observations"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/threads"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/lexical"
)

// withMemory opens the memory of the tree for do, without reading the tree. It does nothing if the settings are
// unreadable, since they may have disabled the memory.
func (e Env) withMemory(ctx context.Context, do func(*state.Store, *memstore.Files) error) (err error) {
	defer func() { err = typed(err) }()
	if err := ctx.Err(); err != nil {
		return err
	}
	s, err := e.Tree.Open()
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.CheckFolders(); err != nil {
		return err
	}
	switch wrong, unusable := s.CheckSettings(); {
	case unusable:
		return &Error{Invalid, fmt.Errorf("%w; nothing was done, since the memory may be turned off there", wrong)}
	case wrong != nil:
		e.warnMemory(wrong.Error() + "; the rest of the settings counts")
	}
	m := e.memory(s)
	return errors.Join(do(s, m), m.Close())
}

// memory returns the memory of an open tree.
func (e Env) memory(s *state.Store) *memstore.Files {
	return memstore.Open(s, memstore.Options{Now: e.Tree.Now, Kinds: s.Kinds(), Warn: e.warnMemory, Settings: s.Settings()})
}

// warnMemory reports and logs a problem of the memory that does not end the operation.
func (e Env) warnMemory(text string) {
	e.warn(text)
	e.logWarning("memory", text)
}

// logMemory logs an operation on the memory (agentx-spec, memory pipeline 12.2).
func (e Env) logMemory(what string, attrs ...slog.Attr) {
	if e.Tree.Log != nil {
		e.Tree.Log.LogAttrs(context.Background(), slog.LevelInfo, what, attrs...)
	}
}

// recordEvent writes an event of the memory to the logs. An error is only a warning, since the event log is expendable.
func (e Env) recordEvent(ctx context.Context, s *state.Store, event settle.Event) {
	if err := eventlog.Append(ctx, s, e.Tree.Log, event); err != nil {
		e.warnMemory("event log: " + err.Error())
	}
}

// recordRecall records a recall, and notes the tokens that it saves.
func (e Env) recordRecall(ctx context.Context, s *state.Store, agent string, issue int, found memstore.Recalled) {
	if len(found.IDs) == 0 {
		return
	}
	if found.Displaced > 0 {
		saved := fmt.Sprintf("Memory recall displaced %d tokens of manual re-read", found.Displaced)
		e.note("%s", saved)
		e.logMemory(saved, slog.String("agent", agent), slog.Int("issueNumber", issue))
	}
	e.recordEvent(ctx, s, observations.NewEvent(settle.MemoryRecalled, agent, issue, found.IDs, found.Tokens, e.Tree.Now()))
}

// MemoryFilter selects observations; the zero value selects all that are neither superseded nor archived.
type MemoryFilter struct {
	Agent, Category string
	Issue           *int
	Since, Until    time.Time // learned at Since or later, before Until
	Stale           bool      // only those that may be stale
	Superseded      bool      // only those that a newer one replaces
	Archived        bool      // only those that compaction archived
	All             bool      // also those that are superseded or archived
}

func (f *MemoryFilter) filter() (memstore.Filter, error) {
	choose := func(only bool) memstore.Choice {
		switch {
		case only:
			return memstore.Only
		case f.All:
			return memstore.With
		}
		return memstore.Without
	}
	return memstore.Filter{Agent: f.Agent, Issue: f.Issue, Category: f.Category, Since: f.Since, Until: f.Until, Stale: f.Stale,
		Superseded: choose(f.Superseded), Archived: choose(f.Archived)}, checkCategory(f.Category)
}

func checkCategory(word string) error {
	if all := schemas.Categories(); word != "" && !slices.Contains(all, word) {
		return badField("category", " %q%s: there are %s", word, schemas.DidYouMean(word, all), strings.Join(all, ", "))
	}
	return nil
}

// checkIDs returns an error for words that are not ids of observations.
func checkIDs(ids []string) error {
	for _, id := range ids {
		if !schemas.IsObservationID(id) {
			return badRequest("%q is not the id of an observation, which is obs-AGENT-ISSUE-MILLISECONDS-SIX as "+
				"obs-engineer-29-1709035200000-a1b2c3; \"reconcile memory list\" lists them", id)
		}
	}
	return nil
}

// explainUnknown replaces an error about an unknown id with one that suggests a similar id.
func explainUnknown(ctx context.Context, m *memstore.Files, ids []string, err error) error {
	if !errors.Is(err, memstore.ErrUnknown) {
		return err
	}
	for _, id := range ids {
		if _, err := m.ByID(ctx, id); errors.Is(err, memstore.ErrUnknown) {
			return unknownID(ctx, m, id)
		}
	}
	return err
}

func unknownID(ctx context.Context, m *memstore.Files, id string) error {
	rows, err := m.List(ctx, memstore.Filter{Superseded: memstore.With, Archived: memstore.With})
	if err != nil {
		return err
	}
	hint := "; \"reconcile memory list --all\" lists what there is"
	if len(rows) == 0 {
		hint = "; the memory is empty"
	}
	if near := nearestID(id, rows); near != "" {
		hint = fmt.Sprintf(" (did you mean %q?)", near)
	}
	return fmt.Errorf("observation %s does not exist%s", id, hint)
}

// nearestID searches the ids of the same agent and issue, since mostly the end of an id is mistyped or lost, and all
// ids with the same end.
func nearestID(id string, rows []memory.Row) string {
	cut := strings.LastIndexByte(id, '-')
	head, end := id[:strings.LastIndexByte(id[:cut], '-')], id[cut:]
	var near []string
	for i := range rows {
		if strings.HasPrefix(rows[i].ID, head+"-") || strings.HasSuffix(rows[i].ID, end) {
			near = append(near, rows[i].ID)
		}
	}
	return schemas.GuessWord(id, near)
}

// GetMemory gets full observations from the memory by their ids.
func GetMemory(ctx context.Context, env Env, ids []string) ([]memory.Full, error) {
	if err := checkIDs(ids); err != nil {
		return nil, err
	}
	found := make([]memory.Full, len(ids))
	err := env.withMemory(ctx, func(_ *state.Store, m *memstore.Files) error {
		for i, id := range ids {
			o, err := m.ByID(ctx, id)
			if err != nil {
				return explainUnknown(ctx, m, ids[i:i+1], err)
			}
			found[i] = memory.Full{Observation: o, Stale: m.Stale(&o)}
		}
		return nil
	})
	return found, err
}

// ListMemory lists a row of the memory for each observation that matches a MemoryFilter, by issue and time.
func ListMemory(ctx context.Context, env Env, f MemoryFilter) (rows []memory.Row, err error) {
	filter, err := f.filter()
	if err != nil {
		return nil, err
	}
	err = env.withMemory(ctx, func(_ *state.Store, m *memstore.Files) (err error) {
		rows, err = m.List(ctx, filter)
		return err
	})
	return rows, err
}

// MemorySearchLimit is the default number of observations that a search returns.
const MemorySearchLimit = memstore.DefaultLimit

// SearchMemoryRequest requests observations that have any of the words of a text.
type SearchMemoryRequest struct {
	MemoryFilter
	Text  string
	Limit int
}

// SearchMemoryResult are observations, the best first.
type SearchMemoryResult struct {
	Rows []memory.Row
	Hint string // why the text cannot match anything; "" if it can
}

// SearchMemory searches the memory for the observations that match the words of a query text, at most Limit.
func SearchMemory(ctx context.Context, env Env, q SearchMemoryRequest) (r SearchMemoryResult, err error) {
	if q.Limit < 1 {
		return r, badField("limit", " %d: at least one observation must be wanted", q.Limit)
	}
	if err := checkQuery(q.Text); err != nil {
		return r, err
	}
	filter, err := q.filter()
	if err != nil {
		return r, err
	}
	err = env.withMemory(ctx, func(_ *state.Store, m *memstore.Files) (err error) {
		began := time.Now() // for the log, not for a record
		if r.Rows, err = m.Search(ctx, memstore.Query{Text: q.Text, Filter: filter, Limit: q.Limit}); err != nil {
			return err
		}
		env.logMemory("memory-search", slog.String("query", secrets.Redact(q.Text)), slog.Int("results", len(r.Rows)),
			slog.Duration("latency", time.Since(began)))
		if len(r.Rows) == 0 && len(lexical.Terms(q.Text)) == 0 {
			r.Hint = noTermsHint(q.Text)
		}
		return nil
	})
	return r, err
}

// MemoryStats returns the statistics of the memory in the tree, as schemas.MemoryStats.
func MemoryStats(ctx context.Context, env Env) (stats schemas.MemoryStats, err error) {
	err = env.withMemory(ctx, func(_ *state.Store, m *memstore.Files) (err error) {
		stats, err = m.Stats(ctx)
		return err
	})
	return stats, err
}

// RecallRequest requests the recall of earlier work for an agent that starts.
type RecallRequest struct {
	Agent   string // "": from the environment
	Issue   *int   // nil: from the environment
	Context Text   // the agent's next task
	Budget  *int   // in tokens; nil: from the settings
}

// Recall returns what the memory recalls for an agent from earlier work, within the token budget of a RecallRequest,
// and records it.
func Recall(ctx context.Context, env Env, q RecallRequest) (found memstore.Recalled, err error) {
	agent, issue, err := env.work("recall", q.Agent, q.Issue)
	if err != nil {
		return found, typed(err)
	}
	if q.Budget != nil && *q.Budget < 0 {
		return found, badField("budget", " %d: a number of tokens is wanted, 0 for none", *q.Budget)
	}
	context, err := inputContext(q.Context)
	if err != nil {
		return found, typed(err)
	}
	request := memstore.Request{Agent: agent, Issue: issue, By: agent, Budget: q.Budget, Context: context}
	err = env.withMemory(ctx, func(s *state.Store, m *memstore.Files) (err error) {
		if !*s.Settings().Memory.Enabled {
			env.note("%v", memstore.ErrDisabled)
			return nil
		}
		if found, err = m.Recall(ctx, request); err != nil {
			return err
		}
		switch {
		case found.Least > 0:
			env.note("nothing fits into the budget: of %s, none takes less than a budget of %d tokens; write --budget %d, or more",
				schemas.Count(found.Total, "note"), found.Least, found.Least)
		case found.Text == "":
			env.note("nothing to recall")
		}
		env.recordRecall(ctx, s, agent, issue, found)
		return nil
	})
	return found, err
}

func observationIDs(c memstore.Captured) []string {
	ids := make([]string, len(c.Observations))
	for i := range c.Observations {
		ids[i] = c.Observations[i].ID
	}
	return ids
}

// recallFor returns the recall of earlier work for an agent that starts on an issue. If the recall fails, the agent
// works without it.
func (e Env) recallFor(ctx context.Context, s *state.Store, t *state.Tree, agent string, issue int) string {
	m := e.memory(s)
	defer m.Close() //nolint:errcheck // it was only read
	found, err := m.Recall(ctx, memstore.Request{Agent: agent, Issue: issue, Context: threads.AboutIssue(t, issue)})
	switch {
	case errors.Is(err, memstore.ErrDisabled):
		return ""
	case err != nil:
		e.warnMemory("Memory recall skipped: " + err.Error())
		return ""
	}
	e.recordRecall(ctx, s, agent, issue, found)
	return found.Text
}
