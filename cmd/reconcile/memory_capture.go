package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
)

func newCaptureCmd(a *app) *cobra.Command {
	q := ops.CaptureRequest{}
	issue, summary := issueFlag{}, false
	cmd := &cobra.Command{
		Use:   "capture --agent AGENT --issue N [FILE|-]",
		Short: "Capture what an agent learned, from a conversation or a summary",
		Long: `Capture what an agent learned. FILE, or standard input, is a conversation (JSON lines with role and content, or a
transcript of Claude Code, Codex, Copilot or Gemini) or a summary, in which each bullet under Decisions, Code Changes,
Errors Encountered and Key Facts becomes an observation. The format is detected, unless --format gives it. Secrets and
everything between <private> and </private> are removed before anything is written. At most the 50 best observations are
kept; a known one only increases the count of the existing observation. With --supersedes, the best matching observation
replaces the older one. The capture is an Observation in specs/observations/; while another process holds the memory's
locks it stays there (exit code 75), and the next run adds it to the memory.`,
		Example: "  reconcile memory capture --agent engineer --issue 29 session.jsonl\n" +
			"  reconcile memory capture --agent engineer --issue 29 --summary - < summary.md\n" +
			"  echo 'SQLite it is: one file, no server.' | reconcile memory capture --agent architect --issue 29 \\\n" +
			"    --category decision --anchor src/db/adapter.go --supersedes obs-architect-29-1709035200000-a1b2c3",
		Args: arguments(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if summary {
				if q.Form == memory.FormConversation {
					return badUsage("--summary and --format conversation exclude each other")
				}
				q.Form = memory.FormSummary
			}
			q.Issue, q.Text = issue.pointer(), a.textFrom(cmd.Context(), append(args, "-")[0])
			return a.capture(cmd.Context(), q)
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.Agent, "agent", "", "the `AGENT` that learned it (default: RECONCILE_AGENT)")
	f.Var(&issue, "issue", "the issue that it is about; 0 for none (default: RECONCILE_ISSUE)")
	f.StringVar(&q.Session, "session", "", "the `SESSION` of the work (default: RECONCILE_SESSION)")
	f.Var(&choice{value: &q.Form, allowed: []string{memory.FormAuto, memory.FormConversation, memory.FormSummary}}, "format",
		"the `FORMAT` of the text: auto, conversation or summary (default auto)")
	f.BoolVar(&summary, "summary", false, "the same as --format summary")
	f.StringVar(&q.Category, "category", "",
		"the `CATEGORY` of what is in no section and has no label: "+strings.Join(schemas.Categories(), ", "))
	f.StringArrayVar(&q.Supersedes, "supersedes", nil,
		"the `ID` of an older observation that this replaces; may be repeated")
	f.StringArrayVar(&q.Anchors, "anchor", nil, "a `PATH` of the tree that it is about; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("agent", a.completeNamesOf(schemas.AgentKind))
	_ = cmd.RegisterFlagCompletionFunc("session", a.completeNamesOf(schemas.SessionKind))
	_ = cmd.RegisterFlagCompletionFunc("supersedes", a.completeMemory)
	_ = cmd.RegisterFlagCompletionFunc("category",
		cobra.FixedCompletions(schemas.Categories(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) capture(ctx context.Context, q ops.CaptureRequest) error {
	r, err := ops.Capture(ctx, a.env(), q)
	if err != nil {
		return err
	}
	if err := a.printCaptured(r); err != nil || !r.Held {
		return err
	}
	return exitWith(exitBusy) // it is captured, and not yet in the memory
}

// textFrom returns a file of the command line, or standard input.
func (a *app) textFrom(ctx context.Context, file string) ops.Text {
	text := ops.FileText(file)
	if file == stdinText {
		if isTerminal(a.stdin) {
			a.note("reading standard input to its end, which is Ctrl-D at a terminal")
		}
		text = ops.StreamText("standard input", a.stdin)
	}
	text.Reader = untilDone{ctx, text.Reader}
	return text
}

// untilDone reads from a terminal or pipe until ctx ends, also while nothing comes.
type untilDone struct {
	ctx  context.Context
	from io.Reader
}

// Read implements [io.Reader]. A read that ctx ended goes on, into memory of its own.
func (r untilDone) Read(p []byte) (int, error) {
	type read struct {
		data []byte
		err  error
	}
	done := make(chan read, 1)
	go func() {
		buffer := make([]byte, len(p))
		n, err := r.from.Read(buffer)
		done <- read{buffer[:n], err}
	}()
	select {
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	case got := <-done:
		return copy(p, got.data), got.err
	}
}

func (a *app) printCaptured(r ops.CaptureResult) error {
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
		fmt.Fprintf(a.stderr, "warning: the capture is kept in %s; the next run adds it to the memory\n", clean(r.Path))
	case r.Path != "":
		a.note("wrote %s", r.Path)
	}
	if n := len(r.Repeats); n > 0 {
		a.note("%s known already", render.Plural(n, "observation"))
	}
	if r.Dropped > 0 {
		a.note("%d of %d found were left out", r.Dropped, r.Found)
	}
	rows := make([]memory.Row, len(r.Observations))
	for i := range r.Observations {
		rows[i].ObservationIndex = r.Observations[i].Index()
	}
	return render.MemoryTable(a.stdout, a.palette(), rows, a.now())
}
