package embed_test

import (
	"slices"
	"testing"

	"reconcile.dev/reconcile/vectors/embed"
	"reconcile.dev/reconcile/vectors/lexical/lexicaltest"
)

func BenchmarkEmbed(b *testing.B) {
	corpus := lexicaltest.New(1)
	texts := make([]string, 2000)
	for i := range texts {
		texts[i] = corpus.Text(60)
	}
	e := embed.Train(slices.Values(texts), 768)
	b.Run("text", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := e.Embed(b.Context(), texts[i%len(texts):][:1]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("2000 texts", func(b *testing.B) {
		for b.Loop() {
			if _, err := e.Embed(b.Context(), texts); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("train 2000", func(b *testing.B) {
		for b.Loop() {
			embed.Train(slices.Values(texts), 768)
		}
	})
}
