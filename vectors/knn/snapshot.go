package knn

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"reconcile.dev/reconcile/schemas/sections"
)

// errDamaged reports that the bytes of an index were changed or have another version.
var errDamaged = errors.New("the vector index is damaged or of another version; build it again")

// format is that of vector indexes.
var format = sections.Format{Magic: "rcnknear", Version: 8}

// The numbers of the sections, see the package.
const (
	sectionHeader = iota
	sectionCentre
	sectionIDs
	sectionOrder
	sectionSizes
	sectionSlacks
	sectionNorms
	sectionCoarse
	sectionUpper
	sectionHigh
	sectionLow
	sectionListEnds
	sectionListNorms
	sectionListSlots
	sectionPivots
	sectionLinks
	sectionVectors
	sectionCount
)

// header is the first section: the fields in this order, 8 bytes each.
type header struct {
	dims, m, efConstruction, efSearch, efThorough, graphFrom uint64
	slots, upper, graph, entry, top, lists                   uint64
	scale, whole, normal, thorough, among, calibrated        uint64
	reach, farReach                                          uint64
}

func (h *header) fields() []*uint64 {
	return []*uint64{&h.dims, &h.m, &h.efConstruction, &h.efSearch, &h.efThorough, &h.graphFrom,
		&h.slots, &h.upper, &h.graph, &h.entry, &h.top, &h.lists, &h.scale, &h.whole, &h.normal, &h.thorough, &h.among, &h.calibrated,
		&h.reach, &h.farReach}
}

// sizes are the sizes of the sections in bytes, in their order.
func (h *header) sizes(s shape) [sectionCount]uint64 {
	n, plane := h.slots, h.slots*uint64(s.stride)
	listed := n * min(h.lists, 1)
	return [sectionCount]uint64{uint64(8 * len(h.fields())), 4 * uint64(s.dims), 8 * n, 4 * n, 4 * n, 4 * n, 4 * n, 4 * n, 4 * n,
		plane, plane, 4 * h.lists, 4 * h.lists, 4 * listed, h.lists * uint64(s.stride),
		h.graph*n*uint64(s.cap0())*4 + 4*h.upper, n * uint64(s.dims) * 4}
}

// AppendTo appends the index to dst. Where the bytes begin in memory must be a multiple of 64 for Open to use them as they
// are. Slots are renumbered without gaps, in their order. Others may search meanwhile; changes wait.
func (x *Index) AppendTo(dst []byte) []byte {
	x.writer.Lock()
	defer x.writer.Unlock()
	if len(x.dead) > 0 || x.added > 0 {
		x.vacuum()
	}
	c := x.content(nil)
	dst = slices.Grow(dst, int(c.Length))
	_ = c.Write(func(b []byte) error {
		dst = append(dst, b...)
		return nil
	}) // all of it is in memory
	return dst
}

// content returns the present view in the format. Where the processor keeps numbers as the format does, sections are the
// arrays of the index themselves. vectors, unless nil, hands out the vectors instead of the view.
func (x *Index) content(vectors func(func([]byte) error) error) sections.Content {
	v := x.current.Load()
	runs, moved := v.runs()
	links, starts := v.compact(runs, moved)
	ids := gather(runs, 1, func(s *segment) []uint64 { return s.ids })
	h := x.headerOf(v, moved, len(links))
	var numbers []uint64
	for _, f := range h.fields() {
		numbers = append(numbers, *f)
	}
	ends, members := v.lists.flat(moved)
	exact := sections.Of(rows(runs, v.dims, func(s *segment) []float32 { return s.vectors })...)
	if vectors != nil {
		exact = sections.Content{Length: h.sizes(v.shape)[sectionVectors], Write: vectors}
	}
	return format.Content(
		sections.Of(sections.Raw(numbers)), sections.Of(sections.Raw(v.centre)), sections.Of(sections.Raw(ids)),
		sections.Of(sections.Raw((&segment{ids: ids}).byID())),
		sections.Of(rows(runs, 1, func(s *segment) []float32 { return s.sizes })...),
		sections.Of(rows(runs, 1, func(s *segment) []float32 { return s.slacks })...),
		sections.Of(rows(runs, 1, func(s *segment) []int32 { return s.norms })...),
		sections.Of(rows(runs, 1, func(s *segment) []int32 { return s.coarse })...),
		sections.Of(sections.Raw(starts)),
		sections.Of(rows(runs, v.stride, func(s *segment) []byte { return s.high })...),
		sections.Of(rows(runs, v.stride, func(s *segment) []byte { return s.low })...),
		sections.Of(sections.Raw(ends)), sections.Of(sections.Raw(v.lists.pivots.coarse)), sections.Of(sections.Raw(members)),
		sections.Of(v.lists.pivots.high), sections.Of(sections.Raw(links)), exact,
	)
}

