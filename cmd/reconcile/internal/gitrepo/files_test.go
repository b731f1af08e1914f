package gitrepo

import (
	"strings"
	"testing"
)

// TestFilesLike: with the git command and without it, from the top and from a folder, what is wanted is there and
// nothing else is read.
func TestFilesLike(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	head := f.git("rev-parse", "HEAD")
	for _, c := range []struct{ below, suffix, want string }{
		{".", ".json", "state/dags/checks.json state/dags/other.json state/sessions/health.json"},
		{".", "README.md", "README.md"},
		{"state", "", "dags/checks.json dags/other.json sessions/health.json"},
		{"state/dags", "other.json", "other.json"},
		{".", "nothing", ""},
	} {
		for _, native := range []bool{false, true} {
			r := f.open(c.below)
			if native {
				r.command = nil
			}
			var got []string
			err := r.FilesLike(t.Context(), head, func(p string) bool { return strings.HasSuffix(p, c.suffix) },
				func(s Stored) error {
					if len(s.Data) == 0 {
						t.Errorf("%s is empty", s.Path)
					}
					got = append(got, s.Path)
					return nil
				})
			if err != nil || strings.Join(got, " ") != c.want {
				t.Errorf("below %s, native %v: %q, %v; want %q", c.below, native, got, err, c.want)
			}
		}
	}
}
