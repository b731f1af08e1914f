package knn

import (
	"errors"
	"fmt"
	"math"
	"runtime"
)

// maxDims is how many dimensions vectors may have.
const maxDims = 4096

// maxVectors is how many slots an index may have.
const maxVectors = 1 << 31

// Limits of the options.
const (
	maxLinks = 128
	maxEf    = 1 << 16
	// graphDims is from how many dimensions on a graph is worth it. With fewer, codes are too coarse to lead a walk
	// through many vectors, and an exact scan is fast.
	graphDims = 32
)

// What a vector or an item is refused for. The errors that are returned wrap them and say which one it is.
var (
	errDims      = errors.New("the vector has another number of dimensions than the index")
	errNotFinite = errors.New("the vector has a component that is not a finite number")
	ErrZero      = errors.New("the vector is zero, which has no direction")
	ErrTwice     = errors.New("two items have the same ID")
	errFull      = fmt.Errorf("the index has no room beyond %d vectors", maxVectors)
)

// Options configure how an index is built. Zero values mean the defaults.
type Options struct {
	// Dims is the length of all vectors, 768 by default, at most maxDims.
	Dims int
	// M is the number of links that a new vector gets in the graph; at most 2*M are kept at the lowest level. 16 by
	// default, 2 to 128.
	M int
	// EfConstruction is how many candidates links are chosen from, 144 by default.
	EfConstruction int
	// EfSearch is how many candidates a search keeps; EfThorough the same for thorough ones. By default a build measures on
	// some of the vectors how many it takes, see [Index.Efforts].
	EfSearch, EfThorough int
	// GraphFrom is from how many vectors on there is a graph; fewer are in lists. 50,000 by default.
	GraphFrom int
	// Threads is the number of goroutines that build and link, by default the number of processors. The result does
	// not depend on it.
	Threads int
}

// Defaults of the options. DefaultEfSearch and DefaultEfThorough are the least that a build chooses.
const (
	DefaultDims           = 768
	DefaultM              = 16
	DefaultEfConstruction = 144
	DefaultEfSearch       = 64
	DefaultEfThorough     = 192
	DefaultGraphFrom      = 50_000
)

func (o Options) withDefaults() (Options, error) {
	fields := []struct {
		name          string
		value         *int
		standard      int
		lowest, above int
	}{
		{"Dims", &o.Dims, DefaultDims, 1, maxDims},
		{"M", &o.M, DefaultM, 2, maxLinks},
		{"EfConstruction", &o.EfConstruction, DefaultEfConstruction, 1, maxEf},
		{"EfSearch", &o.EfSearch, 0, 0, maxEf},
		{"EfThorough", &o.EfThorough, 0, 0, maxEf},
		{"GraphFrom", &o.GraphFrom, DefaultGraphFrom, 1, math.MaxInt},
		{"Threads", &o.Threads, runtime.GOMAXPROCS(0), 1, math.MaxInt},
	}
	for _, f := range fields {
		if *f.value == 0 {
			*f.value = f.standard
		}
		if *f.value < f.lowest || *f.value > f.above {
			return o, fmt.Errorf("options of the vector index: %s is %d: give %d to %d", f.name, *f.value, f.lowest, f.above)
		}
	}
	return o, nil
}

// Item is a vector with its ID. The index copies the vector.
type Item struct {
	ID     uint64
	Vector []float32
}

// complete fills in the defaults.
func (x *Index) complete(v *vectorView, o SearchOptions) SearchOptions {
	if o.K <= 0 {
		o.K = DefaultK
	}
	if o.Ef <= 0 {
		o.Ef = x.effort(v, o.Thorough)
		o.reach = x.reach(v, o)
	}
	o.K = min(o.K, max(1, v.len()))
	o.Ef = min(max(o.Ef, o.K), max(1, v.len()))
	return o
}
