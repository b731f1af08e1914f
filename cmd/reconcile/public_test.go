package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"reconcile.dev/reconcile/controllers/checks"
)

// publicProject is a project as its authors publish it, with the commands by which its own tools check it.
type publicProject struct {
	name    string
	fetch   string // a shell script that makes a folder of that name
	env     map[string]string
	own     map[string][]string // by the names of tools
	counted string              // finds the number of tests that passed in what the test tool prints
}

var publicProjects = []publicProject{
	{name: "minimist", counted: `(?m)^# pass +(\d+)$`,
		fetch: `npm pack --silent minimist@1.2.8 && tar -xzf minimist-1.2.8.tgz && mv package minimist && cd minimist && npm install --ignore-scripts --no-audit --no-fund --silent`,
		own:   map[string][]string{"eslint": {"node_modules/.bin/eslint", "--ext=js,mjs", "--max-warnings=0", "."}, "tape": {"node_modules/.bin/tape", "test/**/*.js"}}},
	{name: "markupsafe", counted: `(?m)^(\d+) passed`, env: map[string]string{"PYTHONPATH": "src"},
		fetch: `mkdir -p etc lists/partial archives/partial markupsafe && sed 's/^Types: deb$/Types: deb-src/' /etc/apt/sources.list.d/debian.sources > etc/debian.sources
set -- -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$PWD/etc" -o Dir::State::Lists="$PWD/lists" -o Dir::Cache="$PWD" -o APT::Sandbox::User=root
apt-get "$@" update
apt-get "$@" source --download-only markupsafe || test -f markupsafe_*.orig.tar.gz # Debian's own part is not needed
tar -xzf markupsafe_*.orig.tar.gz -C markupsafe --strip-components=1`,
		own: map[string][]string{"flake8": {"flake8"}, "mypy": {"mypy"}, "pytest": {"pytest", "-q"}}},
}

// TestPublicProjects inspects and tests public projects without a configuration for reconcile: each tool says what it says when it is called by hand, and
// as many tests pass. What cannot be fetched is skipped by its name.
func TestPublicProjects(t *testing.T) {
	if _, asked := os.LookupEnv(checkTools); !asked {
		t.Skip("not asked for; go run ./cmd/reconcile/internal/tools/check checks")
	}
	for _, public := range publicProjects {
		t.Run(public.name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			p := &project{dir: dir}
			fetch := exec.CommandContext(t.Context(), "sh", "-ec", public.fetch)
			fetch.Dir = dir
			if out, err := fetch.CombinedOutput(); err != nil {
				t.Skipf("%s cannot be fetched: %v\n%s", public.name, err, out)
			}
			writeFile(t, filepath.Join(dir, public.name, ".gitignore"), []byte("node_modules/\n__pycache__/\n.*_cache/\n"))
			p.git(t, public.name, "init", "-q")
			p.commit(t, public.name)
			for name, value := range public.env {
				t.Setenv(name, value)
			}
			public.compare(t, p)
		})
	}
}

// compare compares what the tools are said to have found with what they say themselves.
func (public *publicProject) compare(t *testing.T, p *project) {
	all := p.check(t, public.name)
	for tool, argv := range public.own {
		i := slices.IndexFunc(all, func(c checks.Check) bool { return c.Tool == tool })
		if i < 0 {
			t.Errorf("%s was not found", tool)
			continue
		}
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Dir = filepath.Join(p.dir, public.name)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		switch {
		case err != nil && !errors.As(err, &exit):
			t.Logf("skipped: %s is not installed", tool)
			continue
		case err == nil && all[i].Outcome != checks.Passed || err != nil && all[i].Outcome != checks.Failed:
			t.Errorf("%s: %s (%s); by itself: %v\n%s", tool, all[i].Outcome, all[i].Reason, err, out)
		}
		if len(all[i].Tests) == 0 {
			continue
		}
		passed := checks.Count(all[i].Tests).Passed
		if m := regexp.MustCompile(public.counted).FindSubmatch(out); m == nil || string(m[1]) != strconv.Itoa(passed) {
			t.Errorf("%s: %d passed; by itself:\n%s", tool, passed, out)
		}
	}
}
