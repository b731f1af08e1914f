package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/caller"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
	"reconcile.dev/reconcile/state/worktree"
)

// treeNeed says whether a command needs a tree.
type treeNeed int

const (
	treeNeeded   treeNeed = iota // exit code 2 without a tree
	treeOptional                 // works on the user's folder without a tree
	treeUnused                   // does not look for a tree
	treeAround                   // as treeOptional, of the folder itself: in the workspace of a run, not of the tree of that run
)

// treeNeeds are the commands that do not require a tree, including their subcommands.
var treeNeeds = map[string]treeNeed{
	"init": treeUnused, "version": treeUnused, "completion": treeUnused, "explain": treeUnused, "schema": treeUnused,
	"help": treeUnused, "merge-driver": treeUnused,
	"search": treeOptional, "index": treeOptional, "related": treeOptional, "path": treeOptional, "doctor": treeOptional,
	"tools": treeOptional, "inspect": treeOptional, "test": treeOptional, "allow": treeOptional,
	"preview": treeAround, "style": treeAround, "deps": treeAround,
	cobra.ShellCompRequestCmd: treeUnused, cobra.ShellCompNoDescRequestCmd: treeUnused, // the completed command looks for one
}

func needOf(cmd *cobra.Command) treeNeed {
	if at := cmd.Flags().Lookup("at"); at != nil && at.Changed {
		return treeOptional // it is in a commit, and possibly not in the work tree
	}
	for ; cmd.HasParent(); cmd = cmd.Parent() {
		if !cmd.Parent().HasParent() {
			return treeNeeds[cmd.Name()]
		}
	}
	return treeNeeded
}

// enterTree makes the tree around the user's folder the tree of the command.
func (a *app) enterTree(need treeNeed) error {
	a.here, a.project = a.global.dir, a.global.dir
	if need == treeUnused {
		return nil
	}
	if root := a.treeOfWorkspace(); root != "" && need != treeAround {
		a.here, a.global.dir = root, root
	}
	found, err := state.Find(a.here, kinds())
	switch {
	case errors.Is(err, state.ErrNoTree) && (need == treeOptional || need == treeAround):
		return nil
	case errors.Is(err, state.ErrNoTree):
		return badUsage("%v; \"reconcile init\" makes one here, -C DIR names one elsewhere", err)
	case errors.Is(err, state.ErrForeign):
		return badUsage("%v", err)
	case err != nil:
		return err
	}
	here, err := realPath(a.here)
	if err != nil || here == found {
		return err
	}
	a.global.dir = shownFromHere(found)
	a.prefix, err = filepath.Rel(found, here)
	return err
}

// treeOfWorkspace returns the tree of the run that this process is part of, if the current directory is in the run's
// workspace and no other one was asked for: what the checkout there has is a copy, whose questions no one would see.
func (a *app) treeOfWorkspace() string {
	workspace, root := a.getenv("RECONCILE_WORKSPACE"), a.getenv("RECONCILE_ROOT")
	if a.global.dir != "." || workspace == "" || !filepath.IsAbs(root) {
		return ""
	}
	here, err := realPath(".")
	if _, below := worktree.Within(workspace, here); err != nil || !below {
		return ""
	}
	return root
}

// shownFromHere returns the shorter of a folder's absolute path and its path relative to the current directory.
func shownFromHere(dir string) string {
	if wd, err := realPath("."); err == nil {
		if rel, err := filepath.Rel(wd, dir); err == nil && len(rel) < len(dir) {
			return rel
		}
	}
	return dir
}

// within resolves a path of the command line, which is relative to the user's folder: the current directory, or -C.
func (a *app) within(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(a.here, path)
}

// kinds is the table of kinds of the command line.
func kinds() schemas.Kinds { return controllers.Schemas() }

// env returns the environment for operations.
func (a *app) env() ops.Env {
	return ops.Env{
		Tree:   tree.Config{Dir: a.global.dir, Now: a.now, Getenv: a.getenv, Log: a.log, Collector: a.collector},
		Prefix: a.prefix,
		Caller: caller.Caller{Dir: a.global.dir, Getenv: a.getenv, Ancestry: a.ancestry, Inherits: a.inherits},
		Sink:   &reporter{app: a, last: time.Now()}, View: a.view, Engine: a.engine, Sandbox: a.sandbox,
		Attended: isTerminal(a.stdout) && isTerminal(a.stderr), Explain: a.global.output != formatTable,
	}
}

// withRef joins a kind and a name that were given as two words, "dag checks".
func withRef(args []string) []string {
	if len(args) > 1 && !strings.Contains(args[0], "/") {
		args = slices.Concat([]string{args[0] + "/" + args[1]}, args[2:])
	}
	return args
}

// checkFlags checks the global flags.
func (a *app) checkFlags() error {
	info, err := os.Stat(a.global.dir)
	switch {
	case err != nil:
		return badUsage("-C %s: %v; name the folder of a tree", a.global.dir, regular.Cause(err))
	case !info.IsDir():
		return badUsage("-C %s is a file; name the folder of a tree", a.global.dir)
	}
	return a.openLog()
}

// prepare runs before every command.
func (a *app) prepare(cmd *cobra.Command) error {
	if err := a.checkFlags(); err != nil {
		return err
	}
	if err := a.enterTree(needOf(cmd)); err != nil {
		return err
	}
	return a.confined(cmd)
}
