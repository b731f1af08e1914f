package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// checkMemory examines the invariants of the memory: every file is readable, the manifest matches the issue files, and
// these match the observations. Other checks cover locks and damaged files.
func checkMemory(_ context.Context, e *Patient) []Finding {
	if e.tree == nil {
		return skipped("the tree cannot be read")
	}
	if on := e.settings().Memory.Enabled; on != nil && !*on {
		return ok("the memory is turned off: memory.enabled is false")
	}
	m := &memoryExamination{env: e, dir: e.settings().Folders.State + "/memory", taken: map[string]memory.Taken{}, removed: map[string]bool{}}
	for _, look := range []func() error{m.issues, m.archives, m.records} {
		if err := look(); err != nil {
			return []Finding{bad(fmt.Sprintf("the memory cannot be read: %v", err), "check the permissions of "+m.dir)}
		}
	}
	m.manifest()
	m.specs()
	if len(m.found) > 0 {
		return m.found
	}
	return ok(fmt.Sprintf("%s of %s, %s", counted(len(m.entries), "observation"), counted(m.files, "issue"), m.pending()))
}

// memoryExamination is one examination of the memory.
type memoryExamination struct {
	env      *Patient
	dir      string
	files    int
	entries  []schemas.ObservationIndex
	taken    map[string]memory.Taken // stored captures, by name of the Observation
	removed  map[string]bool         // observations
	unstored []string                // observations that are not stored yet
	orphaned []string                // stored observations whose spec is gone
	unread   bool                    // an issue file could not be read
	found    []Finding
}

const rebuildFix = "doctor --fix makes it anew, as the next run would do"

func (m *memoryExamination) issues() error {
	return eachJSON(m.env.root, m.dir, func(name string, data []byte) {
		if !strings.HasPrefix(path.Base(name), "issue-") {
			return
		}
		file, err := memory.Parse(data)
		if err != nil {
			m.unread = true
			m.damaged(name, err)
			return
		}
		m.files++
		for i := range file.Observations {
			m.entries = append(m.entries, file.Observations[i].Index())
		}
		memory.TakenIn(file, m.taken)
	})
}

func (m *memoryExamination) archives() error {
	return eachJSON(m.env.root, m.dir+"/archive", func(name string, data []byte) {
		if _, err := memory.Parse(data); err != nil {
			m.damaged(name, err)
		}
	})
}

func (m *memoryExamination) records() error {
	return eachJSON(m.env.root, m.dir+"/records", func(name string, data []byte) {
		r, err := memory.ParseRecord(data)
		if err != nil {
			m.damaged(name, err)
		}
		if r.Type == schemas.RecordRemoved {
			for _, id := range r.IDs {
				m.removed[id] = true
			}
		}
	})
}

// damaged records a file that cannot be read. A file of a newer program needs no repair.
func (m *memoryExamination) damaged(name string, err error) {
	if errors.Is(err, memory.ErrNewer) {
		m.found = append(m.found, warn(fmt.Sprintf("%s: %v", name, err),
			"update reconcile: this version leaves the file alone"))
		return
	}
	f := bad(fmt.Sprintf("%s: %v", name, err),
		"doctor --fix sets it aside under .reconcile/damaged, and makes anew what can be, as the next run would do")
	m.found = append(m.found, f.by(m.rebuild))
}

// manifest compares the manifest with the issue files.
func (m *memoryExamination) manifest() {
	if m.unread || m.files == 0 {
		return
	}
	name := m.dir + "/manifest.json"
	data, err := regular.Read(m.env.root, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		m.found = append(m.found, warn(name+" is missing", rebuildFix).by(m.rebuild))
	case err != nil:
		m.found = append(m.found, bad(err.Error(), "check the permissions of the file"))
	case !bytes.Equal(data, memory.Manifest(m.entries)):
		m.found = append(m.found, warn(name+" does not say what the issue files say", rebuildFix).by(m.rebuild))
	}
}

// specs compares the captured observations with the stored ones.
func (m *memoryExamination) specs() {
	if m.unread {
		return
	}
	var edited, wrong []string
	for _, e := range m.env.tree.Entries(schemas.ObservationKind.Name) {
		taken, known := m.taken[e.Name]
		switch {
		case e.Object == nil:
		case !known:
			m.unstored = append(m.unstored, e.Name)
		case taken.Digest == e.Object.Digest:
		case m.isStored(e, taken):
			wrong = append(wrong, e.Ref.String())
		default:
			edited = append(edited, e.Ref.String())
		}
	}
	for name := range m.taken {
		e := m.env.tree.Entry(schemas.Ref{Kind: schemas.ObservationKind.Name, Name: name})
		if e == nil || e.Gone() {
			m.orphaned = append(m.orphaned, name)
		}
	}
	slices.Sort(m.orphaned)
	if len(wrong) > 0 {
		m.found = append(m.found, warn("what is on record for them is not their digest, and all else is as they say: "+some(wrong),
			rebuildFix).by(m.rebuild))
	}
	if len(edited) > 0 {
		m.found = append(m.found, warn("edited after they were taken in: "+some(edited),
			"put the text back, and write a new observation, which may supersede the old one"))
	}
}

// isStored reports whether all stored content of a capture matches its spec: then only the recorded digest is wrong.
func (m *memoryExamination) isStored(e *state.Entry, taken memory.Taken) bool {
	spec := schemas.SpecAs[*schemas.ObservationSpec](e.Object)
	if spec == nil {
		return false
	}
	var stored []schemas.Observation
	for _, name := range []string{"issue-%d.json", "archive/issue-%d-archived.json"} {
		data, err := regular.Read(m.env.root, m.dir+"/"+fmt.Sprintf(name, taken.Issue))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		file, parsed := memory.Parse(data)
		if err != nil || parsed != nil {
			return false
		}
		stored = append(stored, file.Observations...)
	}
	return memory.Holds(memory.Spec{Name: e.Name, ObservationSpec: spec}, taken, stored, m.removed)
}

// pending describes the work of the next run, which is not a problem.
func (m *memoryExamination) pending() string {
	var todo []string
	if len(m.unstored) > 0 {
		todo = append(todo, "takes in "+some(m.unstored))
	}
	if len(m.orphaned) > 0 {
		todo = append(todo, "forgets "+some(m.orphaned))
	}
	if len(todo) == 0 {
		return "in step with what was captured"
	}
	return "the next run " + strings.Join(todo, " and ")
}

// rebuild rebuilds the memory from the captured observations, under the lock of the tree.
func (m *memoryExamination) rebuild(ctx context.Context) error {
	if m.env.Remember == nil {
		return errors.New("this program cannot; run reconcile memory rebuild")
	}
	return m.env.withLock(ctx, func() error {
		t, err := m.env.store.Load(ctx)
		if err != nil {
			return err
		}
		return m.env.Remember(ctx, m.env.store, t)
	})
}

func (o Options) rebuildMemory(ctx context.Context, s *state.Store, t *state.Tree) error {
	m := memstore.Open(s, memstore.Options{Now: o.Tree.Now, Kinds: s.Kinds(), Warn: o.WarnMemory, Settings: s.Settings()})
	_, err := m.Rebuild(ctx, t)
	return errors.Join(err, m.Close())
}
