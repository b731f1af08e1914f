package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/controllers/merge"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// What git is told of the merge driver.
const (
	driverName    = "merge.reconcile.name"
	driverTitle   = "reconcile: statuses and records, field by field"
	driverKey     = "merge.reconcile.driver"
	driverCommand = "reconcile merge-driver %O %A %B %P"
	attributes    = ".gitattributes"
)

func newMergeDriverCmd(a *app) *cobra.Command {
	install := false
	cmd := &cobra.Command{
		Use:   "merge-driver BASE OURS THEIRS [PATH]",
		Short: "Merge two versions of a state file field by field, for git",
		Long: `Merge the files OURS and THEIRS, whose common ancestor is BASE, into OURS. git calls it where branches are merged,
rebased or cherry-picked that both changed a file of the state; PATH is what the file is called in the tree.

--install sets it up for the tree: a line in .gitattributes, which is to be committed, and the command in the
configuration of this clone. "reconcile init" does so, too; in another clone, --install is enough.

The exit code is 1 where neither side is JSON and the texts have conflicts, which are marked in OURS then, and 129 where
the merge failed: OURS is as it was then, and git reports an error instead of a conflict.`,
		Example: "  reconcile merge-driver --install",
		RunE: func(cmd *cobra.Command, args []string) error {
			if install {
				if err := a.enterTree(treeOptional); err != nil {
					return err
				}
				return a.installMergeDriver(cmd.Context(), a.global.dir)
			}
			return mergeFiles(cmd.Context(), args[0], args[1], args[2])
		},
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if install {
			return arguments(0, 0, "")(cmd, args)
		}
		return arguments(3, 4, "three files, or --install")(cmd, args)
	}
	cmd.Flags().BoolVar(&install, "install", false, "set it up for the tree and this clone")
	return cmd
}

// mergeFiles is what git calls. It replaces ours as a whole or, with a *driverError, leaves it as it was.
func mergeFiles(ctx context.Context, base, ours, theirs string) error {
	merged, conflicts, err := mergeSides(ctx, base, ours, theirs)
	if err == nil {
		err = replaceFile(ours, merged)
	}
	if err != nil {
		return &driverError{err}
	}
	if conflicts {
		return fmt.Errorf("%w, and their texts have conflicts: settle them by hand", merge.ErrNoJSON)
	}
	return nil
}

// mergeSides merges field by field, or as text, as git does without a driver, where no side is JSON.
func mergeSides(ctx context.Context, base, ours, theirs string) (merged []byte, conflicts bool, err error) {
	var sides [3][]byte
	for i, name := range []string{base, ours, theirs} {
		if sides[i], err = regular.ReadPath(name); err != nil {
			return nil, false, fmt.Errorf("read a side of the merge: %w", err)
		}
	}
	merged, err = merge.Files(kinds(), sides[0], sides[1], sides[2])
	if errors.Is(err, merge.ErrNoJSON) {
		return gitrepo.MergeFile(ctx, base, ours, theirs)
	}
	return merged, false, err
}

// replaceFile gives a file new content: a new file takes its place when it is whole.
func replaceFile(name string, data []byte) error {
	root, err := regular.Root(filepath.Dir(name))
	if err == nil {
		defer root.Close()
		err = durable.WriteFile(root, ".", filepath.Base(name), data)
	}
	if err != nil {
		return fmt.Errorf("write the merged file: %w", err)
	}
	return nil
}

// driverError is a merge that failed. Its exit code is above 128: git takes 1 to 128 for conflicts, with OURS as the result.
type driverError struct{ err error }

func (e *driverError) Error() string { return e.err.Error() }
func (e *driverError) Unwrap() error { return e.err }

// installMergeDriver tells git of the driver, for the tree in dir.
func (a *app) installMergeDriver(ctx context.Context, dir string) error {
	folder, err := a.stateFolder(dir)
	if err != nil {
		return err
	}
	root, err := regular.Root(dir)
	if err != nil {
		return fmt.Errorf("open %s: %w", dir, regular.Cause(err))
	}
	defer root.Close()
	if err := a.addAttribute(root, dir, folder+"/**"); err != nil {
		return err
	}
	return a.configureDriver(ctx, dir)
}

// stateFolder is the folder of the state in the tree in dir.
func (a *app) stateFolder(dir string) (string, error) {
	s, err := state.Open(dir, a.config().StoreOptions())
	if err != nil {
		return "", fmt.Errorf("open the tree in %s: %w", dir, err)
	}
	defer s.Close()
	return path.Dir(path.Dir(s.StatusPath(schemas.Ref{Kind: schemas.DAGKind.Name, Name: "x"}))), nil
}

// addAttribute adds a line to .gitattributes, unless one is there that says how files of the pattern are merged.
func (a *app) addAttribute(root *os.Root, dir, pattern string) error {
	old, err := regular.Read(root, attributes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", attributes, regular.Cause(err))
	}
	for line := range strings.Lines(string(old)) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != pattern || !strings.Contains(line, "merge") {
			continue
		}
		if words[1] != "merge=reconcile" {
			a.note("%s is left as it is: it has a line of its own for %s", attributes, pattern)
		}
		return nil
	}
	text := string(old)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if err := durable.WriteFile(root, specs.Scratch, attributes, []byte(text+pattern+" merge=reconcile\n")); err != nil {
		return err
	}
	a.note("wrote %s", filepath.Join(dir, attributes))
	return nil
}

// configureDriver sets the command in the configuration of the clone, where the tree is in one.
func (a *app) configureDriver(ctx context.Context, dir string) error {
	repo, err := gitrepo.Open(dir)
	if errors.Is(err, gitrepo.ErrNotARepo) {
		a.note("merges of state files: once the tree is in a git repository, run \"reconcile merge-driver --install\"")
		return nil
	}
	if err != nil {
		return err
	}
	changed, err := repo.Configure(ctx, [2]string{driverName, driverTitle}, [2]string{driverKey, driverCommand})
	if err != nil {
		return fmt.Errorf("%w; git merges state files as text until \"reconcile merge-driver --install\" succeeds", err)
	}
	if changed {
		a.note("git of this clone merges state files with \"reconcile merge-driver\"")
	}
	return nil
}
