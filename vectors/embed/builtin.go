package embed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync"

	"reconcile.dev/reconcile/schemas/sections"
)

// ErrDamaged reports that the bytes of statistics were changed or have another version.
var ErrDamaged = errors.New("the statistics of the built-in embedder are damaged or of another version; build them again")

// format is that of statistics; its version is that of the algorithm, too.
var format = sections.Format{Magic: "rcnembed", Version: 3}

// titleWeight is the weight of a title relative to the body, each scaled to length 1.
const titleWeight = 1.25

// Builtin makes vectors without a network or a model. It never changes, and is safe for concurrent use.
type Builtin struct {
	file       *sections.File
	dimensions int
	rarities   []byte // a section of file
	scratch    sync.Pool
}

var _ Embedder = (*Builtin)(nil)

// counter counts texts by features. Features that share a bucket are counted together; of its buckets, one in each row,
// a feature has the smallest count (Cormode and Muthukrishnan, "An improved data stream summary: the count-min sketch and
// its applications", 2005).
type counter struct {
	docs uint64
	df   []uint32
}

func newCounter() counter { return counter{df: make([]uint32, tableRows*buckets)} }

// count counts some texts that have a feature.
func (c *counter) count(hash uint64, texts uint32) {
	for _, at := range bucketsOf(hash) {
		c.df[at] += texts
	}
}

func newBuiltin(c *counter, dimensions int) *Builtin {
	rarities := make([]byte, len(c.df))
	known := map[uint32]uint8{} // most buckets have one of a few counts
	for i, df := range c.df {
		w, there := known[df]
		if !there {
			w = rarity(c.docs, min(uint64(df), c.docs))
			known[df] = w
		}
		rarities[i] = w
	}
	b, err := open(format.Encode(sections.Raw([]uint64{uint64(dimensions), c.docs}), rarities))
	if err != nil {
		panic(err) // a mistake of this package, or of the caller's dimensions
	}
	return b
}

// AppendTo appends the data of the built-in embedder, its statistics in the format of the package.
func (b *Builtin) AppendTo(data []byte) []byte { return append(data, b.file.Bytes()...) }

// Open returns the built-in embedder of the statistics in data, after checking their size, checksums and dimensions. The
// bytes are used in place and must not change. The error is ErrDamaged.
func Open(data []byte) (*Builtin, error) {
	file, err := format.Open(data)
	if err == nil {
		err = file.Verify()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return open(file)
}

func open(file *sections.File) (*Builtin, error) {
	sizes, rarities := sections.Numbers[uint64](file.Get(0)), file.Get(1)
	if file.Sections() != 2 || len(sizes) != 2 || sizes[0] < 1 || sizes[0] > MaxDimensions || len(rarities) != tableRows*buckets {
		return nil, ErrDamaged
	}
	return &Builtin{file: file, dimensions: int(sizes[0]), rarities: rarities}, nil
}

// Dimensions returns the number of dimensions of the built-in embedder's vectors.
func (b *Builtin) Dimensions() int { return b.dimensions }

// Model returns the name of the built-in model, with the algorithm's version, the dimensions and the digest of the
// statistics.
func (b *Builtin) Model() string {
	return fmt.Sprintf("builtin %d %d %016x", format.Version, b.dimensions, b.file.Sum())
}

// Embed uses all processors. The error is that of the context.
func (b *Builtin) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	all := make([]float32, len(texts)*b.dimensions)
	out := slices.Collect(slices.Chunk(all, b.dimensions))
	var group sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), (len(texts)+7)/8)
	work := func(first int) {
		s := b.take()
		defer b.scratch.Put(s)
		for i := first; i < len(texts) && ctx.Err() == nil; i += workers {
			s.embed(b, texts[i], out[i])
		}
	}
	for first := 1; first < workers; first++ {
		group.Go(func() { work(first) })
	}
	work(0)
	group.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return out, nil
}

// scratch is what making one vector needs.
type scratch struct {
	bag         bag
	title, body []int32
}

func (b *Builtin) take() *scratch {
	if s, ok := b.scratch.Get().(*scratch); ok {
		return s
	}
	return &scratch{title: make([]int32, b.dimensions), body: make([]int32, b.dimensions)}
}

// embed makes the vector of a text.
func (s *scratch) embed(b *Builtin, text string, out []float32) {
	title, body := fields(text)
	s.begin()
	s.bag.fill(title)
	for _, f := range s.bag.features {
		b.addFeature(f, s.title)
	}
	s.bag.fill(body)
	for _, f := range s.bag.features {
		b.addFeature(f, s.body)
	}
	s.finish(out)
}

// begin empties the sums of both fields.
func (s *scratch) begin() {
	clear(s.title)
	clear(s.body)
}

