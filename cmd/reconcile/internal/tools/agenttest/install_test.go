//go:build unix

package agenttest

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// npmStandIn is a program in the place of npm that makes what each package has on this machine, and notes its calls.
const npmStandIn = `#!/bin/sh
echo "$@" >> "$CALLS"
mkdir -p "$3/node_modules" && cd "$3/node_modules" || exit 1
for p in $PROGRAMS; do
  mkdir -p "$(dirname "$p")" && echo "echo $p" > "$p" && chmod +x "$p"
done
`

// standIn puts a script in the place of npm, and an empty cache.
func standIn(t *testing.T, npm string) (calls string) {
	t.Helper()
	bin, cache := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"npm": npm, "node": "#!/bin/sh\n"} {
		if out, err := exec.Command("sh", "-c", `printf %s "$1" > "$2" && chmod +x "$2"`, "sh", text, filepath.Join(bin, name)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	var programs []string
	for _, a := range agents {
		programs = append(programs, strings.ReplaceAll(onPlatform(a.Program), "*", "here"))
	}
	calls = filepath.Join(bin, "calls")
	t.Setenv("CALLS", calls)
	t.Setenv("PROGRAMS", strings.Join(programs, " "))
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	t.Setenv("HOME", cache)
	t.Setenv("XDG_CACHE_HOME", cache)
	return calls
}

func TestInstall(t *testing.T) {
	calls := standIn(t, npmStandIn)
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(cache, "reconcile", "agents", agents[0].folder()+".part", "left")
	if err := os.MkdirAll(left, 0o755); err != nil {
		t.Fatal(err)
	}
	var found [2]string
	var wait sync.WaitGroup
	for i := range found {
		wait.Go(func() {
			var err error
			if found[i], err = Install(t.Context(), io.Discard); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if found[0] != found[1] || t.Failed() {
		t.Fatalf("two at once found %q and %q", found[0], found[1])
	}
	called, err := os.ReadFile(calls)
	if err != nil || bytes.Count(called, []byte("\n")) != len(agents) {
		t.Errorf("%v; npm was called so:\n%swant it once for each of %d agents", err, called, len(agents))
	}
	for i, dir := range filepath.SplitList(found[0]) {
		if _, err := os.Stat(filepath.Join(dir, agents[i].Name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(filepath.SplitList(found[0])[0], "..", "left")); err == nil {
		t.Error("what an interrupted installation left is part of the next one")
	}
}

func TestInstallFails(t *testing.T) {
	for _, c := range []struct{ name, npm, want string }{
		{"no program", "#!/bin/sh\nmkdir -p \"$3\"\n", "has no program for"},
		{"no registry", "#!/bin/sh\necho npm error code ENOTFOUND >&2\nexit 1\n", "the registry of npm cannot be reached"},
		{"refused", "#!/bin/sh\necho npm error 404 >&2\nexit 1\n", "npm install @anthropic-ai/claude-code@2.1.332: exit status 1\nnpm error 404"},
	} {
		t.Run(c.name, func(t *testing.T) {
			standIn(t, c.npm)
			for range 2 { // the second finds nothing that the first left
				if _, err := Install(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %q", err, c.want)
				}
			}
		})
	}
	empty := t.TempDir()
	for _, name := range []string{"PATH", "HOME", "XDG_CACHE_HOME"} {
		t.Setenv(name, empty)
	}
	if _, err := Install(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "node is needed") {
		t.Errorf("error %v, want one that says that node is needed", err)
	}
}

func TestInstallWaits(t *testing.T) {
	standIn(t, npmStandIn)
	name := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(name, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	said, w := io.Pipe()
	done := make(chan error)
	go func() {
		again, err := lock(name, w)
		if err == nil {
			again()
		}
		done <- err
	}()
	line := make([]byte, 200)
	n, err := said.Read(line)
	if err != nil || !strings.Contains(string(line[:n]), "waiting for another process") {
		t.Errorf("said %q, %v", line[:n], err)
	}
	unlock()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
