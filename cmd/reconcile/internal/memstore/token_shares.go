package memstore

import (
	"bytes"
	"maps"
	"path"
	"slices"
	"strconv"
	"sync"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// shares caches, for captures, each entry's share of the tokens of the conversation that it was made from. The
// Observation of a capture is read once for each change.
type shares struct {
	mu    sync.Mutex
	known map[string]knownShare // by the name of the Observation
}

type knownShare struct {
	id     state.Identity
	tokens int
}

// share is the Share of [memory.Chooser].
func (f *Files) share(list []*schemas.Observation) (sum int) {
	each := map[string]int{}
	for _, o := range list {
		if schemas.CheckName(o.Source) == nil {
			each[o.Source] = 0
		}
	}
	f.shares.find(f, each)
	for _, o := range list {
		sum += each[o.Source]
	}
	return sum
}

// find returns the shares of captures, by name.
func (s *shares) find(f *Files, each map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir := path.Dir(f.specPath("x"))
	folder, err := f.store.OpenFolder(dir)
	if err != nil {
		return
	}
	defer folder.Close()
	now := time.Now()
	missing := map[string]state.Identity{}
	for name := range each {
		id, err := folder.Lstat(specFile(name))
		if err != nil {
			continue
		}
		if k, ok := s.known[name]; ok && k.id == id {
			each[name] = k.tokens
		} else {
			missing[name] = id
		}
	}
	s.read(f, dir, missing, each)
	if s.known == nil {
		s.known = map[string]knownShare{}
	}
	for name, id := range missing {
		if id.Ctime < now.Add(-tick).UnixNano() {
			s.known[name] = knownShare{id, each[name]}
		}
	}
}

// read reads the shares of captures into each.
func (s *shares) read(f *Files, dir string, missing map[string]state.Identity, each map[string]int) {
	var mu sync.Mutex
	readEach(f, dir, slices.Collect(maps.Keys(missing)), specFile, func(name string, data []byte) {
		tokens := sourceTokens(data) / max(entriesIn(data), 1)
		mu.Lock()
		defer mu.Unlock()
		each[name] = tokens
	})
}

// entriesIn counts the entries in the file of an Observation, like sourceTokens.
func entriesIn(file []byte) (n int) {
	for {
		before, rest, found := bytes.Cut(file, []byte("category: "))
		if !found {
			return n
		}
		if bytes.HasSuffix(before, []byte("\n    ")) || bytes.HasSuffix(before, []byte("\n  - ")) || bytes.HasSuffix(before, []byte("\n    - ")) {
			n++
		}
		file = rest
	}
}

// sourceTokens finds the field of that name in the file of an Observation, as captures write it: in YAML, indented by two
// spaces. Texts are indented deeper. This is for an estimate; a file in another form has none.
func sourceTokens(file []byte) int {
	_, rest, ok := bytes.Cut(file, []byte("\n  sourceTokens: "))
	if !ok {
		return 0
	}
	digits, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.Atoi(string(bytes.TrimSpace(digits)))
	if err != nil || n < 0 {
		return 0
	}
	return n
}