// rows are the rows of runs as pieces: none of arrays that are empty.
func rows[T sections.Number](runs []span, width int, of func(*segment) []T) (out [][]byte) {
	for _, r := range runs {
		if all := of(r.s); len(all) > 0 {
			out = append(out, sections.Raw(all[r.from*width:r.to*width]))
		}
	}
	return out
}

// headerOf returns the header of a view whose slots become moved, with that many links.
func (x *Index) headerOf(v *vectorView, moved []uint32, links int) header {
	o := x.options
	h := header{dims: uint64(o.Dims), m: uint64(o.M), efConstruction: uint64(o.EfConstruction),
		efSearch: uint64(o.EfSearch), efThorough: uint64(o.EfThorough), graphFrom: uint64(o.GraphFrom),
		slots: uint64(v.live), entry: noSlot, lists: uint64(len(v.lists.members)), scale: uint64(math.Float32bits(v.scale)),
		normal: uint64(v.efforts.normal), thorough: uint64(v.efforts.thorough), among: uint64(v.efforts.among), calibrated: uint64(v.calibrated),
		reach: uint64(v.efforts.reach), farReach: uint64(v.efforts.farReach)}
	if v.whole {
		h.whole = 1
	}
	if v.graph {
		h.graph, h.entry, h.top = 1, uint64(moved[v.entry]), uint64(v.top)
		h.upper = uint64(links - v.live*v.cap0())
	}
	return h
}

// runs are the rows that have vectors, in runs, and what their slots become without gaps.
func (v *vectorView) runs() (runs []span, moved []uint32) {
	moved = slices.Repeat([]uint32{noSlot}, v.len())
	next := uint32(0)
	v.spans(func(s span) {
		for row := s.from; row < s.to; row++ {
			slot := s.slot + uint32(row-s.from)
			if !v.has(slot) {
				continue
			}
			moved[slot] = next
			next++
			if n := len(runs); n > 0 && runs[n-1].s == s.s && runs[n-1].to == row {
				runs[n-1].to++
			} else {
				runs = append(runs, span{s.s, row, row + 1, slot})
			}
		}
	})
	return runs, moved
}

// compact returns the links of all slots of the runs, first those of the lowest level, then the upper links in the
// order of their slots, and the starts of the upper links.
func (v *vectorView) compact(runs []span, moved []uint32) (links, starts []uint32) {
	if v.graph {
		links = gather(runs, v.cap0(), func(s *segment) []uint32 { return s.links })
	}
	begin := uint32(len(links))
	for _, r := range runs {
		for row := r.from; row < r.to; row++ {
			upper := v.upperLinksOf(r.s, row)
			if upper == nil {
				starts = append(starts, noSlot)
				continue
			}
			starts = append(starts, uint32(len(links))-begin)
			links = append(links, upper...)
		}
	}
	rename(links, moved)
	return links, starts
}

// gather copies rows of runs.
func gather[T any](runs []span, width int, of func(*segment) []T) []T {
	var out []T
	for _, r := range runs {
		out = append(out, of(r.s)[r.from*width:r.to*width]...)
	}
	return out
}

// readHeader reads the header of a file; ok is false if it is damaged.
func readHeader(f *sections.File) (h header, ok bool) {
	first := f.Section(sectionHeader)
	numbers, fields := sections.Numbers[uint64](first.Data), h.fields()
	if len(numbers) != len(fields) || !first.Sound(0, len(first.Data)) {
		return h, false
	}
	for i, f := range fields {
		*f = numbers[i]
	}
	return h, true
}

