package workspaces

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

const canary = "canary-4f1c9d0b7e"

// wide is a text in UTF-16.
func wide(text string) string {
	return "\xff\xfe" + strings.Join(strings.Split(text, ""), "\x00") + "\x00"
}

// wrapped is a text in lines of ten characters.
func wrapped(text string) string {
	lines := slices.Collect(slices.Chunk([]byte(text), 10))
	return string(bytes.Join(lines, []byte("\n")))
}

// TestSecretsAreInNoObject: what has a secret is neither committed nor parked nor copied, and stays where it is.
func TestSecretsAreInNoObject(t *testing.T) {
	for what, c := range map[string]struct {
		name, text, says string
		outputs          []string
	}{
		"tracked":         {"file", "one\n" + canary + "\n", "file has a value from the environment", nil},
		"untracked":       {"deep/new", "x=" + canary, "deep/new has a value from the environment", nil},
		"name":            {"n-" + canary, "", "in its name", nil},
		"output":          {"ignored/out", canary, "ignored/out has a value from the environment", []string{"ignored/out"}},
		"base64":          {"config", base64.StdEncoding.EncodeToString([]byte("user:" + canary + "\n")), "config has a value from the environment", nil},
		"hex":             {"dump", strings.ToUpper(hex.EncodeToString([]byte(canary))), "dump has a value from the environment", nil},
		"UTF-16":          {"wide", wide(canary), "wide has a value from the environment", nil},
		"in lines":        {"broken", "  " + canary[:9] + "\r\n  " + canary[9:], "broken has a value from the environment", nil},
		"base64 in lines": {"pem", wrapped(base64.StdEncoding.EncodeToString([]byte(canary))), "pem has a value from the environment", nil},
		"wide pattern":    {"key", wide(keyText), "key has what looks like a secret (private-key)", nil},
		"pattern":         {"key", keyText, "key has what looks like a secret (private-key)", nil},
	} {
		t.Run(what, func(t *testing.T) {
			f := newFixture(t)
			f.m.o.Secrets = runner.FindSecrets([]string{"MY_API_KEY=" + canary}, f.tree)
			w := f.open(request("a", "1", schemas.WorkspaceClone))
			f.put(w, c.name, c.text)
			_, err := w.Commit(f.Context(), f.now, c.outputs, nil)
			if found := (*secretError)(nil); !errors.As(err, &found) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), canary) {
				t.Fatal(err)
			}
			if _, _, err := w.Changes(f.Context()); err != nil {
				t.Error(err)
			}
			_ = w.Close()
			name := filepath.Base(w.Top())
			if ref, err := f.m.Drop(f.Context(), name); what != "output" && (err == nil || !strings.Contains(err.Error(), "is kept") ||
				!strings.Contains(err.Error(), "reconcile workspace open "+name)) {
				t.Errorf("%s, %v", ref, err)
			}
			if all := f.git("cat-file", "--batch-all-objects", "--batch"); strings.Contains(all, canary) || strings.Contains(all, "MIIEpAIB") {
				t.Error("a secret is in the objects of the repository")
			}
			if _, err := os.Lstat(filepath.Join(f.tree, "ignored", "out")); err == nil {
				t.Error("an output with a secret is in the tree")
			}
			if what == "output" { // git ignores it: it is in no commit
				return
			}
			if err := os.RemoveAll(w.Top()); err != nil {
				t.Fatal(err)
			}
			if _, err := f.m.Drop(f.Context(), name); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPeopleCommitWhatLooksSecret: a file that is no secret after all is part of the work once a person has committed it, and in no other form.
func TestPeopleCommitWhatLooksSecret(t *testing.T) {
	f := newFixture(t)
	w := f.open(request("a", "1", schemas.WorkspaceClone))
	f.put(w, "key", keyText)
	f.put(w, "more", "work\n")
	refused := func(want string) {
		t.Helper()
		if _, err := w.Commit(f.Context(), f.now, nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("%v, want %q", err, want)
		}
	}
	const want = "key has what looks like a secret (private-key); take it out, or, if it is none, commit the file as it is yourself, and retry"
	refused(want)
	f.write("key", "# another one\n"+keyText)
	f.git("add", "key")
	f.git("commit", "-qm", "by a person")
	refused(want)
	f.write("key", keyText)
	f.git("commit", "-qam", "as it is")
	run, err := w.Commit(f.Context(), f.now, nil, nil)
	if err != nil || !slices.Equal(run.Files, []string{"key", "more"}) {
		t.Fatalf("%+v, %v", run, err)
	}
	if o := f.land(&settle.Land{Run: "r", Base: run.Base, Commit: run.Commit, Files: run.Files, Whole: true}, passes); o.reason != schemas.LandedUnchecked {
		t.Errorf("%+v", o)
	}
}

// TestSecretsOfTheBaseStay: a file that has had its secret since before may change.
func TestSecretsOfTheBaseStay(t *testing.T) {
	f := newFixture(t)
	f.m.o.Secrets = runner.FindSecrets([]string{"MY_API_KEY=" + canary}, f.tree)
	f.write("file", canary+"\n"+keyText)
	f.git("commit", "-qam", "known")
	l := f.work("a", map[string]string{"file": "more\n" + canary + "\n" + keyText})
	if o := f.land(l, passes); o.reason != schemas.LandedUnchecked {
		t.Errorf("%+v", o)
	}
}
