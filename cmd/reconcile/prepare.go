package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/caller"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
	"reconcile.dev/reconcile/state/worktree"
)

// treeNeed says whether a command needs a tree.
type treeNeed int

const (
	treeNeeded   treeNeed = iota // exit code 2 without a tree
	treeOptional                 // works on the user's folder without a tree
	treeUnused                   // does not look for a tree
	treeAround                   // as treeOptional, of the folder itself: in the workspace of a run, not of the tree of that run
)

// treeNeeds are the commands that do not require a tree, including their subcommands.
var treeNeeds = map[string]treeNeed{
	"init": treeUnused, "version": treeUnused, "completion": treeUnused, "explain": treeUnused, "schema": treeUnused,
	"help": treeUnused, "merge-driver": treeUnused,
	"search": treeOptional, "index": treeOptional, "related": treeOptional, "path": treeOptional, "doctor": treeOptional,
	"tools": treeOptional, "inspect": treeOptional, "test": treeOptional, "allow": treeOptional,
	"preview": treeAround, "style": treeAround, "deps": treeAround,
	cobra.ShellCompRequestCmd: treeUnused, cobra.ShellCompNoDescRequestCmd: treeUnused, // the completed command looks for one
}

func needOf(cmd *cobra.Command) treeNeed {
	if at := cmd.Flags().Lookup("at"); at != nil && at.Changed {
		return treeOptional // it is in a commit, and possibly not in the work tree
	}
	for ; cmd.HasParent(); cmd = cmd.Parent() {
		if !cmd.Parent().HasParent() {
			return treeNeeds[cmd.Name()]
		}
	}
	return treeNeeded
}

// enterTree makes the tree around the user's folder the tree of the command.
func (a *app) enterTree(need treeNeed) error {
	a.here, a.project = a.global.dir, a.global.dir
	if need == treeUnused {
		return nil
	}
	if root := a.treeOfWorkspace(); root != "" && need != treeAround {
		a.here, a.global.dir = root, root
	}
	found, err := state.Find(a.here, kinds())
	switch {
	case errors.Is(err, state.ErrNoTree) && (need == treeOptional || need == treeAround):
		return nil
	case errors.Is(err, state.ErrNoTree):
		return badUsage("%v; \"reconcile init\" makes one here, -C DIR names one elsewhere", err)
	case errors.Is(err, state.ErrForeign):
		return badUsage("%v", err)
	case err != nil:
		return err
	}
	here, err := realPath(a.here)
	if err != nil || here == found {
		return err
	}
	a.global.dir = shownFromHere(found)
	a.prefix, err = filepath.Rel(found, here)
	return err
}

// treeOfWorkspace returns the tree of the run that this process is part of, if the current directory is in the run's
// workspace and no other one was asked for: what the checkout there has is a copy, whose questions no one would see.
func (a *app) treeOfWorkspace() string {
	workspace, root := a.getenv("RECONCILE_WORKSPACE"), a.getenv("RECONCILE_ROOT")
	if a.global.dir != "." || workspace == "" || !filepath.IsAbs(root) {
		return ""
	}
	here, err := realPath(".")
	if _, below := worktree.Within(workspace, here); err != nil || !below {
		return ""
	}
	return root
}

// shownFromHere returns the shorter of a folder's absolute path and its path relative to the current directory.
func shownFromHere(dir string) string {
	if wd, err := realPath("."); err == nil {
		if rel, err := filepath.Rel(wd, dir); err == nil && len(rel) < len(dir) {
			return rel
		}
	}
	return dir
}

// within resolves a path of the command line, which is relative to the user's folder: the current directory, or -C.
func (a *app) within(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(a.here, path)
}

// kinds is the table of kinds of the command line.
func kinds() schemas.Kinds { return controllers.Schemas() }

