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
		Long: `Merge the files OURS and THEIRS, whose common ancestor is BASE, into OURS. git calls it during a merge, rebase or
cherry-pick if both sides changed a file of the state; PATH is the name of the file in the tree.

--install configures it: a line in .gitattributes, which you commit, and the command in the configuration of this clone.
"reconcile init" does this, too; in another clone, run --install.

The exit code is 1 if neither side is JSON and the texts have conflicts, which are then marked in OURS, and 129 if the
merge failed: then OURS is unchanged, and git reports an error instead of a conflict.`,
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
	cmd.Flags().BoolVar(&install, "install", false, "configure the tree and this clone")
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
