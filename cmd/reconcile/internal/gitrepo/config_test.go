package gitrepo

import (
	"os"
	"strings"
	"testing"
)

// TestFiltersAreFound: wherever git would find a filter, reading commands are told to run none.
func TestFiltersAreFound(t *testing.T) {
	t.Parallel()
	const filter = "[FILTER \"x\"]\n\tclean = evil\n"
	for name, set := range map[string]func(f *fixture) (environ []string){
		"the repository": func(f *fixture) []string { f.write(".git/config", f.read(".git/config")+filter); return nil },
		"an included file": func(f *fixture) []string {
			f.write(".git/more", filter)
			f.git("config", "include.path", "more")
			return nil
		},
		"the environment": func(*fixture) []string {
			return []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=filter.x.clean", "GIT_CONFIG_VALUE_0=evil"}
		},
		"the work tree": func(f *fixture) []string {
			f.git("config", "extensions.worktreeConfig", "true")
			f.write(".git/config.worktree", filter)
			return nil
		},
		"nowhere, in truth": func(*fixture) []string { return nil },
	} {
		f := newFixture(t)
		environ := append(os.Environ(), set(f)...)
		env := withoutFilters(t.Context(), "git", f.dir, environ)
		if found := strings.Contains(strings.Join(env, " "), "=filter.x.clean"); found != (name != "nowhere, in truth") {
			t.Errorf("%s: %q", name, env)
		}
	}
}
