package workspaces

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/controllers/preview"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state/outputs"
	"reconcile.dev/reconcile/state/regular"
)

// workspace implements runner.Workspace.
type workspace struct {
	m        *Manager
	repo     *gitrepo.Repo
	owner    Owner
	agent    string
	node     string
	measure  bool             // Commit says how large the change is
	verified bool             // Commit says which files there are then, by their digest
	brought  map[string]stamp // outputs of needs, by path below the root of the tree
}

// Dir implements runner.Workspace.
func (w *workspace) Dir() string {
	return filepath.Join(w.m.path(w.owner.Name), filepath.FromSlash(w.repo.Prefix()))
}

// Top implements runner.Workspace.
func (w *workspace) Top() string { return w.m.path(w.owner.Name) }

// Env implements runner.Workspace.
func (w *workspace) Env() []string {
	return []string{"RECONCILE_WORKSPACE=" + w.m.path(w.owner.Name), "RECONCILE_PORT_BASE=" + strconv.Itoa(w.owner.PortBase)}
}

// Close implements runner.Workspace.
func (w *workspace) Close() error {
	_, err := w.m.change(w.owner.Name, released)
	return err
}

// bring copies outputs of other nodes: those on record with the content that they had then, from the cache or the tree, all others as
// they are in the tree.
func (w *workspace) bring(ctx context.Context, names []string, recorded []schemas.Output) error {
	w.brought = map[string]stamp{}
	for _, name := range names {
		if treepath.Of(name) != treepath.User {
			return fmt.Errorf("%s cannot be brought into a workspace", name)
		}
		to := filepath.Join(w.Dir(), filepath.FromSlash(name))
		var err error
		if i := slices.IndexFunc(recorded, func(o schemas.Output) bool { return o.Path == name }); i >= 0 {
			err = w.bringRecorded(ctx, recorded[i])
		} else {
			err = copyFile(filepath.Join(w.m.tree, filepath.FromSlash(name)), w.m.path(w.owner.Name), w.repo.Prefix()+name)
		}
		if err != nil {
			return err
		}
		s, err := stampOf(to)
		if err != nil {
			return err
		}
		w.brought[name] = s
	}
	return nil
}

// bringRecorded copies an output with the content on record, which is verified while it is copied.
func (w *workspace) bringRecorded(ctx context.Context, out schemas.Output) error {
	tree, err := regular.Root(w.m.tree)
	if err != nil {
		return err
	}
	defer tree.Close()
	to, err := regular.Root(w.m.path(w.owner.Name))
	if err != nil {
		return err
	}
	defer to.Close()
	name := filepath.FromSlash(w.repo.Prefix() + out.Path)
	if err := to.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	perm := fs.FileMode(0o644)
	if out.Mode == schemas.OutputExecutable {
		perm = 0o755
	}
	for _, open := range []func() (*os.File, error){
		func() (*os.File, error) { return outputs.Open(tree, out) },
		func() (*os.File, error) { f, _, err := regular.Open(tree, filepath.FromSlash(out.Path)); return f, err },
	} {
		from, err := open()
		if err != nil {
			continue
		}
		err = replaceBy(to, name, perm, func(f io.Writer) error { return outputs.Copy(ctx, f, from, out) })
		_ = from.Close() // it was only read
		if err == nil || !errors.Is(err, outputs.ErrMissing) {
			return err
		}
	}
	return fmt.Errorf("%s is not what its node made: it has changed in the tree, and the cache does not have it; retry the node that makes it", out.Path)
}

// untouched lists the brought files that no one changed since, below the top of the checkout.
func (w *workspace) untouched() []string {
	var out []string
	for name, was := range w.brought {
		if now, err := stampOf(filepath.Join(w.Dir(), filepath.FromSlash(name))); err == nil && now == was {
			out = append(out, w.repo.Prefix()+name)
		}
	}
	slices.Sort(out)
	return out
}

