package state

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

var updateGolden = flag.Bool("update", false, "write the golden files anew")

// TestProblems loads every tree of testdata/problems and compares what is wrong with it. The comment of an archive may
// hold lines that make what an archive cannot: "link PATH TARGET", "pipe PATH", "folder PATH", "closed PATH" (no
// permission) and "big PATH SIZE".
func TestProblems(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the trees need links and pipes")
	}
	cases, err := filepath.Glob("testdata/problems/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatal("no cases", err)
	}
	for _, c := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(c), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(c)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			want := unpack(t, dir, a)
			got := describe(load(t, open(t, dir)))
			if again := describe(load(t, open(t, dir))); again != got {
				t.Errorf("through the cache:\n%s\nwithout:\n%s", again, got)
			}
			if *updateGolden {
				setFile(a, "want", got)
				if err := os.WriteFile(c, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// unpack makes the tree of an archive and returns its file "want".
func unpack(t *testing.T, dir string, a *txtar.Archive) (want string) {
	t.Helper()
	for _, f := range a.Files {
		if f.Name == "want" {
			want = string(f.Data)
			continue
		}
		put(t, dir, map[string]string{f.Name: string(f.Data)})
	}
	for line := range strings.Lines(string(a.Comment)) {
		if err := makeOdd(dir, strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
	}
	return want
}

func makeOdd(dir string, f []string) error {
	if len(f) < 2 {
		return nil
	}
	p := filepath.Join(dir, f[1])
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		return err
	}
	switch f[0] {
	case "link":
		return os.Symlink(f[2], p)
	case "pipe":
		return makePipe(p)
	case "folder":
		return os.MkdirAll(p, 0o755)
	case "closed":
		return os.Chmod(p, 0)
	case "big":
		return os.WriteFile(p, bytes.Repeat([]byte("#"), 2<<20), 0o644)
	}
	return nil
}

func setFile(a *txtar.Archive, name, content string) {
	for i := range a.Files {
		if a.Files[i].Name == name {
			a.Files[i].Data = []byte(content)
			return
		}
	}
	a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(content)})
}

// describe lists what a tree holds, problems with the places that belong to them.
func describe(t *Tree) string {
	var b strings.Builder
	for _, p := range t.Problems() {
		fmt.Fprintf(&b, "%s [%s]: %s\n", p.Severity, p.Code, p.Error())
		if p.Source != "" {
			fmt.Fprintf(&b, "\t| %s\n", p.Source)
		}
		for i, r := range p.Related {
			fmt.Fprintf(&b, "\t%s: %s\n", r, p.Notes[i])
		}
	}
	for _, kind := range t.Kinds() {
		for _, e := range t.Entries(kind) {
			fmt.Fprintf(&b, "%s: %s\n", e.Ref, condition(e))
		}
	}
	return b.String()
}

func condition(e *Entry) string {
	var s []string
	switch {
	case e.Broken():
		s = append(s, "broken")
	case e.Gone():
		s = append(s, "gone")
	default:
		s = append(s, "valid")
	}
	if e.HasStatus() {
		s = append(s, "status "+e.Status().Base().Phase)
	}
	for _, r := range e.Runs() {
		s = append(s, "run "+r.Key+" "+r.Outcome)
	}
	for _, c := range e.Claims {
		s = append(s, "claim "+c.Key)
	}
	return strings.Join(s, ", ")
}

// dump is everything that a tree says, for comparisons.
func dump(t *Tree) string {
	var b strings.Builder
	b.WriteString(describe(t))
	for _, kind := range t.Kinds() {
		for _, e := range t.Entries(kind) {
			fmt.Fprintf(&b, "%s path %s problems %v inputs %v\n", e.Ref, e.StatusPath, e.Problems, e.Inputs)
			if o := e.Object; o != nil {
				fmt.Fprintf(&b, "  object %s %s %v %s %v\n", o.Path, o.Digest, o.Metadata, o.Canonical(), o.Refs)
			}
			for _, v := range []any{e.Status(), e.Runs(), e.Claims} {
				data, err := Encode(v)
				fmt.Fprintf(&b, "  %s %v\n", data, err)
			}
		}
	}
	for _, kind := range t.Kinds() {
		for _, e := range t.Entries(kind) {
			if e.Object != nil {
				fmt.Fprintf(&b, "%s is mentioned by %v\n", e.Ref, t.Referrers(e.Ref))
			}
		}
	}
	for _, l := range t.Ledgers() {
		fmt.Fprintf(&b, "%s %s last %d open %d: %v\n", l.Ref(), l.Path, l.Last, l.Open, l.Records())
	}
	fmt.Fprintf(&b, "settings %+v\n", t.Settings().Limits)
	return b.String()
}
