package index

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/project"
	"reconcile.dev/reconcile/vectors/source"
)

// reading is part of the digest of every input: it is raised when the same content is read in another way.
const reading = "1"

// input is one input as it is now. Its part is made only when it is needed.
type input struct {
	name   string
	digest uint64
	files  []file
	object *state.Entry
}

// survey is the whole tree as inputs, sorted by name.
type survey struct {
	*files
	inputs  []input
	modules source.Modules
	tagger  *tagger
}

// survey looks at the files and the objects.
func (k *Keeper) survey(ctx context.Context, tree *state.Tree) (*survey, error) {
	settings := tree.Settings()
	f := &files{
		store: k.Store, ignored: k.Ignored, exclude: settings.Index.Exclude, limit: int64(settings.Index.MaxFileSize), now: k.Now(),
		objects: []string{settings.Folders.Specs, settings.Folders.State},
	}
	f.load()
	if err := f.walk(ctx); err != nil {
		return nil, err
	}
	f.save()
	s := &survey{files: f, tagger: newTagger(ctx, k.Store.Dir())}
	if err := s.readModules(); err != nil {
		return nil, err
	}
	s.sources()
	s.objects(tree)
	if err := s.memory(); err != nil {
		return nil, err
	}
	slices.SortFunc(s.inputs, func(a, b input) int { return strings.Compare(a.name, b.name) })
	return s, nil
}

func (s *survey) readModules() error {
	for _, f := range s.found {
		if path.Base(f.path) != "go.mod" {
			continue
		}
		text, err := s.text(f.path)
		if err != nil {
			return err
		}
		if m, ok := source.ParseModule(text); ok {
			s.modules = append(s.modules, m)
		}
	}
	return nil
}

// sources groups the files: Go by folder.
func (s *survey) sources() {
	folders := map[string]int{}
	modules := ""
	for _, m := range s.modules {
		modules += m.Dir + "=" + m.Path + "\n"
	}
	for _, f := range s.found {
		if path.Ext(f.path) != ".go" {
			s.inputs = append(s.inputs, input{name: "file:" + f.path, digest: digestOf(s.tagger.version, f), files: []file{f}})
			continue
		}
		dir := source.Folder(f.path)
		i, ok := folders[dir]
		if !ok {
			i = len(s.inputs)
			folders[dir] = i
			s.inputs = append(s.inputs, input{name: "go:" + dir})
		}
		s.inputs[i].files = append(s.inputs[i].files, f)
	}
	for _, i := range folders {
		s.inputs[i].digest = digestOf(modules, s.inputs[i].files...)
	}
}

func digestOf(more string, files ...file) uint64 {
	h := xxhash.New()
	_, _ = h.WriteString(reading + "\x00" + more + "\x00")
	for _, f := range files {
		_, _ = h.WriteString(f.path)
		_, _ = h.Write(binary.LittleEndian.AppendUint64([]byte{0}, f.digest))
	}
	return h.Sum64()
}

// objects are known by their specs, and by what the file system says of their statuses.
func (s *survey) objects(tree *state.Tree) {
	for _, kind := range project.Kinds {
		for _, e := range tree.Entries(kind) {
			if e.Object == nil {
				continue
			}
			h := xxhash.New()
			_, _ = h.WriteString(reading + e.Object.Path + "\x00" + e.Object.Digest)
			_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, s.status(e)))
			s.inputs = append(s.inputs, input{name: "object:" + e.Ref.String(), digest: h.Sum64(), object: e})
		}
	}
}

// status tells one status of an object from another.
func (s *survey) status(e *state.Entry) uint64 {
	if e.Status == nil {
		return 0
	}
	if id, err := s.store.LookAt(e.StatusPath); err == nil {
		if stamp := s.stamp(id); stamp != 0 {
			return stamp
		}
	}
	data, err := state.EncodeStatus(e.Ref, e.Status)
	if err != nil {
		return 0
	}
	return xxhash.Sum64(data)
}

// memory are the files of the memory, but for its manifest.
func (s *survey) memory() error {
	dir := s.store.MemoryDir()
	known := map[string]state.Identity{}
	err := s.store.LookInto(dir, func(name []byte, id state.Identity) {
		if n := string(name); id.IsFile() && strings.HasPrefix(n, "issue-") && path.Ext(n) == ".json" {
			known[n] = id
		}
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for n, id := range known {
		p := dir + "/" + n
		f := file{path: p, digest: s.stamp(id)}
		if f.digest == 0 {
			data, _, err := s.store.ReadFile(p, memoryLimit)
			if err != nil {
				continue
			}
			f.digest = xxhash.Sum64(data)
		}
		s.inputs = append(s.inputs, input{name: "memory:" + p, digest: digestOf("", f), files: []file{f}})
	}
	return nil
}

// memoryLimit is how large a file of the memory may be.
const memoryLimit = 1 << 30

// parts reads and parses inputs, on all processors. Those that went meanwhile are left out.
func (s *survey) parts(ctx context.Context, wanted []input, progress func(step string, done, total int)) ([]vectors.Input, error) {
	tags, err := s.tagger.tags(ctx, s.tagged(wanted))
	if err != nil {
		return nil, err
	}
	out := make([]vectors.Input, len(wanted))
	jobs := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range jobs {
				in := wanted[i]
				out[i] = vectors.Input{Name: in.name, Digest: in.digest, Part: s.part(&in, tags)}
			}
		})
	}
	for i := 0; i < len(wanted) && ctx.Err() == nil; i++ {
		if i%64 == 0 {
			progress("read", i, len(wanted))
		}
		jobs <- i
	}
	close(jobs)
	workers.Wait()
	return out, ctx.Err()
}

// tagged are the files that ctags may know.
func (s *survey) tagged(wanted []input) []string {
	var out []string
	for _, in := range wanted {
		if p, ok := strings.CutPrefix(in.name, "file:"); ok && !isDocument(p) {
			out = append(out, p)
		}
	}
	return out
}

func isDocument(p string) bool {
	ext := strings.ToLower(path.Ext(p))
	return ext == ".md" || ext == ".markdown"
}

// part is what an input comes to; nothing if it cannot be read any more.
func (s *survey) part(in *input, tags map[string][]source.Tag) graph.Part {
	kind, _, _ := strings.Cut(in.name, ":")
	switch kind {
	case "object":
		return project.Entry(in.object)
	case "memory":
		return s.remembered(in.files[0].path)
	}
	var texts []source.File
	for _, f := range in.files {
		if text, err := s.text(f.path); err == nil {
			texts = append(texts, text)
		}
	}
	switch {
	case len(texts) == 0:
		return graph.Part{}
	case kind == "go":
		return source.Go(texts, s.modules)
	case isDocument(texts[0].Path):
		return source.Markdown(texts[0])
	}
	return source.Tagged(texts[0], tags[texts[0].Path])
}

// remembered are the observations of a file of the memory. One that is damaged is for others to tell of.
func (s *survey) remembered(p string) graph.Part {
	data, _, err := s.store.ReadFile(p, memoryLimit)
	if err != nil {
		return graph.Part{}
	}
	f, err := memory.Parse(data)
	if err != nil {
		return graph.Part{}
	}
	return project.Memory(p, f.Observations)
}
