package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/doctor"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
)

// doctorOptions are the flags of doctor.
type doctorOptions struct {
	fix  bool
	json bool
	hold string // the lock that this process holds for another doctor
}

func newDoctorCmd(a *app) *cobra.Command {
	o := &doctorOptions{}
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
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context(), *o) },
	}
	cmd.Flags().BoolVar(&o.fix, "fix", false, "repair what is safe to repair")
	cmd.Flags().BoolVar(&o.json, "json", false, "the same as -o json")
	cmd.Flags().StringVar(&o.hold, "hold-lock", "", "hold a lock on `FILE` until stdin ends")
	_ = cmd.Flags().MarkHidden("hold-lock") // it exists: the line above defines it
	return cmd
}

func (a *app) doctor(ctx context.Context, o doctorOptions) error {
	if o.hold != "" {
		return doctor.Hold(o.hold, a.stdin, a.stdout)
	}
	if o.json {
		a.global.output = formatJSON
	}
	r, err := ops.Doctor(ctx, a.env(), ops.DoctorRequest{Fix: o.fix})
	if err != nil {
		return err
	}
	return cmp.Or(a.printFindings(r.Findings), exitWith(int(r.Verdict)))
}

func (a *app) printFindings(findings []doctor.Finding) error {
	if a.global.output != formatTable {
		return a.print(findings)
	}
	table := render.NewTable(a.palette(), "CHECK", "LEVEL", "FINDING")
	table.Wrap = true
	hidden := 0
	for _, f := range findings {
		if a.global.quiet && f.Level == doctor.OK {
			hidden++
			continue
		}
		table.Cells(render.Cell{Text: f.Name}, render.Cell{Text: string(f.Level), Color: levelColor(f.Level)},
			render.Cell{Text: clean(f.Detail)})
	}
	if hidden == len(findings) {
		return nil
	}
	if err := table.Write(a.stdout); err != nil {
		return err
	}
	return a.printAdvice(findings)
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

// printAdvice prints what to do about each finding that is not ok.
func (a *app) printAdvice(findings []doctor.Finding) error {
	fixable := false
	for _, f := range findings {
		if f.Level == doctor.OK || f.Fix == "" {
			continue
		}
		fixable = fixable || f.Fixable
		if _, err := fmt.Fprintf(a.stdout, "\n%s: %s\n  %s\n", f.Name, clean(f.Detail), clean(f.Fix)); err != nil {
			return err
		}
	}
	if fixable {
		_, err := io.WriteString(a.stdout, "\n\"reconcile doctor --fix\" repairs what it can.\n")
		return err
	}
	return nil
}
