package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// checkRelease makes a release for this platform and looks whether all parts of it are there. It takes a minute, and so
// it is left to CI.
func checkRelease(ctx context.Context, c *checker) result {
	if !c.ci {
		return excused("it takes a minute, so only CI=true makes a release")
	}
	dist, err := os.MkdirTemp("", "reconcile-dist-")
	if err != nil {
		return failed(err.Error())
	}
	defer os.RemoveAll(dist)
	cmd := c.command(ctx, []string{"go", "run", ".", "-out", dist, "-version", "v0.0.0-check", "-only",
		runtime.GOOS + "-" + runtime.GOARCH})
	cmd.Dir = filepath.Join(c.root, "cmd", "reconcile", "internal", "tools", "release")
	if out, err := cmd.CombinedOutput(); err != nil {
		return failed(fmt.Sprintf("%v\n%s", err, out))
	}
	ends := []string{"", ".cdx.json"}
	switch runtime.GOOS {
	case "linux":
		ends = append(ends, ".tar.gz", ".deb", ".rpm")
	case "windows":
		ends = []string{".exe", ".cdx.json", ".zip"}
	default:
		ends = append(ends, ".tar.gz")
	}
	sums, err := os.ReadFile(filepath.Join(dist, "SHA256SUMS"))
	if err != nil {
		return failed(err.Error())
	}
	for _, end := range ends {
		name := fmt.Sprintf("reconcile-v0.0.0-check-%s-%s%s", runtime.GOOS, runtime.GOARCH, end)
		if info, err := os.Stat(filepath.Join(dist, name)); err != nil || info.Size() == 0 || !strings.Contains(string(sums), "  "+name+"\n") {
			return failed(fmt.Sprintf("the release has no %s, or SHA256SUMS does not name it", name))
		}
	}
	return passed()
}

// builders are the programs that build container images, and what tells whether they can work here.
var builders = [][]string{{"docker", "info"}, {"podman", "info"}, {"buildah", "info"}}

// checkContainer builds the image of Containerfile, and runs the program in it, where a builder is available.
func checkContainer(ctx context.Context, c *checker) result {
	for _, probe := range builders {
		name := probe[0]
		if _, err := exec.LookPath(name); err != nil || c.command(ctx, probe).Run() != nil {
			continue
		}
		build := []string{name, "build", "-f", "Containerfile", "-t", "reconcile:check", "."}
		if out, err := c.command(ctx, build).CombinedOutput(); err != nil {
			return failed(fmt.Sprintf("%s: %v\n%s", strings.Join(build, " "), err, out))
		}
		if name == "buildah" {
			return passed()
		}
		run := []string{name, "run", "--rm", "reconcile:check", "version"}
		if out, err := c.command(ctx, run).CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "reconcile ") {
			return failed(fmt.Sprintf("%s: %v\n%s", strings.Join(run, " "), err, out))
		}
		return passed()
	}
	return excused("no docker, podman or buildah works here")
}
