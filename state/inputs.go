package state

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"maps"
	"slices"

	"github.com/bmatcuk/doublestar/v4"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/regular"
)

// inputs are the files that the globs of nodes match, and their digests.
type inputs struct {
	globs   []string // of all nodes, sorted, each once
	nodes   map[schemas.Ref]map[string][]string
	files   map[string]*inputFile
	matched map[string][]string      // the files of each glob, sorted; nil until they are summed up
	users   map[string][]schemas.Ref // who has each glob, sorted
	digests map[schemas.Ref]map[string]string
	read    []string        // files that the cache does not know yet
	rules   summer          // how version control stores them, as of the last look at all
	stored  string          // of these, what the whole repository says
	ruling  map[string]stat // of these, the files below the tree
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
	in := &inputs{nodes: map[schemas.Ref]map[string][]string{}, users: map[string][]schemas.Ref{}, files: map[string]*inputFile{}}
	if was := s.inputsKnown(); was != nil {
		in.files, in.rules, in.stored, in.ruling = was.files, was.rules, was.stored, was.ruling
	} else {
		in.files = s.cache.inputs
	}
	for ref := range m.slots {
		nodes := m.globsOf(ref)
		if nodes == nil {
			continue
		}
		in.nodes[ref] = nodes
		for _, globs := range nodes {
			for _, g := range globs {
				in.users[g] = append(in.users[g], ref)
			}
		}
	}
	for g, refs := range in.users {
		slices.SortFunc(refs, schemas.Ref.Compare)
		in.users[g] = slices.Compact(refs)
	}
	in.globs = slices.Sorted(maps.Keys(in.users))
	return in
}

func (s *Store) inputsKnown() *inputs {
	if s.model == nil {
		return nil
	}
	return s.model.inputs
}

// globsOf are the globs of an object's nodes; nil where there are none.
func (m *model) globsOf(ref schemas.Ref) map[string][]string {
	var nodes map[string][]string
	if s := m.slots[ref]; s != nil {
		for _, f := range s.specs {
			for node, globs := range globsOf(f.body.(*specBody).object) {
				if nodes == nil {
					nodes = map[string][]string{}
				}
				nodes[node] = globs
			}
		}
	}
	return nodes
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

// readInputs looks at the files that the globs match, computes the digests that may have changed, and returns whose. hints,
// when not nil, are the only files that may have changed.
func (s *Store) readInputs(ctx context.Context, m *model, hints []string) ([]schemas.Ref, error) {
	in := m.inputs
	var changed []string
	if hints == nil {
		files, err := s.findInputs(ctx, m.layout, in)
		if err != nil {
			return nil, err
		}
		changed = differing(in.files, files)
		in.files = files
	}
	for _, p := range hints {
		if s.readInput(in, p) {
			changed = append(changed, p)
		}
	}
	return s.summed(in, changed), nil
}

// summed computes the digests that rest on changed files, and keeps in the cache what was read for them.
func (s *Store) summed(in *inputs, changed []string) []schemas.Ref {
	refs := in.sum(changed)
	e := s.cache.encoder(blockInputs)
	for _, p := range in.read {
		if f := in.files[p]; f != nil {
			e.input(p, f)
		}
	}
	in.read = nil
	s.cache.write(e)
	return refs
}

// differing are the paths at which two sets of files differ.
func differing(was, is map[string]*inputFile) []string {
	var out []string
	for p, f := range is {
		if !sameInput(was[p], f) {
			out = append(out, p)
		}
	}
	for p := range was {
		if is[p] == nil {
			out = append(out, p)
		}
	}
	return out
}

// sameInput reports whether two looks at a file found the same in it; nil stands for no file.
func sameInput(a, b *inputFile) bool {
	return a == b || a != nil && b != nil && a.digest == b.digest
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
	in.rules, in.stored, in.ruling = summer{}, s.storedBy(in.globs), map[string]stat{}
	s.addRules(&in.rules, in.globs, in.stored)
	found := map[string]stat{}
	err := walkInputs(ctx, s.root, l, in.globs, func(p string, st stat) { found[p] = st }, func(p string, st stat) {
		in.ruling[p] = st
		in.rules.addRule(p, st)
	})
	files := make(map[string]*inputFile, len(found))
	for _, p := range slices.Sorted(maps.Keys(found)) {
		if f := s.inputFile(in, p, found[p]); f != nil {
			files[p] = f
		}
	}
	return files, err
}

// storedBy is what the whole repository says of how files are stored; "" where nobody asks.
func (s *Store) storedBy(globs []string) string {
	if len(globs) == 0 || s.opts.StoredBy == nil {
		return ""
	}
	return s.opts.StoredBy()
}

// addRules adds what storedBy says.
func (s *Store) addRules(to *summer, globs []string, stored string) {
	if len(globs) > 0 && s.opts.StoredBy != nil {
		to.addText("\x00stored", stored)
	}
}

// addRule adds a .gitattributes below the tree.
func (s *summer) addRule(p string, st stat) { s.addFile("\x00rules", []byte(p), &st) }

// readInput looks at one file that may have changed, and reports whether it did.
func (s *Store) readInput(in *inputs, p string) bool {
	st, err := lstat(s.root, p)
	if err == nil && st.form() == formLink {
		st, err = followLink(s.root, p)
	}
	var f *inputFile
	if err == nil && st.form() == formFile {
		f = s.inputFile(in, p, st)
	}
	return in.set(p, f)
}

// set takes what a look at a file found, and reports whether it differs; nil: there is no such file.
func (in *inputs) set(p string, f *inputFile) bool {
	same := sameInput(in.files[p], f)
	if f == nil {
		delete(in.files, p)
	} else {
		in.files[p] = f
	}
	return !same
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

// addTo adds the files to a fingerprint.
func (in *inputs) addTo(s *summer) {
	s.merge(in.rules.sum)
	for p, f := range in.files {
		addInput(s, p, &f.stat)
	}
}

// addInput sets input files apart from the same files in other roles.
func addInput(s *summer, p string, st *stat) { s.addFile("\x00input", []byte(p), st) }
