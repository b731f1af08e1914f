package budget

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
)

func TestBudgetLevels(t *testing.T) {
	for _, c := range []struct {
		total, window int
		want          string
	}{
		{0, 200_000, render.BudgetOK},
		{139_999, 200_000, render.BudgetOK},
		{140_000, 200_000, render.BudgetCompact},
		{179_999, 200_000, render.BudgetCompact},
		{180_000, 200_000, render.BudgetCritical},
		{500_000, 200_000, render.BudgetCritical},
		{0, 1, render.BudgetOK},
		{1, 1, render.BudgetCritical},
	} {
		if got := budgetLevel(c.total, c.window); got != c.want {
			t.Errorf("%d of %d: %s, want %s", c.total, c.window, got, c.want)
		}
	}
}

// TestSharesReachNoThreshold: what is just below a threshold does not show it.
func TestSharesReachNoThreshold(t *testing.T) {
	for n, want := range map[int]float64{0: 0, 139_999: 69.9, 140_000: 70, 179_999: 89.9, 180_000: 90, 400_000: 200} {
		if got := shareOf(n, 200_000); got != want {
			t.Errorf("%d: %v %%, want %v", n, got, want)
		}
	}
}

// TestContextFilesCountOnce: a file counts once, whatever leads to it, and nothing outside of the tree counts at all.
func TestContextFilesCountOnce(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret.md")
	if err := os.WriteFile(outside, []byte("a secret of the machine"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"AGENTS.md": "Be brief.", "skills/a/SKILL.md": "One.", "skills/b/SKILL.md": "Two.", "skills/c/other.md": "Not this.",
	} {
		p := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{
		"CLAUDE.md": "AGENTS.md", "GEMINI.md": outside, "loop.md": "loop.md", "gone.md": "nowhere.md",
	} {
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	files := &contextFiles{root: root}
	var got []string
	all := files.matching("AGENTS.md", "CLAUDE.md", "GEMINI.md", "gone.md", "loop.md", "skills/*/SKILL.md", "AGENTS.md")
	for _, it := range all {
		got = append(got, strings.TrimSpace(it.Name+" "+it.Note))
		if (it.Tokens > 0) != (it.Note == "") {
			t.Errorf("%s counts %d tokens, and is said to be %q", it.Name, it.Tokens, it.Note)
		}
	}
	want := []string{
		"AGENTS.md", "CLAUDE.md the same file as AGENTS.md",
		"GEMINI.md not counted: it cannot be read, or leads out of the tree",
		"loop.md not counted: it cannot be read, or leads out of the tree", "skills/a/SKILL.md", "skills/b/SKILL.md",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestLargeTextsAreEstimated: what was not read counts as what was.
func TestLargeTextsAreEstimated(t *testing.T) {
	text := strings.Repeat("word ", 2000)
	whole := boundedText{text, int64(len(text))}.item("a")
	tenfold := boundedText{text, int64(len(text)) * 10}.item("a")
	if whole.Estimated || !tenfold.Estimated || tenfold.Tokens != whole.Tokens*10 {
		t.Errorf("%+v, and ten times as much: %+v", whole, tenfold)
	}
}

func TestConversationsCountWhatWasSaid(t *testing.T) {
	talk := []byte(`{"role": "user", "content": "Which database?"}` + "\n" + `{"role": "assistant", "content": "SQLite."}`)
	asTalk, asText := conversationItem("talk", talk), boundedText{string(talk), int64(len(talk))}.item("talk")
	if asTalk.Note != "2 messages" || asTalk.Tokens == 0 || asTalk.Tokens >= asText.Tokens {
		t.Errorf("as conversation %+v, as text %+v", asTalk, asText)
	}
	if plain := conversationItem("notes", []byte("Just notes.")); plain.Note != "" || plain.Tokens == 0 {
		t.Errorf("a text is counted as it is, not as %+v", plain)
	}
}
