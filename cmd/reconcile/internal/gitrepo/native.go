package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// native is the backend that needs no git command.
type native struct {
	layout
	git         string      // the git command, if available
	mode        programMode // of git commands
	lockTimeout time.Duration
	scratch     string // folder for temporary files below the work tree, which git ignores
}

func newNative(l layout, m programMode) *native {
	return &native{layout: l, mode: m, lockTimeout: lockTimeout, scratch: ".reconcile/tmp"}
}

// supported returns an error if this backend does not support the repository's format.
func (n *native) supported() error {
	path := filepath.Join(n.common, "config")
	cfg, err := n.recent.config(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if cfg == nil {
		return fmt.Errorf("%s cannot be read; restore it with git init", path)
	}
	if err := checkWorktree(n.layout, cfg); err != nil {
		return err
	}
	version := cfg.Section("core").Option("repositoryformatversion")
	if version != "" && version != "0" && version != "1" {
		return fmt.Errorf("repository format version %s", version)
	}
	for _, o := range cfg.Section("extensions").Options {
		switch strings.ToLower(o.Key) {
		case "noop", "worktreeconfig", "partialclone", "preciousobjects", "relativeworktrees":
		case "objectformat", "compatobjectformat":
			if o.Value != "sha1" {
				return fmt.Errorf("object format %s", o.Value)
			}
		case "refstorage":
			if o.Value != "files" {
				return fmt.Errorf("reference storage %s", o.Value)
			}
		default:
			return fmt.Errorf("repository extension %s", o.Key)
		}
	}
	return nil
}

func (n *native) head(context.Context) (Head, error) { return readHead(n.layout) }

func (n *native) commit(ctx context.Context, c Commit) (res Result, err error) {
	cfg, err := loadConfig(n.layout, n.git)
	if err != nil {
		return Result{}, err
	}
	w, err := openScratchDir(ctx, n.layout, n.lockTimeout)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	turn := &commitCall{native: n, w: w, store: newObjectStore(n.layout), cfg: cfg, c: c}
	defer turn.store.close()
	if err := n.catchUp(ctx, w, turn.store); err != nil && !errors.Is(err, ErrBusy) {
		return Result{}, err
	}
	for range 20 {
		if res, err = turn.attempt(ctx); !errors.Is(err, errMoved) {
			return res, err
		}
	}
	return Result{}, fmt.Errorf("%s: %w: %w faster than a commit can be made; run again", n.worktree, ErrBusy, err)
}

// baseOf returns the commit that a commit to branch would have as its parent.
func (n *native) baseOf(branch string) (string, error) {
	dst, err := resolveTarget(n.layout, branch)
	if err != nil || dst.Hash != "" {
		return dst.Hash, err
	}
	head, err := readHead(n.layout)
	return head.Hash, err
}

// has reports whether the sorted paths contain p, or, for a folder, a path below it.
func has(paths []string, p string, isDir bool) bool {
	if isDir {
		p += "/"
	}
	i, found := slices.BinarySearch(paths, p)
	return found || isDir && i < len(paths) && strings.HasPrefix(paths[i], p)
}

// same reports whether two contents are the same; nil means no file.
func same(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }

// needsGit reports why the native backend does not support an operation.
type needsGit struct{ reason string }

func (e *needsGit) Error() string { return e.reason }

// count returns the number of files that edits add, minus those that they remove.
func count(edits []edit) int {
	n := 0
	for _, e := range edits {
		if e.was.mode == 0 {
			n++
		}
		if e.now.mode == 0 {
			n--
		}
	}
	return n
}
