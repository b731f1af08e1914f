package index

import (
	"bytes"
	"slices"
	"testing"
)

// TestInPieces: the bytes are the same, and all pieces but the last are whole ones; who has enough gets no more.
func TestInPieces(t *testing.T) {
	t.Parallel()
	var parts [][]byte
	for i, n := range []int{0, 5, pieceSize, 3*pieceSize + 7, 1, pieceSize - 13} {
		parts = append(parts, bytes.Repeat([]byte{byte(i)}, n))
	}
	var got []byte
	pieces := 0
	for piece := range inPieces(slices.Values(parts)) {
		if len(got)%pieceSize != 0 {
			t.Errorf("piece %d begins at %d", pieces, len(got))
		}
		got = append(got, piece...)
		pieces++
	}
	if !bytes.Equal(got, slices.Concat(parts...)) || pieces != 5 {
		t.Errorf("%d bytes in %d pieces", len(got), pieces)
	}
	for piece := range inPieces(slices.Values(parts)) {
		if len(piece) != pieceSize {
			t.Errorf("the first piece has %d bytes", len(piece))
		}
		break
	}
}
