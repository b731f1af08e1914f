package gitrepo

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// command is the backend that uses the git command, for repositories that the native backend does not support. It
// takes the same steps with git's plumbing and a private index file, so that no hook runs and the user's index is
// only patched.
type command struct {
	layout
	git         string
	mode        programMode
	lockTimeout time.Duration
	objects     string // the folder for new objects; "" is that of the repository
}

// plumbingConfig makes git sync the files that it writes.
var plumbingConfig = []string{"-c", "core.fsync=all"}

// privateConfig keeps a private index file plain and complete.
var privateConfig = []string{"-c", "core.splitIndex=false", "-c", "core.sparseCheckout=false", "-c", "index.sparse=false",
	"-c", "core.untrackedCache=false"}

// call is one git command.
type call struct {
	config []string
	env    []string
	stdin  []byte
}

// run runs a git command, and returns its output, also where it failed.
func (k *command) run(ctx context.Context, c call, args ...string) ([]byte, error) {
	cmd := newGit(ctx, k.mode, k.git, k.worktree, os.Environ(), slices.Concat(plumbingConfig, c.config, args)...)
	cmd.Env, cmd.Stdin = append(cmd.Env, c.env...), bytes.NewReader(c.stdin)
	if k.objects != "" {
		cmd.Env = append(cmd.Env, "GIT_OBJECT_DIRECTORY="+k.objects)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.Bytes(), &gitError{args[0], err, strings.TrimSpace(stderr.String())}
	}
	return stdout.Bytes(), nil
}

// word runs a command that prints one line. It returns "" for exit code 1.
func (k *command) word(ctx context.Context, args ...string) (string, error) {
	out, err := k.run(ctx, call{}, args...)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return "", nil
	}
	return strings.TrimSpace(string(out)), err
}

func (k *command) head(ctx context.Context) (Head, error) {
	ref, err := k.word(ctx, "symbolic-ref", "-q", "HEAD")
	if err != nil {
		return Head{}, err
	}
	if ref == "" {
		hash, err := k.run(ctx, call{}, "rev-parse", "--verify", "HEAD^{commit}")
		return Head{Hash: strings.TrimSpace(string(hash))}, err
	}
	hash, err := k.refHash(ctx, ref)
	return Head{Ref: ref, Hash: hash}, err
}

// refHash returns the commit that a reference names, or "" if the reference does not exist.
func (k *command) refHash(ctx context.Context, ref string) (string, error) {
	if _, err := os.Stat(k.common + "/" + ref); err == nil {
		out, err := k.run(ctx, call{}, "rev-parse", "--verify", ref+"^{commit}")
		return strings.TrimSpace(string(out)), err
	}
	return k.word(ctx, "rev-parse", "-q", "--verify", ref+"^{commit}")
}

func (k *command) resolveTarget(ctx context.Context, branch string) (target, error) {
	head, err := k.head(ctx)
	if err != nil {
		return target{}, err
	}
	ref := "refs/heads/" + branch
	if branch == "" || head.Ref == ref {
		return target{Head: head, out: true}, nil
	}
	if !validRef(ref) {
		return target{}, fmt.Errorf("git.branch %q: not a branch name", branch)
	}
	if err := checkOtherWorktrees(k.layout, ref); err != nil {
		return target{}, err
	}
	hash, err := k.refHash(ctx, ref)
	return target{Head: Head{Ref: ref, Hash: hash}}, err
}

func (k *command) commit(ctx context.Context, c Commit) (res Result, err error) {
	w, err := openScratchDir(ctx, k.layout, k.lockTimeout)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := k.catchUp(ctx, w); err != nil && !errors.Is(err, ErrBusy) {
		return Result{}, err
	}
	for range 20 {
		if res, err = k.attempt(ctx, w, c); !errors.Is(err, errMoved) {
			return res, err
		}
	}
	return Result{}, fmt.Errorf("%s: %w: %w faster than a commit can be made; run again", k.worktree, ErrBusy, err)
}

