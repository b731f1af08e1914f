package repotest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/buildcache"
	"reconcile.dev/reconcile/state"
)

var update = flag.Bool("update", false, "rewrite the output shown in the documents")

// A session is what one ```console block of a page shows: commands, each with what it prints. Lines that begin with "$ "
// are commands, "> " goes on with one, the rest is output. The blocks of one page are run in order, each beginning in the
// folder where the last one ended, and the first one in a folder that has only the examples, as a clone has them.
//
// A ```sh run block has commands to paste, without prompts, and may print anything.
//
// Where output differs from run to run, times, durations and hashes count as equal; "…" stands for any text in a line,
// and alone on a line for any number of lines. A command has to succeed: one that shows a failure ends in ; echo "exit $?".
type session []exchange

type exchange struct {
	line     int // of the command, from 1
	command  string
	from, to int  // lines of the output: page[from:to], from 0
	silent   bool // the page shows no output
}

// sessions finds the console blocks of a page, and those with commands to paste.
func sessions(page []string) []session {
	var all []session
	var s session
	in := false
	for i, line := range page {
		switch {
		case !in && line == "```console":
			in, s = true, nil
		case !in && line == "```sh run":
			in, s = true, session{{line: i + 2, silent: true}}
		case in && line != "```" && len(s) > 0 && s[0].silent:
			s[0].command += line + "\n"
		case in && line == "```":
			in, all = false, append(all, s)
		case !in:
		case strings.HasPrefix(line, "$ "):
			s = append(s, exchange{line: i + 1, command: line[2:], from: i + 1, to: i + 1})
		case strings.HasPrefix(line, "> ") && len(s) > 0 && s[len(s)-1].to == i && s[len(s)-1].from == i:
			last := &s[len(s)-1]
			last.command += "\n" + line[2:]
			last.from, last.to = i+1, i+1
		case len(s) > 0:
			s[len(s)-1].to = i + 1
		}
	}
	return all
}

func TestDocumentsShowWhatCommandsPrint(t *testing.T) {
	if testing.Short() {
		t.Skip("runs all commands of the documents")
	}
	bin := buildProgram(t)
	for _, name := range documents(t) {
		page := strings.Split(read(t, name), "\n")
		blocks := sessions(page)
		if len(blocks) == 0 {
			continue
		}
		shell := newShell(t, bin)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shell.dir = t.TempDir()
			copyExamples(t, shell.dir)
			changed := false
			for _, x := range slices.Concat(blocks...) {
				got, err := shell.run(t, x.command)
				if err != nil {
					t.Errorf("%s:%d: $ %s\n%s%v", name, x.line, x.command, got, err)
				}
				want := strings.Join(page[x.from:x.to], "\n")
				if !x.silent && !matches(want, strings.TrimRight(got, "\n")) {
					changed = true
					if !*update {
						t.Errorf("%s:%d: $ %s\nprints\n%s\ninstead of\n%s", name, x.line, x.command, got, want)
					}
				}
				shell.printed = append(shell.printed, got)
			}
			if changed && *update {
				rewrite(t, name, page, slices.Concat(blocks...), shell.printed)
			}
		})
	}
}

