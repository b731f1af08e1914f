package scaffold

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestOwnWorkflowsAreThoseOfInit: what this project runs is what it gives to others, but for the program, which it
// builds.
func TestOwnWorkflowsAreThoseOfInit(t *testing.T) {
	t.Parallel()
	files := Workflows("")
	if len(files) < 4 {
		t.Fatalf("%d files", len(files))
	}
	for _, f := range files {
		own, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "..", filepath.FromSlash(f.Path)))
		if err != nil {
			t.Error(err)
			continue
		}
		given := bytes.ReplaceAll(f.Data, []byte(ReleaseMark+" # the one that you have tried; never a moving name"), []byte("source"))
		if !bytes.Equal(own, given) {
			t.Errorf("%s differs from %s of this package: change both", f.Path, f.Path)
		}
	}
}

func TestReleaseForm(t *testing.T) {
	t.Parallel()
	for version, good := range map[string]bool{
		"v1.2.3": true, "v1.2.3-rc.1": true, "v0.0.0-20261122070000-0123456789ab": true,
		"": false, "devel": false, "latest": false, "main": false, "v1.2": false, "v1.2.3+dirty": false, "v1.2.3\n": false, "v1.2.3;x": false,
	} {
		if releaseForm().MatchString(version) != good {
			t.Errorf("%q: good is %v", version, !good)
		}
	}
}
