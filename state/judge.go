package state

import "reconcile.dev/reconcile/schemas"

// Judge reports what Load would say of a file with this path and content, beside what only the other files of the tree
// could tell. The file need not be in the tree, nor exist.
func (s *Store) Judge(path string, data []byte) []schemas.Problem {
	if path == schemas.SettingsPath {
		return s.decoder.Decode(path, data).Problems
	}
	return s.decodeSpec(path, data).(*specBody).problems
}
