// Package ownership knows which files of a tree are whose: which ones reconcile writes, alone or beside other programs, and
// which ones belong to a spec that it wrote. It decides what a commit holds, and whose version of a file counts when
// branches meet.
package ownership

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/merge"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/document"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// Owners says what may be done with the files of a tree when the tree is put on top of what others pushed.
func Owners(store *state.Store, t *state.Tree) gitrepo.Owners {
	return gitrepo.Owners{Of: ownership(store, t), Lock: store.LockFile,
		Join: func(p string, v gitrepo.Versions) ([]byte, error) { return join(t, p, v) }}
}

func ownership(store *state.Store, t *state.Tree) func(string) gitrepo.Ownership {
	settings := t.Settings()
	dir := settings.Folders.State
	records := []string{dir + "/runs", store.MemoryDir() + "/records", dir + "/github", state.FactsDir(dir), state.ArchiveDir(dir)}
	specs := SpecsIn(store, t)
	shared := []string{dir + "/agent-status.json", dir + "/clarifications"}
	statuses := append(Written(store.Kinds(), settings), store.MemoryDir())
	within := func(p string, all []string) bool {
		return slices.ContainsFunc(all, func(q string) bool { return p == q || strings.HasPrefix(p, q+"/") })
	}
	return func(p string) gitrepo.Ownership {
		switch {
		case ByHand(settings, p):
			return gitrepo.None
		case within(p, records), specs.owns(p):
			return gitrepo.Record
		case within(p, shared):
			return gitrepo.Shared
		case within(p, statuses):
			return gitrepo.Status
		}
		return gitrepo.None
	}
}

// join carries what other programs wrote into a file into the version of the remote that is to take its place. What this
// program wrote there is not: it follows from specs and records, and is written again.
func join(t *state.Tree, p string, v gitrepo.Versions) ([]byte, error) {
	name := strings.TrimSuffix(path.Base(p), ".json")
	if issue, ok := state.LedgerIssue(schemas.Ref{Kind: state.LedgerKind, Name: name}); ok {
		return controllers.CarryLedger(t, issue, v.Base, v.There, v.Next)
	}
	if v.There == nil || bytes.Equal(v.There, v.Base) {
		return v.Next, nil
	}
	data, err := merge.Files(controllers.TableOf(t).Schemas(), v.Base, v.There, v.Next)
	if errors.Is(err, merge.ErrNoJSON) || err == nil && sameJSON(data, v.Next) {
		return v.Next, nil
	}
	return data, err
}

// sameJSON reports whether two contents are the same but for their form.
func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// Written are the folders and files that reconcile alone writes, but for the memory.
func Written(kinds schemas.Kinds, s *schemas.SettingsSpec) []string {
	dir := s.Folders.State
	out := []string{dir + "/runs", dir + "/clarifications", dir + "/github", dir + "/agent-status.json", state.FactsDir(dir), state.ArchiveDir(dir)}
	for _, k := range kinds {
		if k.NewStatus != nil {
			out = append(out, dir+"/"+k.Plural)
		}
	}
	return out
}

// ByHand reports whether a path is that of a file of facts that somebody wrote: it is theirs to commit.
func ByHand(s *schemas.SettingsSpec, p string) bool {
	return strings.HasPrefix(p, state.FactsDir(s.Folders.State)+"/") && !index.IsFactFile(p)
}

// Specs are the spec files of a tree that may belong to the program.
type Specs struct {
	store *state.Store
	kept  map[string]bool            // by path: what was made of what came in
	memo  map[string]bool            // by path: as kept, and committed with the memory
	used  map[string]*schemas.Object // by path: what took effect as it is, whoever wrote it
	once  map[string]bool            // by path: those of used that take effect once
}

// SpecsIn finds the spec files of a tree that may belong to the program. Without them, another clone would retract what was
// made of them, and a clone that has the file only would do it again.
func SpecsIn(store *state.Store, t *state.Tree) Specs {
	s := Specs{store, map[string]bool{}, map[string]bool{}, map[string]*schemas.Object{}, map[string]bool{}}
	for origin, objects := range controllers.Origins(t) {
		for _, o := range objects {
			switch origin {
			case controllers.OriginRecord:
				s.kept[o.Path] = true
			case controllers.OriginMemory:
				s.memo[o.Path] = true
			case controllers.OriginOnce:
				s.once[o.Path] = true
				s.used[o.Path] = o
			case controllers.OriginCommand:
				s.used[o.Path] = o
			}
		}
	}
	return s
}

// Paths are the files, those that are committed with the memory only if memory is set.
func (s Specs) Paths(memory bool) []string {
	out := slices.AppendSeq(slices.Collect(maps.Keys(s.kept)), maps.Keys(s.used))
	if memory {
		out = slices.AppendSeq(out, maps.Keys(s.memo))
	}
	return out
}

// Once is the spec in a file that takes effect once; nil for other files.
func (s Specs) Once(p string) *schemas.Object {
	if !s.once[p] {
		return nil
	}
	return s.used[p]
}

// OfUser reports whether a spec that took effect belongs to a user: it is not in the form that commands write.
func (s Specs) OfUser(p string) bool { return s.used[p] != nil && !s.inForm(p) }

// owns reports whether a spec file belongs to the program.
func (s Specs) owns(p string) bool { return s.kept[p] || s.memo[p] || s.inForm(p) }

// inForm reports whether a spec that took effect is in the form that commands write.
func (s Specs) inForm(p string) bool {
	o := s.used[p]
	if o == nil {
		return false
	}
	is, err := regular.Read(s.store.Root(), p)
	if err != nil {
		return false
	}
	was, err := document.Spec(o.Ref, o.Spec())
	return err == nil && bytes.Equal(is, was)
}

// Subject is the object that a file is about, by its path below the state folder: "dags/checks.json",
// "runs/dags/checks/build-….json", "memory/issue-42.json". The other files of the memory go with those of the issues.
func Subject(t *state.Tree, p string) (schemas.Ref, bool) {
	kinds := controllers.TableOf(t).Schemas()
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

// Unsettled returns whether a file tells the state of what is being performed: it is a status of the open objects, of those
// that they name or that name them, or of an agent.
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
