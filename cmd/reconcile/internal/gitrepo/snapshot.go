package gitrepo

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Stored is a file in a commit.
type Stored struct {
	Path string // slash path below the directory given to Open
	Link bool   // a symbolic link; Data is its target
	Data []byte
}

// modeLink is the mode of a symbolic link.
const modeLink = 0o120000

// Files calls visit for each file of a commit that is one of the paths or below one, in git's order; submodules are
// left out. It reads objects and checks nothing out.
func (r *Repo) Files(ctx context.Context, commit string, paths []string, visit func(Stored) error) error {
	below, err := r.below(paths)
	if err != nil {
		return err
	}
	return r.files(ctx, commit, below, func(string) bool { return true }, visit)
}

// FilesLike visits the stored files of a commit below the directory given to Open whose relative slash paths are
// wanted. It reads no content of others.
func (r *Repo) FilesLike(ctx context.Context, commit string, wanted func(path string) bool, visit func(Stored) error) error {
	all := []string{strings.TrimSuffix(r.prefix, "/")}
	return r.files(ctx, commit, all, func(p string) bool { return wanted(strings.TrimPrefix(p, r.prefix)) }, visit)
}

// files takes paths relative to the top of the repository ("" is the top itself), and passes such paths to wanted.
func (r *Repo) files(ctx context.Context, commit string, paths []string, wanted func(string) bool, visit func(Stored) error) error {
	own := func(f Stored) error {
		f.Path = strings.TrimPrefix(f.Path, r.prefix)
		return visit(f)
	}
	if r.command != nil { // faster for many files, because it caches delta bases
		return r.command.(*command).files(ctx, commit, paths, wanted, own)
	}
	s := newObjectStore(r.layout)
	defer s.close()
	root, err := s.treeOf(commit)
	if err != nil {
		return err
	}
	for _, p := range paths {
		at := blob{mode: modeTree, hash: root}
		if p != "" {
			at, err = s.file(root, p)
		}
		if err == nil {
			err = s.each(ctx, p, at, wanted, own)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// each visits the wanted files of a tree entry.
func (s *objectStore) each(ctx context.Context, path string, at blob, wanted func(string) bool, visit func(Stored) error) error {
	switch at.mode {
	case modeTree:
		entries, err := s.tree(at.hash)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := s.each(ctx, strings.TrimPrefix(path+"/"+e.name, "/"), e.blob, wanted, visit); err != nil {
				return err
			}
		}
		return ctx.Err()
	case modeFile, modeExec, modeLink:
		if !wanted(path) {
			return nil
		}
		data, err := s.read(plumbing.BlobObject, at.hash)
		if err != nil {
			return err
		}
		return visit(Stored{Path: path, Link: at.mode == modeLink, Data: data})
	}
	return nil
}

// files implements Files with two git commands; the second reads the object names from a stream.
func (k *command) files(ctx context.Context, commit string, paths []string, wanted func(string) bool, visit func(Stored) error) error {
	args := []string{"--literal-pathspecs", "ls-tree", "-r", "-z", "--full-tree", commit, "--"}
	if !slices.Contains(paths, "") {
		args = append(args, paths...)
	}
	listed, err := k.run(ctx, call{}, args...)
	if err != nil {
		return err
	}
	var files []Stored
	var names bytes.Buffer
	for line := range strings.SplitSeq(strings.TrimSuffix(string(listed), "\x00"), "\x00") {
		about, path, _ := strings.Cut(line, "\t")
		word := strings.Fields(about) // mode, type, name
		if len(word) != 3 || word[1] != "blob" || !wanted(path) {
			continue
		}
		files = append(files, Stored{Path: path, Link: word[0] == "120000"})
		names.WriteString(word[2] + "\n")
	}
	return k.contents(ctx, &names, files, visit)
}

func (k *command) contents(ctx context.Context, names io.Reader, files []Stored, visit func(Stored) error) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := newGit(ctx, k.mode, k.git, k.worktree, os.Environ(), "cat-file", "--batch", "--buffer")
	cmd.Stdin = names
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("git cat-file: %w", err)
	}
	r := bufio.NewReaderSize(out, 1<<16)
	for _, f := range files {
		if f.Data, err = nextObject(r); err == nil {
			err = visit(f)
		}
		if err != nil {
			cancel() // it is not needed any more
			_ = cmd.Wait()
			return fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("git cat-file: %w", err)
	}
	return nil
}

// nextObject reads one answer of git cat-file --batch: "<name> <type> <size>", the content, and a line end.
func nextObject(r *bufio.Reader) ([]byte, error) {
	head, err := r.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("git cat-file: %w", err)
	}
	var name, kind string
	var size int
	if _, err := fmt.Sscan(head, &name, &kind, &size); err != nil || kind != "blob" {
		return nil, fmt.Errorf("git cat-file: %s; a partial clone may lack it: git fetch --refetch --no-filter brings all", strings.TrimSpace(head))
	}
	data := make([]byte, size+1)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, fmt.Errorf("git cat-file: %w", err)
	}
	return data[:size], nil
}
