package state

// JournalInfo is what can be told about one process's journal without touching it.
type JournalInfo struct {
	Process string
	Alive   bool // the process holds it
	Results int  // that are not files yet
	Claims  int  // effects without a result
	Damaged bool // some of it cannot be used
}

// Journals looks at the journals of all other processes and changes nothing. They are sorted by process.
func (s *Store) Journals() []JournalInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []JournalInfo
	for _, v := range s.otherJournals() {
		out = append(out, JournalInfo{
			Process: v.name, Alive: v.alive, Results: len(v.results()), Claims: len(v.keys), Damaged: len(v.problems) > 0,
		})
	}
	return out
}
