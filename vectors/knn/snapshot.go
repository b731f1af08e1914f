package knn

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"unsafe"

	"github.com/cespare/xxhash/v2"
)

// ErrDamaged reports that the bytes of an index were changed or have another version.
var ErrDamaged = errors.New("the vector index is damaged or of another version; build it again")

const (
	magic = "rcnknn\x00\x07" // ends with the version
	// headerFields is the number of the header's fields that are not checksums; see header.
	headerFields = 20
	sections     = 13
	headerSize   = (len(magic) + 8*(headerFields+sections+1) + sectionLine - 1) / sectionLine * sectionLine
	sectionLine  = 64
)

// header is what an index in bytes begins with: the fields in this order, 8 bytes each, then a checksum of each section,
// then one of the header itself.
type header struct {
	dims, m, efConstruction, efSearch, efThorough, graphFrom uint64
	slots, upper, graph, entry, top, lists                   uint64
	scale, whole, normal, thorough, among, calibrated        uint64
	reach, farReach                                          uint64
	sums                                                     [sections]uint64
}

func (h *header) fields() []*uint64 {
	return []*uint64{&h.dims, &h.m, &h.efConstruction, &h.efSearch, &h.efThorough, &h.graphFrom,
		&h.slots, &h.upper, &h.graph, &h.entry, &h.top, &h.lists, &h.scale, &h.whole, &h.normal, &h.thorough, &h.among, &h.calibrated,
		&h.reach, &h.farReach}
}

// sizes are the sizes of the sections in bytes, in their order.
func (h *header) sizes(s shape) [sections]uint64 {
	n := h.slots
	return [sections]uint64{4 * uint64(s.dims), 8 * n, 4 * n, 4 * n, 4 * n, 4 * n, 4 * n, 4 * n, n * uint64(s.stride), n * uint64(s.stride), h.listBytes(s),
		h.graph*n*uint64(s.cap0())*4 + 4*h.upper, n * uint64(s.dims) * 4}
}

func aligned(n uint64) uint64 { return (n + sectionLine - 1) / sectionLine * sectionLine }

// AppendTo appends the index to dst. Where the bytes begin in memory must be a multiple of 64 for Open to use them as they
// are. Slots are renumbered without gaps, in their order. Others may search meanwhile; changes wait.
func (x *Index) AppendTo(dst []byte) []byte {
	x.writer.Lock()
	defer x.writer.Unlock()
	if len(x.dead) > 0 || x.added > 0 {
		x.vacuum()
	}
	i := x.image()
	dst = slices.Grow(dst, int(i.size()))
	if err := i.sum(); err != nil {
		panic(err) // which cannot be: all of it is in memory
	}
	_ = i.write(func(b []byte) error {
		dst = append(dst, b...)
		return nil
	})
	return dst
}

// image is an index in its format: of each section the pieces that it consists of. Where the processor keeps numbers as
// the format does, pieces are the arrays of the index themselves.
type image struct {
	header header
	shape  shape
	pieces [sections][][]byte
	// later hands out, unless nil, what the last section has beyond its pieces.
	later func(each func([]byte) error) error
}

// image is that of the present view, without checksums.
func (x *Index) image() *image {
	v := x.current.Load()
	runs, moved := v.runs()
	links, starts := v.compact(runs, moved)
	ids := gather(runs, 1, func(s *segment) []uint64 { return s.ids })
	return &image{header: x.headerOf(v, moved, len(links)), shape: v.shape, pieces: [sections][][]byte{
		{raw(v.centre)}, {raw(ids)}, {raw((&segment{ids: ids}).byID())},
		rows(runs, 1, func(s *segment) []float32 { return s.sizes }),
		rows(runs, 1, func(s *segment) []float32 { return s.slacks }),
		rows(runs, 1, func(s *segment) []int32 { return s.norms }),
		rows(runs, 1, func(s *segment) []int32 { return s.coarse }),
		{raw(starts)},
		rows(runs, v.stride, func(s *segment) []byte { return s.high }),
		rows(runs, v.stride, func(s *segment) []byte { return s.low }),
		v.lists.pieces(moved),
		{raw(links)},
		rows(runs, v.dims, func(s *segment) []float32 { return s.vectors }),
	}}
}

// rows are the rows of runs as pieces: none of arrays that are empty.
func rows[T any](runs []span, width int, of func(*segment) []T) (out [][]byte) {
	for _, r := range runs {
		if all := of(r.s); len(all) > 0 {
			out = append(out, raw(all[r.from*width:r.to*width]))
		}
	}
	return out
}

// raw are numbers in the format, in place if that can be.
func raw[T any](numbers []T) []byte {
	if littleEndian {
		size := int(unsafe.Sizeof(*new(T)))
		return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(numbers))), len(numbers)*size)
	}
	out, err := binary.Append(nil, binary.LittleEndian, numbers)
	if err != nil {
		panic(err) // T is a number of fixed size
	}
	return out
}

// size is how many bytes an image has.
func (i *image) size() uint64 {
	total := uint64(headerSize)
	for _, size := range i.header.sizes(i.shape) {
		total += aligned(size)
	}
	return total
}

// each calls do with the pieces of a section.
func (i *image) each(section int, do func([]byte) error) error {
	for _, piece := range i.pieces[section] {
		if err := do(piece); err != nil {
			return err
		}
	}
	if section == sections-1 && i.later != nil {
		return i.later(do)
	}
	return nil
}

