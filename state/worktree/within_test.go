package worktree

import (
	"path/filepath"
	"testing"
)

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		dir, file, want string
		ok              bool
	}{
		{"/a", "/a", ".", true}, {"/a", "/a/b/c", "b/c", true}, {"/a", "/a/..b", "..b", true}, {"/", "/a", "a", true},
		{"/a", "/ab", "", false}, {"/a", "/", "", false}, {"/a/b", "/a", "", false}, {"/a", "/a/../b", "", false}, {"/a", "a", "", false},
	} {
		dir, file := filepath.FromSlash(c.dir), filepath.FromSlash(c.file)
		if got, ok := Within(dir, file); got != c.want || ok != c.ok {
			t.Errorf("Within(%s, %s) = %q, %v; want %q, %v", dir, file, got, ok, c.want, c.ok)
		}
	}
}
