// Command release builds all that a release consists of, for every platform: the binary, an archive with completion
// scripts and man pages, deb and rpm packages for Linux, a list of the modules in it (SBOM, CycloneDX), and checksums.
// Given the same commit and the same Go, it writes the same bytes.
//
//	go run . -version v1.2.3 -out ../../../../../dist
package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// platforms are those that a release is built for.
var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"},
}

type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "-" + p.arch }

func (p platform) binary() string {
	if p.os == "windows" {
		return "reconcile.exe"
	}
	return "reconcile"
}

// release is one call of the program.
type release struct {
	version string    // as git describe names the commit
	root    string    // of the repository
	out     string    // where the files go
	scratch string    // where they are made
	date    time.Time // of the commit: all files in archives have it
	made    []string  // names below out
}

func main() {
	version := flag.String("version", "", "the version, as v1.2.3; default: what git describe says")
	out := flag.String("out", "dist", "the folder to write to")
	only := flag.String("only", "", "build for one platform only, as linux-amd64")
	flag.Parse()
	if err := run(*version, *out, *only); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(version, out, only string) error {
	r := &release{version: version}
	var err error
	if r.root, err = output("", "git", "rev-parse", "--show-toplevel"); err != nil {
		return err
	}
	if r.version == "" {
		if r.version, err = output(r.root, "git", "describe", "--tags", "--always", "--dirty"); err != nil {
			return err
		}
	}
	seconds, err := output(r.root, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return err
	}
	r.date = time.Unix(unix, 0).UTC()
	if r.out, err = filepath.Abs(out); err != nil {
		return err
	}
	if r.scratch, err = os.MkdirTemp("", "reconcile-release-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.scratch)
	return r.build(only)
}

func (r *release) build(only string) error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	extras, err := r.extras()
	if err != nil {
		return err
	}
	chosen := slices.DeleteFunc(slices.Clone(platforms), func(p platform) bool { return only != "" && p.String() != only })
	if len(chosen) == 0 {
		return fmt.Errorf("-only %s: the platforms are %v", only, platforms)
	}
	for _, p := range chosen {
		if err := r.platform(p, extras); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return r.sums()
}

// platform makes all files for one platform.
func (r *release) platform(p platform, extras []packed) error {
	name := r.name(p.String())
	binary := filepath.Join(r.out, name+filepath.Ext(p.binary()))
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, "./cmd/reconcile")
	cmd.Dir, cmd.Env = r.root, append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, text)
	}
	r.add(filepath.Base(binary))
	if err := r.sbom(binary, name+".cdx.json"); err != nil {
		return fmt.Errorf("SBOM: %w", err)
	}
	files := append([]packed{{file: binary, name: p.binary(), mode: 0o755}}, extras...)
	if err := r.archive(p, name, files); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	if p.os != "linux" {
		return nil
	}
	for _, format := range []string{"deb", "rpm"} {
		if err := r.linuxPackage(p, format, binary, extras); err != nil {
			return fmt.Errorf("%s: %w", format, err)
		}
	}
	return nil
}

func (r *release) name(end string) string { return "reconcile-" + r.version + "-" + end }

func (r *release) add(name string) {
	r.made = append(r.made, name)
	fmt.Println(filepath.Join(r.out, name))
}

// sums writes SHA256SUMS over all that was made, in the form of sha256sum.
func (r *release) sums() error {
	slices.Sort(r.made)
	var b strings.Builder
	for _, name := range r.made {
		f, err := os.Open(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		f.Close()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", h.Sum(nil), name)
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(b.String()), 0o644)
}

// output runs a command and returns its output, without the line end.
func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
