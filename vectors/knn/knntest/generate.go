package knntest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"reconcile.dev/reconcile/vectors/kernel"
)

// Shape is a distribution of vectors.
type Shape int

const (
	// Clustered vectors are a mixture of normal distributions in a subspace, with noise in all dimensions.
	Clustered Shape = iota
	// TextLike vectors resemble embeddings of texts: a mixture whose spectrum falls off evenly, all on one side of the
	// origin, and some components much larger than others. They need a rotation before they are coded with few bits.
	TextLike
	// Offset vectors are clustered ones with a common offset: two of them have a cosine of 0.77 on average.
	Offset
	// Copies are templates with 100 near copies each, at a distance of Spec.Noise.
	Copies
	// Duplicates are vectors in groups of 100 equal ones.
	Duplicates
	// Dominated vectors are clustered ones with 4 components that are ten times as large as the others.
	Dominated
	// LowDimensional vectors are in a subspace of 6 dimensions, except for some noise.
	LowDimensional
	// Uniform vectors have random directions.
	Uniform
	// HeavyTailed vectors are in clusters of very different density and size: a few have most of the vectors, and the deviations
	// within clusters differ by factors of hundreds.
	HeavyTailed
	// Sparse vectors are like sets: some forty components are 1 and the others 0, most of them those that are usual in a cluster.
	Sparse
)

var shapeNames = [...]string{"clustered", "text-like", "offset", "copies", "duplicates", "dominated", "low-dimensional", "uniform",
	"heavy-tailed", "sparse"}

// Shapes are all shapes.
func Shapes() []Shape {
	all := make([]Shape, len(shapeNames))
	for i := range all {
		all[i] = Shape(i)
	}
	return all
}

// String returns the name of the shape of the vectors, as in reports.
func (s Shape) String() string { return shapeNames[s] }

// Spec describes the vectors to make. Queries are drawn from the same distribution, and are not among the vectors.
type Spec struct {
	Shape      Shape
	N, Queries int
	Dims       int
	Seed       uint64
	// Noise is the distance between a template and its copies, in lengths of the template; 0.1 by default. Other shapes
	// ignore it.
	Noise float32
	// Foreign queries are drawn around other centres than the vectors.
	Foreign bool
}

// Data is a set of vectors of length one, and queries for it.
type Data struct {
	Spec
	Vectors []float32 // N rows of Dims components
	Asked   []float32 // Queries rows

	mutex  sync.Mutex
	truths map[int][][]Neighbor
}

// Vector returns row i.
func (d *Data) Vector(i int) []float32 { return d.Vectors[i*d.Dims : (i+1)*d.Dims : (i+1)*d.Dims] }

// Query returns query i.
func (d *Data) Query(i int) []float32 { return d.Asked[i*d.Dims : (i+1)*d.Dims : (i+1)*d.Dims] }

// New makes data of given vectors of length one, and of queries for them.
func New(dims int, vectors, asked []float32) *Data {
	return &Data{Spec: Spec{N: len(vectors) / dims, Queries: len(asked) / dims, Dims: dims}, Vectors: vectors, Asked: asked,
		truths: map[int][][]Neighbor{}}
}

// made caches the data of this process: several tests and benchmarks search the same vectors.
var made sync.Map // of Spec to func() *Data

// Make makes the data of the spec, its generated vectors and queries. They are generated once in a process, and must
// not be changed.
func (s Spec) Make() *Data {
	once, _ := made.LoadOrStore(s, sync.OnceValue(s.generate))
	return once.(func() *Data)()
}

// perCluster is the number of vectors in a cluster: a set of twice the size has twice the clusters, and the same
// neighbourhoods. copies is the same for a template.
const (
	perCluster = 1000
	copies     = 100
)

func (s Spec) generate() *Data {
	if s.Dims < 2 || s.N < 1 || s.Queries < 0 {
		panic(fmt.Sprintf("knntest: no such vectors: %+v", s))
	}
	d := &Data{
		Spec: s, truths: map[int][][]Neighbor{},
		Vectors: make([]float32, s.N*s.Dims), Asked: make([]float32, s.Queries*s.Dims),
	}
	m := newMixture(s)
	asked := m
	if s.Foreign {
		asked = newMixture(s)
		asked.place(rand.New(rand.NewPCG(s.Seed, 0x666f726569676e)))
	}
	parallel(s.N+s.Queries, func(i int) {
		// Queries follow the vectors, so that they are separate draws.
		if i < s.N {
			m.draw(d.Vector(i), uint64(i))
		} else {
			asked.draw(d.Query(i-s.N), uint64(i))
		}
	})
	return d
}

// mixture is a distribution of vectors. A vector is the centre of a cluster plus a deviation, both in some directions
// of the space, turned by a rotation, plus noise, moved and scaled.
type mixture struct {
	Spec
	clusters int
	spread   []float32 // deviation within a cluster, for each direction
	apart    []float32 // deviation of the centres
	centres  []float32 // clusters rows of len(spread)
	rotation *kernel.Rotation
	noise    float32   // deviation of each component
	mean     []float32 // of all vectors
	scales   []float32 // of the components
	density  []float32 // of heavy-tailed clusters: the factor of their deviations; else nil
}

