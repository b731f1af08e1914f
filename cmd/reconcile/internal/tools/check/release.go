package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// mostBytes bounds the program as it is released.
const mostBytes = 40_000_000

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
		} else if end == ends[0] && info.Size() > mostBytes {
			return failed(fmt.Sprintf("%s has %d bytes, more than %d", name, info.Size(), mostBytes))
		}
	}
	return checkManPage(ctx, c, dist)
}

// checkManPage looks in the archive for a word of a help text that the generator of man pages could take for a tag.
func checkManPage(ctx context.Context, c *checker, dist string) result {
	if runtime.GOOS == "windows" {
		return passed()
	}
	name := "reconcile-v0.0.0-check-" + runtime.GOOS + "-" + runtime.GOARCH
	page, err := c.command(ctx, []string{"tar", "-xOzf", filepath.Join(dist, name+".tar.gz"), name + "/man/man1/reconcile-apply.1"}).Output()
	if err != nil || !strings.Contains(string(page), "specs/<kinds>/<name>.yaml") {
		return failed(fmt.Sprintf("the man page of apply has not all words of its help: %v\n%s", err, page))
	}
	return passed()
}

// builder is a program that builds container images.
type builder struct {
	name  string
	build []string // flags of its command build
	run   []string // prints the version that the program in the image reports
}

// builders are tried in this order. Buildah runs commands without the runtime that it else needs.
var builders = []builder{
	{"docker", nil, []string{"docker", "run", "--rm", "reconcile:check", "version"}},
	{"podman", nil, []string{"podman", "run", "--rm", "reconcile:check", "version"}},
	{"buildah", []string{"--isolation", "chroot"}, []string{"sh", "-ec", `c=$(buildah from reconcile:check)
trap 'buildah rm "$c" > /dev/null' EXIT
buildah run --isolation chroot "$c" -- reconcile version`}},
}

// checkContainer builds the image of Containerfile, and runs the program in it, where a builder is available and gets the
// images that it begins with.
func checkContainer(ctx context.Context, c *checker) result {
	for _, b := range builders {
		if _, err := exec.LookPath(b.name); err != nil || c.command(ctx, []string{b.name, "info"}).Run() != nil {
			continue
		}
		for _, image := range baseImages(c.root) {
			if c.command(ctx, []string{b.name, "pull", image}).Run() != nil {
				return excused(b.name + " cannot fetch " + image)
			}
		}
		build := slices.Concat([]string{b.name, "build"}, b.build, []string{"-f", "Containerfile", "-t", "reconcile:check", "."})
		if out, err := c.command(ctx, build).CombinedOutput(); err != nil {
			return failed(fmt.Sprintf("%s: %v\n%s", strings.Join(build, " "), err, out))
		}
		if out, err := c.command(ctx, b.run).CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "reconcile ") {
			return failed(fmt.Sprintf("%s: %v\n%s", strings.Join(b.run, " "), err, out))
		}
		return passed()
	}
	return excused("no docker, podman or buildah works here")
}

// baseImages are the images that Containerfile begins with.
func baseImages(root string) (out []string) {
	text, _ := os.ReadFile(filepath.Join(root, "Containerfile")) // the build reports a file that cannot be read
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "FROM" {
			out = append(out, words[1])
		}
	}
	return out
}
