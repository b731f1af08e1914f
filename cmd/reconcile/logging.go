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

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/state/regular"
)

// logOff turns the structured log off; the levels are those of slog.
const logOff = "off"

// logLevels are the values of --log.
func logLevels() []string { return []string{"debug", "info", "warn", "error", logOff} }

// bindLog binds the flags of the structured log.
func (a *app) bindLog(root *cobra.Command, f *pflag.FlagSet) {
	f.Var(&choice{value: &a.global.logLevel, allowed: logLevels()}, "log",
		"log what happens as JSON lines to stderr, from `LEVEL` on: "+strings.Join(logLevels(), ", ")+" (also: RECONCILE_LOG)")
	f.StringVar(&a.global.logFile, "log-file", "", "append the log to `FILE` instead (default level: info)")
	_ = root.RegisterFlagCompletionFunc("log", cobra.FixedCompletions(logLevels(), cobra.ShellCompDirectiveNoFileComp))
}

// openLog opens the structured log according to the flags and the environment.
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

// logLevel returns the level from the flags, or else from the environment.
func (a *app) logLevel() (string, error) {
	if a.global.logLevel != "" {
		return a.global.logLevel, nil
	}
	word := cmp.Or(a.getenv("RECONCILE_LOG"), logOff)
	if err := (&choice{value: new(string), allowed: logLevels()}).Set(word); err != nil {
		return "", badUsage("RECONCILE_LOG=%q: %v", word, err)
	}
	if word == logOff && a.global.logFile != "" {
		return "info", nil
	}
	return word, nil
}

// closeLog logs the errors of the command, and closes the log.
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