func newMixture(s Spec) *mixture {
	r := rand.New(rand.NewPCG(s.Seed, 0x63656e74726573))
	m := &mixture{
		Spec: s, clusters: max(8, s.N/perCluster), rotation: kernel.NewRotation(s.Dims, s.Seed^0x726f74617465),
		mean: make([]float32, s.Dims), scales: make([]float32, s.Dims),
	}
	for i := range m.scales {
		m.scales[i] = 1
	}
	switch s.Shape {
	case TextLike:
		m.textLike(r)
	case Copies, Duplicates:
		m.copies()
	case LowDimensional:
		m.normal(min(6, m.Dims), 0.005)
	case Uniform:
		m.normal(m.Dims, 0)
	case HeavyTailed:
		m.heavyTailed(r)
	default:
		m.clustered(r)
	}
	m.place(r)
	return m
}

// place chooses the centres.
func (m *mixture) place(r *rand.Rand) {
	m.centres = make([]float32, m.clusters*len(m.spread))
	for i := range m.centres {
		m.centres[i] = m.apart[i%len(m.spread)] * float32(r.NormFloat64())
	}
}

// clustered sets the parameters of clusters.
func (m *mixture) clustered(r *rand.Rand) {
	const inside = 40
	m.normal(min(m.Dims, inside), 0.3)
	copy(m.apart, m.spread)
	switch m.Shape {
	case Offset:
		// The squares of the lengths of centres, deviations and noise are a share of 0.23 together.
		length := math.Sqrt(0.77 / 0.23 * (2 + 0.3*0.3) * float64(len(m.spread)))
		for i := range m.mean {
			m.mean[i] = float32(length / math.Sqrt(float64(m.Dims)))
		}
	case Dominated:
		for range 4 {
			m.scales[r.IntN(m.Dims)] = 10
		}
	}
}

// normal sets the parameters of one normal distribution in some dimensions, with noise in all.
func (m *mixture) normal(dims int, noise float64) {
	m.spread, m.apart = make([]float32, dims), make([]float32, dims)
	for i := range m.spread {
		m.spread[i] = 1
	}
	m.noise = float32(noise * math.Sqrt(float64(dims)/float64(m.Dims)))
}

// copies sets the parameters of templates and their copies.
func (m *mixture) copies() {
	noise := m.Noise
	switch {
	case m.Shape == Duplicates:
		noise = 0
	case noise == 0:
		noise = 0.1
	}
	m.normal(m.Dims, 0)
	m.clusters = max(1, m.N/copies)
	for i := range m.spread {
		m.spread[i], m.apart[i] = noise, 1
	}
}

// textLike sets the parameters of vectors like embeddings of texts.
func (m *mixture) textLike(r *rand.Rand) {
	m.spread = make([]float32, min(m.Dims, 256))
	total := float32(0)
	for i := range m.spread {
		m.spread[i] = float32(math.Pow(float64(i+1), -0.57))
		total += m.spread[i] * m.spread[i]
	}
	m.noise = 0.2 * float32(math.Sqrt(float64(total)/float64(m.Dims)))
	size := float32(math.Sqrt(float64(total) / float64(m.Dims)))
	for i := range m.mean {
		m.mean[i] = 1.2 * size * float32(r.NormFloat64())
		m.scales[i] = float32(math.Exp(0.5 * r.NormFloat64()))
	}
	for range 3 { // components that are large in every vector
		m.mean[r.IntN(m.Dims)] = 20 * size
	}
	m.apart = m.spread
}

// heavyTailed sets the parameters of clusters of very different density.
func (m *mixture) heavyTailed(r *rand.Rand) {
	m.normal(min(m.Dims, 60), 0.02)
	for i := range m.spread {
		m.spread[i], m.apart[i] = 0.15, 1
	}
	m.density = make([]float32, m.clusters)
	for i := range m.density {
		m.density[i] = float32(math.Exp(1.5 * r.NormFloat64()))
	}
}

// cluster chooses a cluster.
func (m *mixture) cluster(r *rand.Rand) int {
	if m.Shape != HeavyTailed {
		return r.IntN(m.clusters)
	}
	// The size of a cluster falls with its number: the share of the first n of N is ln(n+1)/ln(N+1).
	return min(m.clusters-1, int(math.Pow(float64(m.clusters+1), r.Float64()))-1)
}

// sparse sets v to a set: of the usual components of a cluster each with a chance of two thirds, and some others.
func (m *mixture) sparse(v []float32, r *rand.Rand) {
	const usual, rare = 48, 8
	of := rand.New(rand.NewPCG(m.Seed, uint64(m.cluster(r))|1<<63))
	for range min(usual, m.Dims/2) {
		if at := of.IntN(m.Dims); r.IntN(3) > 0 {
			v[at] = 1
		}
	}
	for range rare {
		v[r.IntN(m.Dims)] = 1
	}
}

// draw sets v to the vector of a number.
func (m *mixture) draw(v []float32, number uint64) {
	r := rand.New(rand.NewPCG(m.Seed, number))
	clear(v)
	if m.Shape == Sparse {
		m.sparse(v, r)
		normalize(v)
		return
	}
	cluster := m.cluster(r)
	centre, deviation := m.centres[cluster*len(m.spread):], float32(1)
	if m.density != nil {
		deviation = m.density[cluster]
	}
	for i, s := range m.spread {
		v[i] = centre[i] + deviation*s*float32(r.NormFloat64())
	}
	m.rotation.Apply(v, v)
	for i := range v {
		v[i] = (v[i] + m.noise*float32(r.NormFloat64()) + m.mean[i]) * m.scales[i]
	}
	normalize(v)
}

// normalize scales v to the length one.
func normalize(v []float32) {
	scale := float32(1 / kernel.Norm(v))
	for i := range v {
		v[i] *= scale
	}
}

// parallel calls do with all numbers below n, on all processors.
func parallel(n int, do func(i int)) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	group.Wait()
}
