package state

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/regular"
)

// inputs are the files that the globs of nodes match, and their digests.
type inputs struct {
	globs   []string // of all nodes, sorted, each once
	nodes   map[schemas.Ref]map[string][]string
	files   map[string]*inputFile
	digests map[schemas.Ref]map[string]string
	read    []string // files that the cache does not know yet
	rules   summer   // how version control stores them, as of the last look at all
}

// inputFile is a file that a glob matches.
type inputFile struct {
	stat   stat
	racy   bool
	digest [sha256.Size]byte // of the content, as version control stores it
	rules  uint64            // what that followed from
}

// globber is a spec with nodes that declare inputs.
type globber interface{ InputGlobs() map[string][]string }

// newInputs collects the globs of all objects and keeps what is known of the files.
func (s *Store) newInputs(m *model) *inputs {
	in := &inputs{nodes: map[schemas.Ref]map[string][]string{}, files: map[string]*inputFile{}}
	if s.model != nil {
		in.files, in.rules = s.model.inputs.files, s.model.inputs.rules
	} else {
		in.files = s.cache.inputs
	}
	all := map[string]bool{}
	for ref, sl := range m.slots {
		for _, f := range sl.specs {
			for node, globs := range globsOf(f.body.(*specBody).object) {
				if in.nodes[ref] == nil {
					in.nodes[ref] = map[string][]string{}
				}
				in.nodes[ref][node] = globs
				for _, g := range globs {
					all[g] = true
				}
			}
		}
	}
	in.globs = slices.Sorted(maps.Keys(all))
	return in
}

// globsOf looks into the canonical form first: most objects have no inputs and need not be decoded for it.
func globsOf(o *schemas.Object) map[string][]string {
	if o == nil || !bytes.Contains(o.Canonical(), []byte(`"inputs":[`)) {
		return nil
	}
	if g, ok := o.Spec().(globber); ok {
		return g.InputGlobs()
	}
	return nil
}

func (in *inputs) of(ref schemas.Ref) map[string]string { return in.digests[ref] }

// matches reports whether some glob matches a path.
func (in *inputs) matches(p string) bool {
	return slices.ContainsFunc(in.globs, func(g string) bool { return matchGlob(g, p) })
}

func matchGlob(glob, p string) bool {
	ok, err := doublestar.Match(glob, p)
	return ok && err == nil
}

// readInputs looks at the files that the globs match and computes the digests. hints, when not nil, are the only files
// that may have changed.
func (s *Store) readInputs(ctx context.Context, m *model, hints []string) error {
	in := m.inputs
	if hints == nil {
		files, err := s.findInputs(ctx, m.layout, in)
		if err != nil {
			return err
		}
		in.files = files
	}
	for _, p := range hints {
		s.readInput(in, p)
	}
	in.sum()
	e := s.cache.encoder(blockInputs)
	for _, p := range in.read {
		if f := in.files[p]; f != nil {
			e.input(p, f)
		}
	}
	in.read = nil
	s.cache.write(e)
	return nil
}

// HasInput reports whether a glob of inputs of the tree, as of the last look, matches a file.
func (s *Store) HasInput(glob string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model == nil || s.model.inputs == nil {
		return false
	}
	for p := range s.model.inputs.files {
		if matchGlob(glob, p) {
			return true
		}
	}
	return false
}

// findInputs walks the work tree for all globs at once.
func (s *Store) findInputs(ctx context.Context, l *layout, in *inputs) (map[string]*inputFile, error) {
	in.rules = summer{}
	s.addRules(&in.rules, in.globs)
	found := map[string]stat{}
	err := walkInputs(ctx, s.root, l, in.globs, func(p string, st stat) { found[p] = st }, in.rules.addRule)
	files := make(map[string]*inputFile, len(found))
	for _, p := range slices.Sorted(maps.Keys(found)) {
		if f := s.inputFile(in, p, found[p]); f != nil {
			files[p] = f
		}
	}
	return files, err
}

// addRules adds what the whole repository says of how files are stored.
func (s *Store) addRules(to *summer, globs []string) {
	if len(globs) > 0 && s.opts.StoredBy != nil {
		to.addText("\x00stored", s.opts.StoredBy())
	}
}

// addRule adds a .gitattributes below the tree.
func (s *summer) addRule(p string, st stat) { s.addFile("\x00rules", []byte(p), &st) }

// readInput looks at one file that may have changed.
func (s *Store) readInput(in *inputs, p string) {
	st, err := lstat(s.root, p)
	if err == nil && st.form() == formLink {
		st, err = followLink(s.root, p)
	}
	var f *inputFile
	if err == nil && st.form() == formFile {
		f = s.inputFile(in, p, st)
	}
	if f == nil {
		delete(in.files, p)
	} else {
		in.files[p] = f
	}
}

// inputFile returns what is known of a file, reading it if it changed; nil when it cannot be read.
func (s *Store) inputFile(in *inputs, p string, st stat) *inputFile {
	known := in.files[p]
	if known != nil && known.stat == st && !known.racy && known.rules == in.rules.A {
		return known
	}
	now := s.opts.FileNow()
	f, fi, err := regular.Open(s.root, p)
	if err != nil {
		return nil
	}
	defer f.Close()
	out := &inputFile{stat: statOf(fi), rules: in.rules.A}
	out.racy = out.stat.racyAt(now)
	if out.digest, err = s.digestOf(p, f); err != nil {
		return nil
	}
	if known == nil || *known != *out {
		in.read = append(in.read, p)
	}
	return out
}

