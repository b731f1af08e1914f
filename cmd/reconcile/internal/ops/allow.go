package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/dags"
	"reconcile.dev/reconcile/state"
)

// AllowVariable is the environment variable with the addresses that this process may send to.
const AllowVariable = egress.AllowVariable

// AllowRequest requests the addresses to which the settings, the agents and the DAGs of the tree send data, and allows them; and the checks of
// the project.
type AllowRequest struct {
	List   bool   // only return the addresses
	Remove string // instead revoke the permission for this address or folder; "": none
	Dir    string // a folder of the project whose checks may run, as in CheckRequest
}

// AllowResult lists the addresses of the settings, of agents and of DAGs.
type AllowResult struct {
	Destinations []Destination `json:"destinations"`
	Folder       string        `json:"folder"` // whose checks are meant
	Checks       bool          `json:"checks"` // they may run
	File         string        `json:"file"`   // the file of the allowlist
}

// Destination is an address of the settings, of an agent, or of a DAG.
type Destination struct {
	Setting  string `json:"setting"`
	URL      string `json:"url"`
	Variable string `json:"variable,omitempty"` // the environment variable whose value is sent
	File     string `json:"file,omitempty"`     // the file with the key that is sent
	Sends    string `json:"sends"`
	Allowed  bool   `json:"allowed"`
}

// Allow adds the destinations in the settings, the agents and the DAGs of the tree to the user's allowlist, so that the tree may send data to
// their addresses, or removes one from it. Only a person may do that, even outside of this tree's runs, since the list
// belongs to the user.
func Allow(ctx context.Context, env Env, q AllowRequest) (r AllowResult, err error) {
	defer func() { err = typed(err) }()
	if err := ctx.Err(); err != nil {
		return r, err
	}
	list, err := egress.Policy{Getenv: env.Tree.Getenv}.Allowed()
	if err != nil {
		return r, err
	}
	if !q.List {
		if err := env.authorize("Allow"); err != nil {
			return r, err
		}
	}
	r.File = list.Path()
	if q.Remove != "" {
		n, err := list.Remove(q.Remove)
		if err != nil {
			return r, fmt.Errorf("write %s: %w", list.Path(), err)
		}
		if n == 0 {
			return r, badRequest("%s does not allow %s", list.Path(), q.Remove)
		}
		return r, nil
	}
	p, err := env.openProject(ctx, &CheckRequest{Dir: q.Dir})
	if err != nil {
		return r, err
	}
	if r.Folder = p.root; !q.List {
		if err := list.AddChecks(p.root); err != nil {
			return r, fmt.Errorf("write %s: %w", list.Path(), err)
		}
	}
	r.Checks, r.Destinations = list.AllowsChecks(p.root), []Destination{}
	if _, err := state.Find(p.treeDir(), env.kinds()); errors.Is(err, state.ErrNoTree) {
		return r, nil
	}
	s, t, err := env.load(ctx)
	if err != nil {
		return r, err
	}
	defer s.Close()
	settings := t.Settings()
	wanted := slices.Concat(settings.Destinations(), agents.Destinations(t), dags.Destinations(t))
	for _, d := range wanted {
		if err := egress.CheckVariable(d); err != nil {
			return r, err
		}
	}
	if asked := slices.DeleteFunc(slices.Clone(wanted), egress.Free); !q.List && len(asked) > 0 {
		if err := list.Add(asked); err != nil {
			return r, fmt.Errorf("write %s: %w", list.Path(), err)
		}
	}
	for _, d := range wanted {
		r.Destinations = append(r.Destinations, Destination{strings.TrimSpace(d.In + " " + d.Setting), d.URL, d.Env, d.File, d.What,
			list.Allows(d) || egress.Free(d)})
	}
	return r, nil
}
