package vectors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// rows store a vector for each of some texts while an index is built: in the Scratch, or without one in memory. After them
// follow the features that were stored.
type rows struct {
	dims    int
	scratch Scratch
	rooms   sync.Pool // of bytes of a row
	memory  [][]float32
	end     atomic.Int64 // of the stored chunks
}

// chunk is where something is that was put aside, or that itself.
type chunk struct {
	at     int64
	size   int
	memory []byte
}

// chunkSize is the minimum number of bytes that are stored at a time, unless there are fewer.
const chunkSize = 1 << 20

// put stores vectors, the first of them as row from. It is safe for concurrent use.
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

// store stores some bytes. It is safe for concurrent use.
func (r *rows) store(data []byte) (chunk, error) {
	if r.scratch == nil {
		return chunk{memory: bytes.Clone(data)}, nil
	}
	c := chunk{at: r.end.Add(int64(len(data))) - int64(len(data)), size: len(data)}
	if _, err := r.scratch.WriteAt(data, c.at); err != nil {
		return c, fmt.Errorf("put the words of texts aside: %w", err)
	}
	return c, nil
}

// load returns stored bytes: the stored slice, or room, if that is large enough.
func (r *rows) load(c chunk, room []byte) ([]byte, error) {
	if r.scratch == nil {
		return c.memory, nil
	}
	room = slices.Grow(room[:0], c.size)[:c.size]
	if _, err := r.scratch.ReadAt(room, c.at); err != nil {
		return nil, fmt.Errorf("read the words of texts that were put aside: %w", err)
	}
	return room, nil
}

// get copies a row that was put. It is safe for concurrent use.
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

// at returns the offset of a row in the scratch.
func (r *rows) at(row int) int64 { return int64(row) * int64(r.dims) * 4 }
