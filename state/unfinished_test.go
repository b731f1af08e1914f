package state

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// TestUnfinishedSpecs: an object without a spec is not gone while a file of specs may be the beginning of its spec, and is gone once
// that file is written, removed or has another mistake.
func TestUnfinishedSpecs(t *testing.T) {
	const file = "specs/checks.yaml"
	whole := strings.ReplaceAll(strings.ReplaceAll(dagYAML, "checks", "other"), "  nodes", "  description: whole\n  nodes")
	status := `{"apiVersion": "reconcile.dev/v1alpha1", "kind": "DAG", "metadata": {"name": "checks"}, "status": {"phase": "Running"}}`
	for name, c := range map[string]struct {
		text string
		hide bool
	}{
		"empty":                {"", true},
		"comment":              {"# soon\n", true},
		"half a line":          {"apiVersion: reconcile.dev/v1alpha1\nkin", true},
		"half a name":          {"apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: che}\n", true},
		"without nodes":        {whole[:strings.Index(whole, "  nodes")], false},
		"an open bracket":      {whole + "  policy: {", true},
		"half a letter":        {whole + "  more: \xc3", true},
		"another object":       {whole, false},
		"a mistake in it":      {whole + "  nothing: 1\n", false},
		"its kind is wrong":    {strings.ReplaceAll(whole, "kind: DAG", "kind: DAK"), true},
		"a reference is wrong": {strings.ReplaceAll(whole, "health", "none"), false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, map[string]string{"specs/health.yaml": sessionYAML, file: dagYAML, "state/dags/checks.json": status})
			s := open(t, dir)
			was := load(t, s)
			if e := was.Entry(checks); e == nil || e.Object == nil {
				t.Fatalf("before: %+v", e)
			}
			put(t, dir, map[string]string{file: c.text})
			now, _, err := s.Refresh(t.Context(), was, nil)
			must(t, err)
			for when, tree := range map[string]*Tree{"refreshed": now, "loaded": load(t, open(t, dir))} {
				if e := tree.Entry(checks); e == nil || e.Broken() != c.hide || e.Gone() == c.hide {
					t.Errorf("%s: %+v, want it kept: %v", when, e, c.hide)
				}
			}
			must(t, os.Remove(filepath.Join(dir, file)))
			now, _, err = s.Refresh(t.Context(), now, nil)
			must(t, err)
			if e := now.Entry(checks); e == nil || !e.Gone() {
				t.Errorf("removed: %+v, want it gone", e)
			}
		})
	}
}

// unfinishedMutants are faults in what counts as unfinished.
var unfinishedMutants = []mutants.Mutant{
	{"an unfinished file hides nothing", "model_index.go", "ok && b.unfinished() {", "false && ok && b.unfinished() {"},
	{"half a file is whole", "model.go", "return p.Code == \"missing-field\" && !strings.HasPrefix(p.Field, \"spec.\")", "return strings.HasPrefix(\"\", p.Code)"},
	{"any mistake hides", "model.go", "return p.Code == \"missing-field\" && !strings.HasPrefix(p.Field, \"spec.\")", "return strings.HasPrefix(p.Field, \"\")"},
	{"it hides for ever", "model_index.go", "\tdelete(m.unfinished, p)\n", ""},
}
