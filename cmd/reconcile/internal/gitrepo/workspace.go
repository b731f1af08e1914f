package gitrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/state/regular"
)

// Checkout is a checkout of one commit outside of the work tree, which has an index file of its own outside of the
// checkout: programs in the checkout can change the index of their git, but not this one.
type Checkout struct {
	Dir   string // absolute, of the top of the checkout
	Index string // absolute
}

// Prefix is the slash path of the tree below the top of the work tree, and so below the top of a checkout; "" or with a
// final slash.
func (r *Repo) Prefix() string { return r.prefix }

// Clone makes co.Dir, which must not exist, a repository whose branch is at the commit, with its files checked out. It
// shares the objects of this repository, as git clone --shared does, and has neither a remote nor hooks. Filters run as
// in a checkout here; no hook does.
func (r *Repo) Clone(ctx context.Context, co Checkout, commit, branch string) error {
	if _, err := r.gitCommand(); err != nil {
		return err
	}
	if !validRef("refs/heads/" + branch) {
		return fmt.Errorf("%q is not the name of a branch", branch)
	}
	dir := filepath.Join(co.Dir, ".git")
	if err := r.newRepository(ctx, dir, branch, commit); err != nil {
		return err
	}
	if err := r.shareObjects(dir); err != nil {
		return err
	}
	index := filepath.Join(dir, "index")
	return r.either(func(n *native, s *objectStore) error { return n.checkOut(ctx, s, co, index, commit) },
		func(k *command) error { return r.checkOut(ctx, k, co, index, commit) })
}

// newRepository writes a repository as git init --template= would, with a branch, and with what this repository knows of its file
// system. Its references are packed, and folders that git makes when it needs them are left out: each one costs time.
func (r *Repo) newRepository(ctx context.Context, dir, branch, commit string) error {
	cfg, err := loadConfig(r.layout, r.command.(*command).git)
	if err != nil {
		return err
	}
	text := "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tlogallrefupdates = true\n"
	for _, name := range []string{"filemode", "symlinks", "ignorecase", "precomposeunicode"} {
		if _, set := cfg.get(ctx, "core."+name); set || name == "filemode" {
			text += fmt.Sprintf("\t%s = %t\n", name, cfg.flag(ctx, "core."+name, true))
		}
	}
	ref := "refs/heads/" + branch
	return errors.Join(os.MkdirAll(filepath.Join(dir, "refs"), 0o777), writeFile(filepath.Join(dir, "config"), []byte(text)),
		writeFile(filepath.Join(dir, "HEAD"), []byte("ref: "+ref+"\n")), writeFile(filepath.Join(dir, "packed-refs"), []byte(commit+" "+ref+"\n")))
}

// Apart makes a repository in dir, a new folder, with a branch at a commit of the one around root. It has the objects of that one and none of
// its configuration, attributes and hooks, which programs may have changed that had worked there.
func Apart(ctx context.Context, root, dir, commit string) error {
	r, err := Open(root)
	if err != nil {
		return err
	}
	if _, err := r.gitCommand(); err != nil {
		return err
	}
	return errors.Join(r.newRepository(ctx, dir, "apart", commit), r.shareObjects(dir))
}

