package doctor

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
)

// HealthAilment says why an agent cannot work on this machine, and what to do; "" if nothing is known against it. Its program must be found and
// logged in, and the program of its check must end with exit code 0. dir is the root of the tree, own are the profiles of its settings.
// Output of which isSecret is true is not repeated.
func HealthAilment(ctx context.Context, dir string, environ []string, own map[string]schemas.Profile, a *schemas.AgentSpec, isSecret func([]byte) bool) string {
	c := a.Runner.AsCommand()
	if c == nil {
		return ""
	}
	if why := programAilment(ctx, dir, environ, own, c); why != "" {
		return why
	}
	if a.Health == nil || len(a.Health.Argv) == 0 {
		return ""
	}
	return checkAilment(ctx, dir, environ, c, a.Health.Argv, isSecret)
}

func programAilment(ctx context.Context, dir string, environ []string, own map[string]schemas.Profile, c *schemas.CommandRunner) string {
	if c.Profile == "" {
		if len(c.Argv) == 0 {
			return ""
		}
		if _, err := exec.LookPath(programPath(dir, c.Argv[0])); err != nil {
			return notFound(c.Argv[0])
		}
		return ""
	}
	switch p, ok := FindProgram(ctx, environ, own, c); {
	case !ok || p.Name == "":
		return ""
	case p.Path == "":
		return notFound(p.Name)
	case p.Login == LoggedOut:
		return fmt.Sprintf("%s is not logged in: log in with the program itself", p.Name)
	}
	return ""
}

func notFound(program string) string {
	return fmt.Sprintf("the program %q is not found: install it, or put its folder on the PATH", program)
}

// programPath is where a program of a spec is: names with a slash are below the root. An absolute path is not looked for on the PATH.
func programPath(dir, name string) string {
	if !strings.ContainsRune(name, '/') || filepath.IsAbs(name) {
		return name
	}
	below := filepath.Join(dir, filepath.FromSlash(name))
	if whole, err := filepath.Abs(below); err == nil {
		return whole
	}
	return below
}

// checkAilment runs the program of a check with the environment of reconcile, and the texts in that of the agent.
func checkAilment(ctx context.Context, dir string, environ []string, c *schemas.CommandRunner, argv []string, isSecret func([]byte) bool) string {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, programPath(dir, argv[0]), argv[1:]...)
	texts, _ := settle.Variables(c.Env)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, append(slices.Clip(environ), texts...), probeGrace
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return ""
	case ctx.Err() != nil:
		return fmt.Sprintf("its check %s did not end within %s", argv[0], probeTime)
	}
	said := ""
	if !isSecret(out) {
		said = firstLine(string(secrets.RedactBytes(out)))
	}
	return fmt.Sprintf("its check %s failed: %s", argv[0], cmp.Or(said, err.Error()))
}

// firstLine is the beginning of the first line of a text.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.ToValidUTF8(line[:min(len(line), 100)], "")
}
