package ops_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/controllers/memory"
)

const (
	learnedText = "## Decisions\n- Use the repository pattern for the database, because it keeps SQL in one place.\n"
	unknownID   = "obs-engineer-29-1709035200000-a1b2c3"
)

// unread is a text that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the text is read before the request is checked")
	return 0, io.EOF
}

func text(s string) ops.Text { return ops.StreamText("text", strings.NewReader(s)) }

// capture keeps one observation, and returns its id.
func capture(t *testing.T, env ops.Env) string {
	t.Helper()
	r, err := ops.Capture(t.Context(), env, ops.CaptureRequest{Agent: "engineer", Issue: new(29), Text: text(learnedText)})
	if err != nil || len(r.Observations) != 1 || r.Held {
		t.Fatalf("%+v, %v", r, err)
	}
	return r.Observations[0].ID
}

func TestCapture(t *testing.T) {
	env := open(t)
	heard := &notes{}
	env.Sink = heard
	older := capture(t, env)
	write(t, env, "src/db.go", "package db\n")
	r, err := ops.Capture(t.Context(), env, ops.CaptureRequest{Agent: "engineer", Issue: new(29), Form: memory.FormSummary,
		Category: "decision", Supersedes: []string{older}, Anchors: []string{"src/db.go"},
		Text: text("The repository pattern for the database was replaced by plain queries.")})
	if err != nil || len(r.Observations) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if o := r.Observations[0]; o.Category != "decision" || len(o.Anchors) != 1 || o.Anchors[0].Digest == "" {
		t.Errorf("%+v", o)
	}
	if full, err := ops.GetMemory(t.Context(), env, []string{older}); err != nil || full[0].SupersededBy != r.Observations[0].ID {
		t.Errorf("the older one: %+v, %v", full, err)
	}
	if len(heard.notes)+len(heard.warnings) > 0 {
		t.Errorf("%q, %q", heard.notes, heard.warnings)
	}
	if r, err = ops.Capture(t.Context(), env, ops.CaptureRequest{Agent: "stranger", Issue: new(0), Text: text("")}); err != nil || r.Path != "" {
		t.Errorf("of nothing: %+v, %v", r, err)
	}
	none := ops.Text{Reader: unread{t}}
	for field, q := range map[string]ops.CaptureRequest{
		"agent":    {Agent: "No Name", Issue: new(1)},
		"session":  {Agent: "engineer", Issue: new(1), Session: "No Name"},
		"category": {Agent: "engineer", Issue: new(1), Category: "thought"},
		"anchor":   {Agent: "engineer", Issue: new(1), Anchors: []string{"../outside"}},
	} {
		q.Text = none
		_, err := ops.Capture(t.Context(), env, q)
		badField(t, err, field)
	}
	for name, q := range map[string]ops.CaptureRequest{
		"no issue":        {Agent: "engineer", Text: none},
		"a wrong id":      {Agent: "engineer", Issue: new(1), Supersedes: []string{"obs"}, Text: none},
		"cut off JSON":    {Agent: "engineer", Issue: new(1), Text: text(`{"role": `)},
		"no conversation": {Agent: "engineer", Issue: new(1), Form: memory.FormConversation, Text: text("Hello.")},
		"no text":         {Agent: "engineer", Issue: new(1), Text: text("\x00\x01\x02")},
		"a folder":        {Agent: "engineer", Issue: new(1), Text: ops.FileText(env.Tree.Dir)},
		"a missing file":  {Agent: "engineer", Issue: new(1), Text: ops.FileText(filepath.Join(env.Tree.Dir, "none"))},
	} {
		if _, err := ops.Capture(t.Context(), env, q); ops.CodeOf(err) != ops.BadRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	refused(t, func(ctx context.Context, env ops.Env) error {
		_, err := ops.Capture(ctx, env, ops.CaptureRequest{Agent: "engineer", Issue: new(1), Text: text(learnedText)})
		return err
	})
}

// TestCaptureInARun: what a run captures is its agent's, whoever it says that it is.
func TestCaptureInARun(t *testing.T) {
	env := open(t)
	vars := map[string]string{"RECONCILE_RUN": "agents/engineer/run-1", "RECONCILE_AGENT": "engineer", "RECONCILE_ISSUE": "7"}
	env.Tree.Getenv = func(name string) string { return vars[name] }
	env.Caller.Getenv = env.Tree.Getenv
	if _, err := ops.Capture(t.Context(), env, ops.CaptureRequest{Agent: "architect", Text: text(learnedText)}); err == nil {
		t.Error("a run captures for another agent")
	}
	r, err := ops.Capture(t.Context(), env, ops.CaptureRequest{Text: text(learnedText)})
	if err != nil || len(r.Observations) != 1 || r.Observations[0].Agent != "engineer" || r.Observations[0].IssueNumber != 7 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestMemoryIsOff(t *testing.T) {
	env := open(t)
	settings := func(spec string) {
		write(t, env, "reconcile.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\nspec: "+spec+"\n")
	}
	settings("{memory: {enabled: false}}")
	r, err := ops.Capture(t.Context(), env, ops.CaptureRequest{Agent: "engineer", Issue: new(29), Text: text(learnedText)})
	if err != nil || r.Path != "" {
		t.Errorf("%+v, %v", r, err)
	}
	settings("{memory: [")
	if _, err = ops.MemoryStats(t.Context(), env); ops.CodeOf(err) != ops.Invalid {
		t.Errorf("with settings that cannot be read: %v", err)
	}
}

func TestLookIntoMemory(t *testing.T) {
	env := open(t)
	id := capture(t, env)
	full, err := ops.GetMemory(t.Context(), env, []string{id})
	if err != nil || len(full) != 1 || !strings.Contains(full[0].Content, "repository pattern") {
		t.Errorf("%+v, %v", full, err)
	}
	if _, err := ops.GetMemory(t.Context(), env, []string{id[:len(id)-1] + "0"}); err == nil || !strings.Contains(err.Error(), "did you mean \""+id) {
		t.Errorf("a typo: %v", err)
	}
	if _, err := ops.GetMemory(t.Context(), env, []string{"x"}); ops.CodeOf(err) != ops.BadRequest {
		t.Errorf("%v", err)
	}
	rows, err := ops.ListMemory(t.Context(), env, ops.MemoryFilter{Issue: new(29), Category: "decision"})
	if err != nil || len(rows) != 1 || rows[0].ID != id {
		t.Errorf("%+v, %v", rows, err)
	}
	if rows, err = ops.ListMemory(t.Context(), env, ops.MemoryFilter{Issue: new(29), Archived: true}); err != nil || len(rows) != 0 {
		t.Errorf("archived: %+v, %v", rows, err)
	}
	_, err = ops.ListMemory(t.Context(), env, ops.MemoryFilter{Category: "thought"})
	badField(t, err, "category")
	found, err := ops.SearchMemory(t.Context(), env, ops.SearchMemoryRequest{Text: "database", Limit: 1})
	if err != nil || len(found.Rows) != 1 || found.Hint != "" {
		t.Errorf("%+v, %v", found, err)
	}
	if found, err = ops.SearchMemory(t.Context(), env, ops.SearchMemoryRequest{Text: "the", Limit: 1}); err != nil || !strings.Contains(found.Hint, "stop words") {
		t.Errorf("%+v, %v", found, err)
	}
	_, err = ops.SearchMemory(t.Context(), env, ops.SearchMemoryRequest{Text: "database"})
	badField(t, err, "limit")
	stats, err := ops.MemoryStats(t.Context(), env)
	if err != nil || stats.ByAgent["engineer"] != 1 {
		t.Errorf("%+v, %v", stats, err)
	}
	refused(t, func(ctx context.Context, env ops.Env) error {
		_, err := ops.ListMemory(ctx, env, ops.MemoryFilter{})
		return err
	})
}

func TestRecall(t *testing.T) {
	env := open(t)
	id := capture(t, env)
	found, err := ops.Recall(t.Context(), env, ops.RecallRequest{Agent: "reviewer", Issue: new(29), Context: ops.Text{}})
	if err != nil || !slices.Equal(found.IDs, []string{id}) || !strings.HasPrefix(found.Text, "## Memory Recall") {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := ops.RebuildMemory(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	if full, err := ops.GetMemory(t.Context(), env, []string{id}); err != nil || full[0].RecallCount != 1 {
		t.Errorf("%+v, %v", full, err)
	}
	_, err = ops.Recall(t.Context(), env, ops.RecallRequest{Agent: "reviewer", Issue: new(29), Context: ops.Text{}, Budget: new(-1)})
	badField(t, err, "budget")
	if _, err = ops.Recall(t.Context(), env, ops.RecallRequest{}); ops.CodeOf(err) != ops.BadRequest {
		t.Errorf("of nobody: %v", err)
	}
}

func TestEditMemory(t *testing.T) {
	env := open(t)
	id := capture(t, env)
	if err := ops.VerifyMemory(t.Context(), env, ops.VerifyMemoryRequest{IDs: []string{id}, By: "ada"}); err != nil {
		t.Error(err)
	}
	if err := ops.VerifyMemory(t.Context(), env, ops.VerifyMemoryRequest{IDs: []string{unknownID}}); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("%v", err)
	}
	if err := os.RemoveAll(filepath.Join(env.Tree.Dir, "state", "memory", "manifest.json")); err != nil {
		t.Fatal(err)
	}
	rebuilt, err := ops.RebuildMemory(t.Context(), env)
	if err != nil || !rebuilt.Wrote || rebuilt.Observations == 0 {
		t.Errorf("%+v, %v", rebuilt, err)
	}
	done, err := ops.CompactMemory(t.Context(), env, ops.CompactMemoryRequest{Issue: new(29)})
	if err != nil || len(done) != 0 {
		t.Errorf("one observation was compacted: %+v, %v", done, err)
	}
	_, err = ops.CompactMemory(t.Context(), env, ops.CompactMemoryRequest{Undo: true})
	badField(t, err, "undo")
	secret := "gh" + "p_R8tY2kLmQ9zX4vB7nC1dF6gH3jK5sW0pTqZu" // of no account
	removed, err := ops.RemoveMemory(t.Context(), env, ops.RemoveMemoryRequest{IDs: []string{id}, Reason: "it held " + secret})
	if err != nil || !slices.Equal(removed.IDs, []string{id}) || removed.Archived != 0 {
		t.Errorf("%+v, %v", removed, err)
	}
	if _, err := ops.GetMemory(t.Context(), env, []string{id}); err == nil {
		t.Error("a removed observation is still there")
	}
	scan, err := ops.ScanSecrets(t.Context(), env, nil)
	if err != nil || len(scan.Secrets) != 0 {
		t.Errorf("the reason was written with its secret: %+v, %v", scan, err)
	}
	refused(t, func(ctx context.Context, env ops.Env) error {
		_, err := ops.RebuildMemory(ctx, env)
		return err
	})
}

func TestJudgeMemory(t *testing.T) {
	env := open(t)
	id := capture(t, env)
	any := memory.AuditBounds{Exact: -1, Near: -1, Stale: -1, Superseded: -1, Secrets: -1, Unused: -1}
	audit, err := ops.AuditMemory(t.Context(), env, ops.AuditMemoryRequest{Most: any})
	if err != nil || !slices.Contains(audit.Unused, id) || len(audit.Past) != 0 {
		t.Errorf("%+v, %v", audit, err)
	}
	any.Unused = 0
	if audit, err = ops.AuditMemory(t.Context(), env, ops.AuditMemoryRequest{Most: any}); err != nil || len(audit.Past) != 1 {
		t.Errorf("%+v, %v", audit, err)
	}
	heard := &notes{}
	env.Sink = heard
	gold := `{"question": "database", "expect": ["` + id + `", "` + unknownID + `"]}`
	for _, by := range []string{ops.BySearch, ops.ByRecall} {
		r, err := ops.EvalMemory(t.Context(), env, ops.EvalMemoryRequest{Gold: text(gold), By: by, Least: memory.EvalBounds{Recall1: 1}})
		if err != nil || r.MRR != 1 || !slices.Equal(r.Unknown, []string{unknownID}) || len(r.Past) != 1 {
			t.Errorf("by %s: %+v, %v", by, r, err)
		}
	}
	if len(heard.warnings) != 2 {
		t.Errorf("%q", heard.warnings)
	}
	_, err = ops.EvalMemory(t.Context(), env, ops.EvalMemoryRequest{By: "luck"})
	badField(t, err, "by")
	if _, err = ops.EvalMemory(t.Context(), env, ops.EvalMemoryRequest{Gold: text("{"), By: ops.BySearch}); ops.CodeOf(err) != ops.BadRequest {
		t.Errorf("%v", err)
	}
}

func TestScanSecrets(t *testing.T) {
	env := open(t)
	secret := "gh" + "p_R8tY2kLmQ9zX4vB7nC1dF6gH3jK5sW0pTqZu" // of no account
	write(t, env, "src/a.go", "package a\n// "+secret+"\n// "+secret+" "+ops.AllowSecret+"\n")
	write(t, env, "src/b.bin", "\x00")
	env.Prefix = "src"
	scan, err := ops.ScanSecrets(t.Context(), env, []string{"."})
	if err != nil || scan.Files != 1 || len(scan.Skipped) != 1 || len(scan.Secrets) != 1 || scan.Secrets[0].Place.String() != "a.go:2:4" {
		t.Errorf("%+v, %v", scan, err)
	}
	if p := scan.Problems(); len(p) != 1 || strings.Contains(p[0].Error(), secret) {
		t.Errorf("%+v", p)
	}
	refused(t, func(ctx context.Context, env ops.Env) error {
		_, err := ops.ScanSecrets(ctx, env, nil)
		return err
	})
}

// TestHookLearns: what a program's hook says names the conversation of a session; what an agent learned there is kept.
func TestHookLearns(t *testing.T) {
	env := open(t)
	write(t, env, "conversation.jsonl", `{"role": "assistant", "content": "## Errors Encountered\n`+
		`- The migration failed because the lock was held by another process."}`+"\n")
	end := func(conversation *ops.Text) (ops.HookResult, error) {
		return ops.Hook(t.Context(), env, ops.HookRequest{Agent: "engineer", Issue: new(29), Finish: true, NoRun: true, Transcript: conversation})
	}
	call := text(`{"session_id": "s-1", "transcript_path": "` + filepath.Join(env.Tree.Dir, "conversation.jsonl") + `"}`)
	r, err := end(&call)
	if err != nil || len(r.Learned.ObservationIDs) != 1 || !strings.HasPrefix(r.Learned.String(), "learned 1 observation, 0 known already: ") {
		t.Fatalf("%+v, %v", r.Learned, err)
	}
	full, err := ops.GetMemory(t.Context(), env, r.Learned.ObservationIDs)
	if err != nil || full[0].SessionID != "s-1" {
		t.Errorf("%+v, %v", full, err)
	}
	if r, err = end(nil); err != nil || r.Learned != nil {
		t.Errorf("of no conversation: %+v, %v", r.Learned, err)
	}
	write(t, env, "notes.txt", "Hello.\n")
	call = text(`{"transcript_path": "` + filepath.Join(env.Tree.Dir, "notes.txt") + `"}`)
	if _, err = end(&call); ops.CodeOf(err) != ops.BadRequest || !strings.Contains(err.Error(), "is no conversation") {
		t.Errorf("of a file that is no conversation: %v", err)
	}
	start, err := ops.Hook(t.Context(), env, ops.HookRequest{Agent: "engineer", Issue: new(29), NoRun: true})
	if err != nil || !strings.Contains(start.Memory, "The migration failed") {
		t.Errorf("%q, %v", start.Memory, err)
	}
}
