package memstore_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/state/mutants"
)

var rebuilt = regexp.MustCompile(`^Memory manifest rebuilt from issue files \(took \d+ms\)$`)

// wantRebuilt checks that it was told, once, that the manifest was rebuilt.
func (x *tree) wantRebuilt(what string) {
	x.t.Helper()
	if len(x.told) != 1 || !rebuilt.MatchString(x.told[0]) {
		x.t.Errorf("%s: told %q", what, x.told)
	}
	x.told = nil
}

// damages are contents that a manifest may have and must not.
func damages(whole []byte) map[string][]byte {
	half := len(whole) / 2
	return map[string][]byte{
		"empty": {}, "zeros": make([]byte, len(whole)), "no JSON": []byte("hello\n"), "another list": []byte("[]\n"),
		"conflict":         bytes.Join([][]byte{[]byte("<<<<<<< ours\n"), whole[:half], []byte("=======\n"), whole[half:], []byte(">>>>>>> theirs\n")}, nil),
		"an entry too few": regexp.MustCompile(`,\n    \{"id":"[^\n]*\n  \]`).ReplaceAll(whole, []byte("\n  ]")),
		"edited":           bytes.Replace(whole, []byte("Chose"), []byte("Took "), 1),
		"other line ends":  bytes.ReplaceAll(whole, []byte("\n"), []byte("\r\n")),
	}
}

func TestT8_CorruptManifestIsRebuilt(t *testing.T) {
	x := newTree(t)
	x.capture(spec("engineer", 1, noon, "Chose files", "Locks have an order"))
	x.capture(spec("engineer", 2, noon, "Tests use real files"))
	x.settle()
	whole := x.read(manifestPath)
	if len(x.told) != 0 {
		t.Fatalf("warned: %q", x.told)
	}
	for n := 0; n < len(whole); n += mutants.Size(10, 1, 1) { // truncated at every byte
		x.write(manifestPath, whole[:n])
		x.settle()
		x.wantRebuilt("truncated")
		if !bytes.Equal(x.read(manifestPath), whole) {
			t.Fatalf("truncated at %d: not as before", n)
		}
	}
	for name, data := range damages(whole) {
		x.write(manifestPath, data)
		x.settle()
		x.wantRebuilt(name)
		if !bytes.Equal(x.read(manifestPath), whole) {
			t.Fatalf("%s: not as before", name)
		}
	}
	if err := os.Remove(filepath.Join(x.dir, manifestPath)); err != nil {
		t.Fatal(err)
	}
	x.settle()
	x.wantRebuilt("missing")
	if again := x.settle(); again.Wrote || len(x.told) != 0 {
		t.Errorf("settled again: %+v, %q", again, x.told)
	}
	x.check()
}

// Whoever reads or captures first after the damage repairs it, too.
func TestT8_ReadersAndCapturesRebuild(t *testing.T) {
	x := newTree(t)
	x.capture(spec("engineer", 1, noon, "Chose files", "Locks have an order"))
	x.capture(spec("engineer", 2, noon, "Tests use real files"))
	whole := x.read(manifestPath)
	all := damages(whole)
	all["missing"] = nil
	i := 0
	for name, data := range all {
		if x.write(manifestPath, data); data == nil {
			if err := os.Remove(filepath.Join(x.dir, manifestPath)); err != nil {
				t.Fatal(err)
			}
		}
		y := openTree(t, x.dir)
		if i++; i%2 == 0 {
			if got := y.list(memstore.Filter{}); len(got) < 3 {
				t.Errorf("%s: listed %q", name, got)
			}
		} else {
			y.capture(spec("engineer", 3, noon.Add(time.Duration(i)*time.Hour), "Captured after the damage: "+name))
		}
		y.wantRebuilt(name)
		y.check()
	}
}

// A capture that ended between the issue file and the manifest is noticed: an interrupted write, a merge, a hand edit.
func TestManifestOutOfStep(t *testing.T) {
	x := newTree(t)
	x.capture(spec("engineer", 1, noon, "Chose files"))
	before := x.read(manifestPath)
	x.capture(spec("engineer", 1, noon.Add(time.Hour), "Locks have an order"))
	x.settle()
	x.write(manifestPath, before)
	x.settle()
	x.wantRebuilt("an older manifest")
	x.check()

	y := openTree(t, t.TempDir()) // the files of a clone, without a cache
	for _, p := range []string{"state/memory/issue-1.json", manifestPath} {
		y.write(p, x.read(p))
	}
	specs, err := filepath.Glob(filepath.Join(x.dir, "specs/observations/*.yaml"))
	if err != nil || len(specs) != 2 {
		t.Fatal(specs, err)
	}
	for _, p := range specs {
		y.write("specs/observations/"+filepath.Base(p), x.read("specs/observations/"+filepath.Base(p)))
	}
	if got := y.settle(); got.Wrote || len(got.Stored) != 0 || len(y.told) != 0 {
		t.Errorf("a clone is settled: %+v, %q", got, y.told)
	}
	y.check()
}

