package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The tools of the step checks that are installed with it, at their versions. Those of Debian are installed where apt-get and root are there.
var (
	npmTools = []string{"eslint@10.15.0", "oxlint@1.94.0", "prettier@3.10.1", "typescript@7.0.2", "vitest@4.1.12", "@microsoft/jest-sarif@1.0.0-beta.0"}
	goTools  = []string{"honnef.co/go/tools/cmd/staticcheck@v0.6.1", "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.5.0"}
	debTools = map[string]string{"shellcheck": "shellcheck", "bats": "bats", "flake8": "flake8", "mypy": "mypy", "pylint": "pylint", "black": "black",
		"pytest": "python3-pytest", "cppcheck": "cppcheck", "javac": "default-jdk-headless"}
)

// onCheckTools runs the tests with the real tools that check code. A tool that cannot be installed is skipped by its name, with CI=true it fails.
func onCheckTools(ctx context.Context, c *checker) result {
	cache, err := os.UserCacheDir()
	if err != nil {
		return failed(err.Error())
	}
	dir := filepath.Join(cache, "reconcile-checks")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return failed(err.Error())
	}
	wanted := *c
	wanted.env = append(c.env[:len(c.env):len(c.env)], "RECONCILE_CHECK_TOOLS="+dir, "GOBIN="+filepath.Join(dir, "bin"),
		"PATH="+filepath.Join(dir, "bin")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	commands := [][]string{append([]string{"npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", "--prefix", dir}, npmTools...)}
	for _, tool := range goTools {
		commands = append(commands, []string{"go", "install", tool})
	}
	if packages := missingPackages(); len(packages) > 0 && os.Getuid() == 0 {
		commands = append(commands, []string{"apt-get", "update", "-qq"},
			append([]string{"apt-get", "install", "-y", "-qq", "--no-install-recommends"}, packages...))
	}
	for _, argv := range commands {
		if out, err := wanted.command(ctx, argv).CombinedOutput(); err != nil {
			return failed(strings.Join(argv, " ") + ": " + err.Error() + "\n" + string(out))
		}
	}
	return wanted.goTest(ctx, []string{"-count=1", "-run", "^(TestDefects|TestWrittenSARIF|TestBlame)$", "-timeout=20m", scriptsPackage})
}

// missingPackages are the packages of Debian for the programs that are missing.
func missingPackages() (out []string) {
	for program, name := range debTools {
		if _, err := exec.LookPath(program); err != nil {
			out = append(out, name)
		}
	}
	return out
}
