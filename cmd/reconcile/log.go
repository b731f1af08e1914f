package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reconcile.dev/reconcile/cmd/reconcile/internal/events"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// logOff turns the structured log off; the levels are those of slog.
const logOff = "off"

// logLevels are what --log can be.
func logLevels() []string { return []string{"debug", "info", "warn", "error", logOff} }

// levelFlag is a choice that help calls LEVEL.
type levelFlag struct{ choice }

func (*levelFlag) Type() string { return "LEVEL" }

// bindLog binds the flags of the structured log.
func (a *app) bindLog(root *cobra.Command, f *pflag.FlagSet) {
	f.Var(&levelFlag{choice{&a.global.logLevel, logLevels()}}, "log",
		"log what happens as JSON lines to stderr: "+strings.Join(logLevels(), ", ")+" (also: RECONCILE_LOG)")
	f.StringVar(&a.global.logFile, "log-file", "", "append the log to `FILE` instead (default level: info)")
	_ = root.RegisterFlagCompletionFunc("log", cobra.FixedCompletions(logLevels(), cobra.ShellCompDirectiveNoFileComp))
}

// openLog opens the structured log that the flags and the environment ask for.
func (a *app) openLog() error {
	word, err := a.logLevel()
	if err != nil || word == logOff {
		return err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(word)); err != nil {
		return badUsage("--log %s: %v", word, err)
	}
	w := a.stderr
	if name := a.global.logFile; name != "" {
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		if err != nil {
			return badUsage("--log-file %s: %v; name a file that can be written", name, regular.Cause(err))
		}
		a.logTo, w = file, file
	}
	a.log = slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
	return nil
}

// logLevel is the level by the flags, then by the environment.
func (a *app) logLevel() (string, error) {
	if a.global.logLevel != "" {
		return a.global.logLevel, nil
	}
	word := cmp.Or(a.getenv("RECONCILE_LOG"), logOff)
	if err := (&choice{new(string), logLevels()}).Set(word); err != nil {
		return "", badUsage("RECONCILE_LOG=%q: %v", word, err)
	}
	if word == logOff && a.global.logFile != "" {
		return "info", nil
	}
	return word, nil
}

// closeLog logs how the command ended, where it did not end well, and closes the log.
func (a *app) closeLog(err error) error {
	if a.log == nil {
		return nil
	}
	for _, e := range leaves(err) {
		logFailure(a.log, e)
	}
	if a.logTo == nil {
		return nil
	}
	if err := a.logTo.Close(); err != nil {
		return fmt.Errorf("--log-file %s: %w", a.global.logFile, err)
	}
	return nil
}

func logFailure(log *slog.Logger, err error) {
	var v *verdict
	switch {
	case errors.As(err, &v), errors.Is(err, context.Canceled):
	case errors.Is(err, &clarify.Error{Kind: clarify.ScopeViolation}):
		log.Warn("scope-violation", "error", err.Error())
	default:
		log.Error("failed", "error", err.Error())
	}
}

// logEvents logs events: what was said in clarifications with the fields of agentx-spec 12.3, all others at debug level
// unless something is wrong.
func logEvents(log *slog.Logger, list []events.Event) {
	for _, e := range list {
		level, msg, attrs := eventAttrs(&e)
		log.LogAttrs(context.Background(), level, msg, attrs...)
	}
}

func eventAttrs(e *events.Event) (slog.Level, string, []slog.Attr) {
	if e.Clarification != nil {
		return clarifiedAttrs(e.Clarification)
	}
	if e.Memory != nil {
		return rememberedAttrs(e.Memory)
	}
	attrs := []slog.Attr{slog.String("ref", e.Ref), slog.String("reason", e.Reason), slog.String("message", e.Message)}
	if e.Node != "" {
		attrs = append(attrs, slog.String("node", e.Node))
	}
	switch {
	case e.Reason == controllers.ReasonScopeViolation:
		return slog.LevelWarn, "scope-violation", attrs
	case e.Type == events.Warning:
		return slog.LevelWarn, "event", attrs
	}
	return slog.LevelDebug, "event", attrs
}

func clarifiedAttrs(c *controllers.Clarified) (slog.Level, string, []slog.Attr) {
	attrs := []slog.Attr{
		slog.String("clarificationId", c.ClarificationID), slog.Int("issueNumber", c.IssueNumber),
		slog.String("fromAgent", c.FromAgent), slog.String("toAgent", c.ToAgent), slog.Int("round", c.Round),
		slog.String("status", c.Status), slog.String("topic", c.Topic), slog.Bool("blocking", c.Blocking),
	}
	if c.Escalation != nil {
		attrs = append(attrs, slog.Any("escalation", c.Escalation))
	}
	level := slog.LevelInfo
	if c.Type == controllers.ClarificationStale || c.Type == controllers.ClarificationEscalated {
		level = slog.LevelWarn
	}
	return level, c.Type, attrs
}

func rememberedAttrs(m *controllers.Remembered) (slog.Level, string, []slog.Attr) {
	return slog.LevelInfo, m.Type, []slog.Attr{
		slog.String("agent", m.Agent), slog.Int("issueNumber", m.IssueNumber), slog.Int("count", m.Count),
		slog.Int("totalTokens", m.TotalTokens), slog.Any("observationIds", m.ObservationIDs),
	}
}

// findings are what the monitor found in a turn. Whatever it finds it acts upon in the same turn, so events tell of it.
type findings struct {
	stale             map[string]bool // by id
	stuck, deadlocked int
}

func (f *findings) add(list []events.Event) {
	for i := range list {
		c := list[i].Clarification
		switch {
		case c == nil:
		case c.Type == controllers.ClarificationStale:
			if f.stale == nil {
				f.stale = map[string]bool{}
			}
			f.stale[c.ClarificationID] = true
		case c.Escalation != nil && c.Escalation.Reason == schemas.EscalatedStuck:
			f.stuck++
		case c.Escalation != nil && c.Escalation.Reason == schemas.EscalatedDeadlock:
			f.deadlocked++
		}
	}
}

// log tells what was found in the turn that led to the tree: what became stale in it or still is, what went in circles,
// and what was in a ring. Without an open question there was nothing to look at, and nothing is logged; where nothing is
// wrong it is of interest for debugging only.
func (f *findings) log(log *slog.Logger, t *state.Tree) {
	stale, open := len(f.stale), len(f.stale)+f.stuck+f.deadlocked
	for _, e := range t.Entries(schemas.ClarificationRequestKind.Name) {
		st := requestStatus(e)
		if st.ID == "" || !schemas.ClarificationOpen(st.Phase) {
			continue
		}
		if open++; st.Phase == schemas.ClarificationStale && !f.stale[st.ID] {
			stale++
		}
	}
	level := slog.LevelDebug
	if stale+f.stuck+f.deadlocked > 0 {
		level = slog.LevelInfo
	}
	if open > 0 {
		log.LogAttrs(context.Background(), level, "monitor", slog.Int("staleCount", stale), slog.Int("stuckCount", f.stuck),
			slog.Int("deadlockedCount", f.deadlocked))
	}
	*f = findings{}
}