// shareObjects lets the repository in dir read the objects of this one.
func (r *Repo) shareObjects(dir string) error {
	info := filepath.Join(dir, "objects", "info")
	if err := os.MkdirAll(info, 0o777); err != nil {
		return err
	}
	objects := filepath.Join(r.common, "objects")
	if err := writeFile(filepath.Join(info, "alternates"), []byte(objects+"\n")); err != nil {
		return err
	}
	shallow, err := regular.ReadPath(filepath.Join(r.common, "shallow"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = writeFile(filepath.Join(dir, "shallow"), shallow)
	}
	return err
}

// checkOut writes the files of the commit by this repository's configuration, and both indexes.
func (r *Repo) checkOut(ctx context.Context, k *command, co Checkout, index, commit string) error {
	in := *k
	in.worktree = co.Dir
	c := call{config: privateConfig, env: []string{"GIT_DIR=" + r.gitDir, "GIT_WORK_TREE=" + co.Dir, "GIT_INDEX_FILE=" + index}}
	if _, err := in.quick(ctx, c, "read-tree", "--reset", "-u", commit); err != nil {
		return err
	}
	return copyFile(index, co.Index)
}

// Overlay gives a new checkout the files of another commit, and its Index. Its branch and git's own index stay, so that what differs is
// a change that nobody has committed there.
func (r *Repo) Overlay(ctx context.Context, co Checkout, commit string) error {
	k, err := r.gitCommand()
	if err != nil {
		return err
	}
	in, c := k.inWorkspace(co)
	_, err = in.quick(ctx, c, "read-tree", "--reset", "-u", commit)
	return err
}

// AddWorktree makes co.Dir, which must not exist, a linked work tree of this repository whose branch is at the commit. No
// hook runs.
func (r *Repo) AddWorktree(ctx context.Context, co Checkout, commit, branch string) error {
	k, err := r.gitCommand()
	if err != nil {
		return err
	}
	if _, err := k.run(ctx, call{}, "worktree", "add", "--quiet", "--force", "-B", branch, co.Dir, commit); err != nil {
		return err
	}
	in := *k
	in.worktree = co.Dir
	index, err := in.word(ctx, "rev-parse", "--path-format=absolute", "--git-path", "index")
	if err != nil {
		return err
	}
	return copyFile(index, co.Index)
}

// PruneWorktrees forgets the linked work trees whose folders were removed.
func (r *Repo) PruneWorktrees(ctx context.Context) error {
	k, err := r.gitCommand()
	if err == nil {
		_, err = k.run(ctx, call{}, "worktree", "prune")
	}
	return err
}

// Capture describes the commit of the files in a checkout.
type Capture struct {
	Checkout
	Base    string   // the commit that was checked out: the parent
	Except  []string // paths below the top that stay as they are in Base
	Changed []string // what Uncaptured lists; nil if that is not known
	Message string
	Author  string // "Name <mail>"
	When    time.Time
}

// Captured is the result of a Capture.
type Captured struct {
	Commit string   // "" if no file differs from the base
	Files  []string // paths that differ, below the top, sorted
}

// Capture commits the files of a checkout as one commit on its base. The objects become durable in this repository; no
// reference moves. Ignored files are left out. Nothing that the checkout's own .git names is run or read: its
// configuration, hooks, index and branch are the programs' that worked there.
func (r *Repo) Capture(ctx context.Context, c Capture) (Captured, error) {
	var got Captured
	err := r.either(func(n *native, s *objectStore) (err error) {
		got, err = n.capture(ctx, s, c)
		return err
	}, func(k *command) (err error) {
		got, err = k.capture(ctx, c)
		return err
	})
	return got, err
}

// capture captures with a copy of the checkout's index: a git command of a process that was killed may still use, or have locked, another one,
// and the index stays that of the base.
func (k *command) capture(ctx context.Context, c Capture) (Captured, error) {
	scratch, err := os.MkdirTemp("", "reconcile-")
	if err != nil {
		return Captured{}, err
	}
	defer os.RemoveAll(scratch)
	was := c.Index
	c.Index = filepath.Join(scratch, "index")
	if err := copyFile(was, c.Index); err != nil {
		return Captured{}, err
	}
	tree, files, err := k.captureTree(ctx, c)
	if err != nil || len(files) == 0 {
		return Captured{}, err
	}
	commit, err := k.commitTree(ctx, tree, c.Base, Commit{Message: c.Message, Author: c.Author, When: c.When, Sign: "never"})
	return Captured{commit, files}, err
}

// Compare returns what a Capture would commit: the paths, and what git diff prints of them. It runs no program that attributes or the
// configuration name. Objects are written below the folder scratch, and none into this repository.
func (r *Repo) Compare(ctx context.Context, scratch string, c Capture) (files []string, diff []byte, err error) {
	k, err := r.gitCommand()
	if err != nil {
		return nil, nil, err
	}
	if err := r.shareObjects(scratch); err != nil {
		return nil, nil, err
	}
	in := *k
	in.objects = filepath.Join(scratch, "objects")
	tree, files, err := in.captureTree(ctx, c)
	if err != nil || len(files) == 0 {
		return nil, nil, err
	}
	diff, err = in.run(ctx, call{}, "diff", "--no-color", "--no-ext-diff", "--no-textconv", c.Base, tree, "--")
	return files, diff, err
}

// Uncaptured lists the files of a checkout that differ from its index, which is that of the base, or has what an earlier
// version committed: paths below its top, those of ignored files excepted. It writes nothing.
func (r *Repo) Uncaptured(ctx context.Context, co Checkout) (found []string, err error) {
	err = r.either(func(n *native, s *objectStore) error {
		found, err = n.uncaptured(ctx, s, co)
		return err
	}, func(k *command) error {
		if err := filledModule(co); err != nil {
			return err
		}
		in, cl := k.inWorkspace(co)
		out, err := in.run(ctx, cl, "ls-files", "--modified", "--others", "--exclude-standard", "-z")
		found = append([]string{}, nulSplit(out)...)
		return err
	})
	return found, err
}

// filledModule returns an error if a checkout has files in the folder of a submodule that is not checked out: git lists none of them.
func filledModule(co Checkout) error {
	data, _, _, err := readIndex(co.Index)
	if err != nil || data == nil {
		return err
	}
	ix, err := parseIndex(data)
	if err != nil {
		return nil // git reads indexes of other versions
	}
	for _, e := range ix.entries {
		if e.blob().mode != modeModule {
			continue
		}
		files, err := os.ReadDir(filepath.Join(co.Dir, filepath.FromSlash(e.path)))
		own := func(d os.DirEntry) bool { return d.Name() == ".git" }
		if err == nil && len(files) > 0 && !slices.ContainsFunc(files, own) {
			return fmt.Errorf("%s is a submodule that is not checked out here, and files in it cannot become part of a commit; move them elsewhere", e.path)
		}
	}
	return nil
}

// inWorkspace returns the command for a checkout, and the call that has its index. Nothing that the checkout's own .git names is run or read.
func (k *command) inWorkspace(co Checkout) (*command, call) {
	in := *k
	in.worktree = co.Dir
	return &in, call{config: privateConfig, env: []string{"GIT_DIR=" + k.gitDir, "GIT_WORK_TREE=" + co.Dir, "GIT_INDEX_FILE=" + co.Index}}
}

// captureTree writes the files of a checkout as a tree, and lists those that differ from the base.
func (k *command) captureTree(ctx context.Context, c Capture) (tree string, files []string, err error) {
	if err := k.addAll(ctx, c); err != nil {
		return "", nil, err
	}
	in, cl := k.inWorkspace(c.Checkout)
	if len(c.Except) > 0 {
		back := cl
		back.stdin = nulJoin(literal(c.Except))
		if _, err := in.run(ctx, back, "reset", "--quiet", "--pathspec-from-file=-", "--pathspec-file-nul", c.Base); err != nil {
			return "", nil, err
		}
	}
	out, err := in.run(ctx, cl, "write-tree")
	if err != nil {
		return "", nil, err
	}
	tree = strings.TrimSpace(string(out))
	files, err = k.changedFiles(ctx, c.Base, tree)
	return tree, files, err
}

// addAll brings the index of a checkout to its files, and makes their contents durable.
func (k *command) addAll(ctx context.Context, c Capture) error {
	in, cl := k.inWorkspace(c.Checkout)
	cl.config = append([]string{"-c", "core.fsyncMethod=batch", "-c", "advice.addEmbeddedRepo=false"}, cl.config...)
	_, err := in.run(ctx, cl, "add", "--all", "--", ".")
	if i := slices.IndexFunc(c.Changed, isFolder); err != nil && i >= 0 { // git refuses repositories without a commit
		return ownRepository(strings.TrimSuffix(c.Changed[i], "/"), false)
	}
	return err
}

func isFolder(path string) bool { return strings.HasSuffix(path, "/") }

// literal are paths as pathspecs of git without patterns.
func literal(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = ":(top,literal)" + p
	}
	return out
}

