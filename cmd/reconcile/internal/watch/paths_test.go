package watch

import (
	"slices"
	"testing"
)

func TestScope(t *testing.T) {
	s := newScope([]string{"specs/", "./state", "reconcile.yaml", "src/go/app", "../outside", "specs"})
	if want := (scope{"reconcile.yaml", "specs", "src/go/app", "state"}); !slices.Equal(s, want) {
		t.Fatalf("scope %q, want %q", s, want)
	}
	for path, want := range map[string]bool{
		".": true, "specs": true, "specs/dags/a.yaml": true, "reconcile.yaml": true, "state/runs/x/y.json": true,
		"src": true, "src/go": true, "src/go/app/main.go": true, // the folders above are needed to see it come and go
		"src/go/lib": false, "specs2": false, "specs2/a.yaml": false, "docs/a.md": false, "reconcile.yaml.orig": false,
		"state/.git/x": false, "specs/.reconcile/x": false, "specs/a.yaml~": false, "specs/.a.yaml.swp": false,
	} {
		if got := s.wants(path); got != want {
			t.Errorf("wants(%q) = %v, want %v", path, got, want)
		}
	}
}

func TestScopeOfEverything(t *testing.T) {
	s := newScope([]string{"."})
	for path, want := range map[string]bool{".": true, "a": true, "a/b/c.go": true, ".git": false, ".git/index": false} {
		if got := s.wants(path); got != want {
			t.Errorf("wants(%q) = %v, want %v", path, got, want)
		}
	}
}

func TestIgnored(t *testing.T) {
	for path, want := range map[string]bool{
		".git": true, ".GIT/config": true, "a/.reconcile/cache": true, "specs/4913": true, "specs/#a.yaml#": true,
		"specs/.#a.yaml": true, "specs/a.yaml~": true, "specs/.a.yaml.swx": true, "specs/.goutputstream-X1": true,
		"state/clarifications/issue-1.json.lock": true, "state/x.json.reap.lock": true, "state/x.json.new.lock": true,
		"specs/a.yaml___jb_tmp___": true, "specs/.nfs000012": true, "specs/.DS_Store": true,
		"specs/a.yaml": false, "specs/.golangci.yml": false, "Cargo.lock": false, "specs/a.git.yaml": false, ".": false,
		"specs/4914": false, ".github/workflows/ci.yml": false,
	} {
		if got := ignored(path); got != want {
			t.Errorf("ignored(%q) = %v, want %v", path, got, want)
		}
	}
}
