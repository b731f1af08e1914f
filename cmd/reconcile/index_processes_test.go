package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestIndexByManyProcesses: processes that index, rebuild and search while files change, and one that watches, get into
// nobody's way, and what they leave is what the files come to.
func TestIndexByManyProcesses(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts the program some dozen times")
	}
	bin, dir := self(t), t.TempDir()
	run := func(args ...string) (*exec.Cmd, *bytes.Buffer) {
		cmd, said := exec.Command(bin, args...), &bytes.Buffer{}
		cmd.Dir, cmd.Stderr = dir, said
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "USER=ada"}
		return cmd, said
	}
	must := func(args ...string) string {
		cmd, said := run(args...)
		out, err := cmd.Output()
		if err != nil || strings.Contains(said.String(), "warning") {
			t.Errorf("%q: %v\n%s", args, err, said)
		}
		return string(out)
	}
	files := map[string]string{
		"reconcile.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\n" +
			"spec: {watch: {commitDelay: 20ms, debounce: 5ms}}\n",
		"specs/agents/architect.yaml": agentSpec("architect", "runner: {human: {}}"),
	}
	for i := range 12 {
		files[fmt.Sprintf("src/f%d.go", i)] = fmt.Sprintf("package src\n\n// F%d retries the upload.\nfunc F%d() {}\n", i, i)
	}
	writeFiles(t, dir, files)
	must("-q")
	must("-q", "index")
	watcher, said := run("--watch")
	if err := watcher.Start(); err != nil {
		t.Fatal(err)
	}

	const rounds = 6
	var all sync.WaitGroup
	for _, args := range [][]string{{"-q", "index"}, {"-q", "search", "upload"}, {"-q", "index", "--rebuild"}, {"-q", "search", "turn"}} {
		all.Go(func() {
			for range rounds {
				must(args...)
			}
		})
	}
	all.Go(func() {
		for turn := range 4 * rounds {
			text := fmt.Sprintf("package src\n\n// F%d knows turn%d.\nfunc F%d() {}\n", turn%12, turn, turn%12)
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("src/f%d.go", turn%12)), []byte(text), 0o644); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	if err := watcher.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if err := watcher.Wait(); err != nil && watcher.ProcessState.ExitCode() != exitInterrupted || strings.Contains(said.String(), "warning") {
		t.Errorf("the watcher: %v\n%s", err, said)
	}
	must("-q", "index", "--verify")
	if found := must("search", fmt.Sprintf("turn%d", 4*rounds-1)); !strings.Contains(found, fmt.Sprintf("src/f%d.go", (4*rounds-1)%12)) {
		t.Errorf("the last change is not found:\n%s", found)
	}
}
