package main

import (
	"context"
	"fmt"

	engine "reconcile.dev/reconcile/cmd/reconcile/internal/engine/mirroring"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas/document"
	"reconcile.dev/reconcile/state"
)

// in makes specs of what people wrote on issues, for the run that follows, and reports whether records were written. What
// goes wrong is told, and is no failure of the run.
func (m *mirroring) in(ctx context.Context) (wrote bool) {
	records := engine.NewRecords(m.store, m.repo, false, m.warn)
	if issues, err := records.Issues(); err == nil && len(issues) == 0 {
		return false // nothing was mirrored: nobody can have written anything
	}
	held, release, err := m.alone(ctx)
	if err != nil || release == nil {
		m.tellMirror(err)
		return false
	}
	defer release()
	if err = m.catchUp(held); err == nil {
		err = m.hear(held, records, (*engine.Inbox).Read)
	}
	m.tellMirror(unheld(ctx, held, err))
	return records.Changed()
}

// catchUp has the tree know what other reconcilers handled and pushed, before comments are read. A watcher's loop does it.
func (m *mirroring) catchUp(ctx context.Context) error {
	if m.share == nil || m.options.watch {
		return nil
	}
	news, err := m.share.Fetch(ctx, false)
	if err != nil || !news {
		return err
	}
	t, err := m.store.Load(ctx)
	if err != nil {
		return err
	}
	_, err = m.share.Adopt(ctx, t)
	return err
}

// hear has the inbox read or answer. While nothing was mirrored, nobody can have written anything.
func (m *mirroring) hear(
	ctx context.Context, records *engine.Records, do func(*engine.Inbox, context.Context) (engine.Heard, error),
) error {
	if issues, err := records.Issues(); err != nil || len(issues) == 0 {
		return err
	}
	keys, err := m.mirrorKeys(ctx, records)
	if err != nil {
		return err
	}
	store, err := m.open() // of its own: a watcher's loop looks at what others announce, and not at what its store does
	if err != nil {
		return err
	}
	defer store.Close()
	files := m.memoryOf(store)
	defer files.Close() //nolint:errcheck // it was only read
	heard, err := do(&engine.Inbox{
		Mirror:   &engine.Mirror{Remote: m.client, Records: records, Keys: keys, Now: m.now},
		Listener: m.client, Commands: store.Settings().GitHub.Commands, Tree: store.Load, Watch: m.comments,
		Write: func(s controllers.Spec) error { return writeHeard(store, s) }, Show: m.show,
		Known: memory.Source{Exists: files.Exists, Digest: files.Digest, Known: files.Known},
	}, ctx)
	m.tellHeard(heard)
	return err
}

// writeHeard writes a spec that a comment became, as one of the command line is.
func writeHeard(store *state.Store, s controllers.Spec) error {
	if err := specs.CheckSecrets(s.Ref.Name, s.Spec); err != nil {
		return err
	}
	src, err := document.Spec(s.Ref, s.Spec)
	if err != nil {
		return err
	}
	if err := specs.Create(store.Root(), s.Path, src); err != nil {
		return err
	}
	return store.Announce()
}

// tellHeard tells what came of comments.
func (m *mirroring) tellHeard(h engine.Heard) {
	for _, n := range h.Notes {
		m.warn("GitHub: " + n)
	}
	if h.Comments > 0 {
		m.options.progress.Note(fmt.Sprintf("GitHub: %s read on %s, %s written", plural(h.Comments, "comment"), m.repo,
			plural(h.Specs, "file")))
	}
	if h.Later != nil {
		m.tellMirror(fmt.Errorf("comments and receipts are left for the next time: %w", h.Later))
	}
}
