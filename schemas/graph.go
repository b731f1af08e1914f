package schemas

import (
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas/topology"
)

// task is what nodes of a DAG and steps of a workflow have in common: a name, and the names that it needs.
type task struct {
	name  string
	needs []string
}

// graphWords say how a kind calls its tasks, in fields and in messages.
type graphWords struct {
	list string // "nodes"
	name string // field of the name: "name"
	noun string // "node"
}

// checkGraph reports duplicate names and needs, needs that do not exist, and cycles. It takes linear time.
func checkGraph(r *Report, w graphWords, tasks []task) {
	index := make(map[string]int, len(tasks))
	for i, t := range tasks {
		if first, ok := index[t.name]; ok {
			r.At(w.list, i, w.name).Errorf("duplicate-name", "a %s called %q exists already", w.noun, t.name).
				also("the first one", w.list, first, w.name)
			continue
		}
		index[t.name] = i
	}
	g := graph{words: w, tasks: tasks, edges: make([][]edge, len(tasks))}
	for i := range tasks {
		g.edges[i] = checkNeeds(r, w, tasks, index, i)
	}
	for _, cycle := range g.cycles() {
		g.report(r, cycle)
	}
}

// edge is one entry of needs that is right.
type edge struct{ to, at int } // index of the needed task; index within needs

func checkNeeds(r *Report, w graphWords, tasks []task, index map[string]int, i int) []edge {
	t := tasks[i]
	edges := make([]edge, 0, len(t.needs))
	var seen map[string]int
	if len(t.needs) > 1 {
		seen = make(map[string]int, len(t.needs))
	}
	for j, need := range t.needs {
		to, ok := index[need]
		first, dup := seen[need]
		switch {
		case dup:
			r.At(w.list, i, "needs", j).Errorf("duplicate-need", "%q is needed twice", need).
				also("the first time", w.list, i, "needs", first)
			continue
		case need == t.name:
			r.At(w.list, i, "needs", j).Errorf("self-need", "%s %q needs itself", w.noun, need)
		case !ok:
			f := r.At(w.list, i, "needs", j).Errorf("unknown-need", "there is no %s called %q", w.noun, need)
			if len(r.findings) <= maxProblems { // more are not reported, and each search compares all names
				f.near(need, otherCycles(tasks, i))
			}
		default:
			edges = append(edges, edge{to, j})
		}
		if seen != nil {
			seen[need] = j
		}
	}
	return edges
}

// otherCycles lists names that task i could need. Past a thousand the search would cost more than the hint is worth.
func otherCycles(tasks []task, i int) []string {
	const most = 1000
	var out []string
	for j, t := range tasks[:min(len(tasks), most)] {
		if j != i {
			out = append(out, t.name)
		}
	}
	return out
}

type graph struct {
	words graphWords
	tasks []task
	edges [][]edge
}

// cycles returns one cycle for each strongly connected component: of tasks that need each other: a shortest one
// through the task with the smallest name, as indices of tasks, starting there. Components come in the order of those names.
func (g *graph) cycles() [][]int {
	var out [][]int
	component := g.components()
	first := map[int]int{} // component -> task with the smallest name
	size := map[int]int{}
	for i, k := range component {
		size[k]++
		if f, ok := first[k]; !ok || g.tasks[i].name < g.tasks[f].name {
			first[k] = i
		}
	}
	for k, start := range first {
		if size[k] > 1 {
			out = append(out, g.shortest(start, component))
		}
	}
	slices.SortFunc(out, func(a, b []int) int { return strings.Compare(g.tasks[a[0]].name, g.tasks[b[0]].name) })
	return out
}

// shortest finds the cycle by breadth-first search inside the component of start.
func (g *graph) shortest(start int, component []int) []int {
	from := map[int]int{}
	queue := []int{start}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		for _, e := range g.edges[i] {
			if e.to == start {
				return traceCycle(from, start, i)
			}
			if _, seen := from[e.to]; !seen && component[e.to] == component[start] {
				from[e.to] = i
				queue = append(queue, e.to)
			}
		}
	}
	return nil // not reached: every task of a component is on a cycle through every other
}

func traceCycle(from map[int]int, start, last int) []int {
	var path []int
	for i := last; i != start; i = from[i] {
		path = append(path, i)
	}
	path = append(path, start)
	slices.Reverse(path)
	return path
}

// report names the whole cycle, at the first task's need, with the place of every other need in it.
func (g *graph) report(r *Report, cycle []int) {
	const most = 20 // a longer cycle is shortened in the message; its places are all there
	names := make([]string, 0, len(cycle)+1)
	for _, i := range cycle {
		names = append(names, g.tasks[i].name)
	}
	names = append(names, names[0])
	if len(names) > most {
		left := fmt.Sprintf("… %d more …", len(names)-most)
		names = slices.Concat(names[:most/2], []string{left}, names[len(names)-most/2:])
	}
	var f *Finding
	for k, i := range cycle {
		to := cycle[(k+1)%len(cycle)]
		at := g.edges[i][slices.IndexFunc(g.edges[i], func(e edge) bool { return e.to == to })].at
		if f == nil {
			f = r.At(g.words.list, i, "needs", at).
				Errorf("cycle", "the %ss need each other in a circle: %s", g.words.noun, strings.Join(names, " -> "))
			continue
		}
		f.also(fmt.Sprintf("%s needs %s", g.tasks[i].name, g.tasks[to].name), g.words.list, i, "needs", at)
	}
}

// components numbers the strongly connected components.
func (g *graph) components() []int {
	component, count := make([]int, len(g.tasks)), 0
	c := topology.NewComponents(len(g.tasks))
	for i := range g.tasks {
		c.Search(uint32(i), g.next, func(nodes []uint32) {
			for _, node := range nodes {
				component[node] = count
			}
			count++
		})
	}
	return component
}

func (g *graph) next(i uint32, at *int) (uint32, bool) {
	if *at >= len(g.edges[i]) {
		return 0, false
	}
	*at++
	return uint32(g.edges[i][*at-1].to), true
}
