package gitrepo

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo/message"
)

// programMode selects which programs of the repository's configuration a git command may run. No command runs
// core.fsmonitor.
type programMode int

const (
	// readOnly runs no hook, filter, diff, editor, signing, ssh or credential program, and fetches nothing.
	readOnly programMode = iota
	// withPrograms runs the programs of commits and pushes: filters, the signing program and transport programs. No
	// hook.
	withPrograms
	// withHooks is withPrograms with the repository's hooks.
	withHooks
)

// Inspect returns an exec.Cmd of git with these args, which reads the repository around dir and runs no program of its
// configuration. environ is the environment; variables that point git at another repository are dropped.
func Inspect(ctx context.Context, dir string, environ []string, args ...string) *exec.Cmd {
	cmd := newGit(ctx, readOnly, "git", dir, environ, args...)
	if len(args) > 0 && (args[0] == "diff" || args[0] == "status") {
		cmd.Env = append(cmd.Env, withoutFilters(ctx, "git", dir, environ)...)
	}
	return cmd
}

// withoutFilters returns variables with which git knows no filter driver of the configuration around dir: it runs them when it compares
// files of the work tree. A file with a filter then differs if its size or times are not those in the index.
func withoutFilters(ctx context.Context, git, dir string, environ []string) (env []string) {
	if r, err := Open(dir); err == nil && r.withoutFilters(environ) {
		return nil
	}
	out, err := newGit(ctx, readOnly, git, dir, environ, "config", "--name-only", "-z", "--get-regexp", `^filter\.`).Output()
	if err != nil {
		return nil // there is none; of another error, the command itself complains
	}
	n := 0
	for _, kv := range environ {
		if count, ok := strings.CutPrefix(kv, "GIT_CONFIG_COUNT="); ok {
			n, _ = strconv.Atoi(count)
		}
	}
	for _, key := range nulSplit(out) {
		value := "" // of clean, smudge and process: no program
		if strings.HasSuffix(key, ".required") {
			value = "false"
		}
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", n, key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", n, value))
		n++
	}
	return append(env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", n))
}

// newGit creates every git command of this program; see Inspect.
func newGit(ctx context.Context, m programMode, git, dir string, environ []string, args ...string) *exec.Cmd {
	config := []string{"-c", "core.fsmonitor=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false"}
	env := withoutRepository(environ)
	if m != withHooks {
		config = append(config, "-c", "core.hooksPath=/dev/null")
	}
	if m == readOnly {
		config = append(config, "-c", "log.showSignature=false")
		// A partial clone fetches missing objects with programs that its configuration names; older versions of git know
		// only the second variable.
		env = append(env, "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0")
	}
	cmd := exec.CommandContext(ctx, git, append(config, args...)...)
	cmd.Dir, cmd.Env = dir, env
	return cmd
}

// withoutRepository drops the variables that point git at another repository than that around its working
// directory, and selects English messages.
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

// gitError is a git command that failed.
type gitError struct {
	verb   string
	err    error
	stderr string
}

func (e *gitError) Error() string {
	return fmt.Sprintf("git %s: %v: %s", e.verb, e.err, lastLine(e.stderr))
}

func (e *gitError) Unwrap() error { return e.err }

func nulSplit(data []byte) []string {
	text := strings.TrimSuffix(string(data), "\x00")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\x00")
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// complaint returns the line that names the failure, without a password from an address.
func complaint(stderr string) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	for _, sort := range []string{"fatal: ", "error: ", ""} {
		if i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, sort) }); i >= 0 {
			return message.Clip(withoutPasswords(strings.TrimPrefix(lines[i], sort)), 300)
		}
	}
	return ""
}

// withoutPasswords removes the text between :// and @.
func withoutPasswords(s string) string {
	var out strings.Builder
	for {
		before, after, ok := strings.Cut(s, "://")
		out.WriteString(before)
		if !ok {
			return out.String()
		}
		out.WriteString("://")
		end := strings.IndexAny(after, "/ '\"\t\n")
		if end < 0 {
			end = len(after)
		}
		if at := strings.LastIndexByte(after[:end], '@'); at >= 0 {
			after = after[at+1:]
		}
		s = after
	}
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}
