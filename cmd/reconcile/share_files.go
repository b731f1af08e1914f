package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"path"
	"reflect"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/merge"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// owners says what may be done with the files of a tree when the tree is put on top of what others pushed.
func owners(store *state.Store, t *state.Tree) gitrepo.Owners {
	return gitrepo.Owners{Of: ownership(store, t), Lock: store.LockFile,
		Join: func(p string, v gitrepo.Versions) ([]byte, error) { return join(t, p, v) }}
}

func ownership(store *state.Store, t *state.Tree) func(string) gitrepo.Ownership {
	settings := t.Settings()
	dir := settings.Folders.State
	records := append(slices.Concat(questionsOf(t), observationsOf(t)), dir+"/runs", store.MemoryDir()+"/records",
		dir+"/github", state.FactsDir(dir), state.ArchiveDir(dir))
	commands := commandsIn(store, t)
	shared := []string{dir + "/agent-status.json", dir + "/clarifications"}
	statuses := append(owned(settings), store.MemoryDir())
	within := func(p string, all []string) bool {
		return slices.ContainsFunc(all, func(q string) bool { return p == q || strings.HasPrefix(p, q+"/") })
	}
	return func(p string) gitrepo.Ownership {
		switch {
		case handWritten(settings, p):
			return gitrepo.None
		case within(p, records), commands.wrote(p):
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
	data, err := merge.Files(kinds(), v.Base, v.There, v.Next)
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
