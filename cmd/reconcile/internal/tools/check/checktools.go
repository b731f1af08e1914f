package main

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// The tools of the step checks that are installed with it, at their versions. Those of Debian are installed where apt-get and root are there.
var (
	npmTools = []string{"eslint@10.15.0", "oxlint@1.94.0", "prettier@3.10.1", "typescript@7.0.2", "vitest@4.1.12", "@microsoft/jest-sarif@1.0.0-beta.0"}
	goTools  = []string{"honnef.co/go/tools/cmd/staticcheck@v0.6.1", "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.5.0"}
	debTools = map[string]string{"shellcheck": "shellcheck", "bats": "bats", "flake8": "flake8", "mypy": "mypy", "pylint": "pylint", "black": "black",
		"pytest": "python3-pytest", "cppcheck": "cppcheck", "clang-tidy": "clang-tidy", "javac": "default-jdk-headless"}
)

// installTime bounds the installation of all tools: a registry may not answer.
const installTime = 10 * time.Minute

// onCheckTools runs the tests with the real tools that check code. What cannot be installed fails nothing: its rows are skipped by name.
func onCheckTools(ctx context.Context, c *checker) result {
	cache, err := os.UserCacheDir()
	if err != nil {
		return failed(err.Error())
	}
	dir := filepath.Join(cache, "reconcile-checks")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return failed(err.Error())
	}
	list := string(filepath.ListSeparator)
	wanted := *c
	wanted.env = append(c.env[:len(c.env):len(c.env)], "RECONCILE_CHECK_TOOLS="+dir, "PATH="+filepath.Join(dir, "bin")+list+os.Getenv("PATH"))
	began := time.Now()
	problems := wanted.install(ctx, dir)
	fmt.Fprintf(c.out, "installed what was missing in %.0f s\n%s", time.Since(began).Seconds(), problems)
	r := wanted.goTest(ctx, []string{"-count=1", "-run", "^(TestDefects|TestPublicProjects|TestWrittenSARIF)$", "-timeout=20m", scriptsPackage})
	if len(r.skips) > 0 {
		r.excuse = "not tested: " + strings.Join(r.skips, "; ")
	}
	return r
}

// install installs the missing tools, from all registries at the same time, and returns the errors.
func (c *checker) install(ctx context.Context, dir string) string {
	ctx, cancel := context.WithTimeout(ctx, installTime)
	defer cancel()
	var mu sync.Mutex
	var problems strings.Builder
	var group sync.WaitGroup
	for _, commands := range [][][]string{missingOfNpm(dir), missingOfGo(dir), missingOfDebian()} {
		group.Go(func() {
			for _, argv := range commands {
				cmd := c.command(ctx, argv)
				cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], "GOBIN="+filepath.Join(dir, "bin"), "GOFLAGS=", "DEBIAN_FRONTEND=noninteractive")
				cmd.WaitDelay = time.Second
				if out, err := cmd.CombinedOutput(); err != nil {
					mu.Lock()
					fmt.Fprintf(&problems, "%s: %v\n%s", strings.Join(argv, " "), err, out)
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	return problems.String()
}

// missingOfNpm returns the command that installs the packages, unless all are there.
func missingOfNpm(dir string) [][]string {
	for _, tool := range npmTools {
		at := strings.LastIndex(tool, "@")
		var manifest struct{ Version string }
		data, err := os.ReadFile(filepath.Join(dir, "node_modules", filepath.FromSlash(tool[:at]), "package.json"))
		if err != nil || json.Unmarshal(data, &manifest) != nil || manifest.Version != tool[at+1:] {
			return [][]string{append([]string{"npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", "--prefix", dir}, npmTools...)}
		}
	}
	return nil
}

// missingOfGo returns the commands that build the programs that are not there, or are of another version or by another Go.
func missingOfGo(dir string) (out [][]string) {
	for _, tool := range goTools {
		path, version, _ := strings.Cut(tool, "@")
		info, err := buildinfo.ReadFile(filepath.Join(dir, "bin", filepath.Base(path)))
		if err != nil || info.Main.Version != version || info.GoVersion != runtime.Version() {
			out = append(out, []string{"go", "install", tool})
		}
	}
	return out
}

// missingOfDebian returns the commands that install the packages of the programs that are missing.
func missingOfDebian() [][]string {
	install := []string{"apt-get", "install", "-y", "-qq", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120"}
	n := len(install)
	for program, name := range debTools {
		if _, err := exec.LookPath(program); err != nil {
			install = append(install, name)
		}
	}
	if _, err := exec.LookPath("apt-get"); err != nil || os.Getuid() != 0 || len(install) == n {
		return nil
	}
	return [][]string{{"apt-get", "update", "-qq"}, install}
}
