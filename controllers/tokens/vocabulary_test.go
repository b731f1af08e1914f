package tokens

import (
	"bytes"
	"flag"
	"hash/maphash"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer/codec"
)

var update = flag.Bool("update", false, "write o200k_base.words anew")

// TestVocabularyIsThatOfTheEncoder: the file has all words of the encoder, by rank, and each is found.
func TestVocabularyIsThatOfTheEncoder(t *testing.T) {
	all := codec.NewO200kBase()
	var b bytes.Buffer
	v := encoding().words
	for rank := uint(0); ; rank++ {
		word, err := all.Decode([]uint{rank})
		if err != nil { // there are no gaps
			break
		}
		if len(word) == 0 || len(word) > 255 {
			t.Fatalf("word %d has %d bytes", rank, len(word))
		}
		b.WriteByte(byte(len(word)))
		b.WriteString(word)
		if got := v.rank(word); got != uint32(rank) && !*update {
			t.Fatalf("%q has rank %d, want %d", word, got, rank)
		}
	}
	if *update {
		if err := os.WriteFile("o200k_base.words", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(b.Bytes(), []byte(ranked)) {
		t.Error("o200k_base.words is not the vocabulary of the encoder: go test ./controllers/tokens -update")
	}
	for _, word := range []string{"", "\x00\x00\x00\x00\x00\x00\x00", "no such word", "\x05hello"} {
		if got := v.rank(word); got != noRank {
			t.Errorf("%q has rank %d", word, got)
		}
	}
}

// TestTokensOfPieces: pieces that are no words, short and long, are joined as by the encoder.
func TestTokensOfPieces(t *testing.T) {
	t.Parallel()
	all := codec.NewO200kBase()
	r := rand.New(rand.NewPCG(7, 8))
	v := newVocabulary(maphash.MakeSeed())
	letters := []string{"abcdefghijklmnopqrstuvwxyz", "ab", "eta", "日本語数据库", "éё", "-=_#"}
	for i := range 3000 {
		from := []rune(letters[i%len(letters)])
		var b strings.Builder
		for range 1 + r.IntN(60)*(1+9*(i%50/49)) {
			b.WriteRune(from[r.IntN(len(from))])
		}
		want, err := all.Count(b.String())
		if got := v.tokens(b.String()); err != nil || got != want {
			t.Fatalf("%q: %d tokens, want %d, %v", b.String(), got, want, err)
		}
	}
}
