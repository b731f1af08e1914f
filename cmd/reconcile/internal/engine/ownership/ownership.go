// Package ownership determines the owner of each file of a tree: files that reconcile writes, alone or together with
// other programs, and specs that it generated. This decides which files a commit contains, and which version of a file
// wins when branches are merged.
package ownership

import (
	"bytes"
	"encoding/json"
	"errors"
	"path"
	"reflect"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/ledgers"
	"reconcile.dev/reconcile/controllers/merge"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/workflows"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/document"
	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// Owners returns the gitrepo.Owners of a tree's files: the rules for rebasing it on fetched commits, how versions are
// joined, and the lock of a file.
func Owners(store *state.Store, t *state.Tree) gitrepo.Owners {
	return gitrepo.Owners{Of: ownership(store, t), Lock: store.LockFile,
		Join: func(p string, v gitrepo.Versions) ([]byte, error) { return mergeShared(t, p, v) }}
}

func ownership(store *state.Store, t *state.Tree) func(string) gitrepo.Ownership {
	settings := t.Settings()
	dir := settings.Folders.State
	records := []string{dir + "/runs", store.MemoryDir() + "/records", dir + "/github", state.FactsDir(dir), state.ArchiveDir(dir), state.CheckpointsDir(dir)}
	specs := specsIn(store, t)
	shared := []string{dir + "/agent-status.json", dir + "/clarifications"}
	statuses := append(Written(store.Kinds(), settings), store.MemoryDir())
	within := func(p string, all []string) bool {
		return slices.ContainsFunc(all, func(q string) bool { return treepath.Below(p, q) })
	}
	return func(p string) gitrepo.Ownership {
		switch {
		case ByHand(settings, p):
			return gitrepo.None
		case within(p, records), specs.owns(p):
			return gitrepo.Record
		case specs.made[p] != nil && specs.hasText(p, specs.made[p].Ref, workflows.Made(t, specs.made[p].Ref)):
			return gitrepo.Made
		case within(p, shared):
			return gitrepo.Shared
		case within(p, statuses):
			return gitrepo.Status
		}
		return gitrepo.None
	}
}

// mergeShared merges what other programs wrote into a file with the remote's version of it. Content of this program is
// not merged: it follows from specs and records, and is written again.
func mergeShared(t *state.Tree, p string, v gitrepo.Versions) ([]byte, error) {
	name := strings.TrimSuffix(path.Base(p), ".json")
	if issue, ok := state.LedgerIssue(schemas.Ref{Kind: state.LedgerKind, Name: name}); ok {
		return ledgers.Carry(t, issue, v.Base, v.There, v.Next)
	}
	if v.There == nil || bytes.Equal(v.There, v.Base) {
		return v.Next, nil
	}
	data, err := merge.Files(settle.TableOf(t).Schemas(), v.Base, v.There, v.Next)
	if errors.Is(err, merge.ErrNoJSON) || err == nil && sameJSON(data, v.Next) {
		return v.Next, nil
	}
	return data, err
}

// sameJSON reports whether two JSON texts have the same content.
func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// Written returns the folders and files below the state folder that only reconcile writes, such as runs, clarifications
// and the statuses of kinds, without the memory.
func Written(kinds schemas.Kinds, s *schemas.SettingsSpec) []string {
	dir := s.Folders.State
	out := []string{dir + "/runs", dir + "/clarifications", dir + "/github", dir + "/agent-status.json", state.FactsDir(dir), state.ArchiveDir(dir),
		state.CheckpointsDir(dir)}
	for _, k := range kinds {
		if k.NewStatus != nil {
			out = append(out, dir+"/"+k.Plural)
		}
	}
	return out
}

// ByHand reports whether the path is a file of facts in the state folder that was written by hand, and not a fact file
// of the program: the user commits it.
func ByHand(s *schemas.SettingsSpec, p string) bool {
	return strings.HasPrefix(p, state.FactsDir(s.Folders.State)+"/") && !index.IsFactFile(p)
}

// Specs are the spec files of a tree that may belong to the program.
type Specs struct {
	store       *state.Store
	fromRecords map[string]bool            // by path: derived from records
	fromMemory  map[string]bool            // by path: derived from observations, and committed with the memory
	applied     map[string]*schemas.Object // by path: in effect as written, by the program or a user
	once        map[string]bool            // by path: those of applied that take effect once
	made        map[string]*schemas.Object // by path: made for users to edit
}

// specsIn collects the spec files of a tree that may belong to the program, by the origin of their objects: records,
// the memory, commands, or specs that take effect once. If they were not committed, another clone would retract what
// follows from them, and a clone with only the file would do the work again.
func specsIn(store *state.Store, t *state.Tree) Specs { return specsOf(store, controllers.Origins(t)) }

// SpecsAt is SpecsIn for the spec files among some paths. It loads no other objects.
func SpecsAt(store *state.Store, t *state.Tree, paths []string) Specs {
	return specsOf(store, controllers.OriginsAt(t, paths))
}

func specsOf(store *state.Store, origins map[settle.Origin][]*schemas.Object) Specs {
	s := Specs{store, map[string]bool{}, map[string]bool{}, map[string]*schemas.Object{}, map[string]bool{}, map[string]*schemas.Object{}}
	for origin, objects := range origins {
		for _, o := range objects {
			switch origin {
			case settle.OriginRecord:
				s.fromRecords[o.Path] = true
			case settle.OriginMade:
				s.made[o.Path] = o
			case settle.OriginMemory:
				s.fromMemory[o.Path] = true
			case settle.OriginOnce:
				s.once[o.Path] = true
				s.applied[o.Path] = o
			case settle.OriginCommand:
				s.applied[o.Path] = o
			}
		}
	}
	return s
}

// Has reports whether a path is that of a spec file from records, of one that was applied or made, or if memory is set, of one from the
// memory.
func (s Specs) Has(p string, memory bool) bool {
	return s.fromRecords[p] || s.applied[p] != nil || s.made[p] != nil || memory && s.fromMemory[p]
}

// Once returns the applied object of the spec file p if it takes effect once; nil for other files.
func (s Specs) Once(p string) *schemas.Object {
	if !s.once[p] {
		return nil
	}
	return s.applied[p]
}

// Made reports whether the program made the file at path p for users to edit.
func (s Specs) Made(p string) bool { return s.made[p] != nil }

// OfUser reports whether an applied spec belongs to a user: it does not have the form that commands write.
func (s Specs) OfUser(p string) bool { return s.applied[p] != nil && !s.isGenerated(p) }

// owns reports whether a spec file belongs to the program.
func (s Specs) owns(p string) bool { return s.fromRecords[p] || s.fromMemory[p] || s.isGenerated(p) }

// isGenerated reports whether an applied spec has the form that commands write.
func (s Specs) isGenerated(p string) bool {
	o := s.applied[p]
	return o != nil && s.hasText(p, o.Ref, o.Spec())
}

// hasText reports whether a file has the text that the program writes for a spec; false for nil.
func (s Specs) hasText(p string, ref schemas.Ref, spec schemas.Spec) bool {
	if spec == nil {
		return false
	}
	is, err := regular.Read(s.store.Root(), p)
	if err != nil {
		return false
	}
	was, err := document.Spec(ref, spec)
	return err == nil && bytes.Equal(is, was)
}

// Subject returns the Ref of the object that a file of the state folder is about, by the parts of its path:
// "dags/checks.json", "runs/dags/checks/build-….json", "memory/issue-42.json". Other files of the memory belong to its
// issues.
func Subject(t *state.Tree, p string) (schemas.Ref, bool) {
	kinds := settle.TableOf(t).Schemas()
	parts := strings.Split(strings.TrimPrefix(p, "runs/"), "/")
	if len(parts) < 2 {
		return schemas.Ref{}, false
	}
	name := strings.TrimSuffix(path.Base(parts[1]), ".json")
	if parts[0] == "archive" && len(parts) == 4 {
		k, ok := kinds.Find(parts[1])
		return schemas.Ref{Kind: k.Name, Name: strings.TrimSuffix(parts[3], path.Ext(parts[3]))}, ok
	}
	if parts[0] == "memory" {
		return schemas.Ref{Kind: state.MemoryKind, Name: name}, strings.HasPrefix(name, "issue-")
	}
	k, ok := kinds.Find(parts[0])
	return schemas.Ref{Kind: k.Name, Name: name}, ok
}

// Unsettled returns a function that reports whether the file at a path is unsettled, and contains the state of running
// effects: the status of an open object, of one that references or is referenced by it, or of an agent.
func Unsettled(t *state.Tree, open []schemas.Ref) func(path string) bool {
	dir := t.Settings().Folders.State
	agents := dir + "/" + schemas.AgentKind.Plural + "/"
	left := map[string]bool{dir + "/agent-status.json": true}
	leave := func(ref schemas.Ref) {
		if e := t.Entry(ref); e != nil {
			left[e.StatusPath] = true
		}
	}
	for _, ref := range open {
		leave(ref)
		for _, from := range t.Referrers(ref) {
			leave(from)
		}
		if e := t.Entry(ref); e != nil && e.Object != nil {
			for _, r := range e.Object.Refs {
				leave(r.To)
			}
		}
	}
	return func(p string) bool { return len(open) > 0 && (left[p] || strings.HasPrefix(p, agents)) }
}
