package mirroring

import (
	"context"
	"fmt"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas/document"
	"reconcile.dev/reconcile/state"
)

// In makes specs of what people wrote on issues, for the run that follows, and reports whether records were written. What
// goes wrong is told, and is no failure of the run.
func (m *Runner) In(ctx context.Context) (wrote bool) {
	records := NewRecords(m.o.Store, m.repo, false, m.o.Warn)
	if issues, err := records.Issues(); err == nil && len(issues) == 0 {
		return false // nothing was mirrored: nobody can have written anything
	}
	held, release, err := m.alone(ctx)
	if err != nil || release == nil {
		m.warnOnce(err)
		return false
	}
	defer release()
	if err = m.catchUp(held); err == nil {
		err = m.hear(held, records, (*Inbox).Read)
	}
	m.warnOnce(unheld(ctx, held, err))
	return records.Changed()
}

// catchUp has the tree know what other reconcilers handled and pushed, before comments are read. A watcher's loop does it.
func (m *Runner) catchUp(ctx context.Context) error {
	if m.o.Share == nil || m.o.Watching {
		return nil
	}
	news, err := m.o.Share.Fetch(ctx, false)
	if err != nil || !news {
		return err
	}
	t, err := m.o.Store.Load(ctx)
	if err != nil {
		return err
	}
	_, err = m.o.Share.Adopt(ctx, t)
	return err
}

// hear has the inbox read or answer. While nothing was mirrored, nobody can have written anything.
func (m *Runner) hear(
	ctx context.Context, records *Records, do func(*Inbox, context.Context) (Heard, error),
) error {
	if issues, err := records.Issues(); err != nil || len(issues) == 0 {
		return err
	}
	keys, err := KeysOf(ctx, m.o.Tree.Getenv, records)
	if err != nil {
		return err
	}
	store, err := m.o.Tree.Open() // of its own: a watcher's loop looks at what others announce, and not at what its store does
	if err != nil {
		return err
	}
	defer store.Close()
	files := memstore.Open(store, memstore.Options{Now: m.o.Tree.Now, Kinds: store.Kinds(), Warn: m.warnMemory, Settings: store.Settings()})
	defer files.Close() //nolint:errcheck // it was only read
	heard, err := do(&Inbox{
		Mirror:   &Mirror{Remote: m.client, Records: records, Keys: keys, Now: m.o.Tree.Now},
		Listener: m.client, Commands: store.Settings().GitHub.Commands, Tree: store.Load, Watch: m.comments,
		Write: func(s controllers.Spec) error { return writeHeard(store, s) }, Show: m.o.Show,
		Known: memory.Source{Exists: files.Exists, Digest: files.Digest, Known: files.Known,
			StateFolder: files.StateFolder()},
	}, ctx)
	m.reportHeard(heard)
	return err
}

// warnMemory reports what is wrong with the memory. It stops no work.
func (m *Runner) warnMemory(text string) {
	m.o.Warn("warning: " + text)
	if m.o.Tree.Log != nil {
		m.o.Tree.Log.Warn("memory", "message", text)
	}
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

// reportHeard reports what came of comments.
func (m *Runner) reportHeard(h Heard) {
	for _, n := range h.Notes {
		m.o.Warn("GitHub: " + n)
	}
	if h.Comments > 0 {
		m.o.Note(fmt.Sprintf("GitHub: %s read on %s, %s written", render.Plural(h.Comments, "comment"), m.repo,
			render.Plural(h.Specs, "file")))
	}
	if h.Later != nil {
		m.warnOnce(fmt.Errorf("comments and receipts are left for the next time: %w", h.Later))
	}
}
