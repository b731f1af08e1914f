// Package buildcache fills caches of the go command for tests in which confined programs build: these start with an empty
// cache of their own, in which go compiles its standard library again.
package buildcache

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// files are a module whose packages import what small commands and their tests do.
var files = map[string]string{
	"go.mod":       "module prepared\n\ngo 1.24\n",
	"main.go":      "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println() }\n",
	"main_test.go": "package main\n\nimport (\n\t\"math\"\n\t\"testing\"\n)\n\nfunc Test(t *testing.T) { _ = math.Pi }\n",
}

// Fill makes dir a cache with the standard library, as go vet and go test without GOFLAGS use it; dir must not exist. The library
// is compiled once for each version of go, in a folder of the user's cache. Without the content dir would only be slower.
func Fill(dir string) error {
	prepared, err := prepare()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	return os.CopyFS(dir, os.DirFS(prepared))
}

func prepare() (string, error) {
	version, err := exec.Command("go", "env", "GOVERSION", "GOARCH").Output()
	if err != nil {
		return "", err
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(user, "reconcile", "go-"+strings.Join(strings.Fields(string(version)), "-"))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(dir), "go-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	cache, module := filepath.Join(scratch, "cache"), filepath.Join(scratch, "module")
	if err := os.Mkdir(module, 0o755); err != nil {
		return "", err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(module, name), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	for _, args := range [][]string{{"vet", "./..."}, {"test", "-run", "^$", "./..."}} {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = module, append(os.Environ(), "GOFLAGS=", "GOCACHE="+cache, "PWD="+module)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go %s: %w\n%s", args[0], err, out)
		}
	}
	// Another process may have been faster.
	if err := os.Rename(cache, dir); err != nil {
		if _, missing := os.Stat(dir); missing != nil {
			return "", err
		}
	}
	return dir, nil
}
