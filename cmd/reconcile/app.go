package main

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"os"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
)

// app is what every command works with: the streams, the environment, the clock, the loop and the global flags.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	ancestry       iter.Seq[[]string] // the environments of this process's ancestors; nil: not looked at
	now            func() time.Time
	engine         func(context.Context, engine.Options, engine.Request) (engine.Result, error)
	global         globalFlags
	here           string       // where the user stands: the current directory, or -C; set with global.dir by enterTree
	prefix         string       // the path of here below the tree in global.dir; "" at its top
	log            *slog.Logger // nil: nothing is logged
	logTo          *os.File     // of --log-file
}

// globalFlags are the flags that every command knows.
type globalFlags struct {
	dir     string
	output  string
	noColor bool
	quiet   bool
	// logLevel and logFile are those of the structured log.
	logLevel, logFile string
}

// The output formats.
const (
	formatTable    = "table"
	formatJSON     = "json"
	formatYAML     = "yaml"
	formatMarkdown = "markdown"
	formatSARIF    = "sarif"
	formatGitHub   = "github"
)