func (k *command) attempt(ctx context.Context, w *scratchDir, c Commit) (Result, error) {
	dst, err := k.resolveTarget(ctx, c.Branch)
	if err != nil {
		return Result{}, err
	}
	if dst.out {
		if err := idleIndex(k.layout); err != nil {
			return Result{}, err
		}
	}
	base := dst.Hash
	if base == "" && !dst.out {
		head, err := k.head(ctx)
		if err != nil {
			return Result{}, err
		}
		base = head.Hash
	}
	tree, err := k.tree(ctx, w, base, c.Paths)
	if err != nil {
		return Result{}, err
	}
	if same, err := k.isTree(ctx, base, tree); err != nil || same {
		return Result{Hash: base}, orError(err, ErrNothing)
	}
	hash, err := k.commitTree(ctx, tree, base, c)
	if err != nil {
		return Result{}, err
	}
	follow := pending{GitDir: k.gitDir, Ref: dst.Ref, Old: base, New: hash}
	if err := w.recordPending(dst.out, follow); err != nil {
		return Result{}, err
	}
	if !dst.out {
		return Result{Hash: hash}, k.move(ctx, dst, hash, firstLine(c.Message))
	}
	late := k.updateIndex(ctx, follow, hash)
	if err := k.move(ctx, dst, hash, firstLine(c.Message)); err != nil {
		return Result{}, errors.Join(err, k.updateIndex(ctx, follow, base))
	}
	if late != nil {
		late = k.catchUp(ctx, w)
	} else {
		late = w.clearPending()
	}
	res := Result{Hash: hash}
	if late != nil {
		res.Warning = fmt.Sprintf("committed as %.10s, but the index has yet to follow: %v", hash, late)
	}
	return res, nil
}

// tree writes the tree of base with the paths as they are in the work tree.
func (k *command) tree(ctx context.Context, w *scratchDir, base string, paths []string) (string, error) {
	f, err := w.temp("index")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		return "", err
	}
	c := call{config: privateConfig, env: []string{"GIT_INDEX_FILE=" + f.Name()}}
	read := []string{"read-tree", "--empty"}
	if base != "" {
		read = []string{"read-tree", base}
	}
	if _, err := k.run(ctx, c, read...); err != nil {
		return "", err
	}
	wanted, err := k.unignored(ctx, c, paths)
	if err != nil {
		return "", err
	}
	c.stdin = nulJoin(wanted)
	if _, err := k.run(ctx, c, "update-index", "--add", "--remove", "-z", "--stdin"); err != nil {
		return "", err
	}
	out, err := k.run(ctx, call{config: privateConfig, env: c.env}, "write-tree")
	return strings.TrimSpace(string(out)), err
}

// unignored returns the paths without those that are not in the index and match .gitignore.
func (k *command) unignored(ctx context.Context, c call, paths []string) ([]string, error) {
	asked := make([]string, len(paths))
	for i, p := range paths {
		asked[i] = "./" + p // a leading colon would be magic
	}
	c.stdin = nulJoin(asked)
	out, err := k.run(ctx, c, "check-ignore", "-z", "--stdin")
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) { // 1: none of them
		return nil, err
	}
	ignored := map[string]bool{}
	for _, p := range nulSplit(out) {
		ignored[strings.TrimPrefix(p, "./")] = true
	}
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return ignored[p] }), nil
}

// isTree reports whether tree is that of the commit base.
func (k *command) isTree(ctx context.Context, base, tree string) (bool, error) {
	if base == "" {
		out, err := k.run(ctx, call{}, "hash-object", "-t", "tree", "--stdin")
		return tree == strings.TrimSpace(string(out)), err
	}
	out, err := k.run(ctx, call{}, "rev-parse", "--verify", base+"^{tree}")
	return tree == strings.TrimSpace(string(out)), err
}

func (k *command) commitTree(ctx context.Context, tree, base string, c Commit) (string, error) {
	cfg, err := loadConfig(k.layout, k.git)
	if err != nil {
		return "", err
	}
	author, committer, err := identities(ctx, cfg, c.Author, c.When)
	if err != nil {
		return "", err
	}
	args := []string{"commit-tree", tree}
	if base != "" {
		args = append(args, "-p", base)
	}
	wanted, err := signs(ctx, cfg, c.Sign)
	if err != nil {
		return "", err
	}
	if wanted {
		args = append(args, "-S")
	}
	env := append(author.env("GIT_AUTHOR_"), committer.env("GIT_COMMITTER_")...)
	out, err := k.run(ctx, call{env: env, stdin: []byte(strings.TrimSpace(c.Message) + "\n")}, append(args, "-F", "-")...)
	if err != nil && wanted {
		err = fmt.Errorf("%w; check user.signingKey and gpg.format, or set git.sign: never in reconcile.yaml; nothing was "+
			"committed", err)
	}
	return strings.TrimSpace(string(out)), err
}

