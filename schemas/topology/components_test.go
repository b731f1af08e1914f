package topology_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"reconcile.dev/reconcile/schemas/topology"
)

// next walks over lists of successors.
func next(edges [][]uint32) topology.Next {
	return func(node uint32, at *int) (uint32, bool) {
		if *at >= len(edges[node]) {
			return 0, false
		}
		*at++
		return edges[node][*at-1], true
	}
}

// TestComponentsAgainstDefinition: two nodes are in one component if and only if each can be reached from the other one, and a
// component comes after those that it leads to; also when the searches are repeated with the same memory.
func TestComponentsAgainstDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		n := 1 + r.IntN(9)
		edges := make([][]uint32, n)
		for range r.IntN(3 * n) {
			from := r.IntN(n)
			edges[from] = append(edges[from], uint32(r.IntN(n)))
		}
		reach := reachable(edges)
		c := topology.NewComponents(n)
		for range 2 {
			of, components := make([]int, n), 0
			for root := range n {
				c.Search(uint32(root), next(edges), func(nodes []uint32) {
					components++
					for _, node := range nodes {
						of[node] = components
					}
				})
			}
			for a := range n {
				for b := range n {
					if together := reach[a][b] && reach[b][a]; of[a] == 0 || together != (of[a] == of[b]) || reach[a][b] && of[a] < of[b] {
						t.Fatalf("%v: components %v", edges, of)
					}
				}
				c.Forget(uint32(a))
			}
		}
	}
}

// reachable says for each two nodes whether one can be reached from the other (Warshall).
func reachable(edges [][]uint32) [][]bool {
	reach := make([][]bool, len(edges))
	for i := range edges {
		reach[i] = make([]bool, len(edges))
		reach[i][i] = true
		for _, to := range edges[i] {
			reach[i][to] = true
		}
	}
	for via := range reach {
		for from := range reach {
			for to := range reach {
				reach[from][to] = reach[from][to] || reach[from][via] && reach[via][to]
			}
		}
	}
	return reach
}

// TestLongChain: a chain of a million nodes, closed to a ring, is one component.
func TestLongChain(t *testing.T) {
	const n = 1_000_000
	var sizes []int
	c := topology.NewComponents(n)
	c.Search(0, func(node uint32, at *int) (uint32, bool) {
		*at++
		return (node + 1) % n, *at == 1
	}, func(nodes []uint32) { sizes = append(sizes, len(nodes)) })
	if !slices.Equal(sizes, []int{n}) {
		t.Errorf("components of %v nodes", sizes)
	}
}