// options are the options that the header tells, if they can be.
func (h *header) options() (Options, bool) {
	for _, f := range h.fields() {
		if *f > 1<<40 {
			return Options{}, false
		}
	}
	o := Options{Dims: int(h.dims), M: int(h.m), EfConstruction: int(h.efConstruction), EfSearch: int(h.efSearch),
		EfThorough: int(h.efThorough), GraphFrom: int(h.graphFrom)}
	set, err := o.withDefaults()
	o.Threads = set.Threads
	linked := h.graph == 1 && h.lists == 0 && h.entry < h.slots && h.top <= maxLevel && h.upper <= 2*maxVectors
	scanned := h.graph == 0 && h.entry == noSlot && h.top == 0 && h.upper == 0 && h.lists <= mostLists
	scale := math.Float32frombits(uint32(h.scale))
	coded := h.scale <= math.MaxUint32 && scale > 0 && scale <= 127/smallest && h.whole <= 1
	calibrated := h.normal <= maxVectors && h.thorough <= maxVectors && h.among <= amongMost && h.calibrated <= maxVectors &&
		h.reach <= mostReach && h.farReach <= mostReach
	return set, err == nil && o == set && h.slots <= maxVectors && (linked || scanned) && coded && calibrated
}

// Open opens the index in data. The bytes are used in place, and must neither change nor be unmapped; if they do not begin
// at a multiple of 8 in memory, or the processor has another byte order, they are copied. Open reads the header and the
// checksums only. Damage in the rest can make answers wrong, but causes no panic; Verify detects it.
func Open(data []byte) (*Index, error) {
	file, err := format.Open(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	h, ok := readHeader(file)
	if !ok {
		return nil, errDamaged
	}
	o, ok := h.options()
	if !ok {
		return nil, errDamaged
	}
	v := &vectorView{shape: shapeOf(o), live: int(h.slots), graph: h.graph == 1, entry: uint32(h.entry), top: int(h.top),
		efforts: efforts{int(h.normal), int(h.thorough), int(h.among), int(h.reach), int(h.farReach)}, calibrated: int(h.calibrated)}
	for i, size := range h.sizes(v.shape) {
		if uint64(len(file.Get(i))) != size {
			return nil, errDamaged
		}
	}
	v.scale, v.whole, v.centre = math.Float32frombits(uint32(h.scale)), h.whole == 1, numbers[float32](file, sectionCentre)
	links := numbers[uint32](file, sectionLinks)
	low := int(h.graph*h.slots) * v.cap0()
	v.base = segment{ids: numbers[uint64](file, sectionIDs), sizes: numbers[float32](file, sectionSizes),
		slacks: numbers[float32](file, sectionSlacks), norms: numbers[int32](file, sectionNorms),
		coarse: numbers[int32](file, sectionCoarse), upperStart: numbers[uint32](file, sectionUpper),
		high: file.Get(sectionHigh), low: file.Get(sectionLow),
		links: links[:low:low], vectors: numbers[float32](file, sectionVectors)}
	v.upper = links[low:]
	v.lists.pivots = segment{coarse: numbers[int32](file, sectionListNorms), high: file.Get(sectionPivots)}
	if v.lists.members, ok = membersOf(numbers[uint32](file, sectionListEnds), numbers[uint32](file, sectionListSlots)); !ok {
		return nil, errDamaged
	}
	x := newIndex(o, v)
	x.order, x.frozen, x.file = numbers[uint32](file, sectionOrder), true, file
	return x, nil
}

func numbers[T sections.Number](f *sections.File, section int) []T {
	return sections.Numbers[T](f.Get(section))
}

// unitsOf returns a function that writes the exact vectors of the given rows in the format.
func (v *vectorView) unitsOf(rows []uint32, from Source) func(func([]byte) error) error {
	const block = 256 // rows that are handed out at once
	return func(each func([]byte) error) error {
		threads := runtime.GOMAXPROCS(0)
		blocks := make([]unitBlock, threads)
		for at := 0; at < len(rows); {
			var all sync.WaitGroup
			used := 0
			for ; used < threads && at < len(rows); used++ {
				some := rows[at:min(at+block, len(rows))]
				at += len(some)
				b := &blocks[used]
				all.Go(func() { b.fill(v.dims, some, from) })
			}
			all.Wait()
			for i := range blocks[:used] {
				if blocks[i].err != nil {
					return blocks[i].err
				}
				if err := each(sections.Raw(blocks[i].units)); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// rename replaces slots by their new numbers.
func rename(links, moved []uint32) {
	for i, to := range links {
		if int(to) < len(moved) {
			links[i] = moved[to]
		} else {
			links[i] = noSlot
		}
	}
}