// changedFiles lists the paths that differ between two trees, sorted. A repository inside of the files, or a submodule at another
// commit, is an error: its files would not be part of the commit.
func (k *command) changedFiles(ctx context.Context, from, to string) ([]string, error) {
	out, err := k.run(ctx, call{}, "diff-tree", "-r", "--no-renames", "-z", from, to)
	if err != nil {
		return nil, err
	}
	var files []string
	parts := nulSplit(out)
	for i := 0; i+1 < len(parts); i += 2 {
		var was, now string
		if _, err := fmt.Sscanf(parts[i], ":%s %s ", &was, &now); err != nil {
			return nil, fmt.Errorf("git diff-tree: cannot read %q", parts[i])
		}
		if now == "160000" {
			return nil, ownRepository(parts[i+1], was == now)
		}
		files = append(files, parts[i+1])
	}
	return files, nil
}

// Base returns the branch that work on the branch ("" is the checked-out one) starts at: its full reference and its
// commit. The commit is "" before the first.
func (r *Repo) Base(ctx context.Context, branch string) (Head, error) {
	head, err := r.Head(ctx)
	if err != nil || branch == "" || head.Ref == "refs/heads/"+branch {
		return head, err
	}
	ref := "refs/heads/" + branch
	if !validRef(ref) {
		return Head{}, fmt.Errorf("%q is not the name of a branch", branch)
	}
	hash, err := resolveRef(r.layout, ref)
	if hash == "" { // it begins at what is checked out
		hash = head.Hash
	}
	return Head{Ref: ref, Hash: hash}, err
}