// finish makes the vector of the sums of title and body, each scaled to its weight.
func (s *scratch) finish(out []float32) {
	titleScale, bodyScale := scaleTo(titleWeight, s.title), scaleTo(1, s.body)
	for i := range out {
		// The conversions keep processors that can from adding and multiplying at once, with another result.
		out[i] = float32(float64(float64(s.title[i])*titleScale) + float64(float64(s.body[i])*bodyScale))
	}
	if Unit(out) != nil {
		copy(out, Nothing(len(out)))
	}
}

// scaleTo returns the factor that scales a sum to a length; 0 if the sum is zero.
func scaleTo(length float64, sum []int32) float64 {
	squares := 0.0
	for _, x := range sum {
		squares += float64(float64(x) * float64(x))
	}
	if squares == 0 {
		return 0
	}
	return length / math.Sqrt(squares)
}

// addFeature adds the weight of a feature to some components, and takes it from some others, as its hash says.
func (b *Builtin) addFeature(f feature, sum []int32) {
	at := bucketsOf(f.hash)
	weight := countWeights[min(f.count, maxCount)] * uint32(max(b.rarities[at[0]], b.rarities[at[1]]))
	if f.hash&isTerm == 0 {
		scatter(f.hash, int32(weight*pieceFactor>>weightShift), sum)
		return
	}
	w := int32(weight * termFactor >> weightShift)
	scatter(f.hash, w, sum)
	scatter(mixedHash(f.hash), w, sum)
}

// scatter adds a weight, or its negative, to piecePlaces components: 15 bits choose each, and one its sign. (Achlioptas,
// "Database-friendly random projections", 2003; Weinberger and others, "Feature hashing for large scale multitask
// learning", 2009.)
func scatter(hash uint64, weight int32, sum []int32) {
	for range piecePlaces {
		sign := -int32(hash >> 15 & 1)
		sum[int(hash&(1<<15-1))*len(sum)>>15] += weight ^ sign - sign
		hash >>= 16
	}
}

const (
	// bucketBits is how many bits number the buckets of a row of the table.
	bucketBits = 17
	buckets    = 1 << bucketBits
	tableRows  = 2
	// maxCount is how often a feature counts.
	maxCount = 255
	// A term counts termFactor in each of its places, a piece pieceFactor.
	termFactor, pieceFactor = 7, 2
	// piecePlaces is how many components of the vector a piece adds to; a term adds to twice as many.
	piecePlaces = 4
	// weightShift keeps the sums of any text below 1<<31.
	weightShift = 4
)

// bucketsOf are the places of a feature in the table, one in each row.
func bucketsOf(hash uint64) [tableRows]uint32 {
	spread := hash * 0x9e3779b97f4a7c15 // other bits than those that choose components
	return [...]uint32{uint32(spread >> (64 - bucketBits)),
		buckets + uint32(spread>>(64-2*bucketBits))&(buckets-1)}
}

// countWeights are 1+ln(count) in 1/64.
var countWeights = func() (out [maxCount + 1]uint32) {
	for i := 1; i < len(out); i++ {
		ln := uint64(log2(uint64(i), 1)) * 45426 >> 16 // ln 2 in 1/65536
		out[i] = 64 + uint32((ln*64+1<<15)>>16)
	}
	return out
}()

// log2 is the logarithm of a/b >= 1 in 1/65536, rounded down, by integers alone: the same on every machine. a is below
// 1<<40.
func log2(a, b uint64) uint32 {
	whole := 0
	for a>>whole >= 2*b {
		whole++
	}
	// x is a/b/2^whole in 1/2^31: from 1 to 2. Each squaring gives another bit.
	hi, lo := bits.Mul64(a, 1<<31)
	if whole > 0 {
		lo = lo>>whole | hi<<(64-whole)
		hi >>= whole
	}
	x, _ := bits.Div64(hi, lo, b)
	out := uint32(whole)
	for range 16 {
		x = x * x >> 31
		out <<= 1
		if x >= 1<<32 {
			x >>= 1
			out |= 1
		}
	}
	return out
}

// rarity is the weight of a feature that df of docs texts have, 1 to 255: the fourth root of ln(1+docs/(df+1/2)), in
// proportion to that of a feature that none has.
func rarity(docs, df uint64) uint8 {
	idf := float64(log2(2*df+1+2*docs, 2*df+1))
	most := float64(log2(1+2*docs, 1))
	if most == 0 {
		return math.MaxUint8 // nothing was counted
	}
	// Roots are rounded correctly everywhere, where powers are not.
	return uint8(max(1, math.Round(math.MaxUint8*math.Sqrt(math.Sqrt(idf/most)))))
}
