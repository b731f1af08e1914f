package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// crowd is a tree that many processes work on.
type crowd struct {
	*testing.T
	dir, bin string
	env      []string
}

func newCrowd(t *testing.T, files map[string]string) *crowd {
	t.Helper()
	if testing.Short() {
		t.Skip("starts many processes")
	}
	dir := filepath.Join(inMemory(t), "tree")
	writeFiles(t, dir, files)
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "USER=ada"}
	return &crowd{T: t, dir: dir, bin: self(t), env: env}
}

func (c *crowd) command(args ...string) *exec.Cmd {
	cmd := exec.Command(c.bin, args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	return cmd
}

// run runs a command that has to succeed, and returns what it prints.
func (c *crowd) run(args ...string) string {
	c.Helper()
	var stderr bytes.Buffer
	cmd := c.command(args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		c.Errorf("%q: %v\n%s", args, err, stderr.Bytes())
	}
	return string(out)
}

// busyOrDone runs a command that may find the tree busy.
func (c *crowd) busyOrDone(args ...string) {
	out, err := c.command(args...).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == exitBusy {
		return
	}
	if err != nil {
		c.Errorf("%q: %v\n%s", args, err, out)
	}
}

// killed starts a command and kills it, without a chance to tidy up, at its first word on stderr.
func (c *crowd) killed(args ...string) {
	cmd := c.command(args...)
	words, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		c.Error(err)
		return
	}
	_, _ = bufio.NewReader(words).ReadString('\n')
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // the error says that it was killed
}

// ledger is what the ledger of an issue holds; it must be whole.
func (c *crowd) ledger(issue int) []schemas.Clarification {
	c.Helper()
	var l schemas.Ledger
	data, err := os.ReadFile(filepath.Join(c.dir, fmt.Sprintf("state/clarifications/issue-%d.json", issue)))
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	if err != nil {
		c.Fatal(err)
	}
	return l.Clarifications
}

// gapless checks that the ids of an issue are the first n numbers, each given once.
func (c *crowd) gapless(issue int, records []schemas.Clarification) {
	c.Helper()
	seen := map[string]bool{}
	for _, r := range records {
		if seen[r.ID] {
			c.Errorf("%s was given twice", r.ID)
		}
		seen[r.ID] = true
	}
	for i := range records {
		if id := fmt.Sprintf("CLR-%d-%03d", issue, i+1); !seen[id] {
			c.Errorf("%s is missing among %d", id, len(records))
		}
	}
}

// peer is a program of another make: it knows the ledger's format and the lock protocol, and nothing else.
type peer struct {
	path string
	name string
}

