package gitrepo

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/state"
)

// TestIndexVersions: whatever form the user's index has, it says the same as git would make it say.
func TestIndexVersions(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*fixture){
		"version 2":      func(f *fixture) { f.git("update-index", "--index-version=2") },
		"version 4":      func(f *fixture) { f.git("update-index", "--index-version=4") },
		"version 3":      func(f *fixture) { f.write("soon", ""); f.git("add", "-N", "soon") },
		"skip worktree":  func(f *fixture) { f.git("update-index", "--skip-worktree", "README.md"); f.remove("README.md") },
		"split index":    func(f *fixture) { f.git("update-index", "--split-index") },
		"untracked":      func(f *fixture) { f.git("update-index", "--untracked-cache"); f.git("status") },
		"sparse":         func(f *fixture) { f.git("sparse-checkout", "set", "--cone", "--sparse-index", "state") },
		"many threads":   func(f *fixture) { f.git("-c", "index.threads=4", "update-index", "--index-version=4") },
		"conflict":       func(f *fixture) { conflict(f) },
		"no cache tree":  func(f *fixture) { f.git("read-tree", "--empty"); f.git("add", ".") },
		"unhashed index": unhash,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			prepare(f)
			before, staged := f.git("status", "--porcelain"), f.git("ls-files", "-s", "--", ":!state")
			f.write(checks, done)
			f.write("state/a/new.json", done)
			f.write("state/zz/last.json", done)
			f.remove("state/sessions/health.json")
			f.commit(f.open(), checks, "state/a/new.json", "state/zz/last.json", "state/sessions/health.json")
			f.equal("status", f.git("status", "--porcelain"), before)
			f.equal("other entries", f.git("ls-files", "-s", "--", ":!state"), staged)
			if name == "unhashed index" {
				f.unlittered() // git fsck understands it from version 2.40 on
				return
			}
			f.sound()
		})
	}
}

// conflict leaves an unmerged path in the index without an operation in progress.
func conflict(f *fixture) {
	h := f.git("rev-parse", "HEAD:README.md")
	in := fmt.Sprintf("0 %s\tREADME.md\n100644 %s 1\tREADME.md\n100644 %s 2\tREADME.md\n", strings.Repeat("0", 40), h, h)
	f.write(".git/in", in)
	f.git("-c", "alias.x=!git update-index --index-info < .git/in", "x")
	f.remove(".git/in")
}

// unhash does what index.skipHash does.
func unhash(f *fixture) {
	data, err := os.ReadFile(f.path(".git/index"))
	if err != nil {
		f.Fatal(err)
	}
	copy(data[len(data)-20:], make([]byte, 20))
	f.write(".git/index", string(data))
}

// TestIndexBytes: an index that is parsed and encoded again is the same file, extensions that git remakes aside.
func TestIndexBytes(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2", "4"} {
		f := newFixture(t)
		for i := range 200 {
			f.write(fmt.Sprintf("many/%03d/%s", i/10, strings.Repeat("x", i%40+1)), "x")
		}
		f.git("add", ".")
		f.git("-c", "index.threads=1", "update-index", "--index-version="+version)
		f.git("-c", "index.threads=1", "write-tree")
		data, err := os.ReadFile(f.path(".git/index"))
		if err != nil {
			t.Fatal(err)
		}
		x, err := parseIndex(data)
		if err != nil {
			t.Fatal(err)
		}
		if got := x.encode(); !bytes.Equal(got, data) {
			t.Errorf("version %s: %d bytes became %d", version, len(data), len(got))
		}
		if x.folders == nil || x.folders.files != len(x.entries) {
			t.Errorf("version %s: the cache tree was not read: %+v", version, x.folders)
		}
	}
}

func TestDamagedIndexIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	data, err := os.ReadFile(f.path(".git/index"))
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n < len(data); n++ {
		if _, err := parseIndex(data[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes pass for an index", n, len(data))
		}
	}
	for i := range data {
		bad := bytes.Clone(data)
		bad[i] ^= 0x40
		if _, err := parseIndex(bad); err == nil {
			t.Fatalf("byte %d of the index can be changed unnoticed", i)
		}
	}
	f.write(".git/index", string(data[:100]))
	f.write(checks, done)
	res, err := f.open().Commit(t.Context(), Commit{Paths: []string{checks}, Message: "m", When: noon})
	if err != nil || !strings.Contains(res.Warning, "the index is damaged") {
		t.Errorf("commit beside a damaged index: %+v, %v; want the commit and a warning", res, err)
	}
}

func FuzzParseIndex(f *testing.F) {
	x := &index{version: 4, resolved: []byte("r"), unhashed: true, folders: &cacheTree{files: 1}}
	x.entries = append(x.entries, newEntry("a/b", blob{mode: modeFile}, fileStat{}, indexEntry{}),
		newEntry("a/c", blob{mode: modeFile}, fileStat{}, indexEntry{}))
	f.Add(x.encode())
	x.version = 2
	f.Add(x.encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 20 {
			copy(data[len(data)-20:], make([]byte, 20)) // as with index.skipHash: get past the checksum
		}
		x, err := parseIndex(data)
		if err != nil {
			return
		}
		again, err := parseIndex(x.encode())
		if err != nil || len(again.entries) != len(x.entries) {
			t.Errorf("an index that was read cannot be read again: %v", err)
		}
	})
}

