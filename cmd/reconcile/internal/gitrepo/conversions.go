package gitrepo

import (
	"context"
	"sync"
)

// Conversions tell how git stores files of a tree. They are safe for concurrent use.
type Conversions struct {
	mu     sync.Mutex // of what rules remembers, and of index
	rules  *rules
	prefix string
	native *native
	index  *index // nil until it was needed
}

// Conversions reads what holds for the whole repository; attributes of folders are read when a file in them is asked about.
func (r *Repo) Conversions(ctx context.Context) (*Conversions, error) {
	n := r.native.(*native)
	cfg, err := loadConfig(r.layout, n.git)
	if err != nil {
		return nil, err
	}
	return &Conversions{rules: newRules(ctx, r.layout, cfg), prefix: r.prefix, native: n}, nil
}

// Stored returns what turns the bytes of a file, a slash path below the tree, into what git stores; nil where that is the
// same. What a filter makes of them, and an encoding that only git knows, does not count.
func (s *Conversions) Stored(path string) func([]byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	file := s.prefix + path
	c := s.rules.conversion(file)
	c.filter = false
	if c.plain() {
		return nil
	}
	return func(data []byte) []byte {
		out, err := c.clean(data, func() []byte { return s.indexed(file) })
		if err != nil {
			return data
		}
		return out
	}
}

// indexed is the content that the index has of a file.
func (s *Conversions) indexed(file string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.index == nil {
		var err error
		if s.index, err = s.native.readIndex(); err != nil {
			s.index = &index{version: 2}
		}
	}
	store := newObjectStore(s.native.layout)
	defer store.close()
	return indexContent(s.index, store, file)
}
