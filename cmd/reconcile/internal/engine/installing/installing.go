// Package installing installs tools into the environment of a project, so that a failed or killed installation leaves the project as it was.
//
// The environment is copied, the copy takes its place, and the installation changes only the copy. To undo is to put the original back; a journal
// says so to the next process where this one was killed.
package installing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/workspaces"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/controllers/manifests"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/filelock"
	"reconcile.dev/reconcile/state/regular"
)

const (
	local     = ".reconcile"
	tempDir   = local + "/tmp"
	ignore    = local + "/.gitignore"
	dir       = local + "/install"
	journalAt = dir + "/journal.json"
	lockAt    = dir + "/lock"
	original  = dir + "/original" // the environment as it was
	copied    = dir + "/copy"     // that takes its place

	// running is the key of a program that installs, by which it is found after its reconcile was killed.
	running = "install"

	outputLimit = 1 << 20 // of a stream, in bytes
	shownLimit  = 2000    // of the output in an error, in bytes
)

// errBusy says that another process installs something here.
var errBusy = errors.New("another process installs tools here; try again when it has ended")

// journal says what an installation may change, and how it was before.
type journal struct {
	Env     string            `json:"env"`
	Existed bool              `json:"existed"`
	Made    bool              `json:"made"` // the local folder of the project was made for it
	Kept    map[string][]byte `json:"kept"` // files by path; null for one that did not exist
	Done    bool              `json:"done"` // it succeeded
}

// Change is an installation that has begun. It ends with Keep or Undo.
type Change struct {
	root *os.Root
	dir  string // of the project
	lock *flock.Flock
	file *os.File
	in   tools.Installation
	j    journal
}

// Begin begins an installation in the project at root, an absolute path. What an earlier process left behind is undone first.
func Begin(ctx context.Context, root string, in tools.Installation) (c *Change, err error) {
	c = &Change{dir: root, in: in}
	if c.root, err = regular.Root(root); err != nil {
		return nil, err
	}
	if err = c.begin(ctx); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *Change) begin(ctx context.Context) error {
	_, err := c.root.Lstat(local)
	made := errors.Is(err, fs.ErrNotExist)
	if err := c.root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if _, err := c.root.Lstat(ignore); errors.Is(err, fs.ErrNotExist) {
		if err := durable.WriteFile(c.root, tempDir, ignore, []byte("*\n")); err != nil {
			return err
		}
	}
	if err := c.take(); err != nil {
		return err
	}
	if _, err := c.recover(ctx); err != nil {
		return err
	}
	c.j = journal{Env: c.in.Env, Made: made, Kept: map[string][]byte{}}
	for _, name := range c.in.Kept {
		file := path.Join(c.in.Folder, name)
		data, err := regular.Read(c.root, file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		c.j.Kept[file] = data
	}
	switch fi, err := c.root.Lstat(c.in.Env); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !fi.IsDir():
		return fmt.Errorf("%s is no folder; what it leads to is not changed", c.in.Env)
	default:
		c.j.Existed = true
	}
	if err := c.write(); err != nil {
		return err
	}
	if !c.j.Existed {
		return nil
	}
	if err := c.swap(); err != nil {
		_, undone := c.recover(ctx)
		return errors.Join(err, undone)
	}
	return nil
}

// swap puts a copy of the environment in its place.
func (c *Change) swap() error {
	if err := workspaces.CopyTree(filepath.Join(c.dir, filepath.FromSlash(c.in.Env)), c.dir, filepath.FromSlash(copied)); err != nil {
		return fmt.Errorf("copy %s: %w", c.in.Env, err)
	}
	if err := c.root.Rename(c.in.Env, original); err != nil {
		return err
	}
	return c.root.Rename(copied, c.in.Env)
}

