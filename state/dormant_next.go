package state

import (
	"slices"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/schemas"
)

// nextDormants decides which objects are dormant in the next base: those that stay dormant, and those of asleep that become so.
// All of them are frozen after the whole tree was loaded, or when many of the frozen ones have changed since.
func (m *model) nextDormants(asleep []schemas.Ref, key uint64) *nextDormants {
	var fresh []*Dormant
	disputed := m.disputed()
	for _, ref := range asleep {
		if o, ok := m.describeDormant(ref); ok && !disputed[ref] {
			fresh = append(fresh, &o)
		}
	}
	slices.SortFunc(fresh, func(x, y *Dormant) int { return x.Compare(y.Ref) })
	d := &nextDormants{owners: make(map[schemas.Ref]uint64, len(fresh))}
	if was := m.dormant; was == nil || was.shouldFreeze(len(fresh)) {
		d.freeze(m, fresh, key)
	} else {
		d.follow(was, fresh)
	}
	return d
}

// disputed are the objects with which other objects do not agree, such as a DAG that lacks the node which an action names: who reads the
// other one needs them.
func (m *model) disputed() map[schemas.Ref]bool {
	out := map[schemas.Ref]bool{}
	for p := range m.related {
		if b := m.files[p].body.(*specBody); len(b.cross) > 0 {
			for _, r := range b.references() {
				out[r.To] = true
			}
		}
	}
	return out
}

// shouldFreeze reports whether the file of frozen objects is to be written again.
func (d *dormantSet) shouldFreeze(fresh int) bool {
	b := d.base
	return b.order != nil || len(b.thawedList)+len(d.activated)+len(b.recent)+fresh > 8+len(b.thawed)/8
}

// follow keeps the file of frozen objects.
func (d *nextDormants) follow(was *dormantSet, fresh []*Dormant) {
	b := was.base
	n := len(b.thawed)
	d.hash, d.live, d.thawed = b.frozen.hash, b.live, slices.Clone(b.thawedList)
	now := make([]uint64, len(b.recent)) // the new numbers of those that stay dormant
	for i := range was.activated {
		if i < n {
			d.thawed = append(d.thawed, i)
		}
	}
	if len(d.thawed) > len(b.thawedList) {
		for i := range b.frozen.len() {
			if owner := b.frozen.owner(i) - 1; was.activated[owner] {
				f := b.frozen.file(i)
				d.live.remove(fingerprint{f.statHash[0], f.statHash[1], 1})
			}
		}
	}
	for i := range b.recent {
		if o := &b.recent[i]; !was.activated[n+i] {
			for ; len(fresh) > 0 && fresh[0].Compare(o.Ref) < 0; fresh = fresh[1:] {
				d.addFresh(n, fresh[0])
			}
			d.recent = append(d.recent, o)
			now[i] = uint64(n + len(d.recent))
		}
	}
	for _, o := range fresh {
		d.addFresh(n, o)
	}
	for _, f := range b.files {
		if int(f.owner) > n && now[int(f.owner)-n-1] > 0 {
			f.owner = now[int(f.owner)-n-1]
			d.files = append(d.files, f)
		}
	}
}

func (d *nextDormants) addFresh(frozen int, o *Dormant) {
	d.recent = append(d.recent, o)
	d.owners[o.Ref] = uint64(frozen + len(d.recent))
}

