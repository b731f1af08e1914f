package index

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
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
const reading = "3"

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
	warn    func(error)
}

// survey looks at the files and the objects.
func (k *Keeper) survey(ctx context.Context, tree *state.Tree) (*survey, error) {
	settings := tree.Settings()
	f := &files{
		store: k.Store, ignored: k.Ignored, exclude: settings.Index.Exclude, limit: int64(settings.Index.MaxFileSize),
		now: k.Now().UnixNano(), objects: []string{settings.Folders.Specs, settings.Folders.State}, single: map[string]file{},
	}
	f.cache.load(k.Store)
	if err := f.walk(ctx); err != nil {
		return nil, err
	}
	s := &survey{files: f, tagger: newTagger(ctx, k.Store), warn: k.warn}
	if err := s.readModules(); err != nil {
		return nil, err
	}
	s.sources()
	if err := s.fromTree(tree); err != nil {
		return nil, err
	}
	if err := errors.Join(s.memory(), s.facts()); err != nil {
		return nil, err
	}
	f.save()
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

// fromTree takes the objects. They are known by what the tree has of them, which is what they are made of.
func (s *survey) fromTree(tree *state.Tree) error {
	for _, kind := range project.Kinds {
		for _, e := range tree.Entries(kind) {
			if e.Object == nil {
				continue
			}
			var status []byte
			if e.Status != nil {
				var err error
				if status, err = state.EncodeStatus(e.Ref, e.Status); err != nil {
					return err
				}
			}
			h := xxhash.New()
			_, _ = fmt.Fprintf(h, "%s\x00%s\x00%s\x00%q\x00", reading, e.Object.Path, e.Object.Digest, e.Object.Metadata.Labels)
			_, _ = h.Write(status)
			s.inputs = append(s.inputs, input{name: "object:" + e.Ref.String(), digest: h.Sum64(), object: e})
		}
	}
	return nil
}

// memory are the files of the memory, but for its manifest.
func (s *survey) memory() error {
	dir := s.store.MemoryDir()
	return s.lookInto(dir, func(name string, id state.Identity) {
		if strings.HasPrefix(name, "issue-") && path.Ext(name) == ".json" {
			s.takeInput("memory:", dir+"/"+name, id, memoryLimit)
		}
	})
}

// takeInput takes a file as an input of its own; one that cannot be read is none.
func (s *survey) takeInput(kind, p string, id state.Identity, limit int64) {
	if f, ok := s.one(p, id, limit); ok {
		s.inputs = append(s.inputs, input{name: kind + p, digest: digestOf("", f), files: []file{f}})
	}
}

// memoryLimit is how large a file of the memory may be.
const memoryLimit = 1 << 30

// parts reads and parses inputs, on all processors. Those that went meanwhile are left out.
func (s *survey) parts(ctx context.Context, wanted []input, progress func(string, int, int)) ([]vectors.Input, error) {
	tags, err := s.tagger.tags(ctx, s.tagged(wanted))
	if err != nil {
		s.warn(fmt.Errorf("files are indexed without their symbols: %w", err))
	}
	out := make([]vectors.Input, len(wanted))
	jobs := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range jobs {
				in := &wanted[i]
				out[i] = vectors.Input{Name: in.name, Digest: in.digest, Part: s.part(in, tags)}
				if p, ok := strings.CutPrefix(in.name, "facts:"); ok {
					s.stated(&out[i], p)
				}
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
		if p, ok := strings.CutPrefix(in.name, "file:"); ok && !source.IsMarkdown(p) {
			out = append(out, p)
		}
	}
	return out
}

// part is what an input comes to; nothing if it cannot be read any more.
func (s *survey) part(in *input, tags map[string][]source.Tag) graph.Part {
	kind, _, _ := strings.Cut(in.name, ":")
	switch kind {
	case "object":
		return project.Entry(in.object)
	case "memory":
		return s.remembered(in.files[0].path)
	case "facts":
		return graph.Part{} // they have no nodes
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
	case source.IsMarkdown(texts[0].Path):
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
