package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// captureOptions are the flags of capture.
type captureOptions struct {
	agent      string
	issue      issueFlag
	session    string
	format     string
	summary    bool
	category   string
	supersedes []string
	anchors    []string
	from       string // what the text is called
}

// Forms of what is captured.
const (
	formAuto         = "auto"
	formConversation = "conversation"
	formSummary      = "summary"
)

func newCaptureCmd(a *app) *cobra.Command {
	o := &captureOptions{}
	cmd := &cobra.Command{
		Use:   "capture --agent AGENT --issue N [FILE|-]",
		Short: "Keep what an agent learned, from a conversation or a summary",
		Long: `Keep what an agent learned. FILE, or standard input, is a conversation (JSON lines with role and content, or a
transcript of Claude Code, Codex, Copilot or Gemini) or a summary, whose bullets under Decisions, Code Changes, Errors
Encountered and Key Facts become an observation each. Which of the two it is is found out, unless --format says so.

Secrets and everything between <private> and </private> are removed before anything is written. At most 50 observations are
kept, the best; what is known already raises the count of what said it. Of several, the one that says most of what an older
observation said replaces it (--supersedes). The capture is an Observation in
specs/observations/; while another process holds the memory's locks it stays there (exit code 75), and the next run
takes it into the memory.`,
		Example: "  reconcile memory capture --agent engineer --issue 29 session.jsonl\n" +
			"  reconcile memory capture --agent engineer --issue 29 --summary - < summary.md\n" +
			"  echo 'SQLite it is: one file, no server.' | reconcile memory capture --agent architect --issue 29 \\\n" +
			"    --category decision --anchor src/db/adapter.go --supersedes obs-architect-29-1709035200000-a1b2c3",
		Args: arguments(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.capture(cmd.Context(), *o, append(args, "-")[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.agent, "agent", "", "the `AGENT` that learned it (default: RECONCILE_AGENT)")
	f.Var(&o.issue, "issue", "the issue that it is about; 0 for none (default: RECONCILE_ISSUE)")
	f.StringVar(&o.session, "session", "", "the `SESSION` of the work (default: RECONCILE_SESSION)")
	f.Var(&choice{&o.format, []string{formAuto, formConversation, formSummary}}, "format",
		"the `FORMAT` of the text: auto, conversation or summary (default auto)")
	f.BoolVar(&o.summary, "summary", false, "the same as --format summary")
	f.StringVar(&o.category, "category", "",
		"the `CATEGORY` of a text without sections: "+strings.Join(schemas.Categories(), ", "))
	f.StringArrayVar(&o.supersedes, "supersedes", nil,
		"the `ID` of an older observation that this replaces; may be repeated")
	f.StringArrayVar(&o.anchors, "anchor", nil, "a `PATH` of the tree that it is about; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("agent", a.completeNamesOf(schemas.AgentKind))
	_ = cmd.RegisterFlagCompletionFunc("session", a.completeNamesOf(schemas.SessionKind))
	_ = cmd.RegisterFlagCompletionFunc("supersedes", a.completeMemory)
	_ = cmd.RegisterFlagCompletionFunc("category",
		cobra.FixedCompletions(schemas.Categories(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// captureReport is what capture prints for machines.
type captureReport struct {
	memstore.Captured
	// Found counts what the text held, Dropped what of it was beyond the 50 best or said nothing.
	Found   int `json:"found"`
	Dropped int `json:"dropped"`
	// SourceTokens is the length of the text.
	SourceTokens int `json:"sourceTokens"`
}

func (a *app) capture(ctx context.Context, o captureOptions, file string) error {
	process.TuneGC(a.getenv, process.GCLatency)
	var err error
	if o.agent, err = a.caller().Worker(o.agent); err != nil {
		return err
	}
	a.fillWho(&o.agent, &o.issue)
	if o.session == "" {
		o.session = a.getenv("RECONCILE_SESSION")
	}
	if err := o.check(); err != nil {
		return err
	}
	s, err := a.openForMemory()
	if err != nil {
		return err
	}
	defer s.Close()
	if !*s.Settings().Memory.Enabled {
		a.note("%v; nothing was captured", memstore.ErrDisabled)
		return a.printCaptured(captureReport{})
	}
	text, err := a.readInput(file)
	if err != nil {
		return err
	}
	m := a.memoryOf(s)
	return errors.Join(refused(a.captureText(ctx, s, m, &o, text)), m.Close())
}

// captureText makes entries of the text and stores them.
func (a *app) captureText(
	ctx context.Context, s *state.Store, m *memstore.Files, o *captureOptions, text []byte,
) error {
	learned, err := a.learn(m, o, text)
	if err != nil {
		return err
	}
	report := captureReport{Found: learned.Found, Dropped: learned.Dropped, SourceTokens: learned.SourceTokens}
	if len(learned.Entries) == 0 {
		const nothing = "No observations extracted from session (empty summary)"
		a.note(nothing)
		a.logMemory(nothing, slog.String("agent", o.agent), slog.Int("issueNumber", o.issue.number))
		return a.printCaptured(report)
	}
	if err := o.attach(ctx, m, learned.Entries); err != nil {
		return err
	}
	for _, p := range o.anchors {
		if m.Digest(p) == schemas.AnchorAbsent {
			a.note("warning: there is no %s in the tree; what was learned may be stale once there is", p)
		}
	}
	a.warnUnknownAgent(ctx, s, o.agent)
	report.Captured, err = m.Capture(ctx, a.observation(o, learned))
	if err != nil {
		return err
	}
	a.tellStored(ctx, s, o.agent, o.issue.number, report.Captured)
	return errors.Join(a.printCaptured(report), held(&report))
}

// observation is the capture as it is written into specs/.
func (a *app) observation(o *captureOptions, l memory.Learned) *schemas.ObservationSpec {
	spec := &schemas.ObservationSpec{
		Agent: o.agent, Issue: o.issue.number, Session: o.session, Timestamp: schemas.NewTime(a.now()),
		Entries: l.Entries, SourceTokens: l.SourceTokens,
	}
	spec.Run = a.caller().RunKey()
	return spec
}

// learn makes entries of the text.
func (a *app) learn(m *memstore.Files, o *captureOptions, text []byte) (memory.Learned, error) {
	source := memory.Source{
		Agent: o.agent, Issue: o.issue.number, Session: o.session, At: a.now(),
		Exists: m.Exists, Digest: m.Digest, Known: m.Known, StateFolder: m.StateFolder(),
	}
	if o.format != formSummary {
		said, err := memory.ReadTranscript(text)
		switch {
		case err == nil:
			a.warnUnread(said.Skipped)
			source.Messages = said.Messages
			return memory.Learn(source), nil
		case o.format == formConversation && said.Skipped == 0:
			return memory.Learned{}, nil // nobody has said anything
		case o.format == formConversation:
			return memory.Learned{}, badUsage("%s is no conversation, and nothing of it was kept: %v",
				cmp.Or(o.from, "the text"), err)
		case looksLikeJSON(text):
			return memory.Learned{}, badUsage("the text looks like JSON, and no message was found in it: %v; "+
				"--format summary takes it as text", err)
		}
	}
	if !isText(text) {
		return memory.Learned{}, badUsage("what was given is no text; give a conversation or a summary")
	}
	source.Text = strings.ToValidUTF8(string(text), "\uFFFD")
	return memory.Learn(source), nil
}

// warnUnread warns of what a conversation holds and nobody has read.
func (a *app) warnUnread(skipped int) {
	if skipped > 0 {
		a.note("warning: %s of the conversation could not be read: broken, or of no known form", render.Plural(skipped, "line"))
	}
}

// looksLikeJSON reports whether a text is meant for programs, also one that was cut off: it is no summary that a person or
// agent wrote.
func looksLikeJSON(text []byte) bool {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return false
	}
	next := bytes.TrimSpace(text[1:])
	switch text[0] {
	case '{':
		return len(next) == 0 || next[0] == '"' || next[0] == '}'
	case '[':
		return len(next) == 0 || bytes.IndexByte([]byte(`{["]`), next[0]) >= 0
	}
	return json.Valid(text)
}

// isText reports whether bytes are those of a text: few of them belong to no character, or are controls.
func isText(text []byte) bool {
	bad := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 || r < ' ' && !unicode.IsSpace(r) && r != '\x1b' {
			bad++
		}
		i += size
	}
	return bad*10 <= len(text)
}

// check says no to what no capture can be.
func (o *captureOptions) check() error {
	if err := checkWho("capture", o.agent, o.issue); err != nil {
		return err
	}
	if o.summary {
		if o.format == formConversation {
			return badUsage("--summary and --format conversation exclude each other")
		}
		o.format = formSummary
	}
	o.format = cmp.Or(o.format, formAuto)
	if err := specs.CheckSecret("--session", o.session); err != nil {
		return err
	}
	if o.session != "" && schemas.CheckName(o.session) != nil {
		return badUsage("--session %q: %v", o.session, schemas.CheckName(o.session))
	}
	if o.category != "" {
		if err := checkCategory(o.category); err != nil {
			return err
		}
	}
	if err := checkIDs(o.supersedes); err != nil {
		return fmt.Errorf("--supersedes: %w", err)
	}
	return checkAnchors(o.anchors)
}

// checkAnchors refuses paths that lead out of the tree, or hold a secret.
func checkAnchors(paths []string) error {
	for _, p := range paths {
		if err := specs.CheckSecret("--anchor", p); err != nil {
			return err
		}
		if !fs.ValidPath(p) || p == "." || strings.ContainsAny(p, "\\\x00") {
			return badUsage("--anchor %q: name a file of the tree by its path below the root, with slashes, as "+
				"src/db/adapter.go", p)
		}
	}
	return nil
}

// warnUnknownAgent warns of an agent that the tree does not have: what it learned is kept all the same. The tree is read
// only where no file has the agent's name, for it may have 50,000 others.
func (a *app) warnUnknownAgent(ctx context.Context, s *state.Store, name string) {
	for _, ext := range []string{".yaml", ".yml", ".json"} {
		if _, err := s.Root().Stat(path.Join(s.Settings().Folders.Specs, schemas.AgentKind.Plural, name+ext)); err == nil {
			return
		}
	}
	t, err := s.Load(ctx)
	if err != nil {
		return // the next run tells
	}
	if e := t.Entry(ops.AgentRef(name)); e == nil || e.Gone() {
		a.note("warning: %v; what it learned is kept under its name", ops.NotFound(t, ops.AgentRef(name)))
	}
}

// inputLimit bounds what is read as a conversation or summary: far more than any session has.
const inputLimit = 256 << 20

// readInput reads a file of the command line, or standard input.
func (a *app) readInput(file string) ([]byte, error) {
	in, name := a.stdin, "standard input"
	if file != "-" {
		name = file
		f, err := os.Open(file)
		if err != nil {
			return nil, badUsage("%s: %v; name a file, or - for standard input", file, regular.Cause(err))
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return nil, badUsage("%s is a folder; name a file, or - for standard input", file)
		}
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, inputLimit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, regular.Cause(err))
	case len(data) > inputLimit:
		return nil, badUsage("%s has more than %s: capture it in parts", name, render.Bytes(inputLimit))
	}
	return data, nil
}

// held is the exit code of a capture that is kept and not yet in the memory.
func held(r *captureReport) error {
	if r.Held {
		return exitWith(exitBusy)
	}
	return nil
}

// printCaptured tells what became of a capture.
func (a *app) printCaptured(r captureReport) error {
	if a.global.output != formatTable {
		if r.Observations == nil {
			r.Observations = []schemas.Observation{}
		}
		return a.print(r)
	}
	switch {
	case r.Known:
		a.note("captured before: %s", r.Path)
	case r.Held:
		fmt.Fprintf(a.stderr, "warning: what was learned is kept in %s; the next run takes it into the memory\n", clean(r.Path))
	case r.Path != "":
		a.note("wrote %s", r.Path)
	}
	if n := len(r.Repeats); n > 0 {
		a.note("%s known already", render.Plural(n, "observation"))
	}
	if r.Dropped > 0 {
		a.note("%d of %d found were left out", r.Dropped, r.Found)
	}
	rows := make([]render.MemoryRow, len(r.Observations))
	for i := range r.Observations {
		rows[i].ObservationIndex = r.Observations[i].Index()
	}
	return render.MemoryTable(a.stdout, a.palette(), rows, a.now())
}
