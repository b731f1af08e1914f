package index

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/project"
	"reconcile.dev/reconcile/vectors/source"
)

// reading is part of each input's digest: it is incremented when the same content is parsed differently.
const reading = "7"

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

// gather appends the inputs of a folder and its subfolders to files, or to goes for Go.
func (l *looked) gather(files, goes *[]input) {
	below := l.below
	for i := range l.inputs {
		in := &l.inputs[i]
		for in.at != wholePackage && len(below) > 0 && below[0].before(in.files[0].path) {
			below[0].gather(files, goes)
			below = below[1:]
		}
		if in.folder != nil {
			*goes = append(*goes, *in)
		} else {
			*files = append(*files, *in)
		}
	}
	for _, b := range below {
		b.gather(files, goes)
	}
}

// before reports whether files in the folder sort before the sibling file p.
func (l *looked) before(p string) bool {
	n := min(len(l.dir), len(p))
	order := strings.Compare(l.dir[:n], p[:n])
	return order < 0 || order == 0 && n < len(p) && p[n] > '/'
}

// sources creates inputs of the texts of a folder.
func (l *looked) sources(tools string) {
	l.inputs = make([]input, 0, len(l.files)+1)
	var goes []*file
	for i := range l.files {
		if f := &l.files[i]; f.digest != 0 && isGo(f.path) {
			goes = append(goes, f)
		}
	}
	l.addGo(goes)
	n := 0
	for i := range l.files {
		f := &l.files[i]
		one := l.files[i : i+1 : i+1]
		switch {
		case f.digest == 0:
		case isGo(f.path):
			l.inputs = append(l.inputs, input{name: "go:" + f.path, files: one, folder: l.folder, at: n})
			n++
		default:
			l.inputs = append(l.inputs, input{name: "file:" + f.path, files: one, digest: digestOf(tools, one...)})
		}
	}
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
	for _, k := range controllers.TableOf(tree) {
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
