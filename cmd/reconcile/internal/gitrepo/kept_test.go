package gitrepo

import (
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

const keptKey = "dags/job/build-0123456789abcdef-1"

func keptFiles() []KeptFile {
	return []KeptFile{{"out/app", false, []byte("app\n")}, {"out-put", true, []byte("#!/bin/sh\n")}, {"out/a/b", false, nil}}
}

// TestKept keeps files, and finds them again where references are packed and after gc.
func TestKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.open()
	hash, err := r.Keep(t.Context(), keptKey, keptFiles())
	if err != nil {
		t.Fatal(err)
	}
	f.equal("the tree", f.git("ls-tree", "-r", "--format=%(objectmode) %(path)", keptRefs+keptKey),
		"100755 out-put\n100644 out/a/b\n100644 out/app")
	if again, err := r.Keep(t.Context(), keptKey, keptFiles()); err != nil || again != hash {
		t.Errorf("the same files make another tree: %s, %v", again, err)
	}
	f.sound()
	for _, step := range []string{"", "pack-refs --all --prune", "gc -q --prune=now"} {
		if step != "" {
			f.git(strings.Fields(step)...)
		}
		if kept, err := r.Kept(); err != nil || !maps.Equal(kept, map[string]string{keptKey: hash}) {
			t.Errorf("after git %s: %v, %v", step, kept, err)
		}
		f.equal("app", readKept(t, r, hash, "out/app"), "app\n")
	}
	if _, err := r.Keep(t.Context(), "dags/job/build.lock", nil); err == nil {
		t.Error("a name that git refuses was kept")
	}
	if err := r.Drop(t.Context(), map[string]string{keptKey: strings.Repeat("1", 40)}); err == nil {
		t.Error("what is another tree by now was dropped")
	}
	err = r.Drop(t.Context(), map[string]string{keptKey: hash})
	if kept, err2 := r.Kept(); err != nil || err2 != nil || len(kept) > 0 {
		t.Errorf("%v is kept after all: %v", kept, errors.Join(err, err2))
	}
	f.sound()
}

func readKept(t *testing.T, r *Repo, tree, path string) string {
	t.Helper()
	return readOpen(t, func(path string) (io.ReadCloser, error) { return r.OpenKept(t.Context(), tree, path) }, path)
}

func readOpen(t *testing.T, open OpenFunc, path string) string {
	t.Helper()
	file, err := open(path)
	if err != nil {
		return err.Error()
	}
	data, err := io.ReadAll(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return err.Error()
	}
	return string(data)
}

// TestOpenKeptRefuses what is no ordinary file of a tree.
func TestOpenKeptRefuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.open()
	f.write("plain", "x")
	if err := os.Symlink("/etc/passwd", f.path("link")); err != nil {
		t.Fatal(err)
	}
	f.git("add", "plain", "link")
	f.git("commit", "-qm", "Link")
	tree := f.git("rev-parse", "HEAD^{tree}")
	for _, c := range [][2]string{{tree, "link"}, {tree, "gone"}, {tree, "src"}, {tree, "../plain"}, {tree, "plain/x"},
		{f.git("rev-parse", "HEAD"), "plain"}, {f.git("rev-parse", "HEAD:plain"), "plain"}, {strings.Repeat("1", 40), "plain"}} {
		if file, err := r.OpenKept(t.Context(), c[0], c[1]); err == nil {
			file.Close()
			t.Errorf("%s of %s was opened", c[1], c[0])
		}
	}
	f.equal("plain", readKept(t, r, tree, "plain"), "x")
}

// TestKeptOnRemote pushes what is kept, fetches it when it is asked for and not before, and removes it.
func TestKeptOnRemote(t *testing.T) {
	t.Parallel()
	f, other, bare := shared(t)
	hash, err := f.open().Keep(t.Context(), keptKey, keptFiles())
	if err != nil {
		t.Fatal(err)
	}
	m, mine := f.remote(), map[string]string{keptKey: hash}
	if err := m.ChangeKept(t.Context(), nil, mine); err != nil {
		t.Fatal(err)
	}
	there := other.remote()
	if _, err := there.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := other.try("cat-file", "-e", hash); err == nil {
		t.Error("a look at the remote brought what is kept there")
	}
	head, kept, err := there.Kept(t.Context())
	if err != nil || head != f.git("rev-parse", "HEAD") || !maps.Equal(kept, mine) {
		t.Errorf("%s, %v, %v", head, kept, err)
	}
	other.git("checkout", "-q", "--detach")
	source, err := other.open().Source(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	err = source.FetchKept(t.Context(), keptKey, 1<<20, func(open OpenFunc) error {
		f.equal("app", readOpen(t, open, "out/app"), "app\n")
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := other.try("cat-file", "-e", hash); err == nil {
		t.Error("what is kept on the remote stays in this repository")
	}
	f.equal("references", other.git("for-each-ref", "refs/reconcile", "refs/worktree"), "")
	unused := func(OpenFunc) error { return errors.New("used") }
	if err := source.FetchKept(t.Context(), keptKey+"0", 1<<20, unused); !errors.Is(err, errNotKept) {
		t.Errorf("what nobody keeps: %v", err)
	}
	if err := source.FetchKept(t.Context(), keptKey, 100, unused); !errors.Is(err, errNotKept) || !strings.Contains(err.Error(), "more than the 100 bytes") {
		t.Errorf("more than is to be sent: %v", err)
	}
	if err := m.ChangeKept(t.Context(), map[string]string{keptKey: strings.Repeat("1", 40)}, map[string]string{keptKey: ""}); err == nil {
		t.Error("what somebody else changed was removed")
	}
	if err := m.ChangeKept(t.Context(), mine, map[string]string{keptKey: ""}); err != nil {
		t.Error(err)
	}
	f.equal("the remote", (&fixture{t, bare}).git("for-each-ref", "refs/reconcile"), "")
	other.sound()
}

// TestFetchKeptEndsWithTheLimit: a remote that sends too much, and then goes on without end, is not waited for, and nothing of it
// stays.
func TestFetchKeptEndsWithTheLimit(t *testing.T) {
	t.Parallel()
	f, other, _ := shared(t)
	data := make([]byte, 3<<20)
	rand.NewChaCha8([32]byte{}).Read(data) //nolint:errcheck // it never fails
	hash, err := f.open().Keep(t.Context(), keptKey, []KeptFile{{Path: "out/app", Data: data}})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.remote().ChangeKept(t.Context(), nil, map[string]string{keptKey: hash}); err != nil {
		t.Fatal(err)
	}
	bin := &fixture{t, resolved(t, t.TempDir())}
	bin.write("server", "#!/bin/sh\ngit-upload-pack \"$@\" | dd bs=4096 count=200\nexec cat\n")
	bin.chmod("server", 0o755)
	other.git("config", "remote.origin.uploadpack", bin.path("server"))
	source, err := other.open().Source(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	source.timeout = 2 * time.Minute
	before := other.git("count-objects", "-v")
	err = source.FetchKept(t.Context(), keptKey, 1<<18, func(OpenFunc) error { return errors.New("used") })
	if !errors.Is(err, errNotKept) || !strings.Contains(err.Error(), "more than the 262144 bytes") {
		t.Error(err)
	}
	f.equal("objects", other.git("count-objects", "-v"), before)
}
