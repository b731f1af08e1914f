package gitrepo

import (
	"context"
	"os/exec"
	"strings"
)

// mode says which programs of the repository's configuration a git command may run. No command runs core.fsmonitor.
type mode int

const (
	// look runs none: no hook, filter, diff, editor, signing, ssh or credential program, and nothing is fetched.
	look mode = iota
	// work runs what a commit or a push needs: filters, the signing program and the programs of the transport. No hook.
	work
	// workWithHooks is work with the repository's hooks.
	workWithHooks
)

// Inspect makes a git command that looks at the repository around dir and runs no program of its configuration. environ is
// the environment; what would point git at another repository is left out of it.
func Inspect(ctx context.Context, dir string, environ []string, args ...string) *exec.Cmd {
	return newGit(ctx, look, "git", dir, environ, args...)
}

// newGit makes every git command of this program; see Inspect.
func newGit(ctx context.Context, m mode, git, dir string, environ []string, args ...string) *exec.Cmd {
	config := []string{"-c", "core.fsmonitor=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false"}
	env := withoutRepository(environ)
	if m != workWithHooks {
		config = append(config, "-c", "core.hooksPath=/dev/null")
	}
	if m == look {
		config = append(config, "-c", "log.showSignature=false")
		// A partial clone fetches what it lacks, by programs that its configuration names; older versions know only the second.
		env = append(env, "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0")
	}
	cmd := exec.CommandContext(ctx, git, append(config, args...)...)
	cmd.Dir, cmd.Env = dir, env
	return cmd
}

// withoutRepository drops the variables that point git at another repository than that around its working directory, and
// has messages in English.
func withoutRepository(environ []string) []string {
	var env []string
	for _, kv := range environ {
		switch key, _, _ := strings.Cut(kv, "="); key {
		case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_NAMESPACE",
			"GIT_PREFIX", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH", "LC_ALL", "LANGUAGE":
		default:
			env = append(env, kv)
		}
	}
	return append(env, "LC_ALL=C")
}
