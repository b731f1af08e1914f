package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/doctor"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/merge"
)

func newDoctorCmd(a *app) *cobra.Command {
	q, asJSON, hold := ops.DoctorRequest{}, false, ""
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Diagnose the tree and its surroundings, and repair what is safe",
		Long: `Examine the tree, leftovers of killed runs, the caches, the git repository, the file system, limits, clock and
environment. Nothing is changed without --fix, which does no more than the next run would do anyway: it keeps recorded
results, ends remaining processes of killed runs, removes abandoned locks and temporary files, moves unreadable files
away, deletes wrong caches, and rebuilds an unusable search index. The exit code is 1 after errors, or 3 if only specs
are at fault; warnings do not change it.`,
		Example: "  reconcile doctor\n" +
			"  reconcile doctor --fix\n" +
			"  reconcile doctor --json",
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if hold != "" {
				return doctor.Hold(hold, a.stdin, a.stdout)
			}
			if asJSON {
				a.global.output = formatJSON
			}
			r, err := ops.Doctor(cmd.Context(), a.env(), q)
			err = a.result(r.Findings, err, func() error { return a.printFindings(r.Findings) })
			return cmp.Or(err, exitWith(int(r.Verdict)))
		},
	}
	cmd.Flags().BoolVar(&q.Fix, "fix", false, "repair what is safe to repair")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the same as -o json")
	cmd.Flags().StringVar(&hold, "hold-lock", "", "hold a lock on `FILE` until stdin ends")
	_ = cmd.Flags().MarkHidden("hold-lock") // it exists: the line above defines it
	return cmd
}

// printFindings prints the findings, and then what to do about each that is not ok.
func (a *app) printFindings(findings []doctor.Finding) error {
	table := render.NewTable(a.palette(), "CHECK", "LEVEL", "FINDING")
	table.Wrap = true
	for _, f := range findings {
		if !a.global.quiet || f.Level != doctor.OK {
			table.Cells(render.Cell{Text: f.Name}, render.Cell{Text: string(f.Level), Color: levelColor(f.Level)}, render.Cell{Text: clean(f.Detail)})
		}
	}
	err := table.Write(a.stdout)
	fixable := false
	for _, f := range findings {
		if f.Level != doctor.OK && f.Fix != "" {
			fixable = fixable || f.Fixable
			a.printf("\n%s: %s\n  %s\n", f.Name, clean(f.Detail), clean(f.Fix))
		}
	}
	if fixable {
		a.printf("\n\"reconcile doctor --fix\" repairs what it can.\n")
	}
	return err
}

func levelColor(l doctor.Level) render.Color {
	switch l {
	case doctor.Error:
		return render.Red
	case doctor.Warn:
		return render.Yellow
	}
	return render.Green
}

func newAllowCmd(a *app) *cobra.Command {
	q := ops.AllowRequest{}
	cmd := &cobra.Command{
		Use:   "allow",
		Short: "Let this tree send data to the addresses that it names, and let the checks of this project run",
		Long: `Show the addresses to which the settings of the tree send data (index.endpoint, github.baseURL), and to which its agents
send prompts and keys by way of the metering proxy (runner.http.baseURL, proxy.upstream of profiles), with the environment
variable or file whose value is sent, and allow them. A tree may be untrusted: until its addresses are allowed, nothing is sent
to them, search uses words only, nothing is mirrored, and agents that need them fail.

It also lets "reconcile inspect" and "reconcile test" run the commands of this project, which can do anything that you can;
that works without a tree, too.

A service of models that gets its own key from its own variable, as api.anthropic.com from ANTHROPIC_API_KEY, needs no
permission, and neither does this machine where no key is sent.

The permission is written to allowed.json in the user's configuration folder, and applies to all trees with the same
address and variable. For a single process, for example in CI, ` + ops.AllowVariable + `=URL,… does the same, with the word
checks for the checks of any project.`,
		Example: "  reconcile allow --list\n  reconcile allow\n  reconcile allow --remove https://api.example.com/v1",
		Args:    arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			q.Dir = a.project
			r, err := ops.Allow(cmd.Context(), a.env(), q)
			if err == nil && q.Remove != "" {
				a.note("%s is not allowed any more", q.Remove)
				return nil
			}
			return a.result(r, err, func() error { return a.printAllowed(&r, q.List) })
		},
	}
	cmd.Flags().BoolVar(&q.List, "list", false, "only show the addresses, and whether they are allowed")
	cmd.Flags().StringVar(&q.Remove, "remove", "", "revoke the permission for the address, or the checks of the folder, `URL`")
	cmd.MarkFlagsMutuallyExclusive("list", "remove")
	return cmd
}

func (a *app) printAllowed(r *ops.AllowResult, only bool) error {
	may := map[bool]string{true: "may run", false: "may not run"}
	a.note("the checks of %s %s", r.Folder, may[r.Checks])
	err := a.table(len(r.Destinations), "the settings, agents and DAGs send data to no address", func(i int) []string {
		d := r.Destinations[i]
		return []string{d.Setting, clean(d.URL), cmp.Or(d.Variable, clean(d.File), "-"), d.Sends, map[bool]string{true: "yes", false: "no"}[d.Allowed]}
	}, "SETTING", "ADDRESS", "KEY", "SENDS", "ALLOWED")
	if !only && len(r.Destinations) > 0 {
		a.note("wrote %s", r.File)
	}
	return err
}

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
			conflicts, err := ops.MergeFiles(cmd.Context(), a.env(), ops.MergeRequest{Base: args[0], Ours: args[1], Theirs: args[2]})
			switch {
			case err != nil:
				return &driverError{err}
			case conflicts:
				return fmt.Errorf("%w, and their texts have conflicts: settle them by hand", merge.ErrNoJSON)
			}
			return nil
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
