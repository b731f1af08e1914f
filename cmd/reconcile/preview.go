package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/state/regular"
)

const formatDiff = "diff"

func newPreviewCmd(a *app) *cobra.Command {
	q := ops.PreviewRequest{}
	var proposed []string
	cmd := &cobra.Command{
		Use:   "preview [PATH...]",
		Short: "Show what changes, and what a person should look at first",
		Long: `Show the changes of the work tree, new files included, as a unified diff with its numbers of lines, and flag what a person should look
at: more than 100 removed lines, files with secrets, workflows of the CI, lock files and settings, lines that look like secrets, binary files,
changed modes, and changes that are large enough for a review. Nothing is changed. Secrets are hidden, but with -o diff, whose output
git apply takes.

--proposed compares PATH with a text that it would get: a file, or the standard input for -. So it also compares two files. It may be
repeated, once for each PATH.`,
		Example: "  reconcile preview\n  reconcile preview --base main cmd/\n  generate | reconcile preview api.go --proposed -\n  reconcile preview -o diff > change.diff",
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Paths = args
			for _, p := range proposed {
				text, err := a.proposal("--proposed", p)
				if err != nil {
					return err
				}
				q.Proposed = append(q.Proposed, text)
			}
			return a.preview(cmd.Context(), q)
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.Base, "base", "", "compare with the commit, branch or tag `REF` (default HEAD)")
	f.StringVar(&q.Commit, "commit", "", "compare the files of the commit `REF` (default those of the work tree)")
	f.BoolVar(&q.Staged, "staged", false, "compare what is staged, not the files")
	f.StringArrayVar(&proposed, "proposed", nil, "compare with the text in `FILE` that the path would get, - is the standard input; may be repeated")
	a.outputFlag(cmd, f, formatTable, formatJSON, formatYAML, formatDiff)
	return cmd
}

// proposal reads the text that a flag names; it is never nil.
func (a *app) proposal(flag, p string) (text []byte, err error) {
	if p == "-" {
		text, err = readStream(a.stdin)
	} else {
		text, err = regular.ReadPath(a.within(p))
	}
	if err != nil {
		return nil, badUsage("%s: %v", flag, err)
	}
	return append([]byte{}, text...), nil
}

func (a *app) preview(ctx context.Context, q ops.PreviewRequest) error {
	q.Raw = a.global.output == formatDiff
	c, err := ops.Preview(ctx, a.env(), q)
	if err == nil && q.Raw {
		for i := range c.Files {
			if _, err = fmt.Fprint(a.stdout, c.Files[i].Diff); err != nil {
				return err
			}
		}
		return nil
	}
	return a.result(c, err, func() error {
		if len(c.Files) == 0 {
			a.note("nothing changes")
			return nil
		}
		return render.Preview(a.stdout, a.palette(), c)
	})
}
