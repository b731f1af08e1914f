package vectors

import (
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

// sumSize is how large a piece of a section is that has a sum of its own.
const sumSize = 1 << 20

// summing makes the sum of a section that is handed out bit by bit. The zero value is that of nothing.
type summing struct {
	piece  xxhash.Digest
	length int    // of the piece
	sums   []byte // of the pieces before
}

// write never fails.
func (s *summing) write(data []byte) error {
	for len(data) > 0 {
		if s.length == 0 {
			s.piece.Reset()
		}
		n := min(len(data), sumSize-s.length)
		_, _ = s.piece.Write(data[:n])
		if s.length += n; s.length == sumSize {
			s.end()
		}
		data = data[n:]
	}
	return nil
}

// end ends a piece.
func (s *summing) end() {
	s.sums, s.length = binary.LittleEndian.AppendUint64(s.sums, s.piece.Sum64()), 0
}

func (s *summing) sum() uint64 {
	if s.length > 0 {
		s.end()
	}
	return xxhash.Sum64(s.sums)
}

// sumOf is the sum of a section, made on all processors.
func sumOf(data []byte) uint64 {
	pieces := (len(data) + sumSize - 1) / sumSize
	sums := make([]byte, 8*pieces)
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < pieces; i = int(next.Add(1)) - 1 {
			piece := data[i*sumSize : min((i+1)*sumSize, len(data))]
			binary.LittleEndian.PutUint64(sums[8*i:], xxhash.Sum64(piece))
		}
	}
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), pieces) - 1 {
		workers.Go(work)
	}
	work()
	workers.Wait()
	return xxhash.Sum64(sums)
}
