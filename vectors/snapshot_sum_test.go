package vectors

import (
	"math/rand/v2"
	"testing"
)

// A section has the same sum however it is handed out.
func TestSumOfPieces(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 3*sumSize+7)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	for _, size := range []int{0, 1, sumSize - 1, sumSize, sumSize + 1, 3 * sumSize, len(data)} {
		s, want := &summing{}, sumOf(data[:size])
		for at := 0; at < size; {
			n := min(1+random.IntN(sumSize+9), size-at)
			if err := s.write(data[at : at+n]); err != nil {
				t.Fatal(err)
			}
			at += n
		}
		if got := s.sum(); got != want {
			t.Errorf("%d bytes have the sums %x and %x", size, want, got)
		}
	}
	want := sumOf(data)
	for at := 0; at < len(data); at += len(data) / 7 {
		data[at] ^= 1
		if sumOf(data) == want {
			t.Errorf("a bit that is flipped at %d does not change the sum", at)
		}
		data[at] ^= 1
	}
}