// move updates the target to the commit, or returns errMoved.
func (k *command) move(ctx context.Context, t target, commit, subject string) error {
	ref := t.Ref
	if t.out {
		ref = "HEAD"
	}
	_, err := k.run(ctx, call{}, "update-ref", "-m", "reconcile: "+subject, ref, commit, t.Hash)
	if err == nil {
		return nil
	}
	now, headErr := k.refHash(ctx, orString(t.Ref, "HEAD"))
	if headErr == nil && now != t.Hash {
		return errMoved
	}
	return remoteBusy(err)
}

func nulJoin(parts []string) []byte {
	var b bytes.Buffer
	for _, p := range parts {
		b.WriteString(p + "\x00")
	}
	return b.Bytes()
}

func asCommandEdits(edits []edit) []commandEdit {
	out := make([]commandEdit, len(edits))
	for i, e := range edits {
		out[i] = commandEdit{e.path, fmt.Sprintf("%06o %s", e.was.mode, e.was.hash), fmt.Sprintf("%06o %s", e.now.mode, e.now.hash)}
	}
	return out
}

func (k *command) dirty(ctx context.Context, branch string, prefixes []string, _ Lister) ([]string, error) {
	dst, err := k.resolveTarget(ctx, branch)
	if err != nil {
		return nil, err
	}
	base := dst.Hash
	if base == "" {
		head, err := k.head(ctx)
		if err != nil {
			return nil, err
		}
		base = head.Hash
	}
	if base == "" {
		out, err := k.run(ctx, call{}, "hash-object", "-t", "tree", "--stdin")
		if err != nil {
			return nil, err
		}
		base = strings.TrimSpace(string(out))
	}
	literal := call{env: []string{"GIT_LITERAL_PATHSPECS=1"}}
	changed, err := k.run(ctx, literal, append([]string{"diff", "--no-renames", "--no-ext-diff", "--no-textconv",
		"--ignore-submodules=all", "--name-only", "-z", base, "--"},
		prefixes...)...)
	if err != nil {
		return nil, err
	}
	other, err := k.run(ctx, literal, append([]string{"ls-files", "-z", "-o", "--exclude-standard", "--"}, prefixes...)...)
	if err != nil {
		return nil, err
	}
	found := append(nulSplit(changed), nulSplit(other)...)
	found = slices.DeleteFunc(found, func(p string) bool { return slices.ContainsFunc(splitTreePath(p), neverCommitted) })
	slices.Sort(found)
	return slices.Compact(found), nil
}

// history implements History with the git command, for repositories that the native backend does not support.
func (k *command) history(ctx context.Context, from string, paths []string, visit func(Revision) bool) (cut bool, err error) {
	args := append([]string{"--literal-pathspecs", "rev-list", "--first-parent", from, "--"}, paths...)
	out, err := k.run(ctx, call{}, args...)
	if err != nil {
		return false, err
	}
	for hash := range strings.FieldsSeq(string(out)) {
		text, err := k.run(ctx, call{}, "cat-file", "commit", hash)
		if err != nil {
			return false, err
		}
		c := parseCommit(string(text))
		c.Hash = hash
		rev := c.revision()
		for _, p := range paths {
			var before []byte
			if len(c.Parents) > 0 {
				before = k.content(ctx, c.Parents[0], p)
			}
			rev.Was, rev.Now = append(rev.Was, before), append(rev.Now, k.content(ctx, hash, p))
		}
		if !visit(rev) {
			return false, nil
		}
	}
	r := Repo{layout: k.layout}
	return r.Shallow(), nil
}

// content returns the content of a file in a commit, or nil if it does not exist.
func (k *command) content(ctx context.Context, commit, path string) []byte {
	data, err := k.run(ctx, call{}, "cat-file", "blob", commit+":"+path)
	if err != nil {
		return nil
	}
	return append([]byte{}, data...)
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
