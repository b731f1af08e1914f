// Package profiles has the profiles of known agents: how the program of each is started without a terminal, and how its
// output is read. Profiles are data, in builtin.yaml; settings add others and change fields of these. Everything here is a
// pure function of its arguments.
package profiles

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"

	"reconcile.dev/reconcile/schemas"
)

//go:embed builtin.yaml
var builtin []byte

var table = sync.OnceValue(func() map[string]schemas.Profile {
	var all map[string]schemas.Profile
	if err := yaml.UnmarshalStrict(builtin, &all); err != nil {
		panic(fmt.Sprintf("built-in profiles: %v", err)) // a test decodes them
	}
	return all
})

// Find returns the profile of a name: the built-in one with the fields that own, those of the settings, change.
func Find(own map[string]schemas.Profile, name string) (schemas.Profile, bool) {
	p, known := table()[name]
	over, named := own[name]
	return p.With(over), known || named
}

// Names are the names of all profiles, sorted.
func Names(own map[string]schemas.Profile) []string {
	all := maps.Clone(table())
	maps.Copy(all, own)
	return slices.Sorted(maps.Keys(all))
}

// Check returns why a runner that names a profile cannot be run, in words; "" if it can.
func Check(own map[string]schemas.Profile, r *schemas.Runner) string {
	c := r.AsCommand()
	if c == nil || c.Profile == "" {
		return ""
	}
	p, ok := Find(own, c.Profile)
	switch {
	case !ok:
		why := fmt.Sprintf("the profile %q is not known; known are %s", c.Profile, strings.Join(Names(own), ", "))
		if near := schemas.GuessWord(c.Profile, Names(own)); near != "" {
			why = fmt.Sprintf("the profile %q is not known; is %s meant?", c.Profile, near)
		}
		return why
	case len(p.Argv) == 0 && len(c.Argv) == 0:
		return fmt.Sprintf("the profile %q has no argv", c.Profile)
	case len(p.Events) == 0:
		return fmt.Sprintf("the profile %q has no events: nothing would be read from the output", c.Profile)
	case len(r.MCPServers) > 0 && !OverACP(&p, r):
		return fmt.Sprintf("runner.mcpServers needs the Agent Client Protocol, over which the profile %q does not run here", c.Profile)
	}
	return ""
}

// OverACP reports whether a runner that names a profile, and nothing else, runs its program over the Agent Client Protocol where that is
// found: with a key it does if that program can be pointed at the metering proxy.
func OverACP(p *schemas.Profile, r *schemas.Runner) bool {
	return r.Profile != "" && len(p.ACP) > 0 && (r.KeyFrom == nil || p.Proxy.ACP)
}

// Silence is how long a turn may be silent.
func Silence(p *schemas.Profile, c *schemas.CommandRunner) time.Duration {
	for _, d := range []*schemas.Duration{c.Silence, p.Silence} {
		if d != nil {
			return d.Std()
		}
	}
	return schemas.DefaultSilence.Std()
}

// Args returns the program and arguments of a turn: those of the command, else those of the profile, with the placeholders
// replaced but for the prompt, those of a sandbox and those of the metering proxy, to which the program is pointed if metered. prompt is the index of the argument that is the prompt, 0 if the prompt goes to standard input.
func Args(p *schemas.Profile, c *schemas.CommandRunner, model, resume string, metered bool) (argv []string, prompt int) {
	from := c.Argv
	if len(from) == 0 {
		from = p.Argv
	}
	for _, arg := range from {
		switch arg {
		case schemas.ArgModel:
			argv = appendValue(argv, p.Model, model)
		case schemas.ArgResume:
			argv = appendValue(argv, p.Resume, resume)
		case schemas.ArgProxy:
			if metered {
				argv = append(argv, p.Proxy.Args...)
			}
		default:
			if arg == schemas.ArgPrompt {
				prompt = len(argv)
			}
			argv = append(argv, arg)
		}
	}
	return argv, prompt
}

// Permit returns a command's arguments with those that allow commands after the program, and the new place of the prompt. An argv
// of the agent's own is unchanged.
func Permit(p *schemas.Profile, c *schemas.CommandRunner, argv []string, prompt int, allowed []string) ([]string, int) {
	if len(c.Argv) > 0 || len(argv) == 0 {
		return argv, prompt
	}
	var more []string
	for _, command := range allowed {
		more = appendValue(more, p.Permit, command)
	}
	if prompt > 0 {
		prompt += len(more)
	}
	return slices.Insert(slices.Clone(argv), 1, more...), prompt
}

func appendValue(argv, args []string, value string) []string {
	if value == "" {
		return argv
	}
	for _, a := range args {
		argv = append(argv, strings.ReplaceAll(a, schemas.ArgValue, value))
	}
	return argv
}