// digestOf digests the content of a file as version control stores it.
func (s *Store) digestOf(p string, f io.Reader) (digest [sha256.Size]byte, err error) {
	if s.opts.Stored != nil {
		if stored := s.opts.Stored(p); stored != nil {
			data, err := io.ReadAll(f)
			return sha256.Sum256(stored(data)), err
		}
	}
	h := sha256.New()
	if _, err = io.Copy(h, f); err == nil {
		h.Sum(digest[:0])
	}
	return digest, err
}

// sum computes the digest of each node's inputs: over the paths and contents of all files that its globs match, in the
// order of the paths.
func (in *inputs) sum() {
	in.digests = map[schemas.Ref]map[string]string{}
	if len(in.nodes) == 0 {
		return
	}
	paths := slices.Sorted(maps.Keys(in.files))
	matched := map[string][]string{}
	for _, g := range in.globs {
		for _, p := range paths {
			if matchGlob(g, p) {
				matched[g] = append(matched[g], p)
			}
		}
	}
	known := map[string]string{} // many nodes have the same globs
	for ref, nodes := range in.nodes {
		out := make(map[string]string, len(nodes))
		for node, globs := range nodes {
			key := strings.Join(globs, "\x00")
			if known[key] == "" {
				known[key] = in.digest(globs, matched)
			}
			out[node] = known[key]
		}
		in.digests[ref] = out
	}
}

func (in *inputs) digest(globs []string, matched map[string][]string) string {
	var paths []string
	for _, g := range globs {
		paths = append(paths, matched[g]...)
	}
	slices.Sort(paths)
	h := sha256.New()
	for _, p := range slices.Compact(paths) {
		io.WriteString(h, p)
		h.Write([]byte{0})
		h.Write(in.files[p].digest[:])
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// addTo adds the files to a fingerprint.
func (in *inputs) addTo(s *summer) {
	s.merge(in.rules.sum)
	for p, f := range in.files {
		addInput(s, p, &f.stat)
	}
}

// addInput sets input files apart from the same files in other roles.
func addInput(s *summer, p string, st *stat) { s.addFile("\x00input", []byte(p), st) }

// RefreshInputs looks again at all files that inputs match, as Refresh does with a hint for each.
func (s *Store) RefreshInputs(ctx context.Context, prev *Tree) (*Tree, []schemas.Ref, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model == nil || prev == nil {
		return s.reload(ctx, prev)
	}
	u := s.update()
	if err := errors.Join(u.inputs(ctx, nil), u.written(ctx)); err != nil {
		s.model = nil
		return nil, nil, fmt.Errorf("look at the inputs of %s: %w", s.dir, err)
	}
	next, changed := u.apply(prev)
	return next, changed, nil
}

// inputs looks at what the globs match, as far as hints, or a change of the globs, ask for it.
func (u *update) inputs(ctx context.Context, hints []string) error {
	was := u.model.inputs
	if u.changedGlobs() {
		u.model.inputs = u.store.newInputs(u.model)
	}
	next := u.model.inputs
	if !slices.Equal(next.globs, was.globs) {
		hints = nil
	}
	look := u.inputHints(next, hints)
	if len(was.globs)+len(next.globs) == 0 || next == was && look != nil && len(look) == 0 {
		return nil
	}
	before := was.digests
	if err := u.store.readInputs(ctx, u.model, look); err != nil {
		return err
	}
	for _, all := range []map[schemas.Ref]map[string]string{before, next.digests} {
		for ref := range all {
			if !maps.Equal(before[ref], next.digests[ref]) {
				u.touch(ref)
			}
		}
	}
	return nil
}

// inputHints are those of the hints that are inputs or were; nil stands for everything.
func (u *update) inputHints(in *inputs, hints []string) []string {
	if hints == nil || len(in.globs) == 0 {
		return hints
	}
	look := []string{}
	for _, p := range hints {
		if strings.HasSuffix(p, "/") {
			continue
		}
		p = path.Clean(p)
		if in.files[p] != nil || !neverInput(u.model.layout, p) && in.matches(p) {
			look = append(look, p)
		} else if u.mayHoldInputs(in, p) {
			return nil
		}
	}
	return look
}

// mayHoldInputs reports whether p is a folder in which inputs may be, or was one in which some were.
func (u *update) mayHoldInputs(in *inputs, p string) bool {
	if st, err := lstat(u.store.root, p); err == nil {
		return st.form() == formFolder && !neverInput(u.model.layout, p+"/x")
	}
	for known := range in.files {
		if within(p, known) {
			return true
		}
	}
	return false
}

// changedGlobs reports whether an object that has, or had, inputs is touched.
func (u *update) changedGlobs() bool {
	for ref := range u.touched {
		if u.model.inputs.nodes[ref] != nil {
			return true
		}
		if s := u.model.slots[ref]; s != nil {
			for _, f := range s.specs {
				if len(globsOf(f.body.(*specBody).object)) > 0 {
					return true
				}
			}
		}
	}
	return false
}