// Uncommitted lists the files of the work tree that differ from the commit, among those at paths and those that globs
// match, which are below the directory given to Open, as are the results. Ignored files do not count.
func (r *Repo) Uncommitted(ctx context.Context, commit string, paths, globs []string) ([]string, error) {
	if len(globs) == 0 && r.why == nil {
		found, err := r.native.(*native).uncommitted(ctx, commit, r.under(paths))
		var pass *needsGit
		if !errors.As(err, &pass) {
			return r.own(found), err
		}
	}
	k, err := r.gitCommand()
	if err != nil {
		return nil, err
	}
	var specs []string
	for _, p := range paths {
		specs = append(specs, ":(top,literal)"+r.prefix+p)
	}
	for _, g := range globs {
		specs = append(specs, ":(top,glob)"+r.prefix+g)
	}
	changed, err := k.run(ctx, call{}, append([]string{"diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", commit, "--"}, specs...)...)
	if err != nil {
		return nil, err
	}
	untracked, err := k.run(ctx, call{}, append([]string{"ls-files", "--others", "--exclude-standard", "--full-name", "-z", "--"}, specs...)...)
	if err != nil {
		return nil, err
	}
	found := r.own(append(nulSplit(changed), nulSplit(untracked)...))
	for _, p := range paths { // ignored files are not among the untracked ones
		out, err := k.run(ctx, call{}, "ls-tree", "--full-tree", "--name-only", "-z", commit, "--", r.prefix+p)
		if err != nil {
			return nil, err
		}
		if len(out) == 0 {
			found = append(found, p)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// under turns paths below the tree into those below the top of the work tree.
func (r *Repo) under(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = r.prefix + p
	}
	return out
}

// own turns paths below the top of the work tree into those below the tree.
func (r *Repo) own(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = strings.TrimPrefix(p, r.prefix)
	}
	return out
}

// LocalFiles lists the files below dir, the top of this work tree, that git ignores and that the patterns of the file
// match, which has the syntax of .gitignore. Paths are below the top, sorted.
func (r *Repo) LocalFiles(ctx context.Context, patterns string) ([]string, error) {
	k, err := r.gitCommand()
	if err != nil {
		return nil, err
	}
	out, err := k.run(ctx, call{}, "ls-files", "--others", "--ignored", "--exclude-from="+patterns, "-z")
	if err != nil {
		return nil, err
	}
	all := nulSplit(out)
	kept, err := k.unignored(ctx, call{}, all)
	if err != nil {
		return nil, err
	}
	open := map[string]bool{}
	for _, p := range kept {
		open[p] = true
	}
	var found []string
	for _, p := range all {
		if !open[p] {
			found = append(found, p)
		}
	}
	return found, nil
}

// gitCommand returns the git command for this repository.
func (r *Repo) gitCommand() (*command, error) {
	if r.command == nil {
		return nil, fmt.Errorf("%s: this needs the git command, which is not on the PATH", r.worktree)
	}
	return r.command.(*command), nil
}

// quick is run for files that need not be durable.
func (k *command) quick(ctx context.Context, c call, args ...string) ([]byte, error) {
	c.config = append([]string{"-c", "core.fsync=none"}, c.config...)
	return k.run(ctx, c, args...)
}

// copyFile copies an index with its time: git takes a file that was changed in the second of its checkout for changed only if the index is
// not younger than that.
func copyFile(from, to string) error {
	fi, err := os.Stat(from)
	if errors.Is(err, os.ErrNotExist) { // an empty commit has an empty index
		return nil
	}
	if err != nil {
		return err
	}
	data, err := regular.ReadPath(from)
	if err == nil {
		err = writeFile(to, data)
	}
	if err != nil {
		return err
	}
	return os.Chtimes(to, time.Time{}, fi.ModTime())
}

// writeFile writes a file that need not be durable.
func writeFile(path string, data []byte) error {
	f, _, err := regular.OpenPath(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// Comparison says what [Repo.Diff] compares.
type Comparison struct {
	From   string // a commit; "": nothing, so that all files are new
	To     string // a commit; "": the index if Staged, else the tracked files of the work tree
	Staged bool
	Paths  []string // files and folders below the top; none: all
	Whole  bool     // with the content of binary files
}

// emptyTree is the tree without files, which git knows without having it.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// Diff returns the differences as git diff prints them by default, whatever its configuration. Renames are found.
func (r *Repo) Diff(ctx context.Context, c Comparison) ([]byte, error) {
	k, err := r.gitCommand()
	if err != nil {
		return nil, err
	}
	args := []string{"-c", "core.quotePath=true", "-c", "core.bigFileThreshold=32m", "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--submodule=short", "-M", "-U3",
		"--inter-hunk-context=0", "--src-prefix=a/", "--dst-prefix=b/", "--full-index"}
	if c.Whole {
		args = append(args, "--binary")
	}
	if c.Staged {
		args = append(args, "--cached")
	}
	if args = append(args, cmp.Or(c.From, emptyTree)); c.To != "" {
		args = append(args, c.To)
	}
	env := []string{"GIT_LITERAL_PATHSPECS=1"}
	if c.To == "" && !c.Staged {
		env = append(env, withoutFilters(ctx, k.git, k.worktree, os.Environ())...)
	}
	return k.run(ctx, call{env: env}, append(append(args, "--"), c.Paths...)...)
}

// WhileStill calls do while no process of reconcile and no git command changes the index and the files that it describes: it
// waits for those that do.
func (r *Repo) WhileStill(ctx context.Context, do func() error) (err error) {
	w, err := openScratchDir(ctx, r.layout, lockTimeout)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	lock, err := w.lock(ctx, filepath.Join(r.gitDir, "index"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.release()) }()
	return do()
}

// Worktree is the top of the work tree.
func (r *Repo) Worktree() string { return r.worktree }
