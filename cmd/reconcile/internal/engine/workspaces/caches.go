package workspaces

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gocache"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// verifiedCache is the folder of the caches that verifications share: only tools that run no code of a change write there.
func (m *Manager) verifiedCache() string {
	return filepath.Join(m.tree, filepath.FromSlash(state.ProgramsDir), "_verified")
}

// readsCaches adds to the variables of a check that is confined what go reads in place of a cache of its own, which is empty at first: what the verifications
// compiled, and what the user did, unless the check may write there.
func (m *Manager) readsCaches(env []string, confined *settle.Sandbox) []string {
	if confined == nil || confined.Level == schemas.SandboxNone || confined.Read != nil || m.o.Getenv == nil || m.o.Self == "" {
		return env
	}
	if slices.ContainsFunc(env, func(kv string) bool {
		return strings.HasPrefix(kv, "GOCACHE") || strings.HasPrefix(kv, "XDG_CACHE_HOME=")
	}) {
		return env
	}
	if found, err := m.o.Sandbox.Choose(&confined.Sandbox); err != nil || found.Level == schemas.SandboxNone {
		return env
	}
	from := []string{filepath.Join(m.verifiedCache(), "go-build")}
	home := m.o.Getenv("HOME")
	user := cmp.Or(m.o.Getenv("GOCACHE"), filepath.Join(cmp.Or(m.o.Getenv("XDG_CACHE_HOME"), filepath.Join(home, ".cache")), "go-build"))
	granted := func(name string) bool {
		if rest, ok := strings.CutPrefix(name, "~/"); ok {
			name = filepath.Join(home, rest)
		}
		return inside(realParent(name), realParent(user)) || inside(realParent(user), realParent(name))
	}
	if filepath.IsAbs(user) && !slices.ContainsFunc(confined.Write, granted) {
		from = append(from, user)
	}
	program := gocache.Program(m.o.Self, "", from...)
	if program == "" {
		return env
	}
	return append(slices.Clip(env), "GOCACHEPROG="+program)
}