// lock takes the lock as the specification says: a file that is created exclusively.
func (p *peer) lock(t *testing.T) {
	now := time.Now().UTC().Format(time.RFC3339)
	body := fmt.Sprintf(`{"pid":%d,"timestamp":"%s","agent":"%s"}`, os.Getpid(), now, p.name)
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for range again.C {
		f, err := os.OpenFile(p.path+".lock", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err == nil {
			_, err = f.WriteString(body)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Error(err)
		}
		return
	}
}

// ask adds a question to the ledger, under the next number.
func (p *peer) ask(t *testing.T, issue int, from, to, question string) {
	p.lock(t)
	defer os.Remove(p.path + ".lock")
	l := struct {
		IssueNumber    int              `json:"issueNumber"`
		Clarifications []map[string]any `json:"clarifications"`
	}{IssueNumber: issue}
	if data, err := os.ReadFile(p.path); err == nil {
		if err := json.Unmarshal(data, &l); err != nil {
			t.Errorf("%s reads %s: %v", p.name, p.path, err)
			return
		}
	}
	now := time.Now().UTC().Format(time.RFC3339)
	turn := map[string]any{"round": 1, "from": from, "type": "question", "body": question, "timestamp": now}
	l.Clarifications = append(l.Clarifications, map[string]any{
		"id": fmt.Sprintf("CLR-%d-%03d", issue, len(l.Clarifications)+1), "from": from, "to": to, "topic": question,
		"blocking": false, "status": "pending", "round": 1, "maxRounds": 6, "created": now,
		"staleAfter": "2999-12-31T23:59:59Z", "resolvedAt": nil, "thread": []any{turn}, "writtenBy": p.name,
	})
	data, err := json.MarshalIndent(l, "", "  ")
	tmp := p.path + "." + p.name
	if err = errors.Join(err, os.WriteFile(tmp, data, 0o644), os.Rename(tmp, p.path)); err != nil {
		t.Error(err)
	}
}

// TestCrowdAsks: eight processes ask about one issue while others run the tree, some of all these are killed, and a
// program of another make writes the same ledger. No record is lost, given twice or torn; numbers have no gap; each
// question to the program is answered once.
func TestCrowdAsks(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, askTree)
	const asks, doomed, foreign = 8, 4, 12
	if err := os.MkdirAll(filepath.Join(c.dir, "state/clarifications"), 0o755); err != nil {
		t.Fatal(err)
	}
	var crowd sync.WaitGroup
	ask := func(i int) []string {
		return askArgs("architect", fmt.Sprintf("Topic %d", i), fmt.Sprintf("What of item%d?", i))
	}
	for i := range asks {
		crowd.Go(func() { c.busyOrDone(ask(i)...) })
	}
	for i := range doomed {
		crowd.Go(func() { c.killed(ask(asks + i)...) })
		crowd.Go(func() { c.killed() })
		crowd.Go(func() { c.busyOrDone() })
	}
	crowd.Go(func() {
		p := &peer{filepath.Join(c.dir, "state/clarifications/issue-42.json"), "peer"}
		for i := range foreign {
			p.ask(t, 42, "engineer", "lead", fmt.Sprintf("What of order%d?", i))
		}
	})
	crowd.Wait()
	c.run()
	c.run()

	records := c.ledger(42)
	c.gapless(42, records)
	topics := map[string]int{}
	for _, r := range records {
		topics[r.Topic]++
		answers := 0
		for _, turn := range r.Thread {
			if turn.Type == schemas.TurnAnswer {
				answers++
			}
		}
		want, answered := r.To == "architect", r.Status == schemas.ClarificationAnswered
		if answers > 1 || want != (answers == 1) || want != answered {
			t.Errorf("%s, %q: %s, %d answers", r.ID, r.Topic, r.Status, answers)
		}
	}
	for i := range foreign {
		if topic := fmt.Sprintf("What of order%d?", i); topics[topic] != 1 {
			t.Errorf("%q of the other program is there %d times", topic, topics[topic])
		}
	}
	for i := range asks + doomed {
		n := topics[fmt.Sprintf("Topic %d", i)]
		if written := c.asked(i); n > 1 || written != (n == 1) || i < asks && !written {
			t.Errorf("question %d: its file is there: %t, its record %d times", i, written, n)
		}
	}
	c.ranOnce()
	c.tidy()
}

// asked reports whether the request with a topic has a file.
func (c *crowd) asked(i int) bool {
	files, _ := filepath.Glob(filepath.Join(c.dir, fmt.Sprintf("specs/clarificationrequests/topic-%d-*.yaml", i)))
	return len(files) == 1
}

// ranOnce checks that each run is on record once, and that only a killed one was started again.
func (c *crowd) ranOnce() {
	c.Helper()
	keys := recordedKeys(c.dir)
	starts := effects(c.dir)
	for _, key := range keys {
		if starts[key] < 1 || starts[key] > 3 {
			c.Errorf("%s was started %d times", key, starts[key])
		}
	}
	requests := map[string]bool{}
	for _, key := range keys {
		request := filepath.Dir(key)
		if requests[request] {
			c.Errorf("%s: more than one run is on record", request)
		}
		requests[request] = true
	}
}

// tidy checks that nothing is left over: no lock, no temporary file.
func (c *crowd) tidy() {
	c.Helper()
	out := c.run("doctor", "--json")
	var report []struct {
		Name, Level, Detail string
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		c.Fatalf("%v: %s", err, out)
	}
	for _, f := range report {
		if f.Level == "error" || strings.Contains("ledgers locks journals litter damaged", f.Name) && f.Level != "ok" {
			c.Errorf("%s: %s: %s", f.Name, f.Level, f.Detail)
		}
	}
}

// TestCrowdClaims: those who take work at the same time take different items, and there is one for each.
func TestCrowdClaims(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, askTree)
	const takers = 6
	for i := range takers {
		c.run(append(askArgs("lead", fmt.Sprintf("Topic %d", i), fmt.Sprintf("What of item%d?", i)), "--no-run")...)
	}
	c.run()
	var crowd sync.WaitGroup
	taken := make([]string, takers)
	for i := range takers {
		crowd.Go(func() {
			var item struct{ Name string }
			out := c.run("ready", "--claim", "--agent", "lead", "-o", "json")
			if err := json.Unmarshal([]byte(out), &item); err != nil {
				t.Errorf("%v: %s", err, out)
			}
			taken[i] = item.Name
		})
	}
	crowd.Wait()
	seen := map[string]bool{"": true}
	for _, name := range taken {
		if seen[name] {
			t.Errorf("%q was taken twice, or is nothing: %q", name, taken)
		}
		seen[name] = true
	}
	if out := c.run("ready", "--claim", "--agent", "lead", "-o", "json"); strings.TrimSpace(out) != "null" {
		t.Errorf("there was one more to take: %s", out)
	}
}

