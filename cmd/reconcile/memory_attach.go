package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
)

// attach adds what the command line says of the entries: what they are about and replace. A digest tells the content of
// each anchor as it is now.
func (o *captureOptions) attach(ctx context.Context, m *memstore.Files, entries []schemas.ObservationEntry) error {
	for i := range entries {
		e := &entries[i]
		if o.category != "" && e.Category == schemas.CategorySummary {
			e.Category = o.category
		}
		for _, p := range o.anchors {
			addAnchor(e, p, m.Digest(p))
		}
	}
	for _, id := range o.supersedes {
		if err := supersede(ctx, m, entries, id); err != nil {
			return err
		}
	}
	return nil
}

// supersede lets the entry that fits best replace an older observation.
func supersede(ctx context.Context, m *memstore.Files, entries []schemas.ObservationEntry, id string) error {
	older, err := m.ByID(ctx, id)
	if errors.Is(err, memstore.ErrUnknown) {
		return fmt.Errorf("--supersedes: %w", unknownID(ctx, m, id))
	}
	if err != nil {
		return err
	}
	at := memory.Fitting(entries, &older)
	if at < 0 {
		return badUsage("--supersedes %s: the text says only what that observation says itself", id)
	}
	if e := &entries[at]; !slices.Contains(e.Supersedes, id) {
		e.Supersedes = append(e.Supersedes, id)
	}
	return nil
}

func addAnchor(e *schemas.ObservationEntry, p, digest string) {
	if !slices.Contains(e.Anchors, p) {
		e.Anchors = append(e.Anchors, p)
	}
	if digest == "" {
		return
	}
	if e.Digests == nil {
		e.Digests = map[string]string{}
	}
	e.Digests[p] = digest
}
