package tools

import (
	"bytes"
	"flag"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/preview"
)

var history = flag.String("history", "", "a repository whose commits TestHistory looks at")

// TestHistory counts the commits of a repository that raise a doubt, by its kind: those of people who did not mean to cheat are false alarms.
func TestHistory(t *testing.T) {
	if *history == "" {
		t.Skip("no -history")
	}
	git := func(args ...string) ([]byte, error) {
		return exec.Command("git", append([]string{"-C", *history}, args...)...).Output()
	}
	log, err := git("rev-list", "--no-merges", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	kinds := regexp.MustCompile(`^(changes \d+ command|\w+)( .*which says|.*: its \w+)?`)
	commits, raised, of := 0, 0, map[string]int{}
	for commit := range strings.FieldsSeq(string(log)) {
		diff, err := git("diff", "-M", "-U3", "--full-index", "--src-prefix=a/", "--dst-prefix=b/", commit+"^", commit)
		if err != nil {
			continue // the first one
		}
		commits++
		found := Doubts(preview.Parse(string(diff)), func(file string, after bool) ([]byte, error) {
			at := commit
			if !after {
				at += "^"
			}
			return git("show", at+":"+file)
		})
		if len(found) == 0 {
			continue
		}
		raised++
		var seen []string
		for _, d := range found {
			if k := kinds.FindString(d); !slices.Contains(seen, k) {
				seen = append(seen, k)
			}
		}
		for _, k := range seen {
			k, _, _ = strings.Cut(k, " of ")
			of[strings.Fields(k)[0]]++
		}
		if testing.Verbose() {
			subject, _ := git("log", "-1", "--format=%h %s", commit)
			t.Logf("%s: %q", bytes.TrimSpace(subject), found)
		}
	}
	t.Logf("%d of %d commits raise a doubt: %v", raised, commits, of)
}
