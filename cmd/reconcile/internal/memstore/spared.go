package memstore

import (
	"encoding/binary"
	"maps"
	"slices"
)

// loadSpared reads which issues have nothing to merge, with the hashes that their files had then.
func (f *Files) loadSpared() map[int]uint64 {
	d := f.unsealed(sparedPath)
	out := map[int]uint64{}
	for n := d.number(); n > 0 && d.ok; n-- {
		issue := d.number()
		out[issue] = d.fixed()
	}
	if !d.ok {
		return map[int]uint64{}
	}
	return out
}

// saveSpared adds those that were due and had nothing to merge, and forgets what is no more.
func (f *Files) saveSpared(v *view, spared map[int]uint64, due []int, done []Compacted) {
	if f.o.NoCache {
		return
	}
	for _, issue := range due {
		if !slices.ContainsFunc(done, func(c Compacted) bool { return c.Issue == issue }) {
			spared[issue] = v.owners[issue].hash
		}
	}
	maps.DeleteFunc(spared, func(issue int, hash uint64) bool { return v.owners[issue].hash != hash })
	b := binary.AppendUvarint(nil, uint64(len(spared)))
	for _, issue := range slices.Sorted(maps.Keys(spared)) {
		b = binary.LittleEndian.AppendUint64(binary.AppendUvarint(b, uint64(issue)), spared[issue])
	}
	_ = f.store.Replace(sparedPath, seal(b))
}
