package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/caller"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// kinds is the table of kinds that the whole command line works with.
func kinds() schemas.Kinds { return controllers.Schemas() }

// config is what opening the tree takes of this process.
func (a *app) config() tree.Config {
	return tree.Config{Dir: a.global.dir, Now: a.now, Getenv: a.getenv, Log: a.log}
}

// caller is who called this process.
func (a *app) caller() caller.Caller {
	return caller.Caller{Dir: a.global.dir, Getenv: a.getenv, Ancestry: a.ancestry}
}

// egress says where this process may send data.
func (a *app) egress() egress.Policy { return egress.Policy{Getenv: a.getenv} }

// open opens the tree without reading it.
func (a *app) open() (*state.Store, error) { return a.config().Open() }

// load opens the tree and reads all of it, with what running processes have in their journals.
func (a *app) load(ctx context.Context) (s *state.Store, t *state.Tree, err error) {
	s, t, _, err = a.config().Load(ctx)
	return s, t, err
}

// env is what operations work with.
func (a *app) env() ops.Env {
	return ops.Env{Tree: a.config(), Prefix: a.prefix, Caller: a.caller(), Sink: &reporter{app: a, last: time.Now()},
		View: a.view, Engine: a.engine}
}

// root opens the folder of the tree, for files beside the objects: logs, events, templates.
func (a *app) root() (*os.Root, error) {
	r, err := regular.Root(a.global.dir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", a.global.dir, regular.Cause(err))
	}
	return r, nil
}

// withRef puts a kind and a name that were given as two words, "dag checks", into one.
func withRef(args []string) []string {
	if len(args) > 1 && !strings.Contains(args[0], "/") {
		args = slices.Concat([]string{args[0] + "/" + args[1]}, args[2:])
	}
	return args
}
