package workspaces

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state/regular"
)

// includeFile lists, in the syntax of .gitignore, ignored files that a workspace gets a copy of.
const includeFile = ".worktreeinclude"

// prepare copies the ignored files that the agent needs, and runs setup. It reports missing files before the agent starts.
func (m *Manager) prepare(ctx context.Context, w *workspace, q runner.WorkspaceRequest) error {
	if err := m.include(ctx, w); err != nil {
		return err
	}
	for _, name := range m.o.Settings.Workspaces.Share {
		if err := m.share(w, name); err != nil {
			return err
		}
	}
	return m.setup(ctx, w, q)
}

// include copies the files that .worktreeinclude names.
func (m *Manager) include(ctx context.Context, w *workspace) error {
	patterns := filepath.Join(w.repo.Worktree(), includeFile)
	text, err := regular.ReadPath(patterns)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	names, err := w.repo.LocalFiles(ctx, patterns)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := copyFile(filepath.Join(w.repo.Worktree(), filepath.FromSlash(name)), m.path(w.owner.Name), name); err != nil {
			return fmt.Errorf("%s: %w", includeFile, err)
		}
	}
	if absent := missing(w.repo.Worktree(), string(text)); len(absent) > 0 {
		m.o.Warn(fmt.Sprintf("the workspace %s lacks %s: %s names it, and the tree does not have it", w.owner.Name, some(absent), includeFile))
	}
	return nil
}

// missing lists the lines of .worktreeinclude that name one file or folder which does not exist.
func missing(top, text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		name := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "/"), "/")
		if name == "" || strings.ContainsAny(name, "*?[\\") || name[0] == '#' || name[0] == '!' || treepath.Of(name) == treepath.Outside {
			continue
		}
		plain := strings.Contains(strings.TrimSpace(line), "/") || !strings.Contains(name, "/")
		if _, err := os.Lstat(filepath.Join(top, filepath.FromSlash(name))); plain && errors.Is(err, fs.ErrNotExist) {
			out = append(out, name)
		}
	}
	return out
}

// share copies a file or folder of the tree that git ignores.
func (m *Manager) share(w *workspace, name string) error {
	from, to := filepath.Join(m.tree, filepath.FromSlash(name)), filepath.Join(w.Dir(), filepath.FromSlash(name))
	if !exists(from) {
		return fmt.Errorf("workspaces.share: %s is not in the tree; make it first, or take it out of the list", name)
	}
	if exists(to) {
		return fmt.Errorf("workspaces.share: %s is part of the commit, so that every workspace has it; take it out of the list", name)
	}
	return CopyTree(from, m.path(w.owner.Name), filepath.FromSlash(w.repo.Prefix()+name))
}

// setup runs the setup command, or copies what an earlier one made from the same lock files.
func (m *Manager) setup(ctx context.Context, w *workspace, q runner.WorkspaceRequest) error {
	s := &m.o.Settings.Workspaces
	if len(s.Setup) == 0 {
		return nil
	}
	key, err := m.setupKey(w)
	if err != nil {
		return err
	}
	cache := filepath.Join(m.dir, "setup", key)
	if key != "" && exists(cache) {
		return CopyTree(cache, m.path(w.owner.Name), ".")
	}
	err = m.runSetup(ctx, w, q)
	if err != nil || key == "" || w.owner.Kind == settle.CheckWorkspace { // nobody has checked yet what it ran, and others would get what it made
		return err
	}
	return m.keepSetup(ctx, w, cache)
}

