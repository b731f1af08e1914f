// Package topology sorts tasks topologically by their dependencies, and finds the strongly connected components of
// graphs.
package topology

import "slices"

// Order is a topological order of a graph of tasks, numbered from 0.
type Order struct {
	// Tasks are all tasks, each after its dependencies; within a layer by number.
	Tasks []int32
	// Layers are the same tasks by depth: layer 0 has no dependencies, and every task is one layer below its deepest
	// dependency. The tasks of one layer do not depend on each other. They share memory with Tasks.
	Layers [][]int32
}

// Sort orders the tasks topologically; needs[i] lists the dependencies of task i. It takes linear time. It returns false
// if the graph has a cycle.
func Sort(needs [][]int32) (Order, bool) {
	n := len(needs)
	left := make([]int32, n) // dependencies that are not yet ordered
	users := invert(needs)
	o := Order{Tasks: make([]int32, 0, n)}
	for i := range needs {
		left[i] = int32(len(needs[i]))
		if left[i] == 0 {
			o.Tasks = append(o.Tasks, int32(i))
		}
	}
	for start := 0; start < len(o.Tasks); {
		end := len(o.Tasks)
		for _, i := range o.Tasks[start:end] {
			for _, user := range users[i] {
				if left[user]--; left[user] == 0 {
					o.Tasks = append(o.Tasks, user)
				}
			}
		}
		slices.Sort(o.Tasks[end:])
		o.Layers = append(o.Layers, o.Tasks[start:end:end])
		start = end
	}
	return o, len(o.Tasks) == n
}

// invert lists, for every task, the tasks that depend on it. All lists share one array.
func invert(needs [][]int32) [][]int32 {
	counts := make([]int32, len(needs))
	total := 0
	for _, list := range needs {
		total += len(list)
		for _, to := range list {
			counts[to]++
		}
	}
	all := make([]int32, total)
	out := make([][]int32, len(needs))
	at := int32(0)
	for i, c := range counts {
		out[i] = all[at : at : at+c]
		at += c
	}
	for i, list := range needs {
		for _, to := range list {
			out[to] = append(out[to], int32(i))
		}
	}
	return out
}
