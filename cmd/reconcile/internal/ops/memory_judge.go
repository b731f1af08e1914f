package ops

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// AuditMemoryRequest requests an audit of the memory.
type AuditMemoryRequest struct {
	Most   memory.AuditBounds
	Unused time.Duration // age from which on an observation counts as never recalled
	Since  time.Time     // only observations learned or recalled since
}

// AuditMemoryResult has the findings.
type AuditMemoryResult struct {
	memory.Audit
	Past []string `json:"past"` // exceeded bounds
}

// AuditMemory audits the observations and records of the memory for duplicates, stale and unused observations, and
// secrets.
func AuditMemory(ctx context.Context, env Env, q AuditMemoryRequest) (r AuditMemoryResult, err error) {
	err = env.withMemory(ctx, func(_ *state.Store, m *memstore.Files) (err error) {
		in := memory.AuditInput{Now: env.Tree.Now(), Unused: q.Unused, Since: q.Since, Stale: m.Stale}
		if in.Records, err = m.Records(); err != nil {
			return err
		}
		err = m.Each(ctx, func(o *schemas.Observation) error {
			in.Observations = append(in.Observations, *o)
			return nil
		})
		if err != nil {
			return err
		}
		r = AuditMemoryResult{Audit: memory.NewAudit(in), Past: []string{}}
		for _, s := range r.Sorts(q.Most) {
			if s.Past() {
				r.Past = append(r.Past, fmt.Sprintf("%s: %d, at most %d allowed", s.Name, s.Found, s.Most))
			}
		}
		return nil
	})
	return r, err
}

// Methods of an evaluation.
const (
	BySearch = "search"
	ByRecall = "recall"
)

// EvalMemoryRequest requests an evaluation of the memory with known answers.
type EvalMemoryRequest struct {
	Gold  Text   // the questions, with the ids of their answers
	By    string // BySearch or ByRecall
	Least memory.EvalBounds
}

// EvalMemoryResult has the metrics of an evaluation.
type EvalMemoryResult struct {
	By string `json:"by"`
	memory.Evaluation
	Unknown []string        `json:"unknown"` // expected ids that the memory lacks
	Past    []string        `json:"past"`    // violated bounds
	Answers []memory.Answer `json:"answers"`
}

// EvalMemory evaluates the memory by the questions of a gold set. It records no recalls.
func EvalMemory(ctx context.Context, env Env, q EvalMemoryRequest) (r EvalMemoryResult, err error) {
	if err := q.check(); err != nil {
		return r, err
	}
	data, err := io.ReadAll(q.Gold)
	if err != nil {
		return r, typed(err)
	}
	questions, err := memory.ParseGold(data)
	if err != nil {
		return r, badRequest("%s: %v", q.Gold.Name, err)
	}
	err = env.withMemory(ctx, func(_ *state.Store, m *memstore.Files) error {
		if r, err = evaluate(ctx, m, q.By, questions); err != nil {
			return err
		}
		r.Past = r.Evaluation.Past(q.Least)
		if n := len(r.Unknown); n > 0 {
			env.warnMemory(fmt.Sprintf("the memory does not have %d of the expected observations, %s first; "+
				"run reconcile if they are in specs, or correct %s", n, r.Unknown[0], q.Gold.Name))
		}
		return nil
	})
	return r, err
}

func (q *EvalMemoryRequest) check() error {
	if ways := []string{BySearch, ByRecall}; !slices.Contains(ways, q.By) {
		return badField("by", " %q%s: there are %s", q.By, schemas.DidYouMean(q.By, ways), strings.Join(ways, " and "))
	}
	for _, least := range []float64{q.Least.Recall1, q.Least.Recall5, q.Least.Recall10, q.Least.MRR, q.Least.NDCG} {
		if math.IsNaN(least) || least < 0 || least > 1 {
			return badRequest("a bound of %v: shares are between 0 and 1", least)
		}
	}
	if q.Least.Tokens < 0 {
		return badField("max-tokens", " %d: a number of tokens is wanted, 0 for no bound", q.Least.Tokens)
	}
	return nil
}

// knownIDs has the length of every observation, and the replacements by compaction.
type knownIDs struct {
	tokens map[string]int
	merged map[string]string
}

func knownOf(ctx context.Context, m *memstore.Files) (knownIDs, error) {
	k := knownIDs{map[string]int{}, map[string]string{}}
	return k, m.Each(ctx, func(o *schemas.Observation) error {
		k.tokens[o.ID] = o.Tokens
		for _, id := range o.Compacts {
			k.merged[id] = o.ID
		}
		return nil
	})
}

// merge replaces ids with those of the observations that they were merged into, without duplicates.
func (k *knownIDs) merge(ids []string) []string {
	var out []string
	for _, id := range ids {
		for range len(k.merged) { // follow repeated merges; a cycle in damaged files ends
			next, ok := k.merged[id]
			if !ok {
				break
			}
			id = next
		}
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}
