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
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/merge"
	"reconcile.dev/reconcile/controllers/slash"
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
	records := append(slices.Concat(Questions(t), Observations(t)), dir+"/runs", store.MemoryDir()+"/records",
		dir+"/github", state.FactsDir(dir), state.ArchiveDir(dir))
	commands := CommandsIn(store, t)
	shared := []string{dir + "/agent-status.json", dir + "/clarifications"}
	statuses := append(Written(settings), store.MemoryDir())
	within := func(p string, all []string) bool {
		return slices.ContainsFunc(all, func(q string) bool { return p == q || strings.HasPrefix(p, q+"/") })
	}
	return func(p string) gitrepo.Ownership {
		switch {
		case ByHand(settings, p):
			return gitrepo.None
		case within(p, records), commands.Wrote(p):
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
	data, err := merge.Files(controllers.Schemas(), v.Base, v.There, v.Next)
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
func Written(s *schemas.SettingsSpec) []string {
	dir := s.Folders.State
	out := []string{dir + "/runs", dir + "/clarifications", dir + "/github", dir + "/agent-status.json", state.FactsDir(dir), state.ArchiveDir(dir)}
	for _, k := range controllers.Schemas() {
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

// Questions are the specs of questions that came in by another way than as a file.
func Questions(t *state.Tree) []string {
	var out []string
	for _, e := range t.Entries(schemas.ClarificationRequestKind.Name) {
		if spec := schemas.SpecAs[*schemas.ClarificationRequestSpec](e.Object); spec != nil && spec.Run+spec.Imported != "" {
			out = append(out, e.Object.Path)
		}
	}
	return append(out, commentsOf(t)...)
}

// commentsOf are the specs that comments on GitHub became.
func commentsOf(t *state.Tree) []string {
	var out []string
	for _, kind := range []string{schemas.ReplyKind.Name, schemas.ActionKind.Name} {
		for _, e := range t.Entries(kind) {
			if e.Object != nil && slash.IsHeard(e.Object) {
				out = append(out, e.Object.Path)
			}
		}
	}
	return out
}

// Commands are the specs that commands of reconcile wrote. Without its spec, another clone would take back what was made
// of one, and who has the spec would do it once more.
type Commands struct {
	store *state.Store
	taken map[string]*schemas.Object // by path, what took effect as it stands, whoever wrote it
}

// CommandsIn finds the actions that were applied, the questions that have a number, and the replies that were judged.
// Those that came in by another way are of [Questions].
func CommandsIn(store *state.Store, t *state.Tree) Commands {
	c := Commands{store, map[string]*schemas.Object{}}
	for _, e := range t.Entries(schemas.ActionKind.Name) {
		st, _ := e.Status().(*schemas.ActionStatus)
		if e.Object != nil && st != nil && st.Phase == schemas.ActionApplied && st.ObservedDigest == e.Object.Digest &&
			!slash.IsHeard(e.Object) {
			c.taken[e.Object.Path] = e.Object
		}
	}
	matters := map[string]*schemas.ClarificationRequestStatus{} // by name, and by number
	for _, e := range t.Entries(schemas.ClarificationRequestKind.Name) {
		st, _ := e.Status().(*schemas.ClarificationRequestStatus)
		spec := schemas.SpecAs[*schemas.ClarificationRequestSpec](e.Object)
		if st == nil || spec == nil || st.ID == "" {
			continue
		}
		matters[e.Name], matters[st.ID] = st, st
		if st.ObservedDigest == e.Object.Digest && spec.Run+spec.Imported == "" {
			c.taken[e.Object.Path] = e.Object
		}
	}
	for _, e := range t.Entries(schemas.ReplyKind.Name) {
		spec := schemas.SpecAs[*schemas.ReplySpec](e.Object)
		if spec == nil || matters[spec.Clarification] == nil || slash.IsHeard(e.Object) {
			continue
		}
		reply := clarify.Reply{Name: e.Name, Digest: e.Object.Digest, Spec: spec}
		if is, _ := clarify.StandingOf(matters[spec.Clarification], reply); is == clarify.Accepted || is == clarify.Refused {
			c.taken[e.Object.Path] = e.Object
		}
	}
	return c
}

// Paths are the files of these specs.
func (c Commands) Paths() []string { return slices.Collect(maps.Keys(c.taken)) }

// Object is the spec in a file; nil if it is none of these.
func (c Commands) Object(p string) *schemas.Object { return c.taken[p] }

// Wrote reports whether a file is one that a command wrote, and nobody edited since.
func (c Commands) Wrote(p string) bool {
	o := c.taken[p]
	if o == nil {
		return false
	}
	is, err := regular.Read(c.store.Root(), p)
	if err != nil {
		return false
	}
	was, err := document.Spec(o.Ref, o.Spec())
	return err == nil && bytes.Equal(is, was)
}

// Observations are the specs of observations as the memory has them. Without its spec, what the memory says of an observation
// would be gone with the next run in another clone.
func Observations(t *state.Tree) []string {
	var out []string
	for _, e := range t.Entries(schemas.ObservationKind.Name) {
		if e.Object != nil && (e.Accepted == "" || e.Accepted == e.Object.Digest) {
			out = append(out, e.Object.Path)
		}
	}
	return out
}

// Subject is the object that a file is about, by its path below the state folder: "dags/checks.json",
// "runs/dags/checks/build-….json", "memory/issue-42.json". The other files of the memory go with those of the issues.
func Subject(p string) (schemas.Ref, bool) {
	parts := strings.Split(strings.TrimPrefix(p, "runs/"), "/")
	if len(parts) < 2 {
		return schemas.Ref{}, false
	}
	name := strings.TrimSuffix(path.Base(parts[1]), ".json")
	if parts[0] == "archive" && len(parts) == 4 {
		k, ok := controllers.Schemas().Find(parts[1])
		return schemas.Ref{Kind: k.Name, Name: strings.TrimSuffix(parts[3], path.Ext(parts[3]))}, ok
	}
	if parts[0] == "memory" {
		return schemas.Ref{Kind: state.MemoryKind, Name: name}, strings.HasPrefix(name, "issue-")
	}
	k, ok := controllers.Schemas().Find(parts[0])
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