func TestDamagedIssueFile(t *testing.T) {
	x := newTree(t)
	a := x.capture(spec("engineer", 1, noon, "Chose files", "Locks have an order"))
	x.capture(spec("engineer", 2, noon, "Tests use real files"))
	x.settle()
	whole := x.read("state/memory/issue-1.json")
	x.write("state/memory/issue-1.json", whole[:len(whole)/2])
	y := openTree(t, x.dir)
	if got := y.list(memstore.Filter{}); len(got) != 1 || len(y.told) == 0 {
		t.Errorf("beside a damaged file: %q, told %q", got, y.told)
	}
	c, err := y.Capture(t.Context(), spec("engineer", 1, noon.Add(time.Hour), "Said meanwhile"))
	if err != nil || !c.Held {
		t.Fatalf("%+v, %v", c, err)
	}
	got := y.settle()
	if len(got.Warnings) != 1 || !got.Wrote {
		t.Errorf("%+v", got)
	}
	if all := y.list(memstore.Filter{}); len(all) != 4 {
		t.Errorf("after settling: %q", all)
	}
	if _, err := y.ByID(t.Context(), a.Observations[1].ID); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(x.dir, ".reconcile/damaged/state/memory/*")); err != nil || len(left) != 1 {
		t.Errorf("set aside: %q, %v", left, err)
	}
	y.check()
}

// TestLinkInPlaceOfAFile: what is no file is moved aside, never read or written through, and made anew.
func TestLinkInPlaceOfAFile(t *testing.T) {
	for _, p := range []string{"state/memory/issue-1.json", "state/memory/archive/issue-1-archived.json"} {
		x := newTree(t)
		x.capture(spec("engineer", 1, noon, olds()...))
		x.settle()
		if _, err := x.Compact(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		x.settle()
		whole := x.read(p)
		x.write("elsewhere.json", []byte("mine"))
		at := filepath.Join(x.dir, p)
		if err := errors.Join(os.Remove(at), os.Symlink(filepath.Join(x.dir, "elsewhere.json"), at)); err != nil {
			t.Fatal(err)
		}
		y := openTree(t, x.dir)
		if got := y.settle(); len(got.Warnings) != 1 || !got.Wrote {
			t.Errorf("%s: %+v", p, got)
		}
		if !bytes.Equal(y.read(p), whole) || string(y.read("elsewhere.json")) != "mine" {
			t.Errorf("%s: made anew\n%s\nwas\n%s", p, y.read(p), whole)
		}
		if fi, err := os.Lstat(at); err != nil || !fi.Mode().IsRegular() {
			t.Errorf("%s is %v, %v", p, fi, err)
		}
		y.check()
		if got := y.settle(); got.Wrote || len(got.Warnings) != 0 {
			t.Errorf("%s, again: %+v", p, got)
		}
	}
}

// Observations of other programs stay, with their fields, whatever is made anew around them.
func TestForeignObservationsStay(t *testing.T) {
	x := newTree(t)
	x.capture(spec("engineer", 1, noon, "Chose files"))
	foreign := `    {
      "id": "obs-copilot-1-1772193600000-zzzzzz",
      "agent": "copilot",
      "issueNumber": 1,
      "category": "key-fact",
      "content": "Written elsewhere",
      "summary": "Written elsewhere",
      "tokens": 2,
      "timestamp": "2026-02-27T12:00:00.000Z",
      "sessionId": "",
      "mood": {"good": true}
    },
`
	data := bytes.Replace(x.read("state/memory/issue-1.json"), []byte("\"observations\": [\n"), []byte("\"observations\": [\n"+foreign), 1)
	x.write("state/memory/issue-1.json", data)
	x.settle()
	x.capture(spec("engineer", 1, noon.Add(time.Hour), "Later"))
	x.settleWith(x.Rebuild)
	if got := x.read("state/memory/issue-1.json"); !bytes.Contains(got, []byte(`"mood"`)) {
		t.Errorf("the foreign field is gone:\n%s", got)
	}
	if got := x.list(memstore.Filter{Agent: "copilot"}); len(got) != 1 {
		t.Errorf("%q", got)
	}
	x.check()
}
