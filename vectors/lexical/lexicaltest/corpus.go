// Package lexicaltest generates texts for search benchmarks: notes of a software project in an artificial language
// whose words are distributed as those of English are. Equal seeds give equal texts.
package lexicaltest

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"reconcile.dev/reconcile/vectors/lexical"
)

const (
	vocabulary  = 60_000 // words of the language
	identifiers = 20_000 // identifiers and paths of the project
)

// frequent are the most frequent words, by falling frequency: English stop words, then some terms of software.
const frequent = `the of and to a in is that it for was on with as be by this are at from not or an have but they which we
all when there can more if will would about has were been into them then its than only other do could our
these over also after where most must through before should error test file code change build function
fix issue cache state config path decision request response type value module user server client index
query schema lock write read data time run task agent session token memory log parser handler retry
timeout node graph key table commit branch merge review release version field method interface package
import return default option flag command output input string number list order limit`

// Corpus makes texts. It is not safe for concurrent use.
type Corpus struct {
	random *rand.Rand
	words  []string
	names  []string // identifiers and paths
	// sums[i] is how probable one of words[:i+1] is, in proportion to the last.
	sums []float64
}

// New makes a corpus.
func New(seed uint64) *Corpus {
	c := &Corpus{random: rand.New(rand.NewPCG(seed, 0)), words: strings.Fields(frequent)}
	seen := map[string]bool{}
	for _, w := range c.words {
		seen[w] = true
	}
	for len(c.words) < vocabulary {
		if w := c.invent(); !seen[w] {
			seen[w] = true
			c.words = append(c.words, w)
		}
	}
	// Zipf's law in the form of Mandelbrot: the frequency of the word of rank r is in proportion to 1/(r+2.7)^1.05.
	sum := 0.0
	for r := range c.words {
		sum += 1 / math.Pow(float64(r+1)+2.7, 1.05)
		c.sums = append(c.sums, sum)
	}
	for range identifiers {
		c.names = append(c.names, c.name())
	}
	return c
}

// invent makes up a word of two to four syllables.
func (c *Corpus) invent() string {
	var b strings.Builder
	for range 2 + c.random.IntN(3) {
		for _, letters := range []string{"bcdfghklmnprstvwz", "aeiou", "   lmnrst"} {
			if l := letters[c.random.IntN(len(letters))]; l != ' ' {
				b.WriteByte(l)
			}
		}
	}
	return b.String()
}

// Word draws a random word of the corpus by its frequency.
func (c *Corpus) Word() string {
	at, _ := slices.BinarySearch(c.sums, c.random.Float64()*c.sums[len(c.sums)-1])
	return c.words[min(at, len(c.words)-1)]
}

// name makes an identifier or a path.
func (c *Corpus) name() string {
	switch c.random.IntN(3) {
	case 0:
		return c.Word() + capital(c.Word())
	case 1:
		return c.Word() + "_" + c.Word()
	}
	return "src/" + c.Word() + "/" + c.Word() + ".go"
}

// Token draws a random token of the corpus: a word, or in 6 of 100 cases one of the names, an identifier or a path.
func (c *Corpus) Token() string {
	if c.random.IntN(100) < 94 {
		return c.Word()
	}
	return c.names[int(float64(len(c.names))*math.Pow(c.random.Float64(), 3))] // some far more often than others
}

// Text draws a text of about that many words, with random tokens of the corpus and full stops between them.
func (c *Corpus) Text(words int) string {
	var b strings.Builder
	for i := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(c.Token())
		if i%11 == 10 {
			b.WriteByte('.')
		}
	}
	return b.String()
}

// Documents draws n random documents of the corpus, with a title of 10 to 19 words, a body of 50 to 80, and a random
// key.
func (c *Corpus) Documents(n int) []lexical.Document {
	out := make([]lexical.Document, n)
	for i := range out {
		out[i] = lexical.Document{
			Title: c.Text(10 + c.random.IntN(10)), Body: c.Text(50 + c.random.IntN(31)), Key: c.random.Uint64(),
		}
	}
	return out
}

// Queries draws n queries of 1 to 5 words. Stop words are drawn again, because queries do not consist of them.
func (c *Corpus) Queries(n int) []string {
	out := make([]string, n)
	for i := range out {
		var words []string
		for want := 1 + c.random.IntN(5); len(words) < want; {
			if w := c.Word(); len(lexical.Terms(w)) > 0 {
				words = append(words, w)
			}
		}
		out[i] = strings.Join(words, " ")
	}
	return out
}

func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }
