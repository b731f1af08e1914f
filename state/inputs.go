package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/disk"
	"reconcile.dev/reconcile/state/regular"
)

// globber is a spec with nodes that declare inputs.
type globber interface{ InputGlobs() map[string][]string }

// newInputs collects the globs of all objects and keeps the data of known files.
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

// globsOf returns the globs of an object's nodes; nil without globs.
func (m *model) globsOf(ref schemas.Ref) map[string][]string {
	var nodes map[string][]string
	if s := m.slots[ref]; s != nil {
		for _, f := range s.specs {
			o := f.body.(*specBody).object
			if len(s.specs) == 1 {
				o = m.expanded(ref)
			}
			for node, globs := range globsOf(o) {
				if nodes == nil {
					nodes = map[string][]string{}
				}
				nodes[node] = globs
			}
		}
	}
	return nodes
}

// globsOf returns the input globs of an object by node. It searches the canonical form first: most objects have no inputs
// and need not be decoded.
func globsOf(o *schemas.Object) map[string][]string {
	if o == nil || o == o.Declared() && !o.Mentions(schemas.MarkInputs) {
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

// readInputs scans the files that the globs match, computes the digests that may have changed, and returns their objects.
// hints, if not nil, are the only files that may have changed.
func (s *Store) readInputs(ctx context.Context, m *model, hints []string) ([]schemas.Ref, error) {
	in := m.inputs
	if s.opts.NoInputs {
		return nil, nil
	}
	var changed []string
	if hints == nil {
		files, err := s.findInputs(ctx, m.layout, in)
		if err != nil {
			return nil, err
		}
		changed = differingInputs(in.files, files)
		in.files = files
	}
	for _, p := range hints {
		if s.readInput(in, p) {
			changed = append(changed, p)
		}
	}
	return s.digestChanged(in, changed), nil
}

// digestChanged computes the digests that depend on changed files, and adds the files that were read to the cache.
func (s *Store) digestChanged(in *inputs, changed []string) []schemas.Ref {
	refs := in.updateDigests(changed)
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

// differingInputs returns the paths at which two sets of files differ.
func differingInputs(was, is map[string]*inputFile) []string {
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

// sameInput reports whether two versions of an input are the same; nil is a missing file.
func sameInput(a, b *inputFile) bool {
	return a == b || a != nil && b != nil && a.digest == b.digest
}

// HasInput reports whether any file among the inputs of the tree matches the glob, as of the last scan.
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
	in.rules, in.stored, in.ruling = fingerprinter{}, s.cleanRules(in.globs), map[string]disk.Stat{}
	s.addRules(&in.rules, in.globs, in.stored)
	found := map[string]disk.Stat{}
	err := walkInputs(ctx, s.root, l, in.globs, func(p string, st disk.Stat) { found[p] = st }, func(p string, st disk.Stat) {
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

// cleanRules returns the part of the clean rules that holds for the whole repository; "" without globs or a callback.
func (s *Store) cleanRules(globs []string) string {
	if len(globs) == 0 || s.opts.Cleaner == nil {
		return ""
	}
	return s.opts.Cleaner.Rules()
}

// addRules adds the clean rules.
func (s *Store) addRules(to *fingerprinter, globs []string, stored string) {
	if len(globs) > 0 && s.opts.Cleaner != nil {
		to.addText("\x00stored", stored)
	}
}

// addRule adds a .gitattributes below the tree.
func (s *fingerprinter) addRule(p string, st disk.Stat) { s.addFile("\x00rules", []byte(p), &st) }

// readInput reads one file that may have changed, and reports whether it did.
func (s *Store) readInput(in *inputs, p string) bool {
	st, err := disk.Lstat(s.root, p)
	if err == nil && st.Form() == disk.Link {
		st, err = followLink(s.root, p)
	}
	var f *inputFile
	if err == nil && st.Form() == disk.File {
		f = s.inputFile(in, p, st)
	}
	return in.set(p, f)
}

// set replaces the data of a file, and reports whether it differs; nil: the file does not exist.
func (in *inputs) set(p string, f *inputFile) bool {
	same := sameInput(in.files[p], f)
	if f == nil {
		delete(in.files, p)
	} else {
		in.files[p] = f
	}
	return !same
}

// inputFile returns the data of a file, which it reads if it changed; nil if it is not readable.
func (s *Store) inputFile(in *inputs, p string, st disk.Stat) *inputFile {
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
	out := &inputFile{stat: disk.StatOf(fi), rules: in.rules.A}
	out.racy = out.stat.RacyAt(now, s.tick)
	if out.digest, err = s.digestOf(p, f); err != nil {
		return nil
	}
	if known == nil || *known != *out {
		in.read = append(in.read, p)
	}
	return out
}

// digestOf returns the digest of a file's content after git's clean filter.
func (s *Store) digestOf(p string, f io.Reader) (digest [sha256.Size]byte, err error) {
	if s.opts.Cleaner != nil {
		if stored := s.opts.Cleaner.Filter(p); stored != nil {
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
func (in *inputs) addTo(s *fingerprinter) {
	s.merge(in.rules.fingerprint)
	for p, f := range in.files {
		addInput(s, p, &f.stat)
	}
}

// addInput distinguishes input files from the same files in other roles.
func addInput(s *fingerprinter, p string, st *disk.Stat) { s.addFile("\x00input", []byte(p), st) }

// updateDigests computes the digest of each node's inputs: over the paths and contents of all files that its globs match,
// in the order of the paths. It computes those that depend on changed files, or all on the first call, and returns the
// objects concerned.
func (in *inputs) updateDigests(changed []string) []schemas.Ref {
	if in.matched != nil {
		return in.digestGlobs(in.rematch(changed))
	}
	in.matched, in.digests = map[string][]string{}, map[schemas.Ref]map[string]string{}
	if len(in.nodes) == 0 {
		return nil
	}
	paths := slices.Sorted(maps.Keys(in.files))
	for _, g := range in.globs {
		for _, p := range paths {
			if matchGlob(g, p) {
				in.matched[g] = append(in.matched[g], p)
			}
		}
	}
	return in.digestGlobs(in.globs)
}

// rematch updates the matches of globs for changed files, and returns the globs that match one now or did before.
func (in *inputs) rematch(changed []string) []string {
	var globs []string
	if len(changed) == 0 {
		return nil
	}
	for _, g := range in.globs {
		touched := false
		for _, p := range changed {
			i, had := slices.BinarySearch(in.matched[g], p)
			switch {
			case had && in.files[p] == nil:
				in.matched[g] = slices.Delete(in.matched[g], i, i+1)
			case !had && (in.files[p] == nil || !matchGlob(g, p)):
				continue
			case !had:
				in.matched[g] = slices.Insert(in.matched[g], i, p)
			}
			touched = true
		}
		if touched {
			globs = append(globs, g)
		}
	}
	return globs
}

// digestGlobs computes the digests of the nodes with one of the globs, and returns their objects.
func (in *inputs) digestGlobs(globs []string) []schemas.Ref {
	some := map[string]bool{}
	var refs []schemas.Ref
	for _, g := range globs {
		some[g] = true
		refs = append(refs, in.users[g]...)
	}
	if len(refs) == 0 {
		return nil
	}
	slices.SortFunc(refs, schemas.Ref.Compare)
	refs = slices.Compact(refs)
	in.digests = maps.Clone(in.digests) // the former map is compared later
	known := map[string]string{}        // many nodes have the same globs
	for _, ref := range refs {
		out := make(map[string]string, len(in.nodes[ref]))
		for node, globs := range in.nodes[ref] {
			if had, ok := in.digests[ref][node]; ok && !slices.ContainsFunc(globs, func(g string) bool { return some[g] }) {
				out[node] = had
				continue
			}
			key := strings.Join(globs, "\x00")
			if known[key] == "" {
				known[key] = in.digest(globs)
			}
			out[node] = known[key]
		}
		in.digests[ref] = out
	}
	return refs
}

func (in *inputs) digest(globs []string) string {
	var paths []string
	for _, g := range globs {
		paths = append(paths, in.matched[g]...)
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
