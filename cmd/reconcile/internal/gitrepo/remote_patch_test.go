package gitrepo

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo/message"
)

func TestPatch(t *testing.T) {
	t.Parallel()
	f, _, _ := shared(t)
	base := f.git("rev-parse", "HEAD")
	f.record(map[string]string{checks: "first\n", "state/dags/new.json": "new\n"})
	f.write(checks, done)
	f.remove("state/dags/other.json")
	res, err := f.open().Commit(t.Context(), Commit{Paths: []string{checks, "state/dags/other.json"}, When: noon,
		Message: message.New([]message.Change{{Object: "dag/checks"}, {Object: "dag/other", Gone: true}}, message.Trailer{Key: "Reconcile-Input", Value: base})})
	if err != nil {
		t.Fatal(err)
	}
	m, tip := f.tip()
	p, err := m.Patch(t.Context(), tip, res.Hash)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%s %s|%s|%s|", p.Branch, p.Base, p.Headline, p.Body)
	for _, w := range p.Write {
		got += fmt.Sprintf("%s=%s", w.Path, w.Data)
	}
	want := "main " + base + "|Update status of 2 objects|- dag/checks\n- dag/other: removed\n\nReconcile-Input: " + base +
		"\nReconcile-Objects: 2|" + checks + "=" + done + "state/dags/new.json=new\n"
	f.equal("patch", got, want)
	f.equal("deleted", strings.Join(p.Delete, " "), "state/dags/other.json")
}

func (f *fixture) tip() (*Remote, Tip) {
	f.Helper()
	m := f.remote()
	tip, err := m.Fetch(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	return m, tip
}

// TestPatchOfABranchThatMoved: what does not stand on the tip is to be decided again.
func TestPatchOfABranchThatMoved(t *testing.T) {
	t.Parallel()
	f, other, _ := shared(t)
	first := f.git("rev-parse", "HEAD")
	other.record(map[string]string{checks: "theirs\n"})
	other.push()
	ours := f.record(map[string]string{checks: done})
	m, tip := f.tip()
	if _, err := m.Patch(t.Context(), tip, ours); !errors.Is(err, ErrRefused) || tip.Head == first {
		t.Errorf("%v; want ErrRefused", err)
	}
}

// TestPatchIsOursAlone: what a person committed, and what is more than a plain file, needs a push.
func TestPatchIsOursAlone(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(f *fixture) string{
		"is not reconcile's own": func(f *fixture) string {
			f.author("mine", map[string]string{"mine.txt": "mine\n"})
			return f.record(map[string]string{checks: done})
		},
		"it is no plain file": func(f *fixture) string {
			f.record(map[string]string{checks: done})
			f.git("update-index", "--chmod=+x", checks)
			f.git("commit", "-q", "--amend", "--no-edit")
			return f.git("rev-parse", "HEAD")
		},
	} {
		f, _, _ := shared(t)
		m, tip := f.tip()
		if _, err := m.Patch(t.Context(), tip, change(f)); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestPatchNeedsABranch(t *testing.T) {
	t.Parallel()
	f, _, _ := shared(t)
	if _, err := f.remote().Patch(t.Context(), Tip{}, f.git("rev-parse", "HEAD")); err == nil || !strings.Contains(err.Error(), "no such branch") {
		t.Errorf("%v", err)
	}
}
