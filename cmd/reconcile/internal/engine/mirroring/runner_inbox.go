package mirroring

import (
	"context"
	"fmt"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/controllers/derive"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/schemas"
)

// In derives specs from comments on issues, for the run that follows, and reports whether records were written. Errors
// are warnings and do not fail the run.
func (m *Runner) In(ctx context.Context) (wrote bool) {
	records := NewRecords(m.o.Store, m.repo, false, m.o.Warn)
	held, release, err := m.exclusive(ctx)
	if err != nil || release == nil {
		m.warnOnce(err)
		return false
	}
	defer release()
	if err = m.adoptOthers(held); err == nil {
		err = m.processComments(held, records, (*Inbox).Read)
	}
	m.warnOnce(unheldClaim(ctx, held, err))
	return records.Changed()
}

// adoptOthers adopts what other reconcilers handled and pushed, before comments are read. A watcher's loop does this
// already.
func (m *Runner) adoptOthers(ctx context.Context) error {
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

// processComments lets the inbox read or answer comments.
func (m *Runner) processComments(
	ctx context.Context, records *GitHubRecords, do func(*Inbox, context.Context) (ReadResult, error),
) error {
	keys, err := KeysOf(ctx, m.o.Tree.Getenv, records)
	if err != nil {
		return err
	}
	store, err := m.o.Tree.Open() // a separate store: a watcher's loop scans after announcements of other stores, not of its own
	if err != nil {
		return err
	}
	defer store.Close()
	files := memstore.Open(store, memstore.Options{Now: m.o.Tree.Now, Kinds: store.Kinds(), Warn: m.warnMemory, Settings: store.Settings()})
	defer files.Close() //nolint:errcheck // it was only read
	heard, err := do(&Inbox{
		Mirror: &Mirror{Remote: m.client, Records: records, Keys: keys, Now: m.o.Tree.Now},
		Client: m.client, Commands: store.Settings().GitHub.Commands, Tree: store.Load, Watch: m.comments,
		Write: func(s derive.Spec) error { return writeDerived(store, s) }, Show: m.o.Show,
		Known: memory.Source{Exists: files.Exists, Digest: files.Digest, Known: files.Known,
			StateFolder: files.StateFolder()},
	}, ctx)
	m.reportRead(heard)
	return err
}

// reportRead reports the results of reading comments on GitHub.
func (m *Runner) reportRead(h ReadResult) {
	for _, n := range h.Notes {
		m.o.Warn("GitHub: " + n)
	}
	if h.Comments > 0 {
		m.o.Note(fmt.Sprintf("GitHub: %s read on %s, %s written", schemas.Count(h.Comments, "comment"), m.repo,
			schemas.Count(h.Specs, "file")))
	}
	if h.Later != nil {
		m.warnOnce(fmt.Errorf("comments and receipts are left for the next time: %w", h.Later))
	}
}

func describeRead(i mirror.Issue) string {
	if i.Number > 0 {
		return fmt.Sprintf("issue #%d", i.Number)
	}
	return "the issue of " + i.Object.String()
}
