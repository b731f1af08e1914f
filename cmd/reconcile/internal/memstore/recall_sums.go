package memstore

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/durable"
)

// recallNames returns of the names of records in the memory those of recalls and of sums of recalls.
func recallNames(names map[string]state.Identity) map[string]state.Identity {
	out := maps.Clone(names)
	maps.DeleteFunc(out, func(name string, _ state.Identity) bool {
		return !strings.HasPrefix(name, schemas.RecordRecalled+"-") && !strings.HasPrefix(name, schemas.RecordRecalls+"-")
	})
	return out
}

// recallCount counts the recorded recalls. It reads only the sums.
func (f *Files) recallCount(names map[string]state.Identity) int {
	single, sums := 0, map[string]state.Identity{}
	for name, id := range names {
		switch {
		case strings.HasPrefix(name, schemas.RecordRecalled+"-"):
			single++
		case strings.HasPrefix(name, schemas.RecordRecalls+"-"):
			sums[name] = id
		}
	}
	if len(sums) == 0 {
		return single
	}
	return len(memory.Recalls(f.records(recallNames(names))))
}

// sumRecalls replaces records of recalls by sums. The counts do not change, so that no file needs folding.
func (s *memorySettling) sumRecalls() (done bool, err error) {
	add, drop, err := memory.SumRecalls(s.files.records(recallNames(s.names)), s.files.o.Now())
	if err != nil || len(add)+len(drop) == 0 {
		return false, err
	}
	ops := make([]durable.Op, 0, len(add)+len(drop))
	for _, name := range slices.Sorted(maps.Keys(add)) {
		ops = append(ops, durable.Op{Path: s.files.recordPath(name), Data: add[name]})
	}
	for _, name := range drop {
		ops = append(ops, durable.Op{Path: s.files.recordPath(name)})
	}
	if err := s.files.store.Change(ops); err != nil {
		return false, fmt.Errorf("sum the records of recalls in %s: %w", s.files.recordsDir(), err)
	}
	s.files.writes.Add(int64(len(add)))
	s.out.Wrote = true
	names, err := s.files.recordNames()
	if err != nil {
		return false, err
	}
	for name := range s.names { // records of other processes are not folded yet
		if _, is := names[name]; !is {
			delete(s.names, name)
		}
	}
	for name := range add {
		if id, is := names[name]; is {
			s.names[name] = id
		}
	}
	return true, s.files.store.Announce()
}

// summed reports whether sums of recalls replace all records of these names. The observations in sums are folded when their
// issues are.
func (s *memorySettling) summed(went []string) bool {
	recalls := memory.Recalls(s.files.records(recallNames(s.names)))
	return !slices.ContainsFunc(went, func(name string) bool {
		recall, single := strings.CutPrefix(name, schemas.RecordRecalled+"-")
		_, told := recalls[recall]
		return !told && (single || !strings.HasPrefix(name, schemas.RecordRecalls+"-"))
	})
}
