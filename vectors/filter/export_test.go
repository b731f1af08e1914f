package filter

import (
	"math"

	"reconcile.dev/reconcile/vectors/graph"
)

// Contains reports whether the domain has the key. If it does not say so, the domain has not.
func (s *Set) Contains(d graph.Domain, key uint64) bool {
	return d >= 1 && d <= domains && s.parts[d-1].has(key)
}

// Stats are the numbers of a domain.
type Stats struct {
	// Keys are those of when the set was built, Pending those that came since.
	Keys, Pending int
	// Bytes is what both take.
	Bytes int
	// FalsePositives is how often what is not there is taken for something that is: a part of 1, as expected.
	FalsePositives float64
}

// Stats are the numbers of each domain.
func (s *Set) Stats() map[graph.Domain]Stats {
	out := map[graph.Domain]Stats{}
	for _, d := range graph.Domains {
		p := &s.parts[d-1]
		st := Stats{Keys: int(p.keys), Bytes: len(p.built.Fingerprints)}
		right := 1.0
		if st.Keys > 0 {
			right -= 1.0 / 256
		}
		for _, l := range p.pending {
			st.Pending += int(l.keys)
			st.Bytes += len(l.blocks)
			right *= 1 - l.falsePositives()
		}
		st.FalsePositives = 1 - right
		out[d] = st
	}
	return out
}

// falsePositives: keys fall into blocks as in a Poisson distribution; a block with k keys has a bit set in a word with
// 1 - (31/32)^k.
func (l *layer) falsePositives() float64 {
	mean := float64(l.keys) / float64(len(l.blocks)/blockSize)
	sum, p := 0.0, math.Exp(-mean)
	for k := 1; k < 200; k++ {
		p *= mean / float64(k)
		sum += p * math.Pow(1-math.Pow(31.0/32, float64(k)), words)
	}
	return sum
}
