package state_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/state"
)

func TestFilesBesideTheTree(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "state/memory/archive"), 0o777); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"issue-1.json": "one", "issue-22.json": "twenty-two"} {
		if err := os.WriteFile(filepath.Join(dir, "state/memory", name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("issue-1.json", filepath.Join(dir, "state/memory/link.json")); err != nil {
		t.Fatal(err)
	}
	s, err := state.Open(dir, state.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var files, folders []string
	err = s.ListFolder("state/memory", func(name []byte, id state.Identity) {
		if id.IsFile() {
			files = append(files, string(name))
		}
		if id.IsFolder() {
			folders = append(folders, string(name))
		}
	})
	slices.Sort(files)
	if err != nil || !slices.Equal(files, []string{"issue-1.json", "issue-22.json"}) || !slices.Equal(folders, []string{"archive"}) {
		t.Errorf("files %q, folders %q, %v", files, folders, err)
	}
	if data, id, err := s.ReadFile("state/memory/issue-22.json", 100); string(data) != "twenty-two" || id.Size != 10 || err != nil {
		t.Errorf("%q, %+v, %v", data, id, err)
	}
	for _, p := range []string{"state/memory/link.json", "state/memory/archive", "state/memory/none", "../x", "state/memory/issue-22.json"} {
		if data, _, err := s.ReadFile(p, 5); err == nil {
			t.Errorf("%s was read: %q", p, data)
		}
	}
	if err := s.ListFolder("state/none", func([]byte, state.Identity) {}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that does not exist: %v", err)
	}
	wrong := errors.New("wrong")
	if was, err := s.PutNewOnce("specs/observations/x.yaml", []byte("?"), func() error { return wrong }); was != nil || err != wrong {
		t.Errorf("%q, %v; want the error of ready", was, err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, ".reconcile/tmp")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	was, err := s.PutNew("specs/observations/x.yaml", []byte("a"))
	if was != nil || err != nil {
		t.Errorf("%q, %v", was, err)
	}
	if was, err = s.PutNew("specs/observations/x.yaml", []byte("b")); string(was) != "a" || err != nil {
		t.Errorf("%q, %v", was, err)
	}
	l, err := s.LockFile(context.Background(), "state/memory/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Replace("state/memory/manifest.json", []byte("{}")), l.Check(), l.Release()); err != nil {
		t.Error(err)
	}
}
