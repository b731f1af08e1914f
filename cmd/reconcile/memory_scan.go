package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
)

func newMemoryScanCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scan [PATH…]",
		Short: "Find secrets in the tree's specs and state",
		Long: `Find secrets and private text in all files that reconcile reads and writes: reconcile.yaml, and the folders of specs and
state, with the memory, its archive and records, and the runs. Arguments name other files: "scan ." scans the whole work
tree without .git and .reconcile. Links are not followed. Binary files and files larger than 256 MiB are reported as
skipped. Each finding is reported with its place and rule, and its text is not printed. Lines with the comment
` + ops.AllowSecret + ` are ignored.

The exit code is 1 if there are findings. Committed secrets stay in git's history: replace them where they are used.`,
		Example: "  reconcile memory scan\n" +
			"  reconcile memory scan . -o json\n" +
			"  reconcile memory scan -o sarif > secrets.sarif",
		RunE: func(cmd *cobra.Command, args []string) error { return a.memoryScan(cmd.Context(), args) },
	}
	a.outputFlag(cmd, cmd.Flags(), formatTable, formatJSON, formatYAML, formatSARIF, formatGitHub)
	return cmd
}

// listedSkips bounds the list of skipped files for people.
const listedSkips = 20

func (a *app) memoryScan(ctx context.Context, paths []string) error {
	scan, err := ops.ScanSecrets(ctx, a.env(), paths)
	if err != nil {
		return err
	}
	if err := a.printScan(scan); err != nil || len(scan.Secrets) == 0 {
		return err
	}
	return exitWith(exitFailure)
}

func (a *app) printScan(r ops.SecretScan) error {
	if a.global.output != formatJSON && a.global.output != formatYAML {
		a.warnSkipped(r.Skipped)
	}
	switch a.global.output {
	case formatGitHub:
		return render.GitHub(a.stdout, a.repositoryPath(), r.Problems())
	case formatSARIF:
		return render.SARIF(a.stdout, process.ReadBuild().Version, a.repositoryPath(), r.Problems())
	case formatTable:
		return a.printSecrets(r)
	}
	return a.print(r)
}

// warnSkipped warns of files that were not scanned.
func (a *app) warnSkipped(files []string) {
	for _, s := range files[:min(len(files), listedSkips)] {
		a.warnLine("skipped: " + s)
	}
	if more := len(files) - listedSkips; more > 0 {
		fmt.Fprintf(a.stderr, "warning: and %s more; -o json has all\n", render.Plural(more, "file"))
	}
}

func (a *app) printSecrets(r ops.SecretScan) error {
	p := a.palette()
	for _, f := range r.Secrets {
		fmt.Fprintf(a.stdout, "%s: %s\n", p.Paint(render.Red, clean(f.Place.String())), f.Rule)
	}
	if a.global.quiet {
		return nil
	}
	verdict := "no secrets"
	if len(r.Secrets) > 0 {
		verdict = render.Plural(len(r.Secrets), "secret") +
			"; remove them, and replace them where they are used: git's history keeps what was committed"
		fmt.Fprintln(a.stdout)
	}
	_, err := fmt.Fprintf(a.stdout, "%s scanned, %s\n", render.Plural(r.Files, "file"), verdict)
	return err
}