// take gets the lock.
func (c *Change) take() (err error) {
	if c.file, _, err = regular.OpenFile(c.root, lockAt, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if c.lock, err = filelock.Try(c.file); err == nil && c.lock == nil {
		err = errBusy
	}
	return err
}

func (c *Change) close() {
	if c.lock != nil {
		_ = c.lock.Close()
	}
	if c.file != nil {
		_ = c.file.Close()
	}
	_ = c.root.Close()
}

func (c *Change) write() error {
	data, err := json.Marshal(c.j)
	if err != nil {
		return err
	}
	return durable.WriteFile(c.root, tempDir, journalAt, data)
}

// Recover ends what a killed process left running in the project at root, undoes or finishes its installation, and returns the environment that this
// was about; "" for none.
func Recover(ctx context.Context, root string) (env string, err error) {
	c := &Change{dir: root}
	if c.root, err = regular.Root(root); err != nil {
		return "", err
	}
	defer c.close()
	if _, err := c.root.Lstat(journalAt); err != nil {
		return "", nil
	}
	if err := c.take(); err != nil {
		if errors.Is(err, errBusy) {
			return "", nil
		}
		return "", err
	}
	return c.recover(ctx)
}

// recover undoes what the journal on file says, when nothing installs any more; the caller holds the lock.
func (c *Change) recover(ctx context.Context) (env string, err error) {
	data, err := regular.Read(c.root, journalAt)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	c.j = journal{}
	if err := json.Unmarshal(data, &c.j); err != nil {
		return "", fmt.Errorf("%s: %w; compare the project with its commit, and remove the file", journalAt, err)
	}
	if err := c.endOrphans(ctx); err != nil {
		return "", err
	}
	if c.j.Done {
		return "", c.finish()
	}
	for file := range c.j.Kept {
		if !tools.MayKeep(file) {
			return "", fmt.Errorf("%s names %q, which no installation changes; remove it", journalAt, file)
		}
	}
	if !tools.MayReplace(c.j.Env) {
		return "", fmt.Errorf("%s names %q, which no installation changes; remove it", journalAt, c.j.Env)
	}
	return c.j.Env, c.undo()
}

// endOrphans ends the package manager of a reconcile that was killed: it would go on to write into what is undone.
func (c *Change) endOrphans(ctx context.Context) error {
	r, err := runner.New(runner.Options{Root: c.dir})
	if err != nil {
		return err
	}
	if err = r.EndHeld(ctx, running); err != nil {
		err = fmt.Errorf("the installation into %s was interrupted, and is not undone yet: %w", c.j.Env, err)
	}
	return errors.Join(err, r.Close(ctx))
}

// undo makes everything as it was. It may be called again after it was interrupted.
func (c *Change) undo() error {
	switch _, err := c.root.Lstat(original); {
	case !c.j.Existed:
		if err := c.root.RemoveAll(c.j.Env); err != nil {
			return err
		}
	case err == nil:
		if err := c.root.RemoveAll(c.j.Env); err != nil {
			return err
		}
		if err := c.root.Rename(original, c.j.Env); err != nil {
			return err
		}
	}
	if err := c.restore(); err != nil {
		return err
	}
	made := c.j.Made
	if err := c.finish(); err != nil || !made {
		return err
	}
	return c.root.RemoveAll(local)
}

// restore writes the kept files as they were.
func (c *Change) restore() error {
	for file, was := range c.j.Kept {
		is, err := regular.Read(c.root, file)
		switch gone := errors.Is(err, fs.ErrNotExist); {
		case err != nil && !gone:
			return err
		case was == nil && !gone:
			err = c.root.Remove(file)
		case was != nil && (gone || !bytes.Equal(is, was)):
			err = durable.WriteFile(c.root, tempDir, file, was)
		default:
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// finish removes the temporary files, the journal last.
func (c *Change) finish() error {
	for _, name := range []string{original, copied, journalAt} {
		if err := c.root.RemoveAll(name); err != nil {
			return err
		}
	}
	return nil
}

// Run runs a command of the installation. Its error has what the command printed.
func (c *Change) Run(ctx context.Context, argv, environ []string, secrets *runner.Secrets, timeout time.Duration) error {
	folder := filepath.Join(c.dir, filepath.FromSlash(c.in.Folder))
	fill := strings.NewReplacer("{env}", filepath.Join(c.dir, filepath.FromSlash(c.in.Env)), "{folder}", folder)
	p := runner.Program{Dir: folder, Environ: environ, Timeout: timeout, Limit: outputLimit, Set: []string{"CI=1", "NO_COLOR=1", "TERM=dumb"}}
	for _, a := range argv {
		p.Argv = append(p.Argv, fill.Replace(a))
	}
	for _, kv := range c.in.Set {
		p.Set = append(p.Set, fill.Replace(kv))
	}
	for _, kv := range environ {
		if name, _, _ := strings.Cut(kv, "="); passes(name) {
			p.Pass = append(p.Pass, name)
		}
	}
	end, err := c.hold(ctx, p)
	if err != nil {
		return err
	}
	said := string(secrets.Remove(append(bytes.TrimSpace(end.Stdout), append([]byte("\n"), bytes.TrimSpace(end.Stderr)...)...)))
	said = strings.TrimSpace(strings.ToValidUTF8(said[max(0, len(said)-shownLimit):], ""))
	switch command := c.in.Shown(argv); {
	case end.NotStarted != nil:
		return fmt.Errorf("%s: %w", command, end.NotStarted)
	case end.TimedOut:
		return fmt.Errorf("%s did not end within %s:\n%s", command, timeout, said)
	case end.Signal != "" || end.Exit != 0:
		return fmt.Errorf("%s failed (%s):\n%s", command, orExit(end), said)
	}
	return nil
}

// hold runs a program so that the next process finds it if this one is killed, and ends what it leaves running.
func (c *Change) hold(ctx context.Context, p runner.Program) (end runner.Ended, err error) {
	r, err := runner.New(runner.Options{Root: c.dir})
	if err != nil {
		return end, err
	}
	defer func() { err = errors.Join(err, r.Close(ctx)) }()
	if p.Hold, err = r.Hold(running); err != nil {
		return end, err
	}
	end, err = p.Run(ctx)
	return end, errors.Join(err, p.Hold.End(context.WithoutCancel(ctx)))
}

func orExit(end runner.Ended) string {
	if end.Signal != "" {
		return end.Signal
	}
	return fmt.Sprintf("exit code %d", end.Exit)
}

// passes reports whether package managers see a variable, besides those that all commands see: where toolchains are, and from where they install.
func passes(name string) bool {
	upper := strings.ToUpper(name)
	if strings.Contains(upper, "TOKEN") || strings.Contains(upper, "PASSWORD") {
		return false
	}
	for _, prefix := range []string{"PIP_", "UV_", "NPM_CONFIG_", "DOTNET_", "NUGET_", "GO", "CARGO_", "RUSTUP_", "NODE_EXTRA_", "SSL_CERT_", "PYENV_", "XDG_"} {
		if strings.HasPrefix(upper, prefix) {
			return true
		}
	}
	return strings.HasSuffix(upper, "_PROXY") || upper == "TMPDIR" || upper == "USER"
}

// Program is the path of an installed program; "" if it is not in the environment.
func (c *Change) Program(name string) string {
	for _, bin := range []string{".bin", "bin", "Scripts"} {
		if p, err := exec.LookPath(filepath.Join(c.dir, filepath.FromSlash(c.in.Env), bin, name)); err == nil {
			return p
		}
	}
	return ""
}

// Keep ends the installation: it stays. The manifests and lock files are as before.
func (c *Change) Keep() error {
	defer c.close()
	if err := c.restore(); err != nil {
		return errors.Join(err, c.undo())
	}
	c.j.Done, c.j.Kept = true, nil
	if err := c.write(); err != nil {
		return errors.Join(err, c.undo())
	}
	return c.finish()
}

// Undo ends the installation: the project is as before.
func (c *Change) Undo() error {
	defer c.close()
	if err := c.undo(); err != nil {
		return fmt.Errorf("%s is not as before: %w; the next installation tries again", c.j.Env, err)
	}
	return nil
}

// dotnetTools is where a project names tools of .NET, with their versions.
const dotnetTools = "dotnet-tools.json"

// Site inspects the folder for the installation of a tool. searchPath is a PATH for package managers.
func Site(root, folder, searchPath string) (s tools.Site, err error) {
	s = tools.Site{Folder: folder, Texts: map[string]string{}, Has: map[string]bool{}, Windows: runtime.GOOS == "windows"}
	r, err := regular.Root(root)
	if err != nil {
		return s, err
	}
	defer r.Close()
	entries, err := regular.List(r, path.Join(".", folder))
	if err != nil {
		return s, err
	}
	for _, e := range entries {
		s.Files = append(s.Files, e.Name())
		if manifests.Known(e.Name()) {
			if text, err := regular.Read(r, path.Join(folder, e.Name())); err == nil {
				s.Texts[e.Name()] = string(text)
			}
		}
	}
	for at := folder; ; at = path.Dir(at) { // the nearest manifest of tools of .NET is for all folders below
		for _, name := range []string{".config/" + dotnetTools, dotnetTools} {
			if text, err := regular.Read(r, path.Join(at, name)); err == nil && s.Texts[dotnetTools] == "" {
				s.Texts[dotnetTools] = string(text)
			}
		}
		if at == "" || at == "." {
			break
		}
	}
	for _, program := range []string{"npm", "pnpm", "yarn", "bun", "uv", "python3", "go", "cargo", "dotnet"} {
		for _, at := range filepath.SplitList(searchPath) {
			if _, err := exec.LookPath(filepath.Join(at, program)); err == nil && filepath.IsAbs(at) {
				s.Has[program] = true
			}
		}
	}
	if hidden, err := regular.Read(r, path.Join(folder, "node_modules", ".package-lock.json")); err == nil {
		s.Loose = tools.LoosePackages(hidden, []byte(s.Texts["package.json"]))
	}
	return s, nil
}
