package knn

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"reconcile.dev/reconcile/schemas/sections/sectionstest"
)

// openAll opens bytes and does with the index whatever can be done: nothing may panic.
func openAll(t *testing.T, data []byte, q []float32) {
	x, err := Open(data)
	if err != nil {
		if !errors.Is(err, errDamaged) {
			t.Fatalf("%v", err)
		}
		return
	}
	if x.Dims() != len(q) {
		return
	}
	half := &Bitmap{}
	for slot := range uint32(x.Slots()) {
		id, _ := x.ID(slot)
		x.Slot(id)
		if slot%2 == 0 {
			half.Add(slot)
		}
	}
	for _, o := range []SearchOptions{{}, {Exact: true}, {Filter: half}, {K: 1000}} {
		if _, err := x.Search(q, o); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Verify(); err != nil && !errors.Is(err, errDamaged) {
		t.Fatal(err)
	}
	for i := range uint64(70) {
		id, _ := x.ID(uint32(i))
		x.Delete(id)
		if err := x.Put(Item{i, q}); err != nil {
			t.Fatal(err)
		}
	}
	x.AppendTo(nil)
}

// begin is where the first section, the header, begins in a file.
const begin = (16 + 8*sectionCount + 8 + 63) &^ 63

func TestDamaged(t *testing.T) {
	t.Parallel()
	items := clustered(300, 32, 12)
	testDamaged(t, build(t, Options{Dims: 32, GraphFrom: 100, M: 4, EfConstruction: 10}, items[:250]).AppendTo(nil), items[0].Vector)
	testDamaged(t, build(t, Options{Dims: 32}, items).AppendTo(nil), items[0].Vector)
}

// testDamaged: bytes of an index with a graph, and of one with lists.
func testDamaged(t *testing.T, data []byte, q []float32) {
	for _, n := range []int{0, 1, 100, begin - 1, begin, len(data) - 64, len(data) - 1} {
		if _, err := Open(data[:n]); !errors.Is(err, errDamaged) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if _, err := Open(append(data[:len(data):len(data)], 0)); !errors.Is(err, errDamaged) {
		t.Errorf("a byte too many: %v", err)
	}
	for at := 0; at < begin+8*len((&header{}).fields()); at += 3 {
		bad := append([]byte(nil), data...)
		bad[at] ^= 0x81
		if _, err := Open(bad); !errors.Is(err, errDamaged) {
			t.Errorf("byte %d of the header: %v", at, err)
		}
		sectionstest.Reseal(bad)
		openAll(t, bad, q)
	}
	for at := begin; at < len(data); at += 997 {
		bad := append([]byte(nil), data...)
		for i := at; i < min(len(bad), at+40); i++ {
			bad[i] ^= 0xff
		}
		if x, err := Open(bad); err == nil {
			err = x.Verify()
			if !errors.Is(err, errDamaged) {
				t.Errorf("bytes from %d: %v", at, err)
			}
		}
		sectionstest.Reseal(bad)
		openAll(t, bad, q)
	}
}

// TestUnaligned: bytes that begin anywhere are copied.
func TestUnaligned(t *testing.T) {
	t.Parallel()
	items := clustered(250, 32, 12)
	data := build(t, Options{Dims: 32, GraphFrom: 100}, items).AppendTo([]byte("abc"))
	x, err := Open(data[3:])
	if err != nil {
		t.Fatal(err)
	}
	m := model{}
	for _, item := range items {
		m[item.ID] = item.Vector
	}
	m.check(t, x, 0.95)
}

// TestHostile: whatever stands in bytes whose header has the right checksum, nothing panics.
func TestHostile(t *testing.T) {
	t.Parallel()
	items := clustered(130, 32, 12)
	seeds := [][]byte{
		build(t, Options{Dims: 32, GraphFrom: 100, M: 2, EfConstruction: 10}, items).AppendTo(nil),
		build(t, Options{Dims: 32}, items).AppendTo(nil),
		build(t, Options{Dims: 32}, clustered(300, 32, 12)).AppendTo(nil),
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		data := slices.Clone(seeds[r.IntN(len(seeds))])
		for range 1 + r.IntN(20) {
			at := r.IntN(len(data))
			if r.IntN(4) == 0 {
				at = begin + r.IntN(8*len((&header{}).fields()))
			}
			data[at] = byte(r.IntN(256))
		}
		sectionstest.Reseal(data)
		openAll(t, data, items[0].Vector)
	}
}

func FuzzOpen(f *testing.F) {
	items := clustered(130, 32, 12)
	for _, o := range []Options{{Dims: 32, GraphFrom: 100, M: 2, EfConstruction: 10}, {Dims: 32}} {
		f.Add(build(f, o, items).AppendTo(nil))
	}
	f.Add(build(f, Options{Dims: 32}, clustered(300, 32, 12)).AppendTo(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		data = append([]byte(nil), data...)
		sectionstest.Reseal(data)
		openAll(t, data, items[0].Vector)
	})
}
