package ops

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/state"
)

// VerifyMemoryRequest confirms that observations are still true.
type VerifyMemoryRequest struct {
	IDs []string
	By  string // "": the caller
}

// VerifyMemory verifies memory observations by their ids: it records that they are still true of their files.
func VerifyMemory(ctx context.Context, env Env, q VerifyMemoryRequest) error {
	if err := checkIDs(q.IDs); err != nil {
		return err
	}
	return env.withMemory(ctx, func(_ *state.Store, m *memstore.Files) error {
		who, err := env.person(q.By)
		if err != nil {
			return err
		}
		return explainUnknown(ctx, m, q.IDs, m.Verify(ctx, q.IDs, who))
	})
}

// RemoveMemoryRequest names observations to remove.
type RemoveMemoryRequest struct {
	IDs       []string
	By        string // "": the caller
	Reason    string
	Originals bool // for compacted observations, also remove the originals
}

// RemoveMemoryResult are the removed observations.
type RemoveMemoryResult struct {
	IDs      []string `json:"ids"`
	Archived int      `json:"-"` // originals that remain in the archive
}

// RemoveMemory removes observations with these ids from the memory, and with Originals also those that a compaction
// merged into them. A record documents the removal.
func RemoveMemory(ctx context.Context, env Env, q RemoveMemoryRequest) (r RemoveMemoryResult, err error) {
	if err := checkIDs(q.IDs); err != nil {
		return r, err
	}
	err = env.withMemory(ctx, func(_ *state.Store, m *memstore.Files) error {
		who, err := env.person(q.By)
		if err != nil {
			return err
		}
		gone, originals, err := m.WithOriginals(ctx, q.IDs)
		if err != nil {
			return explainUnknown(ctx, m, q.IDs, err)
		}
		r = RemoveMemoryResult{IDs: slices.Concat(q.IDs, originals)}
		if !q.Originals {
			gone, r = q.IDs, RemoveMemoryResult{IDs: q.IDs, Archived: len(originals)}
		}
		return explainUnknown(ctx, m, q.IDs, m.Remove(ctx, gone, who, env.redact("--reason", q.Reason)))
	})
	return r, err
}

// RebuildMemoryResult is the state of the rebuilt memory.
type RebuildMemoryResult struct {
	Observations int      `json:"observations"`
	Issues       int      `json:"issues"`
	Wrote        bool     `json:"wrote"`
	Took         string   `json:"took"`
	Warnings     []string `json:"warnings"`
}

// RebuildMemory rebuilds the files of the memory from the specs and records.
func RebuildMemory(ctx context.Context, env Env) (r RebuildMemoryResult, err error) {
	defer func() { err = typed(err) }()
	s, t, err := env.load(ctx)
	if err != nil {
		return r, err
	}
	defer s.Close()
	lock, err := s.Lock(ctx)
	if err != nil {
		return r, err
	}
	m := env.memory(s)
	defer func() { err = errors.Join(err, m.Close()) }()
	began := time.Now() // for the report, not for a record
	settled, err := m.Rebuild(ctx, t)
	if err = errors.Join(err, lock.Release()); err != nil {
		return r, err
	}
	r = RebuildMemoryResult{Wrote: settled.Wrote, Took: time.Since(began).Round(time.Millisecond).String(),
		Warnings: append([]string{}, settled.Warnings...)}
	for _, w := range r.Warnings {
		env.logWarning("memory", w)
	}
	stats, err := m.Stats(ctx)
	r.Observations, r.Issues = stats.TotalObservations, stats.IssueCount
	return r, err
}

// CompactMemoryRequest requests that related observations are merged.
type CompactMemoryRequest struct {
	Issue *int // nil: all issues that are due
	Undo  bool // restore the originals of the issue's last compaction
}

// CompactMemory compacts the memory: it merges related observations of issues, or undoes that.
func CompactMemory(ctx context.Context, env Env, q CompactMemoryRequest) (done []memstore.Compacted, err error) {
	if q.Undo && q.Issue == nil {
		return nil, badField("undo", " needs --issue: the issue whose last compaction is undone")
	}
	done = []memstore.Compacted{}
	err = env.withMemory(ctx, func(_ *state.Store, m *memstore.Files) error {
		all, err := q.compact(ctx, m)
		if errors.Is(err, memstore.ErrNothing) {
			env.note("%v", err)
			return nil
		}
		if err != nil {
			return err
		}
		for _, c := range all {
			env.logMemory("memory-compacted", slog.Int("issueNumber", c.Issue), slog.Int("before", c.Before),
				slog.Int("after", c.After), slog.String("record", c.Record))
		}
		done = append(done, all...)
		return nil
	})
	return done, err
}

func (q *CompactMemoryRequest) compact(ctx context.Context, m *memstore.Files) ([]memstore.Compacted, error) {
	if q.Issue == nil {
		return m.CompactDue(ctx)
	}
	one := m.Compact
	if q.Undo {
		one = m.Undo
	}
	c, err := one(ctx, *q.Issue)
	return []memstore.Compacted{c}, err
}
