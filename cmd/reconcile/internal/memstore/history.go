package memstore

import "reconcile.dev/reconcile/schemas"

// Records are all records of the memory by name: what happened to observations after they were stored. One that cannot be
// read is left out and told of.
func (f *Files) Records() (map[string]schemas.MemoryRecord, error) {
	names, err := f.recordNames()
	if err != nil {
		return nil, err
	}
	return f.records(names), nil
}