// env returns the environment for operations.
func (a *app) env() ops.Env {
	return ops.Env{
		Tree:   tree.Config{Dir: a.global.dir, Now: a.now, Getenv: a.getenv, Log: a.log, Collector: a.collector},
		Prefix: a.prefix,
		Caller: caller.Caller{Dir: a.global.dir, Getenv: a.getenv, Ancestry: a.ancestry, Inherits: a.inherits},
		Sink:   &reporter{app: a, last: time.Now()}, View: a.view, Engine: a.engine, Sandbox: a.sandbox,
		Attended: isTerminal(a.stdout) && isTerminal(a.stderr), Explain: a.global.output != formatTable,
	}
}

// withRef joins a kind and a name that were given as two words, "dag checks".
func withRef(args []string) []string {
	if len(args) > 1 && !strings.Contains(args[0], "/") {
		args = slices.Concat([]string{args[0] + "/" + args[1]}, args[2:])
	}
	return args
}

// checkFlags checks the global flags.
func (a *app) checkFlags() error {
	info, err := os.Stat(a.global.dir)
	switch {
	case err != nil:
		return badUsage("-C %s: %v; name the folder of a tree", a.global.dir, regular.Cause(err))
	case !info.IsDir():
		return badUsage("-C %s is a file; name the folder of a tree", a.global.dir)
	}
	return a.openLog()
}

// prepare runs before every command.
func (a *app) prepare(cmd *cobra.Command) error {
	if err := a.checkFlags(); err != nil {
		return err
	}
	if err := a.enterTree(needOf(cmd)); err != nil {
		return err
	}
	return a.confined(cmd)
}

// forConfined are the commands that a run may have done outside of its sandbox: they write only what an agent may say, by the rules of
// their operations. All others run inside of it.
var forConfined = map[string]bool{"clarify": true, "escalate": true, "propose": true, "memory": true, "ready": true, "search": true, "related": true, "path": true}

// confined hands the command over to the process that runs this run, if it runs in a sandbox and the command is about the run's own
// tree. It returns a verdict with the exit code then.
func (a *app) confined(cmd *cobra.Command) error {
	mine := a.isOwnTree()
	if key := a.getenv(runner.BrokerVar); key != "" {
		if !mine || !forConfined[topName(cmd)] {
			return badUsage("%s is not done for a run in a sandbox (%s), or not in another tree", cmd.CommandPath(), key)
		}
		if readsFiles(cmd) {
			return badUsage("%s reads no file for a run in a sandbox, which may not be allowed to read it: hand it over on standard input",
				cmd.CommandPath())
		}
		if a.global.logFile != "" {
			return badUsage("--log-file cannot be given in a sandbox")
		}
		return nil
	}
	host := a.getenv(runner.HostVar)
	streams, ok := a.files()
	if host == "" || !mine || !ok || !forConfined[topName(cmd)] {
		return nil
	}
	code, err := runner.AskHost(host, a.args, streams)
	if err != nil {
		return fmt.Errorf("the run's sandbox: %w; the program that started the run does not answer", err)
	}
	return &verdict{code: code}
}

// readsFiles reports whether a command of forConfined reads files that its arguments name.
func readsFiles(cmd *cobra.Command) bool {
	switch cmd.Name() {
	case "capture":
		args := cmd.Flags().Args()
		return len(args) > 0 && args[0] != "-"
	case "eval", "scan":
		return true
	case "propose":
		f := cmd.Flags().Lookup("file")
		return f.Changed && f.Value.String() != "-"
	}
	return false
}

// files returns the streams of this process, to hand them to a program outside of the sandbox; ok is false unless all are files.
func (a *app) files() (out [3]*os.File, ok bool) {
	for i, s := range []any{a.stdin, a.stdout, a.stderr} {
		if out[i], ok = s.(*os.File); !ok {
			return out, false
		}
	}
	return out, true
}

// isOwnTree reports whether the tree is that of the run which this process is part of.
func (a *app) isOwnTree() bool {
	dir, err := realPath(a.global.dir)
	root, err2 := realPath(a.getenv("RECONCILE_ROOT"))
	return err == nil && err2 == nil && dir == root
}

// topName is the name of the command below the program's own.
func topName(cmd *cobra.Command) string {
	for cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	return cmd.Name()
}

func realPath(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

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