// Commit implements runner.Workspace.
func (w *workspace) Commit(ctx context.Context, at time.Time, outputs, claimed []string) (*schemas.RunWorkspace, error) {
	o := w.owner
	doubts, tampered, err := w.tampered(ctx)
	if err == nil {
		err = w.dropTests(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("the changes in the workspace %s are not committed: %w", o.Name, err)
	}
	changed, err := w.m.checkSecrets(ctx, w.repo, o, w.untouched(), w.below(outputs))
	if err != nil {
		return nil, fmt.Errorf("the changes in the workspace %s are not committed: %w", o.Name, err)
	}
	if name := w.unlandable(changed); name != "" {
		return nil, fmt.Errorf("the changes in the workspace %s are not committed: %q is a name that some systems read in another way or cannot have; rename it, or have git ignore it", o.Name, name)
	}
	got, err := w.repo.Capture(ctx, gitrepo.Capture{Checkout: w.m.checkout(o.Name), Base: o.Base, Except: w.untouched(), Changed: changed,
		Message: message(o), Author: author(o), When: at})
	if err != nil {
		return nil, fmt.Errorf("commit the changes in the workspace %s: %w", o.Name, err)
	}
	if err := w.deliver(outputs, got.Files); err != nil {
		return nil, err
	}
	if got.Commit != "" {
		if err := w.repo.SetRef(ctx, "refs/heads/"+o.Branch, got.Commit, at); err != nil {
			return nil, fmt.Errorf("keep the changes of the workspace %s: %w", o.Name, err)
		}
	}
	notes := difference(w.repo.Prefix(), got.Files, claimed)
	if len(tampered) > 0 {
		notes = append(notes, "left out, since these tests are another agent's: "+some(tampered))
	}
	if got.Commit == "" {
		notes = append(notes, w.ignored(ctx, outputs)...)
	}
	if w.owner, err = w.m.change(o.Name, succeeded(got.Commit)); err != nil {
		return nil, err
	}
	run := &schemas.RunWorkspace{Kind: o.Kind, Name: o.Name, Base: o.Base, Commit: got.Commit, Changed: len(got.Files),
		Files: got.Files[:min(len(got.Files), maxFiles)], Note: strings.Join(notes, "; ")}
	if got.Commit != "" {
		run.Branch = o.Branch
		if w.verified {
			if run.Tree, err = w.repo.TreeOf(ctx, got.Commit); err != nil {
				return nil, fmt.Errorf("read the commit of the workspace %s: %w", o.Name, err)
			}
		}
		if w.measure || w.verified {
			w.look(ctx, run)
		}
		run.Doubts = append(doubts, run.Doubts...)
		run.Doubts = run.Doubts[:min(len(run.Doubts), maxDoubts)]
	}
	return run, nil
}

// ignored notes what the run left that git ignores, besides the outputs. The run began when the record of the workspace was last written.
func (w *workspace) ignored(ctx context.Context, outputs []string) (notes []string) {
	record, err := os.Lstat(w.m.path(w.owner.Name + recordSuffix))
	if err != nil {
		return nil // nobody knows what is new
	}
	co := w.m.checkout(w.owner.Name)
	left, err := w.repo.Ignored(ctx, co)
	if err != nil {
		return []string{"what git ignores there could not be listed: " + err.Error()}
	}
	known := w.below(outputs)
	left = slices.DeleteFunc(left, func(name string) bool {
		fi, err := os.Lstat(filepath.Join(co.Dir, filepath.FromSlash(name)))
		return err != nil || fi.ModTime().Before(record.ModTime()) || slices.ContainsFunc(known, func(out string) bool {
			return out == name || strings.HasSuffix(name, "/") && strings.HasPrefix(out, name)
		})
	})
	if len(left) == 0 {
		return nil
	}
	return []string{"no change to commit, since git ignores what it left: " + some(left)}
}

// unlandable returns the first of the changed files whose name reconcile checks out nowhere; "" without one.
func (w *workspace) unlandable(changed []string) string {
	i := slices.IndexFunc(changed, func(name string) bool {
		return isOdd(strings.TrimSuffix(name, "/")) && exists(filepath.Join(w.Top(), filepath.FromSlash(name)))
	})
	if i < 0 {
		return ""
	}
	return changed[i]
}

// look measures a commit and finds doubtful changes in it. An unreadable file counts as large, and is doubtful.
func (w *workspace) look(ctx context.Context, run *schemas.RunWorkspace) {
	var files []preview.File
	diff, err := w.repo.Diff(ctx, gitrepo.Comparison{From: w.owner.Base, To: run.Commit})
	if err == nil {
		files = preview.Parse(string(diff))
	}
	if w.measure && err == nil {
		c := preview.Measure(files)
		c.Sensitive = c.Sensitive[:min(len(c.Sensitive), maxFiles)]
		run.Change = &c
	}
	switch {
	case w.verified && err != nil:
		run.Doubts = []string{"has lines that nobody could read"}
	case w.verified:
		all := tools.Doubts(files, func(file string, after bool) ([]byte, error) {
			if after {
				return w.repo.Blob(ctx, run.Commit, file)
			}
			return w.repo.Blob(ctx, w.owner.Base, file)
		})
		run.Doubts = all[:min(len(all), maxDoubts)]
	}
}

// below turns paths below the root of the tree into those below the top of the checkout.
func (w *workspace) below(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = w.repo.Prefix() + name
	}
	return out
}

