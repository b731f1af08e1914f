package secrets

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
)

// gitleaksCase is a text that the authors of gitleaks test a rule with, and what their library finds in it.
type gitleaksCase struct {
	Rule, Path, Text string
	Secret           bool
	Found            []struct{ Rule, Secret string }
}

// gitleaksCases reads the file that cmd/reconcile/internal/tools/gen/gitleaks writes.
func gitleaksCases(t *testing.T) []gitleaksCase {
	t.Helper()
	f, err := os.Open("testdata/gitleaks.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var cases []gitleaksCase
	for d := json.NewDecoder(z); ; {
		var c gitleaksCase
		if err := d.Decode(&c); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	if len(cases) < 6000 {
		t.Fatalf("only %d cases", len(cases))
	}
	return cases
}

// TestFindsWhatGitleaksFinds compares with the library: nothing that it finds is left in a text.
func TestFindsWhatGitleaksFinds(t *testing.T) {
	found, missed := 0, 0
	for _, c := range gitleaksCases(t) {
		clean := Redact(c.Text)
		for _, f := range c.Found {
			if f.Secret == "" {
				continue // the name of a file
			}
			found++
			if strings.Contains(clean, strings.TrimSpace(f.Secret)) {
				missed++
				t.Errorf("%s leaves %q\n of %q\n as %q", f.Rule, f.Secret, c.Text, clean)
			}
		}
	}
	t.Logf("%d of %d found", found-missed, found)
}

// TestFindsLittleMore compares with the library where it finds nothing: its rules find nothing here either, and the
// rules of this package only what the doc comment says.
func TestFindsLittleMore(t *testing.T) {
	clean, more := 0, 0
	for _, c := range gitleaksCases(t) {
		if len(c.Found) > 0 {
			continue
		}
		clean++
		for _, f := range Find(c.Text) {
			more++
			if !ownRule(f.Rule) {
				t.Errorf("%s finds %q in %q", f.Rule, c.Text[f.Start:f.End], c.Text)
			}
		}
	}
	t.Logf("%d more in %d texts", more, clean)
	if more > clean/8 {
		t.Errorf("%d secrets in %d texts in which gitleaks finds none", more, clean)
	}
}

// ownRule reports whether a rule is one of this package.
func ownRule(id string) bool {
	for _, o := range ownTokens {
		if o.id == id {
			return true
		}
	}
	switch id {
	case rulePassword, ruleAssignment, ruleURL, ruleDSN, ruleKey, ruleHeader, ruleKubernetes:
		return true
	}
	return false
}
