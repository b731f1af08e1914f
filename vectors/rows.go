package vectors

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
)

// rows keep a vector for each of some texts while an index is built: in the Scratch, or without one in memory.
type rows struct {
	dims    int
	scratch Scratch
	rooms   sync.Pool // of bytes of a row
	memory  [][]float32
}

func (b *building) rows(n int) *rows {
	r := &rows{dims: b.Dims, scratch: b.Scratch}
	if r.scratch == nil {
		r.memory = make([][]float32, n)
	}
	r.rooms.New = func() any {
		room := make([]byte, 4*r.dims)
		return &room
	}
	return r
}

// put keeps vectors, the first of them as row from. Other goroutines may put others meanwhile.
func (r *rows) put(from int, vectors [][]float32) error {
	if r.scratch == nil {
		copy(r.memory[from:], vectors)
		return nil
	}
	data := make([]byte, 0, 4*r.dims*len(vectors))
	for _, v := range vectors {
		for _, x := range v {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
		}
	}
	if _, err := r.scratch.WriteAt(data, r.at(from)); err != nil {
		return fmt.Errorf("put vectors aside: %w", err)
	}
	return nil
}

// get copies a row that was put. Any number of goroutines may.
func (r *rows) get(row int, into []float32) error {
	if r.scratch == nil {
		copy(into, r.memory[row])
		return nil
	}
	room := r.rooms.Get().(*[]byte)
	defer r.rooms.Put(room)
	data := *room
	if _, err := r.scratch.ReadAt(data, r.at(row)); err != nil {
		return fmt.Errorf("read vectors that were put aside: %w", err)
	}
	for i := range into {
		into[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return nil
}

// at is where a row is in the scratch.
func (r *rows) at(row int) int64 { return int64(row) * int64(r.dims) * 4 }