// Changes implements runner.Workspace.
func (w *workspace) Changes(ctx context.Context) (files []string, diff []byte, err error) {
	return w.m.changes(ctx, w.repo, w.owner, w.untouched())
}

// maxFiles is the number of changed files that a record names.
const maxFiles = 100

// maxDoubts is the number of doubts that a record names.
const maxDoubts = 20

func message(o Owner) string {
	return fmt.Sprintf("Do %s of %s\n\nReconcile-Run: %s\n", o.Node, o.Owner, o.Run)
}

// author is who changed the files: the agent.
func author(o Owner) string { return fmt.Sprintf("%s <%s@reconcile.invalid>", o.Agent, o.Agent) }

// deliver copies the outputs into the tree that the commit does not bring there.
func (w *workspace) deliver(outputs, changed []string) error {
	for _, name := range outputs {
		if slices.Contains(changed, w.repo.Prefix()+name) {
			continue
		}
		w.m.deliver(w.repo.Prefix() + name)
		if err := copyOut(w.m.path(w.owner.Name), w.repo.Prefix()+name, filepath.Join(w.m.tree, filepath.FromSlash(name))); err != nil {
			return fmt.Errorf("output %s: %w", name, err)
		}
	}
	return nil
}

// deliver notes that this process writes a file into the work tree; delivers reports that.
func (m *Manager) deliver(name string)       { m.delivered.Store(name, true) }
func (m *Manager) delivers(name string) bool { _, ok := m.delivered.Load(name); return ok }

// difference compares the changed files with those that the agent named; both may be relative to the tree.
func difference(prefix string, changed, claimed []string) (notes []string) {
	if claimed == nil {
		return nil
	}
	said := map[string]bool{}
	for _, p := range claimed {
		said[path.Clean(prefix+strings.TrimPrefix(p, "./"))] = true
	}
	var silent, unchanged []string
	for _, p := range changed {
		if !said[p] {
			silent = append(silent, p)
		}
		delete(said, p)
	}
	for p := range said {
		unchanged = append(unchanged, p)
	}
	slices.Sort(unchanged)
	if len(silent) > 0 {
		notes = append(notes, "changed and not reported: "+some(silent))
	}
	if len(unchanged) > 0 {
		notes = append(notes, "reported and not changed: "+some(unchanged))
	}
	return notes
}

// stamp identifies the content of a file as long as no one writes to it.
type stamp struct {
	size int64
	time time.Time
}

func stampOf(path string) (stamp, error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return stamp{}, err
	}
	if !fi.Mode().IsRegular() {
		return stamp{}, errors.New(path + " is not a regular file")
	}
	return stamp{fi.Size(), fi.ModTime()}, nil
}
