package gitrepo

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
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// modeModule is the mode of a submodule.
const modeModule = 0o160000

// checkout changes files of the work tree from one commit to another.
type checkout struct {
	n        *native
	w        *scratchDir
	cfg      *gitConfig
	store    *objectStore
	rules    *rules
	fileMode bool
	edited   map[string]bool // the paths of the edits
	index    *index
	written  fileTime // mtime of the index
	owner    func(path string) Ownership
}

func newCheckout(ctx context.Context, n *native, cfg *gitConfig, w *scratchDir) *checkout {
	return &checkout{n: n, w: w, cfg: cfg, store: newObjectStore(n.layout), rules: newRules(ctx, n.layout, cfg),
		fileMode: cfg.flag(ctx, "core.filemode", true), owner: func(string) Ownership { return None }}
}

// fileChange is one file to change.
type fileChange struct {
	edit
	raw    bool // this package writes the file, not git
	stay   bool // the file stays as it is, and only the index follows
	shared bool // third-party programs write the file, too
	in     bool // a folder is where the new file goes, or a file where its folder goes
	diskFile
}

// diskFile is a file of the work tree; the zero value does not exist.
type diskFile struct {
	stat fileStat
	mode uint32 // git's mode
}

// fileState relates a file of the work tree to an edit of it.
type fileState int

const (
	stateOld      fileState = iota // as before the edit: it can be changed
	stateNew                       // as after the edit, or outside the sparse checkout
	stateUnknown                   // only git can decide, because of a filter
	stateModified                  // changed by the user
	stateInWay                     // it can be made if the edits remove what is in its way
)

// classify decides what to do with each file. Changed files of the user are a *Conflict.
func (g *checkout) classify(ctx context.Context, edits []edit, keep map[string]blob) ([]fileChange, error) {
	root, err := regular.Root(g.n.worktree)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	g.note(edits)
	var changes, doubts []fileChange
	var clash []string
	anew := slices.ContainsFunc(edits, func(e edit) bool { return path.Base(e.path) == ".gitattributes" }) // git reads the new ones
	for _, e := range edits {
		if err := checkTreePath(e.path); err != nil {
			return nil, err
		}
		_, kept := keep[e.path]
		if kept && e.now.mode == 0 {
			continue // missingRecords handles the file
		}
		owner := g.owner(e.path)
		if owner == Made && e.was.mode != 0 { // it is committed, and treated as what people commit
			owner = None
		}
		if plainCheckout(e.was) && plainCheckout(e.now) && owner != None {
			c := fileChange{edit: e, raw: !anew && g.rules.conversion(e.path).native()}
			c.shared = c.raw && owner == Shared
			if fi, err := lstatBelow(root, e.path); err == nil {
				c.stat = statOf(fi)
			}
			changes = append(changes, c)
			continue
		}
		c := fileChange{edit: e}
		how, at, err := g.look(root, e)
		if err != nil {
			return nil, err
		}
		switch c.diskFile, c.stay, c.in = at, how == stateNew, how == stateInWay; how {
		case stateModified:
			clash = append(clash, e.path)
		case stateUnknown:
			doubts = append(doubts, c)
		default:
			changes = append(changes, c)
		}
	}
	cleared, still := g.askGit(ctx, doubts)
	changes, blocked := unblocked(root, append(changes, cleared...))
	if clash = slices.Concat(clash, still, blocked); len(clash) > 0 {
		slices.Sort(clash)
		err = &Conflict{Paths: clash, What: "changed here and on the remote; commit, stash or move your changes away, then run " +
			"again; nothing was changed"}
	}
	if err != nil {
		return nil, err
	}
	return append(changes, g.missingRecords(root, keep)...), nil
}

// missingRecords returns the records that the branch does not have any more, or never had, and whose files do not
// exist.
func (g *checkout) missingRecords(root *os.Root, keep map[string]blob) []fileChange {
	var out []fileChange
	for p, b := range keep {
		if _, err := root.Lstat(filepath.FromSlash(p)); errors.Is(err, os.ErrNotExist) && plainCheckout(b) && checkTreePath(p) == nil {
			out = append(out, fileChange{edit: edit{path: p, now: b}, raw: g.rules.conversion(p).native()})
		}
	}
	slices.SortFunc(out, func(a, b fileChange) int { return strings.Compare(a.path, b.path) })
	return out
}