// TestRandomCommits compares with git itself: after any sequence of edits and commits, index, tree and work tree say
// what git says of the same edits, and the cache tree is still known and true.
func TestRandomCommits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.open()
	rnd := rand.New(rand.NewPCG(1, 2))
	names := []string{"a.json", "b.json", "a-b.json", "a/x.json", "a/y.json", "a.b/x.json", "a0", "ü.json", "z/z/z/z.json"}
	for range 40 {
		var touched []string
		for range 1 + rnd.IntN(4) {
			p := "state/" + names[rnd.IntN(len(names))]
			touched = append(touched, p)
			if _, err := os.Stat(f.path(p)); err == nil && rnd.IntN(3) == 0 {
				f.remove(p)
			} else {
				f.write(p, fmt.Sprintf("%d\n", rnd.IntN(1000)))
			}
		}
		_, err := r.Commit(t.Context(), Commit{Paths: touched, Message: "m", When: noon})
		if err != nil && !errors.Is(err, ErrNothing) {
			t.Fatal(err)
		}
		f.clean()
		f.equal("tree", f.git("write-tree"), f.git("rev-parse", "HEAD^{tree}"))
		data, _ := os.ReadFile(f.path(".git/index"))
		if x, err := parseIndex(data); err != nil || x.folders == nil || x.folders.files >= 0 && x.folders.files != len(x.entries) {
			t.Fatalf("cache tree: %v %+v", err, x.folders)
		}
	}
	f.sound()
}

// TestCacheTreeStaysKnown: git status need not look into folders again only because reconcile committed in them.
func TestCacheTreeStaysKnown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.git("write-tree")
	f.write(checks, done)
	f.write("state/dags/new.json", done)
	f.commit(f.open(), checks, "state/dags/new.json")
	data, err := os.ReadFile(f.path(".git/index"))
	if err != nil {
		t.Fatal(err)
	}
	x, err := parseIndex(data)
	if err != nil {
		t.Fatal(err)
	}
	f.equal("root", x.folders.hash.String(), f.git("rev-parse", "HEAD^{tree}"))
	if x.folders.files != len(x.entries) {
		t.Errorf("root: %d files, want %d", x.folders.files, len(x.entries))
	}
}

// TestDirtyRacyEntry: a file whose content changed after git add, with the same size and time stamps, differs, unless the
// index is newer than the file: then git would have noticed.
func TestDirtyRacyEntry(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	same := strings.Replace(f.read(checks), "Pending", "Failing", 1)
	if err := os.WriteFile(f.path(checks), []byte(same), 0o666); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Lstat(f.path(checks))
	if err != nil {
		t.Fatal(err)
	}
	data, _, _, err := readIndex(f.path(".git/index"))
	if err != nil {
		t.Fatal(err)
	}
	x, err := parseIndex(data)
	if err != nil {
		t.Fatal(err)
	}
	e, _ := x.find(checks)
	statOf(fi).put(e.fixed) // as if both contents were written in one tick of the clock
	if err := os.WriteFile(f.path(".git/index"), x.encode(), 0o666); err != nil {
		t.Fatal(err)
	}
	listed := func(dir string) ([]state.Listed, bool) {
		st := state.Stat{Size: fi.Size(), Mtime: fi.ModTime().UnixNano(), Ctime: ctimeOf(fi), Ino: uint64(statOf(fi).ino)}
		return []state.Listed{{Name: "checks.json", Stat: st}, {Name: "other.json", Other: true}}, dir == "state/dags"
	}
	for _, c := range []struct {
		age  time.Duration // of the index, after the file
		want []string
	}{{0, []string{checks}}, {-time.Second, []string{checks}}, {time.Second, nil}} {
		at := fi.ModTime().Add(c.age)
		if err := os.Chtimes(f.path(".git/index"), at, at); err != nil {
			t.Fatal(err)
		}
		read, err := f.open().Dirty(t.Context(), "", []string{"state"})
		if err != nil || !slices.Equal(read, c.want) {
			t.Errorf("the index is %s newer: %v, %v; want %v", c.age, read, err, c.want)
		}
		told, err := f.open().DirtyListed(t.Context(), "", []string{"state"}, listed)
		if err != nil || !slices.Equal(told, c.want) {
			t.Errorf("the index is %s newer, listed: %v, %v; want %v", c.age, told, err, c.want)
		}
	}
}

// ctimeOf is the time of the last change of a file's metadata, in nanoseconds.
func ctimeOf(fi os.FileInfo) int64 {
	t := statOf(fi).ctime
	return int64(t.sec)*1e9 + int64(t.nsec)
}

// TestRacyEntries: a file of the user that was changed right after git add, with the same size and time stamps, must
// not look clean because reconcile wrote the index again later.
func TestRacyEntries(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	stamp := time.Now().Add(-time.Hour).Truncate(time.Second).Add(5 * time.Millisecond)
	touch := func(p string) {
		if err := os.Chtimes(f.path(p), stamp, stamp); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range []string{"old", "new"} {
		if err := os.WriteFile(f.path("racy.txt"), []byte(v), 0o666); err != nil {
			t.Fatal(err)
		}
		touch("racy.txt")
		if v == "old" {
			f.git("-c", "core.trustctime=false", "add", "racy.txt")
			touch(".git/index")
		}
	}
	f.git("config", "core.trustctime", "false")
	before := f.git("status", "--porcelain")
	f.equal("fixture", before, "AM racy.txt")
	f.write(checks, done)
	f.commit(f.open(), checks)
	f.equal("status", f.git("status", "--porcelain"), before)
}
