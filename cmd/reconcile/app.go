package main

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"os"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/sandbox"
)

// app is the environment of every command: the streams, the environment variables, the clock, the loop and the global
// flags.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	args           []string // of the command line
	getenv         func(string) string
	sandbox        *sandbox.Host         // confines the programs of agents; nil: it cannot
	ancestry       iter.Seq[[]string]    // the environments of this process's ancestors; nil: ancestors are ignored
	inherits       func(dir string) bool // whether this process has the lease of a run; nil: that is not examined
	now            func() time.Time
	engine         func(context.Context, engine.Options, engine.Request) (engine.Result, error)
	collector      *process.Collector // nil: the garbage collector is not tuned
	global         globalFlags
	here           string       // the user's folder: the current directory, or -C; set with global.dir by enterTree
	project        string       // the user's folder, also in the workspace of a run, where here is the tree
	prefix         string       // the path of here relative to the tree in global.dir; "" at its root
	log            *slog.Logger // nil: nothing is logged
	logTo          *os.File     // of --log-file
}

// globalFlags are the flags of every command.
type globalFlags struct {
	dir     string
	output  string
	noColor bool
	quiet   bool
	// logLevel and logFile configure the structured log.
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
