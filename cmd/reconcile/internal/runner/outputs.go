package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state/outputs"
	"reconcile.dev/reconcile/state/regular"
)

// maxOutputs is the maximum number of outputs that a record describes. For the others only the existence is known.
const maxOutputs = 128

// keepOutputs describes the declared outputs of a success, and adds them to the cache. It skips unreadable ones: for such
// an output only the existence counts. If reconcile ends meanwhile and they take long, it skips all.
func (a *attempt) keepOutputs() []schemas.Output {
	paths := a.task.OutputPaths()
	if len(paths) == 0 {
		return nil
	}
	ctx, cancel := a.runner.untilClosing()
	defer cancel()
	var out []schemas.Output
	for _, name := range paths[:min(len(paths), maxOutputs)] {
		if a.looksSecret(name) {
			continue // it stays where it is, and only its existence counts
		}
		o, err := outputs.Put(ctx, a.runner.root, a.place.root, name, int64(*a.runs.OutputCache))
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			out = append(out, o)
		}
	}
	return out
}

// checkOutputSecrets fails the run of an agent in the tree that left a secret of the environment in an output, as the commit of a
// workspace fails: neither the cache nor git may get it.
func (a *attempt) checkOutputSecrets() error {
	if a.job.effect.Agent == "" || a.place.ws != nil {
		return nil
	}
	for _, name := range a.task.OutputPaths() {
		if data, err := regular.Read(a.place.root, name); err == nil && a.runner.secrets.In(data) {
			return fmt.Errorf("output %s has a value from the environment that looks secret; it is not kept", name)
		}
	}
	return nil
}

// looksSecret reports whether an output has the value of a variable that was read at the start, or, of an agent in the tree, what
// looks like a secret.
func (a *attempt) looksSecret(name string) bool {
	if len(a.read) > 0 && a.place.ws == nil {
		if data, err := regular.Read(a.place.root, name); err == nil && a.runner.secrets.In(data) {
			return true
		}
	}
	if a.job.effect.Agent == "" || a.place.ws != nil {
		return false
	}
	data, err := regular.Read(a.place.root, name)
	return err == nil && len(secrets.InFile(data)) > 0
}

// describeFor is how long a closing runner continues to describe the outputs of a success.
const describeFor = 500 * time.Millisecond

// removeTorn removes the files of a failed run that was to recreate missing outputs.
func (a *attempt) removeTorn() {
	for _, name := range a.task.Again {
		if checkOutputPath(name) == nil {
			_ = a.place.root.Remove(name) // a remaining file counts as changed by a user
		}
	}
}

// missing lists the expected files that do not exist.
func (a *attempt) missing() []string {
	return slices.DeleteFunc(slices.Clone(a.task.Expects), func(name string) bool {
		_, err := a.runner.root.Lstat(name)
		return !errors.Is(err, fs.ErrNotExist)
	})
}

func checkOutputPath(name string) error {
	switch treepath.Of(name) {
	case treepath.Outside:
		return fmt.Errorf("output %q is not a path below the root", name)
	case treepath.Git:
		return fmt.Errorf("output %s is inside .git", name)
	case treepath.Local:
		return fmt.Errorf("output %s is inside .reconcile", name)
	}
	return nil
}
