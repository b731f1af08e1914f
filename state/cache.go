package state

// cache is what earlier processes decoded.
type cache struct {
	store  *Store
	inputs map[string]*inputFile
}

func newCache(s *Store) *cache { return &cache{store: s, inputs: map[string]*inputFile{}} }

func (c *cache) load() map[string]*file { return map[string]*file{} }

func (c *cache) save(m *model) {}
