package repotest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// copyExamples puts the examples of the repository into a folder, as they are in a fresh clone: documents tell readers to
// copy them from there.
func copyExamples(t *testing.T, dir string) {
	t.Helper()
	copied := 0
	for _, p := range tracked(t) {
		if !strings.HasPrefix(p, "examples/") {
			continue
		}
		to := filepath.Join(dir, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, []byte(read(t, p)), 0o644); err != nil {
			t.Fatal(err)
		}
		copied++
	}
	if copied == 0 {
		t.Fatal("there are no examples")
	}
}
