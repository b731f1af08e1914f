package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
)

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
