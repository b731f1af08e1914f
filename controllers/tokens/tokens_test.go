package tokens

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"
)

// TestCountKnown: counts are part of what is stored, so they must not move.
func TestCountKnown(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "a": 1, "hello world": 2, "hello  world": 3, "helloworld": 2, "\n\n": 1,
		"Chose per-issue JSON files for observation storage": 10,
		strings.Repeat("a", 1000):                            125,
	} {
		if got := Count(text); got != want {
			t.Errorf("%.40q: %d tokens, want %d", text, got, want)
		}
	}
}

// texts are of many sorts, up to several windows long.
func texts() map[string]string {
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("the Store keeps état 数据库 مرحبا 👩‍👩‍👧‍👦 func(x int) error { } 123456 don't\r\n\t\t - ## https://x.org/a?b=c #29")
	var prose strings.Builder
	for range 40_000 {
		prose.WriteString(words[r.IntN(len(words))])
		prose.WriteString([]string{" ", " ", " ", "\n", "\n\n", "\n  ", "  "}[r.IntN(7)])
	}
	return map[string]string{
		"prose": prose.String(), "one letter": strings.Repeat("a", 1<<20), "spaces": strings.Repeat(" ", 1<<20),
		"newlines": strings.Repeat("\n", 1<<20), "signs": strings.Repeat("=", 1<<20), "emoji": strings.Repeat("👩‍👩‍👧‍👦", 1<<15),
		"capitals": strings.Repeat("AB", 1<<19), "marks": strings.Repeat("é", 1<<18), "invalid": strings.Repeat("\xff\xc3", 1<<18),
		"nul": strings.Repeat("\x00", 1<<18), "digits": strings.Repeat("1234567890", 1<<16), "crlf": strings.Repeat("ab cd\r\n", 1<<16),
	}
}

// TestCountCuts: counting by windows gives what counting at once does; but where no line begins with a plain sign, a
// few more for each cut.
func TestCountCuts(t *testing.T) {
	all := codec.NewO200kBase()
	for name, text := range texts() {
		text = text[:min(len(text), 200_000)]
		want, err := all.Count(text)
		if err != nil {
			t.Fatal(err)
		}
		got, cuts := Count(text), len(text)/window+1
		if name == "prose" || name == "crlf" {
			cuts = 0
		}
		if got < want-cuts || got > want+4*cuts {
			t.Errorf("%s: %d tokens, want %d", name, got, want)
		}
	}
}

// TestCountAtOnce: counts may be made at the same time, the first one too.
func TestCountAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if n := Count("hello world"); n != 2 {
				t.Errorf("%d tokens", n)
			}
		})
	}
	wg.Wait()
}

func TestBoundaryKeepsCharactersWhole(t *testing.T) {
	for _, text := range []string{"héé", "日本", "a👍", "ab\ncd", "\xff\xff\xff\xff\xff", "x"} {
		end := boundary(text)
		if end < 1 || end > len(text) || utf8.ValidString(text) && !utf8.ValidString(text[:end]) {
			t.Errorf("%q is cut at %d", text, end)
		}
	}
	if end := boundary("日本"[:5]); end != 3 {
		t.Errorf("half a character: cut at %d", end)
	}
}

// TestCountByWords: words counted one by one, and found again, are those of the whole text.
func TestCountByWords(t *testing.T) {
	all := codec.NewO200kBase()
	r := rand.New(rand.NewPCG(3, 4))
	signs := strings.Split("a|B|é|ё|日|ʰ|́|1|²|'|'s|.|/|-| |  |\t|\n|\r|\u00a0|\u2028|\u3000|\u200b|\x00|\x7f|\xc3|👍", "|")
	for range 20_000 {
		var b strings.Builder
		for range r.IntN(12) {
			b.WriteString(signs[r.IntN(len(signs))])
		}
		want, err := all.Count(b.String())
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got := Count(b.String()); got != want {
				t.Fatalf("%q: %d tokens, want %d", b.String(), got, want)
			}
		}
	}
}

// TestCountByPieces: pieces of plain texts, counted one by one, are those that the encoder makes of the whole.
func TestCountByPieces(t *testing.T) {
	all := codec.NewO200kBase()
	r := rand.New(rand.NewPCG(5, 6))
	parts := strings.Split("a|B|cd|EF|'s|'RE|'l|'|1|234|.|/|-_|~| |  |\t|\n|\r\n|obs-engineer-7", "|")
	for range 50_000 {
		var b strings.Builder
		for range 1 + r.IntN(10) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		text := b.String()
		want, err := all.Count(text)
		if got := encoding().countPieces(text); err != nil || got != want {
			t.Fatalf("%q: %d tokens, want %d, %v", text, got, want, err)
		}
	}
}

// TestCountRemembersLittle: a word that takes the place of another one does not get its count.
func TestCountRemembersLittle(t *testing.T) {
	all := codec.NewO200kBase()
	for i := range places / 4 {
		word := strings.Repeat("z", i%7) + strconv.Itoa(i*i)
		want, err := all.Count(word)
		if err != nil {
			t.Fatal(err)
		}
		if got := Count(word); got != want {
			t.Fatalf("%q: %d tokens, want %d", word, got, want)
		}
	}
}

// FuzzCount: counting by words gives what counting at once does.
func FuzzCount(f *testing.F) {
	for _, s := range []string{"", "a b", "\xff", "\r\n \n", "日本語", "don't  .\n/ x\t\ty"} {
		f.Add(s)
	}
	all := codec.NewO200kBase()
	f.Fuzz(func(t *testing.T, s string) {
		s = s[:min(len(s), window)]
		want, err := all.Count(s)
		if n := Count(s); err != nil || n != want {
			t.Errorf("%q: %d tokens, want %d, %v", s, n, want, err)
		}
	})
}

func BenchmarkCount(b *testing.B) {
	for _, name := range []string{"prose", "one letter", "spaces", "capitals", "emoji", "invalid"} {
		text := texts()[name]
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				Count(text)
			}
		})
	}
}
