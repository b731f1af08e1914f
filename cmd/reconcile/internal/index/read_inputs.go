package index

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/source"
)

// everything returns the parts of all inputs. Their bodies are in a file as long as the survey is reachable.
func (s *survey) everything(ctx context.Context, progress func(string, int, int)) ([]vectors.Input, error) {
	f, err := s.files.store.Scratch()
	if err != nil {
		return nil, err
	}
	s.aside = &texts{file: f}
	inputs, err := s.parts(ctx, s.inputs, progress)
	s.files.save()
	return inputs, errors.Join(err, s.aside.restore())
}

// parts reads and parses inputs, on all processors. It skips files that are gone. For a folder of Go files it may return
// more than was wanted, see [goFolder.read].
func (s *survey) parts(ctx context.Context, wanted []input, progress func(string, int, int)) ([]vectors.Input, error) {
	tagged := s.tagged(wanted)
	tags, err := s.tagger.tags(ctx, tagged)
	if ctx.Err() != nil {
		return nil, ctx.Err() // otherwise it would be reported as a killed program
	}
	if err != nil {
		s.warn(fmt.Errorf("files are indexed without their symbols: %w", err))
	}
	if s.tagger.program == "" && slices.ContainsFunc(tagged, source.HasSymbols) {
		s.warn(errNoTags)
	}
	all := readTogether(wanted)
	out := make([][]vectors.Input, len(all))
	threads := max(1, runtime.GOMAXPROCS(0)/max(1, len(all))) // for each
	var mu sync.Mutex                                         // guards begun and progress
	begun := 0
	eachPart(ctx, len(all), func(i int) {
		mu.Lock()
		if begun%64 == 0 {
			progress("read", begun, len(all))
		}
		begun++
		mu.Unlock()
		out[i] = s.read(all[i], tags, threads)
		if s.aside != nil {
			for _, in := range out[i] {
				s.aside.put(in.Part)
			}
		}
	})
	return slices.Concat(out...), ctx.Err()
}

// errNoTags reports that no program finds symbols.
var errNoTags = errors.New("files of other languages than Go are indexed without their symbols, as pieces of text: there is " +
	"no universal-ctags that prints JSON on the PATH; install it, and run: reconcile search index")

// readTogether groups inputs that are read together: those of a folder of Go files.
func readTogether(inputs []input) (out [][]*input) {
	at := map[*goFolder]int{}
	for i := range inputs {
		in := &inputs[i]
		n, there := at[in.folder]
		if in.folder == nil || !there {
			n = len(out)
			at[in.folder] = n
			out = append(out, nil)
		}
		out[n] = append(out[n], in)
	}
	return out
}

// changing is the digest of an input whose files changed after they were scanned. No input matches it, so that it
// is read again, even if its files are later as they were.
const changing = 0

// read returns the parts of inputs that are read together, with the given number of goroutines.
func (s *survey) read(ins []*input, tags map[string][]source.Tag, threads int) []vectors.Input {
	in := ins[0]
	if in.folder != nil {
		return in.folder.read(s, ins, threads)
	}
	to, whole := vectors.Input{Name: in.name, Digest: in.digest}, false
	if strings.HasPrefix(in.name, "facts:") {
		whole = s.stated(&to, in.files[0])
	} else {
		to.Part, whole = s.part(in, tags)
	}
	if !whole {
		to.Digest = changing
	}
	return []vectors.Input{to}
}

// part returns the part of an input; empty if it cannot be read any more. whole is false if its files changed since they
// were found.
func (s *survey) part(in *input, tags map[string][]source.Tag) (part graph.Part, whole bool) {
	kind, _, _ := strings.Cut(in.name, ":")
	texts, whole := s.texts(in, kind)
	switch {
	case kind == "object":
		var text []byte
		if len(texts) > 0 {
			text = texts[0].Text
		}
		return in.by.Part(in.object, text), whole
	case len(texts) == 0:
		return graph.Part{}, whole
	case kind == "memory":
		part, err := observationsOf(texts)
		if err != nil {
			s.warn(fmt.Errorf("what agents learned is not found: %w; run reconcile, which makes the file anew of the Observations",
				err))
		}
		return part, whole && err == nil // warn again until it is whole
	case source.IsMarkdown(texts[0].Path):
		return source.Markdown(texts[0]), whole
	}
	return source.Tagged(texts[0], tags[texts[0].Path]), whole
}

// eachPart calls do for 0…n-1 on all processors.
func eachPart(ctx context.Context, n int, do func(i int)) {
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
			do(i)
		}
	}
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) - 1 {
		workers.Go(work)
	}
	work()
	workers.Wait()
}
