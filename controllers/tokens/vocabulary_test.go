package tokens

import (
	"bytes"
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer/codec"
)

var update = flag.Bool("update", false, "write o200k_base.words and o200k_base.slots")

// TestVocabularyIsThatOfTheEncoder: the files have all words of the encoder, by rank, and each is found.
func TestVocabularyIsThatOfTheEncoder(t *testing.T) {
	all := codec.NewO200kBase()
	var words bytes.Buffer
	table := make([]byte, 4*slotCount)
	for n := uint(0); ; n++ {
		word, err := all.Decode([]uint{n})
		if err != nil { // there are no gaps
			break
		}
		if len(word) == 0 || len(word) > longWord {
			t.Fatalf("word %d has %d bytes", n, len(word))
		}
		place := words.Len()
		words.WriteByte(byte(len(word)))
		words.WriteString(word)
		if got := rank(word); got != uint32(place) && !*update {
			t.Fatalf("%q has rank %d, want %d", word, got, place)
		}
		h := hash(word)
		i := h % slotCount
		for binary.LittleEndian.Uint32(table[4*i:]) != 0 {
			i = (i + 1) % slotCount
		}
		binary.LittleEndian.PutUint32(table[4*i:], uint32(place+1)|uint32(h>>(32+placeBits))<<placeBits)
	}
	if words.Len() >= 1<<placeBits {
		t.Fatalf("places have more than %d bits", placeBits)
	}
	for name, file := range map[string]struct {
		text []byte
		is   string
	}{"o200k_base.words": {words.Bytes(), ranked}, "o200k_base.slots": {table, slots}} {
		if *update {
			if err := os.WriteFile(name, file.text, 0o644); err != nil {
				t.Fatal(err)
			}
		} else if string(file.text) != file.is {
			t.Errorf("%s is not that of the encoder: go test ./controllers/tokens -update", name)
		}
	}
	for _, word := range []string{"", "\x00\x00\x00\x00\x00\x00\x00", "no such word", "\x05hello"} {
		if got := rank(word); got != noRank && !*update {
			t.Errorf("%q has rank %d", word, got)
		}
	}
}

// TestTokensOfPieces: pieces that are no words, short and long, are joined as by the encoder.
func TestTokensOfPieces(t *testing.T) {
	t.Parallel()
	all := codec.NewO200kBase()
	r := rand.New(rand.NewPCG(7, 8))
	letters := []string{"abcdefghijklmnopqrstuvwxyz", "ab", "eta", "日本語数据库", "éё", "-=_#"}
	for i := range 3000 {
		from := []rune(letters[i%len(letters)])
		var b strings.Builder
		for range 1 + r.IntN(60)*(1+9*(i%50/49)) {
			b.WriteRune(from[r.IntN(len(from))])
		}
		want, err := all.Count(b.String())
		if got := tokens(b.String()); err != nil || got != want {
			t.Fatalf("%q: %d tokens, want %d, %v", b.String(), got, want, err)
		}
	}
}
