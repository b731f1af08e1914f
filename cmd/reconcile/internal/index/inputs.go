package index

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/project"
	"reconcile.dev/reconcile/vectors/source"
)

// reading is part of each input's digest: it is incremented when the same content is parsed differently.
const reading = "8"

// input is one input in its present state. Its part is computed on demand.
type input struct {
	name   string
	digest uint64 // for a Go input set by settle
	files  []file
	object *state.Entry
	by     *project.Projector // of the object
	folder *goFolder          // of a Go input
	at     int                // which of its files it is; wholePackage
}

// survey is the scan of the whole tree as inputs, sorted by name.
type survey struct {
	files   *files
	inputs  []input
	folders []*goFolder
	modules source.Modules
	module  string // a digest of modules
	tagger  *tagger
	warn    func(error)
	aside   *texts // nil: in memory
	began   time.Time
}

// survey scans the files and the objects.
func (k *Keeper) survey(ctx context.Context, tree *state.Tree) (*survey, error) {
	settings := tree.Settings()
	tagger := newTagger(ctx, k.Store)
	f := &files{
		tools: tagger.version, store: k.Store, ignored: k.Ignored, exclude: settings.Index.Exclude, limit: int64(settings.Index.MaxFileSize),
		now: k.Now().UnixNano(), objects: []string{settings.Folders.Specs, settings.Folders.State}, single: map[string]file{},
	}
	f.cache.load(k.Store)
	if err := f.walk(ctx); err != nil {
		return nil, err
	}
	s := &survey{files: f, tagger: tagger, warn: k.warn, began: k.Now()}
	s.readModules()
	s.gather()
	if err := s.fromTree(tree); err != nil {
		return nil, err
	}
	if err := errors.Join(s.memory(), s.facts()); err != nil {
		return nil, err
	}
	slices.SortFunc(s.inputs, func(a, b input) int { return strings.Compare(a.name, b.name) })
	if err := s.files.left.untold(); err != nil {
		s.warn(err)
	}
	return s, nil
}

// readModules reads the go.mod files. Unreadable ones are skipped.
func (s *survey) readModules() {
	for _, l := range s.files.looked {
		for _, f := range l.files {
			if path.Base(f.path) != "go.mod" || f.digest == 0 {
				continue
			}
			text, err := s.files.text(f.path)
			if err != nil {
				continue
			}
			if m, ok := source.ParseModule(text); ok {
				s.modules = append(s.modules, m)
			}
		}
	}
	slices.SortFunc(s.modules, func(a, b source.Module) int { return strings.Compare(a.Dir, b.Dir) })
	h := xxhash.New()
	for _, m := range s.modules {
		_, _ = h.WriteString(m.Dir + "=" + m.Path + "\n")
	}
	s.module = string(h.Sum(nil))
}

// gather collects the inputs of all folders, almost in the order of their names.
func (s *survey) gather() {
	n := 0
	for _, l := range s.files.looked {
		n += len(l.inputs)
		if l.folder != nil {
			s.folders = append(s.folders, l.folder)
		}
	}
	s.inputs = make([]input, 0, n+n/16)
	goes := make([]input, 0, n)
	s.files.looked[0].gather(&s.inputs, &goes)
	s.inputs = append(s.inputs, goes...)
}

// digestOf returns a digest of files, and of more that they depend on.
func digestOf(more string, files ...file) uint64 {
	var h xxhash.Digest
	h.Reset()
	_, _ = h.WriteString(reading)
	_, _ = h.WriteString("\x00")
	_, _ = h.WriteString(more)
	_, _ = h.WriteString("\x00")
	var b [17]byte
	for i := range files {
		_, _ = h.WriteString(files[i].path)
		binary.LittleEndian.PutUint64(b[1:], files[i].digest)
		binary.LittleEndian.PutUint64(b[9:], files[i].context.Declared)
		_, _ = h.Write(b[:])
	}
	return h.Sum64()
}

// fromTree adds the objects as inputs. Their digests cover what the tree knows of them, from which their parts are made.
func (s *survey) fromTree(tree *state.Tree) error {
	for _, k := range settle.TableOf(tree) {
		if k.Index == nil {
			continue
		}
		for _, e := range tree.Entries(k.Name) {
			if e.Object == nil {
				continue
			}
			var status []byte
			if e.HasStatus() {
				var err error
				if status, err = state.EncodeStatus(e.Ref, e.Status()); err != nil {
					return err
				}
			}
			h := xxhash.New()
			_, _ = fmt.Fprintf(h, "%s\x00%s\x00%s\x00%q\x00", reading, e.Object.Path, e.Object.Digest, e.Object.Metadata.Labels)
			_, _ = h.Write(status)
			in := input{name: "object:" + e.Ref.String(), object: e, by: k.Index, files: s.specOf(k.Index, e)}
			for _, f := range in.files {
				_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, f.digest))
			}
			in.digest = h.Sum64()
			s.inputs = append(s.inputs, in)
		}
	}
	return nil
}

// specOf returns the file of an object whose part records line numbers. An edited comment changes the file but not the spec.
func (s *survey) specOf(by *project.Projector, e *state.Entry) []file {
	if !by.Lines {
		return nil
	}
	id, err := s.files.store.Lstat(e.Object.Path)
	if err != nil {
		return nil
	}
	if f, ok := s.files.one(e.Object.Path, id, specLimit); ok {
		return []file{f}
	}
	return nil
}

// specLimit is the maximum size of a spec whose line numbers are indexed.
const specLimit = 16 << 20