// rewrite puts what was printed into the page, where it differs.
func rewrite(t *testing.T, name string, page []string, xs []exchange, printed []string) {
	t.Helper()
	for i := len(xs) - 1; i >= 0; i-- {
		x, got := xs[i], strings.TrimRight(printed[i], "\n")
		if x.silent || matches(strings.Join(page[x.from:x.to], "\n"), got) {
			continue
		}
		var lines []string
		if got != "" {
			lines = strings.Split(got, "\n")
		}
		page = slices.Replace(page, x.from, x.to, lines...)
	}
	file := filepath.Join(root(t), filepath.FromSlash(name))
	if err := os.WriteFile(file, []byte(strings.Join(page, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// shell runs commands one after the other, in a folder that cd changes, with the built program on the PATH.
type shell struct {
	dir     string
	env     []string
	cwd     string // file in which each command leaves its folder
	printed []string
}

// buildProgram builds the program into a folder, and returns that.
func buildProgram(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the documents show a POSIX shell")
	}
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(bin, "reconcile"), "./cmd/reconcile")
	build.Dir = root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// newShell returns a shell with a home folder of its own, and the program in a folder.
func newShell(t *testing.T, bin string) *shell {
	t.Helper()
	home := t.TempDir()
	// A git as it is installed: what it calls the first branch differs, and no page may rely on it.
	config := "[user]\n\tname = Example\n\temail = example@example.org\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	linkBuildCache(t, home)
	return &shell{
		cwd: filepath.Join(t.TempDir(), "cwd"),
		env: []string{
			"PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8",
			"TMPDIR=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "NO_COLOR=1", "TERM=dumb",
		},
	}
}

// linkBuildCache gives a home folder what go has built already on this machine, for documents that run go.
func linkBuildCache(t *testing.T, home string) {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(home, ".cache", "go-build")
	if err := os.MkdirAll(filepath.Dir(cache), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(strings.TrimSpace(string(out)), cache); err != nil {
		t.Fatal(err)
	}
}

// run runs one command and returns what it prints on both streams.
func (s *shell) run(t *testing.T, command string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // on a busy machine, too
	defer cancel()
	s.fillChecksCache(t)
	cmd := exec.CommandContext(ctx, "sh", "-c", command+"\ncode=$?; pwd > \"$CWD_FILE\"; exit $code")
	cmd.Dir = s.dir
	cmd.Env = append(slices.Clone(s.env), "CWD_FILE="+s.cwd)
	out, err := cmd.CombinedOutput()
	if dir, readErr := os.ReadFile(s.cwd); readErr == nil {
		s.dir = strings.TrimSpace(string(dir))
	}
	return string(out), err
}

// fillChecksCache fills the caches of confined checks in a tree that is a module of Go, before the first run makes it.
func (s *shell) fillChecksCache(t *testing.T) {
	local := filepath.Join(s.dir, ".reconcile")
	if exists(local) {
		return
	}
	for _, needed := range []string{".git", "go.mod", "reconcile.yaml"} {
		if !exists(filepath.Join(s.dir, needed)) {
			return
		}
	}
	if err := buildcache.Fill(filepath.Join(local, filepath.Base(state.ProgramsDir), "_verified", "go-build")); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// slow is what commands add to a line on a machine on which they take long, and counted a line that they add.
var (
	slow    = regexp.MustCompile(`; it took [0-9.hms]+, where a change should take at most [0-9.hms]+`)
	counted = regexp.MustCompile(`^[a-z]+: [a-z ]+ [0-9,]+ of [0-9,]+$`)
)

// volatile are the parts of output that differ from run to run.
var volatile = []struct {
	pattern *regexp.Regexp
	as      string
}{
	{slow, ""},
	{regexp.MustCompile(`\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?`), "‹time›"},
	{regexp.MustCompile(`\b\d{2}:\d{2}(:\d{2}(\.\d+)?)?\b`), "‹time›"},
	{regexp.MustCompile(`\b[0-9a-f]{7,64}\b`), "‹hash›"}, // first: 9d00881d is no length of days
	{regexp.MustCompile(`\b(\d+(\.\d+)?(ns|µs|ms|s|m|h|d))+\b`), "‹duration›"},
	{regexp.MustCompile(` +`), " "}, // columns move with what is in them
}

func normal(s string) string {
	for _, v := range volatile {
		s = v.pattern.ReplaceAllString(s, v.as)
	}
	return strings.TrimRight(s, " ")
}

// matches reports whether output is what a page shows.
func matches(want, got string) bool {
	return matchLines(strings.Split(want, "\n"), slices.DeleteFunc(strings.Split(got, "\n"), counted.MatchString))
}

func matchLines(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if strings.TrimSpace(want[0]) == "…" {
		for i := range len(got) + 1 {
			if matchLines(want[1:], got[i:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && matchLine(want[0], got[0]) && matchLines(want[1:], got[1:])
}

func matchLine(want, got string) bool {
	var pattern []string
	for _, part := range strings.Split(normal(want), "…") {
		pattern = append(pattern, regexp.QuoteMeta(part))
	}
	return regexp.MustCompile("^" + strings.Join(pattern, ".*") + "$").MatchString(normal(got))
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		want, got string
		equal     bool
	}{
		{"a\nb", "a\nb", true},
		{"a\nb", "a\nc", false},
		{"a", "a\nb", false},
		{"a\n…", "a\nb\nc", true},
		{"a\n…\nd", "a\nd", true},
		{"a\n…\nd", "a\nb", false},
		{"took 1.2s at 12:03:04", "took 350ms at 23:59:59", true},
		{"took 1.2s", "took ages", false},
		{"12 objects ready (3 waiting)", "13 objects ready (3 waiting)", false},
		{"[main 3f2a9c1] Record", "[main 77b0e12] Record", true},
		{"dag/checks   True   Succeeded", "dag/checks  True  Succeeded", true},
		{"wrote … files", "wrote 12 files", true},
		{"since 2026-01-02T03:04:05Z", "since 2027-01-02T03:04:05Z", true},
		{"clean: go vet\",", "clean: go vet; it took 1m33s, where a change should take at most 5s\",", true},
		{"built the index", "index: read 0 of 1,100\nbuilt the index", true},
		{"", "", true},
		{"", "x", false},
	} {
		if got := matches(c.want, c.got); got != c.equal {
			t.Errorf("matches(%q, %q) = %v", c.want, c.got, got)
		}
	}
}

func TestSessions(t *testing.T) {
	page := strings.Split("text\n```console\n$ a\none\ntwo\n$ b \\\n> c\n```\n"+
		"```sh\n$ not run\n```\n```console\n$ d\n```\n```sh run\ne\nf\n```", "\n")
	var got []string
	for _, x := range slices.Concat(sessions(page)...) {
		got = append(got, fmt.Sprintf("%d %q %q", x.line, x.command, page[x.from:x.to]))
	}
	want := []string{`3 "a" ["one" "two"]`, `6 "b \\\nc" []`, `13 "d" []`, `16 "e\nf\n" []`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestShellKeepsItsFolder: a page that says cd means it.
func TestShellKeepsItsFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the documents show a POSIX shell")
	}
	s := &shell{dir: t.TempDir(), cwd: filepath.Join(t.TempDir(), "cwd"), env: []string{"PATH=" + os.Getenv("PATH")}}
	if out, err := s.run(t, "mkdir in && cd in"); err != nil || out != "" {
		t.Fatalf("%q, %v", out, err)
	}
	if out, err := s.run(t, "basename \"$(pwd)\""); err != nil || out != "in\n" {
		t.Errorf("%q, %v; want the folder that cd named", out, err)
	}
	if _, err := s.run(t, "exit 3"); err == nil {
		t.Error("a failed command counts as a success")
	}
}