// plainCheckout reports whether an entry is a regular file, or absent.
func plainCheckout(b blob) bool { return b.mode == 0 || b.mode == modeFile || b.mode == modeExec }

// look compares index and work tree with an edit.
func (g *checkout) look(root *os.Root, e edit) (fileState, diskFile, error) {
	entry, conflict := g.index.find(e.path)
	switch {
	case conflict, entry.fixed != nil && entry.extended()&flagIntent != 0:
		return stateModified, diskFile{}, nil
	case entry.fixed == nil && e.was.mode != 0 && e.now.mode != 0, entry.fixed != nil && entry.blob() != e.was && entry.blob() != e.now:
		return stateModified, diskFile{}, nil
	case entry.fixed == nil && g.index.blocked(e.path, g.edited):
		return stateModified, diskFile{}, nil
	case e.was.mode == modeModule || e.now.mode == modeModule:
		if e.was.mode|e.now.mode != modeModule { // a file became a submodule, or the reverse
			return stateModified, diskFile{}, nil
		}
		return stateNew, diskFile{}, nil
	}
	fi, err := lstatBelow(root, e.path)
	otherSort := errors.Is(err, errNotFolder) || err == nil && fi.IsDir()
	switch {
	case otherSort && e.was.mode == 0:
		at := diskFile{}
		if err == nil {
			at.stat = statOf(fi)
		}
		return stateInWay, at, nil
	case otherSort && e.now.mode == 0 && entry.fixed == nil:
		return stateNew, diskFile{}, nil // it is gone
	case otherSort:
		return stateModified, diskFile{}, nil
	case errors.Is(err, os.ErrNotExist):
		outside := entry.fixed != nil && entry.extended()&flagSkip != 0
		switch {
		case outside || e.now.mode == 0:
			return stateNew, diskFile{}, nil
		case e.was.mode == 0:
			return stateOld, diskFile{}, nil
		}
		return stateModified, diskFile{}, nil
	case err != nil:
		return stateModified, diskFile{}, err
	}
	return g.compare(root, e, fi)
}

// errNotFolder reports that a parent of a path is not a folder.
var errNotFolder = errors.New("not a folder")

// compare compares the content of a file on disk with both sides of an edit.
func (g *checkout) compare(root *os.Root, e edit, fi os.FileInfo) (fileState, diskFile, error) {
	at := diskFile{statOf(fi), modeFile}
	var data []byte
	var err error
	switch {
	case fi.Mode()&os.ModeSymlink != 0:
		var to string
		at.mode = modeLink
		to, err = root.Readlink(filepath.FromSlash(e.path))
		data = []byte(filepath.ToSlash(to))
	case !fi.Mode().IsRegular():
		return stateModified, at, nil
	default:
		if fi.Mode()&0o100 != 0 {
			at.mode = modeExec
		}
		s := dirtyScan{index: g.index, written: g.written, rules: g.rules, store: g.store}
		if hash, known := s.indexed(e.path, at.stat); known {
			return g.stateOf(e, blob{at.mode, hash}), at, nil
		}
		if data, err = regular.Read(root, filepath.FromSlash(e.path)); err != nil {
			break
		}
		hash, err := s.stored(e.path, data)
		if err != nil {
			return stateUnknown, at, nil
		}
		return g.stateOf(e, blob{at.mode, hash}), at, nil
	}
	if err != nil {
		return stateModified, at, err
	}
	return g.stateOf(e, blob{at.mode, hashObject(plumbing.BlobObject, data)}), at, nil
}

// stateOf compares a blob with both sides of an edit.
func (g *checkout) stateOf(e edit, is blob) fileState {
	like := func(b blob) bool {
		sort := is.mode == b.mode || !g.fileMode && plainCheckout(is) && plainCheckout(b)
		return b.mode != 0 && sort && is.hash == b.hash
	}
	switch {
	case like(e.now):
		return stateNew
	case like(e.was):
		return stateOld
	}
	return stateModified
}

// note records the paths of the edits.
func (g *checkout) note(edits []edit) {
	g.edited = make(map[string]bool, len(edits))
	for _, e := range edits {
		g.edited[e.path] = true
	}
}