// freeze encodes a new file of frozen objects, with all dormant ones.
func (d *nextDormants) freeze(m *model, fresh []*Dormant, key uint64) {
	all := frozenObjects{refers: map[schemas.Ref][]uint32{}}
	owners := make(map[schemas.Ref]uint64, len(fresh))
	add := func(o *Dormant) uint64 {
		all.list = append(all.list, o)
		for _, ref := range o.Refs {
			if known := all.refers[ref]; len(known) == 0 || known[len(known)-1] != uint32(len(all.list)-1) {
				all.refers[ref] = append(known, uint32(len(all.list)-1))
			}
		}
		return uint64(len(all.list))
	}
	addFresh := func(before *Dormant) {
		for ; len(fresh) > 0 && (before == nil || fresh[0].Compare(before.Ref) < 0); fresh = fresh[1:] {
			owners[fresh[0].Ref], d.owners[fresh[0].Ref] = add(fresh[0]), isFrozen
		}
	}
	if was := m.dormant; was != nil {
		now := make([]uint64, len(was.base.thawed)+len(was.base.recent))
		was.base.objects("", func(i int, o *Dormant) bool {
			if !was.activated[i] {
				addFresh(o)
				o := *o
				o.Refs = slices.Clone(o.Refs)
				now[i] = add(&o)
			}
			return true
		})
		all.files = was.base.filesInOrder(now)
	}
	addFresh(nil)
	var hash fingerprinter
	for p, f := range m.files {
		if owner := owners[m.refOf(f)]; owner > 0 {
			e := f.inBase(&hash, p)
			e.owner = owner
			all.files = append(all.files, e)
		}
	}
	if len(all.list) == 0 {
		return
	}
	for i := range all.files {
		f := &all.files[i]
		d.live.merge(fingerprint{f.statHash[0], f.statHash[1], 1})
	}
	d.frozen = all.encode(key)
	d.hash = xxhash.Sum64(d.frozen[len(frozenVersion)+16:])
}

// filesInOrder returns the files of the objects that stay dormant, with their new numbers, in the order of the last scan if that
// is known.
func (b *base) filesInOrder(now []uint64) []baseFile {
	files := make([]baseFile, 0, b.len())
	add := func(i int) {
		if owner := b.owner(i); owner > 0 && now[owner-1] > 0 && !b.thawedFile(i) {
			f := b.file(i)
			f.owner = now[owner-1]
			files = append(files, f)
		}
	}
	if b.order == nil {
		for i := range b.len() {
			add(i)
		}
	}
	for _, i := range b.order {
		if i >= 0 {
			add(int(i))
		}
	}
	return files
}

// writeBase writes the base, and returns its hash and the fingerprint of the tree's files; the hash is 0 if a file could not
// be read: once it can, everything is decided again.
func (s *Store) writeBase(clocks, asleep []schemas.Ref) (uint64, fingerprint, error) {
	key := s.cache.key()
	dormant := s.model.nextDormants(asleep, key)
	data, sum := s.model.encodeBase(key, uint64(s.cache.records), clocks, dormant)
	if len(s.model.scanErrors) > 0 {
		return 0, sum, nil
	}
	if dormant.frozen != nil { // before the base that has its hash
		if err := s.replaceLocal(frozenPath, dormant.frozen); err != nil {
			return 0, sum, err
		}
	}
	return hashOfBase(data), sum, s.replaceLocal(basePath, data)
}

// describeDormant describes an object that becomes dormant; ok is false if one of its files must stay loaded.
func (m *model) describeDormant(ref schemas.Ref) (o Dormant, ok bool) {
	s := m.slots[ref]
	if s == nil || len(s.specs) != 1 || len(m.inputs.nodes[ref]) > 0 || len(m.declared.nodes[ref]) > 0 {
		return o, false
	}
	spec, b := s.specs[0], s.specs[0].body.(*specBody)
	if s.status != nil {
		status, isHeld := s.status.body.(*lazyStatus)
		if !isHeld {
			return o, false
		}
		o.Brief = *status.inBrief()
	}
	if b.object == nil || b.object.Mentions(schemas.MarkTools) || len(b.problems) > 0 || len(b.cross) > 0 || spec.link || m.related[spec.path] ||
		m.missing[spec.path] {
		return o, false
	}
	for _, f := range s.runs {
		if r, ok := f.body.(*lazyRun); !ok || r.has != 0 {
			return o, false
		}
	}
	if m.hasInJournals(ref) {
		return o, false
	}
	o.Ref, o.path = ref, lowerHash(spec.path)
	for _, r := range b.object.Refs {
		o.Refs = append(o.Refs, r.To)
	}
	return o, true
}
