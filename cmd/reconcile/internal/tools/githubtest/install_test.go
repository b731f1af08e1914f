package githubtest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWhatIsInstalledIsPinned needs nothing installed: versions are exact, each package has its digest, and none says
// where it comes from, so that the registry that a machine is set up with is asked.
func TestWhatIsInstalledIsPinned(t *testing.T) {
	t.Parallel()
	var wanted struct{ Dependencies, OptionalDependencies map[string]string }
	var locked struct {
		Packages map[string]struct{ Version, Integrity, Resolved string }
	}
	if err := json.Unmarshal(packages, &wanted); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(lock, &locked); err != nil {
		t.Fatal(err)
	}
	exact := regexp.MustCompile(`^\d+\.\d+\.\d+$`)
	for _, list := range []map[string]string{wanted.Dependencies, wanted.OptionalDependencies} {
		for name, version := range list {
			if got := locked.Packages["node_modules/"+name].Version; !exact.MatchString(version) || got != version {
				t.Errorf("%s is wanted as %s, and locked as %q", name, version, got)
			}
		}
	}
	if len(locked.Packages) < 9 {
		t.Errorf("only %d packages are locked", len(locked.Packages))
	}
	for name, p := range locked.Packages {
		if name != "" && !strings.HasPrefix(p.Integrity, "sha512-") || p.Resolved != "" {
			t.Errorf("%s has the digest %q, and comes from %q", name, p.Integrity, p.Resolved)
		}
	}
}

// TestInstallNeedsNpm: what is missing is said, and nothing is left behind.
func TestInstallNeedsNpm(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache)
	t.Setenv("LocalAppData", cache)
	t.Setenv("PATH", t.TempDir())
	if _, err := Install(t.Context()); err == nil || !strings.Contains(err.Error(), "npm") {
		t.Errorf("the error is %v, want one that names npm", err)
	}
	// An npm that fails.
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "npm"), []byte("#!/bin/sh\necho no network >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	if _, err := Install(t.Context()); err == nil || !strings.Contains(err.Error(), "no network") {
		t.Errorf("the error is %v, want what npm said", err)
	}
	left, err := filepath.Glob(filepath.Join(cache, "reconcile", "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}
