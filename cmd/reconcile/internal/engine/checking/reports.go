package checking

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/state/regular"
)

// mostReports bounds the number of reports of a run that are read.
const mostReports = 10_000

// stamp distinguishes a written file from an earlier one at the same path.
type stamp struct {
	size    int64
	written time.Time
}

// writtenReports are the reports of a tool that lie in the folder of its project, by their paths in it.
func writtenReports(r tools.Role, dir string) map[string]stamp {
	if len(r.Reports) == 0 {
		return nil
	}
	found := map[string]stamp{}
	_ = fs.WalkDir(os.DirFS(dir), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // what cannot be read is no report
		case d.IsDir() && p != "." && (d.Name()[0] == '.' || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.Type().IsRegular() && r.IsReport(p):
			if fi, err := d.Info(); err == nil {
				found[p] = stamp{fi.Size(), fi.ModTime()}
			}
		}
		return nil
	})
	return found
}

// readReports reads what a tool wrote: the file report, or the files in the folder report, or those of its reports in dir that it wrote since before.
func readReports(r tools.Role, dir, report string, before map[string]stamp) (documents [][]byte, err error) {
	names := []string{report}
	if len(r.Reports) > 0 {
		names = nil
		now := writtenReports(r, dir)
		for _, p := range slices.Sorted(maps.Keys(now)) {
			if was, old := before[p]; !old || was != now[p] {
				names = append(names, filepath.Join(dir, filepath.FromSlash(p)))
			}
		}
	} else if entries, err := os.ReadDir(report); err == nil {
		names = nil
		for _, e := range entries {
			if e.Type().IsRegular() {
				names = append(names, filepath.Join(report, e.Name()))
			}
		}
	}
	if len(names) > mostReports {
		return nil, errors.New("it wrote more reports than are read")
	}
	left := int64(outputLimit)
	for _, name := range names {
		data, err := regular.ReadPathUpTo(name, left)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		}
		left -= int64(len(data))
		documents = append(documents, data)
	}
	return documents, nil
}
