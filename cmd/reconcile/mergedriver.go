package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/controllers/merge"
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
				return ops.InstallMergeDriver(cmd.Context(), a.env())
			}
			return a.mergeFiles(cmd.Context(), ops.MergeRequest{Base: args[0], Ours: args[1], Theirs: args[2]})
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

// mergeFiles is the command that git calls.
func (a *app) mergeFiles(ctx context.Context, q ops.MergeRequest) error {
	conflicts, err := ops.MergeFiles(ctx, a.env(), q)
	if err != nil {
		return &driverError{err}
	}
	if conflicts {
		return fmt.Errorf("%w, and their texts have conflicts: settle them by hand", merge.ErrNoJSON)
	}
	return nil
}
