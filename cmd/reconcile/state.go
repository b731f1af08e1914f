package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

func newStateCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "state",
		Short: "Show what the agents do: who works, asks, answers or waits",
		Long: `Show what the agents do, as state/agent-status.json has it: who works on which issue, who waits for an answer,
and who answers. It only reads: nothing is run, and no question gets stale by it.

-o json and yaml print the content of the file.`,
		Example: "  reconcile state\n  reconcile state -o json",
		Args:    arguments(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.agentState(cmd.Context()) },
	}
}

func (a *app) agentState(ctx context.Context) error {
	s, t, err := a.load(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	file, err := a.agentFile(s, t)
	if err != nil {
		return err
	}
	if a.global.output != formatTable {
		return a.print(file)
	}
	rows := agentRows(t, file)
	if len(rows) == 0 {
		a.note("no agents")
	}
	return render.AgentTable(a.stdout, a.palette(), rows, a.now())
}

// agentFile is what state/agent-status.json says, brought up to date with the statuses in the tree, as the next run
// would write it. A file that cannot be read is told of, and left to the next run.
func (a *app) agentFile(s *state.Store, t *state.Tree) (map[string]json.RawMessage, error) {
	where := path.Join(t.Settings().Folders.State, "agent-status.json")
	old, err := regular.Read(s.Root(), where)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	data, err := controllers.FoldAgentStatus(old, t)
	if errors.Is(err, controllers.ErrNoAgentStatus) {
		a.note("%s: %v; the next run writes it anew", where, err)
		data, err = controllers.FoldAgentStatus(nil, t)
	}
	if err != nil {
		return nil, err
	}
	file := map[string]json.RawMessage{}
	return file, json.Unmarshal(data, &file)
}

// agentRows are the agents of the file and those that no run has looked at yet, by name. What another program wrote and
// is not of the format is shown as far as it can be read.
func agentRows(t *state.Tree, file map[string]json.RawMessage) []render.AgentRow {
	names := sortedKeys(file)
	for _, e := range t.Entries(schemas.AgentKind.Name) {
		if _, ok := file[e.Name]; !ok && !e.Gone() {
			names = append(names, e.Name)
		}
	}
	slices.Sort(names)
	rows := make([]render.AgentRow, len(names))
	for i, name := range names {
		rows[i].Name = name
		if raw, ok := file[name]; ok {
			_ = json.Unmarshal(raw, &rows[i].AgentActivity) // fields of a wrong type stay empty
		}
	}
	return rows
}
