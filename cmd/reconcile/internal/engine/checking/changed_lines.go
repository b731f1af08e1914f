package checking

import (
	"context"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/preview"
)

// ChangedLines returns the lines that the files below root have now and the last commit does not have, by file; files that git does not track are
// not among them.
func ChangedLines(ctx context.Context, root string) (map[string][]checks.LineRange, error) {
	c, err := Since(ctx, root, "HEAD", nil)
	return c.Lines, err
}

// linesOf returns the new lines of a difference, by file.
func linesOf(diff string) map[string][]checks.LineRange {
	out := map[string][]checks.LineRange{}
	for _, f := range preview.Parse(diff) {
		out[f.Path] = []checks.LineRange{}
		for _, h := range f.Hunks {
			if h.NewLines > 0 {
				out[f.Path] = append(out[f.Path], checks.LineRange{First: h.NewStart, Last: h.NewStart + h.NewLines - 1})
			}
		}
	}
	return out
}
