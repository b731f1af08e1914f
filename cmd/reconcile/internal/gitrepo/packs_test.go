package gitrepo

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// TestPacksAreRead compares every object of a history full of deltas with what git says of it.
func TestPacksAreRead(t *testing.T) {
	t.Parallel()
	for name, repack := range map[string][]string{
		"offset deltas":    {"repack", "-adfq", "--depth=20", "--window=20"},
		"reference deltas": {"-c", "repack.useDeltaBaseOffset=false", "repack", "-adfq"},
		"several packs":    {"repack", "-q"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			for i := range 12 {
				for j := range 30 {
					f.write(fmt.Sprintf("state/many/file-%02d.json", j), strings.Repeat(fmt.Sprintf("line of %d\n", j), 40)+fmt.Sprint(i%(j+1)))
				}
				f.git("add", "state")
				f.git("commit", "-q", "-m", fmt.Sprint(i))
				if i == 6 {
					f.git(repack...)
				}
			}
			f.git(repack...)
			store := newObjectStore(f.open().layout)
			defer store.close()
			n := 0
			for line := range strings.Lines(f.git("cat-file", "--batch-all-objects", "--batch-check")) {
				field := strings.Fields(line)
				kind, err := plumbing.ParseObjectType(field[1])
				if err != nil {
					t.Fatal(err)
				}
				data, err := store.read(kind, plumbing.NewHash(field[0]))
				if err != nil || fmt.Sprint(len(data)) != field[2] || hashObject(kind, data).String() != field[0] {
					t.Fatalf("%s: %d bytes, %v", line, len(data), err)
				}
				n++
			}
			if n < 100 {
				t.Errorf("only %d objects", n)
			}
			if _, err := store.read(plumbing.BlobObject, plumbing.NewHash(strings.Repeat("12", 20))); !errors.As(err, new(*needsGit)) {
				t.Errorf("an object that does not exist: %v", err)
			}
		})
	}
}

// TestPackWithoutIndex: what a killed git leaves behind does not stop us.
func TestPackWithoutIndex(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git("gc", "-q")
	f.write(".git/objects/pack/pack-1234567890123456789012345678901234567890.pack", "PACK")
	f.write(".git/objects/pack/tmp_pack_x", "PACK")
	f.write(checks, done)
	f.commit(f.open(), checks)
	f.clean()
}

// TestPackIsReadByGit: git index-pack makes the same index of a pack of ours as we do.
func TestPackIsReadByGit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var objects []object
	for i := range 500 {
		objects = append(objects, newObject(plumbing.BlobObject, bytes.Repeat([]byte{byte(i), byte(i >> 3)}, i*i)))
	}
	objects = append(objects, objects[7])
	pack, idx, err := encodePack(objects)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.pack"), pack, 0o666); err != nil {
		t.Fatal(err)
	}
	f.git("index-pack", "--strict", "-o", filepath.Join(dir, "x.idx"), filepath.Join(dir, "x.pack"))
	want, err := os.ReadFile(filepath.Join(dir, "x.idx"))
	if err != nil || !bytes.Equal(idx, want) {
		t.Errorf("our index has %d bytes, git's has %d, and they differ: %v", len(idx), len(want), err)
	}
}

func FuzzParseTree(f *testing.F) {
	f.Add(encodeTree([]treeEntry{{"a", blob{mode: modeFile}}, {"b", blob{mode: modeTree}}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseTree(data)
		if err != nil {
			return
		}
		again, err := parseTree(encodeTree(entries))
		if err != nil || len(again) != len(entries) {
			t.Errorf("%v", err)
		}
	})
}

// TestNoObjects: no folder is synced for objects of which there are none.
func TestNoObjects(t *testing.T) {
	t.Parallel()
	w := &scratchDir{dir: t.TempDir()}
	if err := w.write(layout{common: filepath.Join(w.dir, "none")}, nil); err != nil {
		t.Error(err)
	}
}
