package checking

import (
	"context"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/preview"
)

// ChangedLines returns the lines that the files below root have now and a commit has not, by file. base is as that of [Changed]; files
// that git does not track are not among them.
func ChangedLines(ctx context.Context, root, base string) (map[string][]checks.LineRange, error) {
	from := "HEAD"
	if base != "" {
		var err error
		if from, err = mergeBase(ctx, root, base); err != nil {
			return nil, err
		}
	}
	diff, err := readGit(ctx, root, "diff", "--unified=0", "--no-color", "--no-ext-diff", "--no-textconv", "--relative", "--no-renames",
		"--src-prefix=a/", "--dst-prefix=b/", from, "--", ".")
	if err != nil {
		return nil, err
	}
	out := map[string][]checks.LineRange{}
	for _, f := range preview.Parse(diff) {
		out[f.Path] = []checks.LineRange{}
		for _, h := range f.Hunks {
			if h.NewLines > 0 {
				out[f.Path] = append(out[f.Path], checks.LineRange{First: h.NewStart, Last: h.NewStart + h.NewLines - 1})
			}
		}
	}
	return out, nil
}
