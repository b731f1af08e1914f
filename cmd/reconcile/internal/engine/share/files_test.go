package share

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/ownership"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
)

// TestSharedFilesKeepWhatOthersWrote: while one clone is behind, another program writes an agent and a question into its
// shared files, which the remote has other versions of. Both are there when the clone has caught up. The mutant: with
// files that reconcile alone writes, they are lost.
func TestSharedFilesKeepWhatOthersWrote(t *testing.T) {
	t.Parallel()
	const (
		agents = "state/agent-status.json"
		ledger = "state/clarifications/issue-42.json"
	)
	question := func(id, topic string) string {
		return `{"id": "` + id + `", "from": "ada", "to": "bob", "topic": "` + topic + `", "blocking": false, "status": "resolved", "round": 1,
 "maxRounds": 5, "created": "2026-02-26T10:00:00Z", "staleAfter": "2026-02-26T10:30:00Z", "resolvedAt": null, "thread": []}`
	}
	file := func(records ...string) string {
		return `{"issueNumber": 42, "clarifications": [` + strings.Join(records, ",") + "]}\n"
	}
	agent := func(issue string) string {
		return `{"status": "working", "issue": ` + issue + `, "lastActivity": "2026-02-26T10:00:00Z"}`
	}
	for name, own := range map[string]bool{"carried": false, "mutant": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, open := sharedBy(t)
			write := func(clone, p, content string) {
				t.Helper()
				p = filepath.Join(dir, clone, p)
				if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(p, []byte(content), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			git := func(clone string, args ...string) {
				t.Helper()
				args = append([]string{"-C", filepath.Join(dir, clone), "-c", "user.name=A", "-c", "user.email=a@example.org"}, args...)
				if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
					t.Fatalf("git %q: %v\n%s", args, err, out)
				}
			}
			write("a", agents, `{"lead": `+agent("1")+"}\n")
			write("a", ledger, file(question("CLR-42-001", "First")))
			git("a", "add", "state")
			git("a", "commit", "-qm", "one")
			git("a", "push", "-q", "origin", "main")
			git("b", "pull", "-q", "origin", "main")
			write("a", agents, `{"lead": `+agent("2")+"}\n")
			write("a", ledger, file(question("CLR-42-001", "First"), question("CLR-42-002", "Second")))
			git("a", "commit", "-qam", "two")
			git("a", "push", "-q", "origin", "main")

			b := open("b")
			tree, err := b.o.Store.Load(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			write("b", agents, `{"lead": `+agent("1")+`, "other": `+agent("7")+"}\n") // after it was read
			write("b", ledger, file(question("CLR-42-001", "First"), question("CLR-42-003", "Third")))
			tip, err := b.remote.Fetch(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			o := ownership.Owners(b.o.Store, tree)
			if own {
				o.Join = nil // it is not asked
				of := o.Of
				o.Of = func(p string) gitrepo.Ownership {
					if is := of(p); is != gitrepo.Shared {
						return is
					}
					return gitrepo.Status
				}
			}
			if got, err := b.remote.Adopt(t.Context(), tip, o); err != nil || !got.Moved {
				t.Fatalf("%+v, %v", got, err)
			}
			for p, words := range map[string][]string{agents: {`"other"`, `"issue": 2`}, ledger: {"First", "Second", "Third"}} {
				data, err := os.ReadFile(filepath.Join(dir, "b", p))
				if err != nil {
					t.Fatal(err)
				}
				for _, w := range words {
					theirs := w == `"other"` || w == "Third"
					if has := strings.Contains(string(data), w); has != (!own || !theirs) {
						t.Errorf("%s has %s: %t\n%s", p, w, has, data)
					}
				}
			}
		})
	}
}
