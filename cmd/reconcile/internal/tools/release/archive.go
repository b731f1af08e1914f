package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// packed is a file of an archive.
type packed struct {
	file string // on the disk
	name string // in the archive, a slash path
	mode fs.FileMode
}

// completions are the scripts for shells, and where a Linux package puts them.
var completions = []struct{ shell, name, installed string }{
	{"bash", "completions/reconcile.bash", "/usr/share/bash-completion/completions/reconcile"},
	{"zsh", "completions/_reconcile", "/usr/share/zsh/vendor-completions/_reconcile"},
	{"fish", "completions/reconcile.fish", "/usr/share/fish/vendor_completions.d/reconcile.fish"},
	{"powershell", "completions/reconcile.ps1", ""},
}

// extras makes the files of every archive other than the binary: completion scripts, man pages, and the documents.
func (r *release) extras() ([]packed, error) {
	host := filepath.Join(r.scratch, "host")
	if _, err := output(r.root, "go", "build", "-tags", "man", "-o", host, "./cmd/reconcile"); err != nil {
		return nil, err
	}
	var out []packed
	for _, c := range completions {
		script, err := exec.Command(host, "completion", c.shell).Output()
		if err != nil {
			return nil, err
		}
		file := filepath.Join(r.scratch, path.Base(c.name))
		if err := os.WriteFile(file, script, 0o644); err != nil {
			return nil, err
		}
		out = append(out, packed{file, c.name, 0o644})
	}
	pages := filepath.Join(r.scratch, "man")
	if _, err := output(r.root, host, "man", "--date", r.date.Format("2006-01-02"), pages); err != nil {
		return nil, err
	}
	found, err := filepath.Glob(filepath.Join(pages, "*.1"))
	if err != nil {
		return nil, err
	}
	slices.Sort(found)
	for _, p := range found {
		out = append(out, packed{p, "man/man1/" + filepath.Base(p), 0o644})
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		out = append(out, packed{filepath.Join(r.root, name), name, 0o644})
	}
	return out, nil
}

// archive packs files below a folder of the archive's name: zip for Windows, tar.gz elsewhere.
func (r *release) archive(p platform, name string, files []packed) (err error) {
	kind, write := ".tar.gz", r.tarball
	if p.os == "windows" {
		kind, write = ".zip", r.zipfile
	}
	f, err := os.Create(filepath.Join(r.out, name+kind))
	if err != nil {
		return err
	}
	if err = write(f, name, files); err != nil {
		f.Close()
		return err
	}
	r.add(name + kind)
	return f.Close()
}

func (r *release) tarball(w io.Writer, top string, files []packed) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for _, p := range files {
		data, err := os.ReadFile(p.file)
		if err != nil {
			return err
		}
		head := &tar.Header{Name: top + "/" + p.name, Mode: int64(p.mode), Size: int64(len(data)), ModTime: r.date}
		if err := t.WriteHeader(head); err != nil {
			return err
		}
		if _, err := t.Write(data); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}

func (r *release) zipfile(w io.Writer, top string, files []packed) error {
	z := zip.NewWriter(w)
	for _, p := range files {
		data, err := os.ReadFile(p.file)
		if err != nil {
			return err
		}
		head := &zip.FileHeader{Name: top + "/" + strings.TrimPrefix(p.name, "/"), Method: zip.Deflate, Modified: r.date}
		head.SetMode(p.mode)
		f, err := z.CreateHeader(head)
		if err != nil {
			return err
		}
		if _, err := f.Write(data); err != nil {
			return err
		}
	}
	return z.Close()
}