// sum sets the checksums of the header. The error is that of later.
func (i *image) sum() error {
	for section := range sections {
		sum := xxhash.New()
		err := i.each(section, func(b []byte) error {
			_, err := sum.Write(b)
			return err
		})
		if err != nil {
			return err
		}
		i.header.sums[section] = sum.Sum64()
	}
	return nil
}

// write hands out all bytes, once they are summed. The error is that of to, or of later.
func (i *image) write(to func([]byte) error) error {
	head := make([]byte, headerSize)
	i.header.write(head)
	if err := to(head); err != nil {
		return err
	}
	for section, size := range i.header.sizes(i.shape) {
		if err := i.each(section, to); err != nil {
			return err
		}
		if err := to(make([]byte, aligned(size)-size)); err != nil {
			return err
		}
	}
	return nil
}

// headerOf returns the header of a view whose slots become moved, with that many links.
func (x *Index) headerOf(v *view, moved []uint32, links int) header {
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
func (v *view) runs() (runs []span, moved []uint32) {
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
func (v *view) compact(runs []span, moved []uint32) (links, starts []uint32) {
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

func (h *header) write(dst []byte) {
	clear(dst[:headerSize])
	b := append(dst[:0], magic...)
	for _, f := range h.fields() {
		b = binary.LittleEndian.AppendUint64(b, *f)
	}
	for _, sum := range h.sums {
		b = binary.LittleEndian.AppendUint64(b, sum)
	}
	binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b))
}

// readHeader reads a header; ok is false if it is damaged.
func readHeader(data []byte) (h header, ok bool) {
	if len(data) < headerSize || string(data[:len(magic)]) != magic {
		return h, false
	}
	at := len(magic)
	next := func() uint64 { at += 8; return binary.LittleEndian.Uint64(data[at-8:]) }
	for _, f := range h.fields() {
		*f = next()
	}
	for i := range h.sums {
		h.sums[i] = next()
	}
	return h, xxhash.Sum64(data[:at]) == next()
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
	linked := h.graph == 1 && h.lists == 0 && h.entry < h.slots && h.top <= maxLevel && h.upper <= 2*MaxVectors
	scanned := h.graph == 0 && h.entry == noSlot && h.top == 0 && h.upper == 0 && h.lists <= mostLists
	scale := math.Float32frombits(uint32(h.scale))
	coded := h.scale <= math.MaxUint32 && scale > 0 && scale <= 127/smallest && h.whole <= 1
	calibrated := h.normal <= MaxVectors && h.thorough <= MaxVectors && h.among <= amongMost && h.calibrated <= MaxVectors &&
		h.reach <= mostReach && h.farReach <= mostReach
	return set, err == nil && o == set && h.slots <= MaxVectors && (linked || scanned) && coded && calibrated
}

// Open opens the index in data by its header. The bytes are used in place, and must neither change nor be unmapped; if
// they do not begin at a multiple of 8 in memory, or the processor has another byte order, they are copied. Open reads
// the header only: it costs the same for every size. Damage in the rest can make answers wrong, but causes no panic;
// Verify detects it.
func Open(data []byte) (*Index, error) {
	h, ok := readHeader(data)
	if !ok {
		return nil, ErrDamaged
	}
	o, ok := h.options()
	if !ok {
		return nil, ErrDamaged
	}
	v := &view{shape: shapeOf(o), live: int(h.slots), graph: h.graph == 1, entry: uint32(h.entry), top: int(h.top),
		efforts: efforts{int(h.normal), int(h.thorough), int(h.among), int(h.reach), int(h.farReach)}, calibrated: int(h.calibrated)}
	var parts [sections][]byte
	at := uint64(headerSize)
	for i, size := range h.sizes(v.shape) {
		if aligned(size) > uint64(len(data))-at {
			return nil, ErrDamaged
		}
		parts[i] = data[at : at+size : at+size]
		at += aligned(size)
	}
	if at != uint64(len(data)) {
		return nil, ErrDamaged
	}
	v.scale, v.whole, v.centre = math.Float32frombits(uint32(h.scale)), h.whole == 1, numbers[float32](parts[0])
	links := numbers[uint32](parts[11])
	low := int(h.graph*h.slots) * v.cap0()
	v.base = segment{ids: numbers[uint64](parts[1]), sizes: numbers[float32](parts[3]), slacks: numbers[float32](parts[4]),
		norms: numbers[int32](parts[5]), coarse: numbers[int32](parts[6]), upperStart: numbers[uint32](parts[7]),
		high: parts[8], low: parts[9],
		links: links[:low:low], vectors: numbers[float32](parts[12])}
	v.upper = links[low:]
	if v.lists, ok = listsOf(v.shape, parts[10], int(h.lists), int(h.slots)); !ok {
		return nil, ErrDamaged
	}
	x := newIndex(o, v)
	x.order, x.frozen = numbers[uint32](parts[2]), true
	x.parts, x.sums = parts, h.sums
	return x, nil
}

// littleEndian says whether the processor keeps numbers as the format does.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// numbers is what bytes hold, in place if that can be.
func numbers[T any](b []byte) []T {
	var one T
	size := int(unsafe.Sizeof(one))
	if len(b) == 0 {
		return nil
	}
	p := unsafe.Pointer(unsafe.SliceData(b))
	if littleEndian && uintptr(p)%uintptr(size) == 0 {
		return unsafe.Slice((*T)(p), len(b)/size)
	}
	out := make([]T, len(b)/size)
	if _, err := binary.Decode(b, binary.LittleEndian, out); err != nil {
		panic(err) // T is a number of fixed size, and b has as many
	}
	return out
}
