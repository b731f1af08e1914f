package state

import (
	"os"

	"reconcile.dev/reconcile/state/durable"
)

// Scratch is a new file without a name, for what is too large to be held in memory; see [durable.Scratch].
func (s *Store) Scratch() (*os.File, error) {
	if err := s.ensureLocal(tmpDir); err != nil {
		return nil, err
	}
	return durable.Scratch(s.root, tmpDir)
}