// memory adds the files of the memory except its manifest: those of the issues, each with its archive.
func (s *survey) memory() error {
	dir := s.files.store.MemoryDir()
	archived := map[string]file{} // by the name of the issue's file
	err := s.lookInto(dir+"/archive", func(name string, id state.Identity) {
		if issue, ok := strings.CutSuffix(name, "-archived.json"); ok {
			if f, ok := s.files.one(dir+"/archive/"+name, id, memoryLimit); ok {
				archived[issue+".json"] = f
			}
		}
	})
	if err != nil {
		return err
	}
	return s.lookInto(dir, func(name string, id state.Identity) {
		if !strings.HasPrefix(name, "issue-") || path.Ext(name) != ".json" {
			return
		}
		f, ok := s.files.one(dir+"/"+name, id, memoryLimit)
		if !ok {
			return
		}
		files := []file{f}
		if old, ok := archived[name]; ok {
			files = append(files, old)
		}
		s.inputs = append(s.inputs, input{name: "memory:" + f.path, digest: digestOf("", files...), files: files})
	})
}

// addInput adds a file as a separate input, unless it is unreadable.
func (s *survey) addInput(kind, p string, id state.Identity, limit int64) {
	if f, ok := s.files.one(p, id, limit); ok {
		s.inputs = append(s.inputs, input{name: kind + p, digest: digestOf("", f), files: []file{f}})
	}
}

// memoryLimit is the maximum size of a file of the memory.
const memoryLimit = 1 << 30

// lookInto calls each for the regular files of a folder. The folder may be missing.
func (s *survey) lookInto(dir string, each func(name string, id state.Identity)) error {
	err := s.files.store.ListFolder(dir, func(name []byte, id state.Identity) {
		if id.IsFile() {
			each(string(name), id)
		}
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// LeftOut counts files that are not indexed because of their content or size, not because of their name or folder.
type LeftOut struct {
	Large  int // larger than settings.index.maxFileSize
	Binary int // binary
	// Unreadable also counts unreadable folders.
	Unreadable int
	first      error // of an unreadable file
}

// miss counts unreadable files, and keeps the first error.
func (l *LeftOut) miss(n int, first error) {
	l.Unreadable += n
	if l.first == nil {
		l.first = first
	}
}

// untold returns the error for unreadable files, or nil.
func (l *LeftOut) untold() error {
	if l.Unreadable == 0 {
		return nil
	}
	what := "1 file or folder cannot be read, and is"
	if l.Unreadable > 1 {
		what = fmt.Sprintf("%d files or folders cannot be read, and are", l.Unreadable)
	}
	return fmt.Errorf("%s left out of the index: %w; make it readable, or name it in index.exclude", what, l.first)
}

// settle computes missing contexts of Go files, and then the digests of all inputs.
func (s *survey) settle(ctx context.Context) error {
	var open []*goFolder
	for _, g := range s.folders {
		if !g.known() {
			open = append(open, g)
		}
	}
	var held atomic.Int64
	threads := max(1, runtime.GOMAXPROCS(0)/max(1, len(open)))
	eachPart(ctx, len(open), func(i int) {
		if size := open[i].parse(s, threads); held.Add(int64(size)) > mostParsed {
			open[i].parsed = nil
		}
	})
	const some = 512
	eachPart(ctx, (len(s.inputs)+some-1)/some, func(i int) {
		for j := i * some; j < min((i+1)*some, len(s.inputs)); j++ {
			if in := &s.inputs[j]; in.folder != nil {
				in.digest = in.folder.digest(s, in.at)
			}
		}
	})
	return ctx.Err()
}

// inputsOf returns all inputs of a folder.
func (s *survey) inputsOf(g *goFolder) (out []*input) {
	for i := range s.inputs {
		if s.inputs[i].folder == g {
			out = append(out, &s.inputs[i])
		}
	}
	return out
}

// texts returns the files of an input that can still be read.
func (s *survey) texts(in *input, kind string) (texts []source.File, whole bool) {
	limit := s.files.limit
	switch kind {
	case "memory":
		limit = memoryLimit
	case "object":
		limit = specLimit
	}
	whole = true
	for _, f := range in.files {
		text, _, err := s.files.store.ReadFile(f.path, limit)
		if err == nil {
			texts = append(texts, source.File{Path: f.path, Text: text})
		}
		whole = whole && err == nil && f.holds(text)
	}
	return texts, whole
}

// observationsOf returns the observations of an issue's file, and the originals in its archive of those that were merged.
// With an error it returns the readable ones.
func observationsOf(files []source.File) (graph.Part, error) {
	var all []project.Remembered
	var wrong []error
	for _, file := range files {
		f, err := memory.Parse(file.Text)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", file.Path, err))
			continue
		}
		all = append(all, project.Remembered{Path: file.Path, Observations: f.Observations})
	}
	return project.Memory(all...), errors.Join(wrong...)
}

// compareInputs returns the differences between the index and the survey. Both are sorted by name.
func compareInputs(have *vectors.Stored, s *survey) (how How, changed []input, gone []string) {
	rest := s.inputs
	for name, digest := range have.Known() {
		for len(rest) > 0 && rest[0].name < name {
			changed, rest = append(changed, rest[0]), rest[1:]
		}
		switch {
		case len(rest) == 0 || rest[0].name != name:
			gone = append(gone, name)
			continue
		case rest[0].digest != digest:
			changed = append(changed, rest[0])
		}
		rest = rest[1:]
	}
	changed = append(changed, rest...)
	return How{Changed: len(changed), Gone: len(gone), Inputs: len(s.inputs), LeftOut: s.files.left}, changed, gone
}