// TestCrowdNodes: fifty nodes that all ask at once get fifty numbers and an answer each, and every run happens once.
func TestCrowdNodes(t *testing.T) {
	t.Parallel()
	const nodes = 50
	files := map[string]string{
		"agents/architect.sh": agentHead + "cat > /dev/null; echo \"Settled under $RECONCILE_RUN.\"\n",
		"agents/engineer.sh": agentHead + "case $(sed '/^## Memory Recall/,$d') in *'Settled under'*) echo Done. ;; " +
			"*) echo \"CLARIFICATION NEEDED from architect about part $RECONCILE_NODE: Who owns $RECONCILE_NODE?\" ;; esac\n",
		"specs/agents/architect.yaml": askTree["specs/agents/architect.yaml"],
		"specs/agents/engineer.yaml": agentSpec("engineer",
			"canClarify: [architect], runner: {command: {argv: [sh, agents/engineer.sh], output: text}}"),
		"specs/sessions/work.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Session\n" +
			"metadata: {name: work}\nspec: {issue: 7}\n",
	}
	var dag strings.Builder
	dag.WriteString("apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: many}\n" +
		"spec:\n  session: work\n  nodes:\n")
	for i := range nodes {
		fmt.Fprintf(&dag, "    - {name: n%d, agent: engineer, prompt: Do it.}\n", i)
	}
	files["specs/dags/many.yaml"] = dag.String()
	c := newCrowd(t, files)
	c.run()
	records := c.ledger(7)
	c.gapless(7, records)
	for _, r := range records {
		if r.Status != schemas.ClarificationResolved || len(r.Thread) != 3 {
			t.Errorf("%s is %s with %d turns", r.ID, r.Status, len(r.Thread))
		}
	}
	starts, keys := effects(c.dir), recordedKeys(c.dir)
	if len(records) != nodes || len(keys) != 3*nodes {
		t.Errorf("%d records and %d runs, want %d and %d", len(records), len(keys), nodes, 3*nodes)
	}
	for _, key := range keys {
		if starts[key] != 1 {
			t.Errorf("%s was started %d times", key, starts[key])
		}
	}
	c.tidy()
}

// TestCrowdOnOneIssue: a thousand questions about one issue get a thousand numbers, the last one with four digits, in
// one run; the next run has nothing to do.
func TestCrowdOnOneIssue(t *testing.T) {
	t.Parallel()
	const questions = 1000
	files := map[string]string{}
	maps.Copy(files, askTree)
	for i := range questions {
		name := fmt.Sprintf("q%d", i)
		files["specs/clarificationrequests/"+name+".yaml"] = fmt.Sprintf("apiVersion: reconcile.dev/v1alpha1\n"+
			"kind: ClarificationRequest\nmetadata: {name: %s}\n"+
			"spec: {issue: 42, from: engineer, to: lead, topic: Part %[1]s, question: \"Who owns %[1]s?\", "+
			"blocking: true}\n", name)
	}
	c := newCrowd(t, files)
	c.run()
	records := c.ledger(42)
	c.gapless(42, records)
	if len(records) != questions || records[questions-1].ID != "CLR-42-1000" {
		t.Errorf("%d records, the last one is %s", len(records), records[len(records)-1].ID)
	}
	if out := c.run(); !strings.Contains(out, "nothing changed since the last run") {
		t.Errorf("the next run: %s", out)
	}
	c.run(append(askArgs("lead", "One more", "And who owns the rest?"), "--request", "more")...)
	c.run("clarify", "answer", "CLR-42-1001", "--from", "lead", "Nobody.")
	if records = c.ledger(42); len(records) != questions+1 || records[questions].Status != schemas.ClarificationAnswered {
		t.Errorf("%d records, the last one is %s", len(records), records[len(records)-1].Status)
	}
}

// TestLedgerCutOff cuts a ledger off at a sample of its bytes: what is left is set aside, and the ledger is written
// anew as it was, of what the statuses and records say.
func TestLedgerCutOff(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, askTree)
	c.env = append(c.env, "RECONCILE_NOW=2026-02-27T10:00:00Z")
	for _, args := range askedLead {
		c.run(args...)
	}
	c.run("clarify", "resolve", "CLR-42-001", "--from", "engineer", "Clear.")
	p := filepath.Join(c.dir, "state/clarifications/issue-42.json")
	want, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(want); n += len(want) / 20 {
		if err := os.WriteFile(p, want[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		c.run()
		if got, err := os.ReadFile(p); err != nil || !bytes.Equal(got, want) {
			t.Errorf("cut off after %d of %d bytes: %v\n%s", n, len(want), err, got)
		}
	}
}