// setupKey digests the setup command and the lock files; "" without lock files.
func (m *Manager) setupKey(w *workspace) (string, error) {
	s := &m.o.Settings.Workspaces
	if len(s.LockFiles) == 0 {
		return "", nil
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", s.Setup)
	for _, name := range s.LockFiles {
		data, err := regular.ReadPath(filepath.Join(w.Dir(), filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("workspaces.lockFiles: %s is not in the commit; commit it, or take it out of the list", name)
		}
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%q %x\n", name, sha256.Sum256(data))
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// runSetup runs the command in the workspace, within its time.
func (m *Manager) runSetup(ctx context.Context, w *workspace, q runner.WorkspaceRequest) error {
	s := &m.o.Settings.Workspaces
	ctx, cancel := context.WithTimeout(ctx, s.Timeout.Std())
	defer cancel()
	cmd := exec.CommandContext(ctx, s.Setup[0], s.Setup[1:]...)
	cmd.Dir, cmd.Env = w.Dir(), append(slices.Clone(q.Env), w.Env()...)
	cmd.WaitDelay = time.Second
	if q.Lease != nil {
		cmd.ExtraFiles = []*os.File{q.Lease}
	}
	out := &tail{}
	cmd.Stdout, cmd.Stderr = out, out
	var err error
	if q.Starter != nil {
		err = q.Starter.StartSetup(cmd, m.path(w.owner.Name))
	} else {
		err = cmd.Start()
	}
	if err == nil {
		err = cmd.Wait()
	}
	if err == nil {
		return nil
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("it took longer than %s", s.Timeout)
	}
	text := strings.TrimSpace(strings.ToValidUTF8(out.kept.String(), "?"))
	return fmt.Errorf("workspaces.setup (%s): %w: %s", s.Setup[0], err, text)
}

// tail keeps the end of its input. It embeds no buffer, whose ReadFrom io.Copy would prefer to Write.
type tail struct{ kept bytes.Buffer }

func (t *tail) Write(b []byte) (int, error) {
	const most = 2000
	n := len(b)
	b = b[max(0, len(b)-most):]
	if over := t.kept.Len() + len(b) - most; over > 0 {
		t.kept.Next(over)
	}
	t.kept.Write(b)
	return n, nil
}

// keepSetup keeps what setup made: the ignored files that are not copies from the tree.
func (m *Manager) keepSetup(ctx context.Context, w *workspace, cache string) error {
	names, err := w.repo.Ignored(ctx, m.checkout(w.owner.Name))
	if err != nil {
		return err
	}
	draft := cache + "." + strconv.Itoa(os.Getpid())
	defer os.RemoveAll(draft)
	if err := os.MkdirAll(draft, 0o700); err != nil {
		return err
	}
	for _, name := range names {
		name = strings.TrimSuffix(name, "/")
		own := strings.TrimPrefix(name, w.repo.Prefix())
		if slices.Contains(m.o.Settings.Workspaces.Share, own) || exists(filepath.Join(w.repo.Worktree(), filepath.FromSlash(name))) && name == path.Base(name) && name[0] == '.' {
			continue
		}
		if err := CopyTree(filepath.Join(m.path(w.owner.Name), filepath.FromSlash(name)), draft, filepath.FromSlash(name)); err != nil {
			return err
		}
	}
	if err := os.Rename(draft, cache); err != nil && !exists(cache) { // another process may have been faster
		return err
	}
	return nil
}

// Ports are chosen from this range, which is below those that systems give to clients.
const firstPort, lastPort = 20000, 32000

// ports returns the first port of a range that no other workspace of the tree has, and in which nothing listens now.
func (m *Manager) ports(all []Owner) int {
	n := m.o.Settings.Workspaces.Ports
	sum := sha256.Sum256([]byte(m.tree))
	slots := (lastPort - firstPort) / n
	at := (int(sum[0])<<8 | int(sum[1])) % slots
	for range slots {
		base := firstPort + at*n
		used := slices.ContainsFunc(all, func(o Owner) bool {
			return (o.inUse() || !o.removable()) && o.PortBase < base+n && base < o.PortBase+n
		})
		if !used && free(base, n) {
			return base
		}
		at = (at + 1) % slots
	}
	return 0
}

func free(base, n int) bool {
	for port := base; port < base+n; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}

// Agents and commits control the content of a workspace. Writes go through an [os.Root], so that no link there leads them elsewhere.

// CopyTree copies a file or a folder to a path below the folder top. It copies symbolic links as links.
func CopyTree(from, top, to string) error {
	root, err := regular.Root(top)
	if err != nil {
		return err
	}
	defer root.Close()
	return filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		dest := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return root.MkdirAll(dest, 0o777)
		case d.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(p)
			if err == nil {
				err = errors.Join(root.MkdirAll(filepath.Dir(dest), 0o777), root.Symlink(link, dest))
			}
			if errors.Is(err, fs.ErrExist) {
				return nil
			}
			return err
		case d.Type().IsRegular():
			return copyInto(root, dest, p)
		}
		return nil // a socket or a pipe has no content
	})
}

// copyFile replaces a path below the folder top by a copy of a regular file.
func copyFile(from, top, to string) error {
	root, err := regular.Root(top)
	if err != nil {
		return err
	}
	defer root.Close()
	return copyInto(root, filepath.FromSlash(to), from)
}

// copyOut replaces a file by a copy of one below the folder top, which is not read through links that lead out of it.
func copyOut(top, from, to string) error {
	root, err := regular.Root(top)
	if err != nil {
		return err
	}
	defer root.Close()
	in, fi, err := regular.Open(root, filepath.FromSlash(from))
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	out, err := regular.Root(filepath.Dir(to))
	if err != nil {
		return err
	}
	defer out.Close()
	return replace(out, filepath.Base(to), in, fi.Mode().Perm())
}

// copyInto replaces a path below a root by a copy of a regular file.
func copyInto(root *os.Root, name, from string) error {
	in, fi, err := regular.OpenPath(from, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	return replace(root, name, in, fi.Mode().Perm())
}

// replace replaces a path below a root, atomically.
func replace(root *os.Root, name string, in io.Reader, perm fs.FileMode) error {
	return replaceBy(root, name, perm, func(out io.Writer) error {
		_, err := io.Copy(out, in)
		return err
	})
}

// replaceBy replaces a path below a root by what write writes, atomically.
func replaceBy(root *os.Root, name string, perm fs.FileMode, write func(io.Writer) error) error {
	temp := filepath.Join(filepath.Dir(name), ".reconcile-copy-"+rand.Text()+".lock")
	out, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err = write(out); err == nil {
		err = out.Chmod(perm)
	}
	if err = errors.Join(err, out.Close()); err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		_ = root.Remove(temp) // nobody knows its name
	}
	return err
}