// unblocked returns the changes without those in whose way there is something that the changes do not remove, and the
// paths of these: a file that becomes a folder, or a folder that becomes a file, is in the way.
func unblocked(root *os.Root, changes []fileChange) (free []fileChange, blocked []string) {
	if !slices.ContainsFunc(changes, func(c fileChange) bool { return c.in }) {
		return changes, nil
	}
	goes := map[string]bool{}
	for _, c := range changes {
		goes[c.path] = c.now.mode == 0 && !c.stay
	}
	for _, c := range changes {
		if !c.in || slices.ContainsFunc(foldersOf(c.path), func(dir string) bool { return goes[dir] }) || holdsOnly(root, c.path, goes) {
			free = append(free, c)
		} else {
			blocked = append(blocked, c.path)
		}
	}
	return free, blocked
}

// holdsOnly reports whether path is a folder all of whose files, at any depth, are among the given ones.
func holdsOnly(root *os.Root, dir string, files map[string]bool) bool {
	if fi, err := lstatBelow(root, dir); err != nil || !fi.IsDir() {
		return false
	}
	return fs.WalkDir(regular.FS(root), dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !files[p] {
			err = fs.ErrExist
		}
		return err
	}) == nil
}

// askGit has git compare files that a filter converts. In read-only mode no filter runs: the files then count as
// changed by the user.
func (g *checkout) askGit(ctx context.Context, doubts []fileChange) (cleared []fileChange, clash []string) {
	if len(doubts) == 0 {
		return nil, nil
	}
	paths := pathsOfChanges(doubts)
	if g.n.mode == readOnly {
		return nil, paths
	}
	out, err := g.git().run(ctx, call{stdin: []byte(strings.Join(paths, "\n") + "\n")}, "hash-object", "--stdin-paths")
	if err != nil {
		return nil, paths // unknown, so treated as the user's
	}
	hashes := strings.Fields(string(out))
	if len(hashes) != len(doubts) {
		return nil, paths
	}
	for i, c := range doubts {
		switch g.stateOf(c.edit, blob{c.mode, plumbing.NewHash(hashes[i])}) {
		case stateNew:
			c.stay = true
			cleared = append(cleared, c)
		case stateOld:
			cleared = append(cleared, c)
		default:
			clash = append(clash, c.path)
		}
	}
	return cleared, clash
}

func pathsOfChanges(changes []fileChange) []string {
	out := make([]string, len(changes))
	for i, c := range changes {
		out[i] = c.path
	}
	return out
}

func (g *checkout) git() *command {
	return &command{layout: g.n.layout, git: g.n.git, mode: g.n.mode, lockTimeout: g.n.lockTimeout}
}

// askIndex reads, with git, the entries of an index that only git can read.
func (g *checkout) askIndex(ctx context.Context, edits []edit) error {
	g.index = &index{version: 2}
	out, err := g.git().run(ctx, call{}, "ls-files", "-s", "-t", "-z")
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, e := range edits {
		wanted[e.path] = true
	}
	for _, line := range nulSplit(out) {
		about, p, _ := strings.Cut(line, "\t")
		var tag, hash string
		var mode uint32
		var level uint16
		if _, err := fmt.Sscanf(about, "%s %o %s %d", &tag, &mode, &hash, &level); err != nil {
			return fmt.Errorf("git ls-files: cannot read %q", line)
		}
		if !wanted[p] {
			continue
		}
		e := newEntry(p, blob{mode, plumbing.NewHash(hash)}, fileStat{}, indexEntry{})
		g.index.entries = append(g.index.entries, e.tagged(level, tag == "S"))
	}
	return nil
}

// stage prepares all contents without changing anything: reconcile's files as they are, and other files as git
// would check them out, with their filters, line ends and links.
func (g *checkout) stage(ctx context.Context, changes []fileChange) (_ *staged, err error) {
	s := &staged{g: g, changes: changes, dir: path.Join(g.n.scratch, "adopt")}
	if s.root, err = regular.Root(g.n.worktree); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.drop()
		}
	}()
	var removals, ops []durable.Op
	for _, c := range changes {
		switch {
		case c.stay || c.shared || c.was.mode == modeModule || c.now.mode == modeModule:
		case c.now.mode == 0 && plainCheckout(c.was):
			removals = append(removals, durable.Op{Path: c.path, Stop: "."})
		case c.now.mode == 0 || !c.raw:
			s.byGit = append(s.byGit, c)
		default:
			data, err := g.blob(ctx, c.now)
			if err == nil {
				how := g.rules.conversion(c.path)
				how.crlf = false // as reconcile writes its files
				data, err = how.smudge(data)
			}
			if err != nil {
				return nil, err
			}
			ops = append(ops, durable.Op{Path: c.path, Data: data})
		}
	}
	ops = append(removals, ops...) // a folder may replace a file
	if s.ours, err = durable.StageAll(s.root, g.n.scratch, ops); err != nil {
		return nil, err
	}
	return s, s.checkOut(ctx)
}

