package preview_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/preview"
)

func TestCompare(t *testing.T) {
	f, ok := preview.Compare("a b/x.go", preview.Side{Text: []byte("1\n2\n3\n4\n5\n6\n7\n8\n9\n")}, preview.Side{Text: []byte("1\ntwo\n3\n4\n5\n6\n7\n8\n9\n10")})
	if !ok {
		t.Fatal("no change")
	}
	c := preview.Of([]preview.File{f})
	f = c.Files[0]
	if f.Path != "a b/x.go" || f.Added != 2 || f.Removed != 1 || f.Changed != 1 || f.Language != "go" || f.Status != preview.Modified || len(f.Flags) > 0 {
		t.Errorf("%+v", f)
	}
	if _, ok := preview.Compare("x", preview.Side{Text: []byte("1")}, preview.Side{Text: []byte("1")}); ok {
		t.Error("the same text differs")
	}
	f, ok = preview.Compare("x", preview.Side{}, preview.Side{Text: []byte{}, Large: true})
	if f = preview.Of([]preview.File{f}).Files[0]; !ok || !f.Binary || f.Status != preview.Added || len(f.Flags) == 0 {
		t.Errorf("too large to be read: %v, %+v", ok, f)
	}
}

func TestFlags(t *testing.T) {
	many := []byte(strings.Repeat("x\n", 101))
	compare := func(p string, was, now preview.Side) preview.File {
		f, _ := preview.Compare(p, was, now)
		return f
	}
	text := func(s string) preview.Side { return preview.Side{Text: []byte(s)} }
	c := preview.Of([]preview.File{
		compare("removes.txt", preview.Side{Text: many}, text("")),
		compare("keeps.txt", preview.Side{Text: many}, preview.Side{Text: many[2:]}),
		compare("deploy/.env", text("A=1\n"), text("A=2\n")),
		compare("deploy/.env.example", text("A=1\n"), text("A=2\n")),
		compare("sub/go.sum", text(""), text("m v1 h1:x=\n")),
		compare(".github/workflows/ci.yml", preview.Side{}, text("on: push\n")),
		compare("token.txt", text(""), text("token = ghp_"+strings.Repeat("a1B2c3", 6)+"\n")),
		compare("run.sh", text("x"), preview.Side{Text: []byte("x"), Mode: "100755"}),
		compare("image.png", preview.Side{}, text("\x89PNG\x00")),
	})
	want := map[string]string{
		"removes.txt": preview.FlagRemoves, "deploy/.env": preview.FlagSensitive, "sub/go.sum": preview.FlagSensitive,
		".github/workflows/ci.yml": preview.FlagSensitive, "token.txt": preview.FlagSecret, "run.sh": preview.FlagMode, "image.png": preview.FlagBinary,
	}
	for _, f := range c.Files {
		var names []string
		for _, flag := range f.Flags {
			names = append(names, flag.Name)
		}
		if got := strings.Join(names, " "); got != want[f.Path] {
			t.Errorf("%s: flags %q, want %q\n%s", f.Path, got, want[f.Path], f.Diff)
		}
	}
	if got := preview.Measure(c.Files); got.Lines != 101+1+2+2+1+1+1 || strings.Join(got.Sensitive, " ") != ".github/workflows/ci.yml deploy/.env image.png sub/go.sum" {
		t.Errorf("%+v", got)
	}
	if len(c.Flags) != 1 || c.Flags[0].Name != preview.FlagRemoves {
		t.Errorf("flags of the whole: %v", c.Flags)
	}
}

func TestParse(t *testing.T) {
	files := preview.Parse(`diff --git a/old name.go b/new name.go
similarity index 90%
rename from old name.go
rename to new name.go
index 1..2 100644
--- a/old name.go	
+++ b/new name.go	
@@ -1,3 +1,3 @@ func x() {
 a
--- b
+++ c
 d
diff --git a/bin b/bin
index 1..2 100644
Binary files a/bin and b/bin differ
diff --git "a/t\303\244b\t" "b/t\303\244b\t"
old mode 100644
new mode 100755
`)
	if len(files) != 3 {
		t.Fatalf("%d files", len(files))
	}
	if f := files[0]; f.Path != "new name.go" || f.From != "old name.go" || f.Status != preview.Renamed || f.Added != 1 || f.Removed != 1 || f.Changed != 1 {
		t.Errorf("%+v", f)
	}
	if f := files[1]; f.Path != "bin" || !f.Binary {
		t.Errorf("%+v", f)
	}
	if f := files[2]; f.Path != "t\u00e4b\t" || f.OldMode != "100644" || f.NewMode != "100755" {
		t.Errorf("%+v", f)
	}
}

// TestGitApplies: for drawn texts, git apply makes the one of the other, and the numbers are those of git.
func TestGitApplies(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("needs git")
	}
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		was, now := drawn(r), drawn(r)
		if r.IntN(4) > 0 && was != nil {
			now = edited(r, was)
		}
		f, ok := preview.Compare("sub/f\u00fc x.txt", preview.Side{Text: was}, preview.Side{Text: now})
		if !ok || was != nil && now != nil && len(f.Hunks) == 0 {
			continue
		}
		name := filepath.Join(dir, "sub", "f\u00fc x.txt")
		if err := os.RemoveAll(filepath.Dir(name)); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if was != nil {
			if err := os.WriteFile(name, was, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(git, "apply", "--whitespace=nowarn", "-")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(f.Diff)
		cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s\n%s", err, out, f.Diff)
		}
		got, err := os.ReadFile(name)
		if now == nil != os.IsNotExist(err) || string(got) != string(now) {
			t.Fatalf("%q, want %q:\n%s", got, now, f.Diff)
		}
	}
}

// drawn is a text of few different lines, with or without an end of the last; nil is no file.
func drawn(r *rand.Rand) []byte {
	if r.IntN(8) == 0 {
		return nil
	}
	text := []byte{}
	for range r.IntN(40) {
		text = append(text, strings.Repeat("-+ a\t"[r.IntN(5):], r.IntN(3))+"\n"...)
	}
	if r.IntN(3) == 0 {
		text = append(text, "no end"...)
	}
	return text
}

func edited(r *rand.Rand, text []byte) []byte {
	lines := strings.SplitAfter(string(text), "\n")
	for range 1 + r.IntN(3) {
		i := r.IntN(len(lines))
		lines[i] = []string{"", "new\n", "@@ -1 +1 @@\n", "diff --git a/x b/x\n"}[r.IntN(4)]
	}
	return []byte(strings.Join(lines, ""))
}

func FuzzParse(f *testing.F) {
	f.Add("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, file := range preview.Of(preview.Parse(text)).Files {
			if file.Changed > min(file.Added, file.Removed) {
				t.Errorf("%+v", file)
			}
		}
	})
}
