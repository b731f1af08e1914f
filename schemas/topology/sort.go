// Package topology orders tasks that need each other, and finds the strongly connected components of graphs.
package topology

import "slices"

// Order is a way through a graph of tasks, numbered from 0.
type Order struct {
	// Tasks are all tasks, each after those that it needs; of several that are free at once, the smaller number
	// first within a layer.
	Tasks []int32
	// Layers are the same tasks by depth: layer 0 needs nothing, and every task stands one layer below the deepest
	// that it needs. The tasks of one layer do not need each other. They share memory with Tasks.
	Layers [][]int32
}

// Sort orders the tasks; needs[i] lists what task i needs. It takes linear time. It returns false when tasks need each
// other in a circle.
func Sort(needs [][]int32) (Order, bool) {
	n := len(needs)
	left := make([]int32, n) // needs that are not yet ordered
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

// invert lists, for every task, the tasks that need it. All lists share one array.
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