func checkoutContent(obj plumbing.EncodedObject) (data []byte, err error) {
	r, err := obj.Reader()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	data = make([]byte, obj.Size())
	_, err = io.ReadFull(r, data)
	return data, err
}

func compareCheckout(l layout, t target) error {
	if t.out {
		now, err := readHead(l)
		if err == nil && now != t.Head {
			err = errMoved
		}
		return err
	}
	hash, err := resolveRef(l, t.Ref)
	if err == nil && hash != t.Hash {
		err = errMoved
	}
	return err
}

// Conflict reports why a tip cannot be adopted. Nothing was changed.
type Conflict struct {
	Paths []string // below the work tree, sorted; may be empty
	What  string   // the obstacle, and the next step
}

func (c *Conflict) Error() string {
	const most = 5
	names := strings.Join(c.Paths[:min(len(c.Paths), most)], ", ")
	if more := len(c.Paths) - most; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	if names == "" {
		return c.What
	}
	return names + ": " + c.What
}

// blob reads a blob, with git if a partial clone lacks it.
func (g *checkout) blob(ctx context.Context, b blob) ([]byte, error) {
	data, err := g.store.read(plumbing.BlobObject, b.hash)
	var missing *needsGit
	if errors.As(err, &missing) {
		data, err = g.git().run(ctx, call{}, "cat-file", "blob", b.hash.String())
	}
	if data == nil && err == nil {
		data = []byte{}
	}
	return data, err
}

// attributes returns the new content of a .gitattributes file.
func (g *checkout) attributes(p string, changes []fileChange) blob {
	if i := slices.IndexFunc(changes, func(c fileChange) bool { return c.path == p }); i >= 0 {
		return changes[i].now
	}
	e, _ := g.index.find(p)
	if e.fixed == nil {
		return blob{}
	}
	return e.blob()
}

// takeBack reverts the files of an unfinished move: those that are still as the move wrote them. All others were
// changed by other processes since.
func (n *native) takeBack(ctx context.Context, w *scratchDir, store *objectStore, p pending) error {
	was, err := store.treeOf(p.Old)
	if err != nil {
		return err
	}
	made, err := store.treeOf(p.New)
	var missing *needsGit
	if errors.As(err, &missing) {
		return nil // no object of it was written
	}
	if err != nil {
		return err
	}
	edits, _, err := store.difference(made, was)
	if err != nil {
		return err
	}
	cfg, err := loadConfig(n.layout, n.git)
	if err != nil {
		return err
	}
	g := newCheckout(ctx, n, cfg, w)
	g.store.close()
	g.store = store
	data, _, written, err := readIndex(filepath.Join(n.gitDir, "index"))
	if err != nil {
		return err
	}
	g.written = written
	if g.index, err = parseIndex(data); errors.As(err, &missing) {
		err = g.askIndex(ctx, edits)
	}
	if err != nil {
		return err
	}
	return g.undo(ctx, edits)
}

// undo applies the edits whose files are still in the state before the edit.
func (g *checkout) undo(ctx context.Context, edits []edit) error {
	root, err := regular.Root(g.n.worktree)
	if err != nil {
		return err
	}
	defer root.Close()
	g.note(edits)
	var changes, doubts []fileChange
	for _, e := range edits {
		how, at, err := g.look(root, e)
		if err != nil {
			return err
		}
		switch c := (fileChange{edit: e, diskFile: at, in: how == stateInWay}); how {
		case stateOld, stateInWay:
			changes = append(changes, c)
		case stateUnknown:
			doubts = append(doubts, c)
		}
	}
	cleared, _ := g.askGit(ctx, doubts)
	cleared = slices.DeleteFunc(cleared, func(c fileChange) bool { return c.stay })
	changes, _ = unblocked(root, append(changes, cleared...))
	s, err := g.stage(ctx, changes)
	if err != nil {
		return err
	}
	defer s.drop()
	return s.place()
}
