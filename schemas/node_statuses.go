package schemas

import (
	"bytes"
	"encoding/json"
	"iter"
	"maps"
	"slices"

	quick "github.com/segmentio/encoding/json"
)

// NodeStatuses are the statuses of nodes by name. They are immutable: With returns others, and both share the unchanged
// ones, so that a change of one of many nodes costs little. nil is empty. In JSON they are an object.
type NodeStatuses struct {
	names  []string        // sorted
	blocks [][]*NodeStatus // by position in names, blockLength in each block but the last
}

const blockLength = 128

// newNodeStatuses returns the statuses of nodes by their names, which are sorted. It keeps both slices: the caller must not change them.
func newNodeStatuses(names []string, statuses []*NodeStatus) *NodeStatuses {
	if len(names) == 0 {
		return nil
	}
	return &NodeStatuses{names, slices.Collect(slices.Chunk(statuses, blockLength))}
}

// NodeStatusesOf returns the statuses of a map.
func NodeStatusesOf(byName map[string]NodeStatus) *NodeStatuses {
	names := slices.Sorted(maps.Keys(byName))
	all, statuses := make([]NodeStatus, len(names)), make([]*NodeStatus, len(names))
	for i, name := range names {
		all[i] = byName[name]
		statuses[i] = &all[i]
	}
	return newNodeStatuses(names, statuses)
}

// Next returns the statuses of nodes by their names, which are sorted, as [newNodeStatuses] does. It shares with n the unchanged
// statuses, and is n itself if all are.
func (n *NodeStatuses) Next(names []string, statuses []*NodeStatus) *NodeStatuses {
	out := newNodeStatuses(names, statuses)
	if n == nil || out == nil || !slices.Equal(n.names, names) {
		return out
	}
	out.names = n.names
	all := true
	for b, block := range out.blocks {
		if slices.Equal(block, n.blocks[b]) {
			out.blocks[b] = n.blocks[b]
		} else {
			all = false
			out.blocks[b] = slices.Clone(block) // so that what it shares with statuses is not kept
		}
	}
	if all {
		return n
	}
	return out
}

// With returns n with the statuses of some of its nodes replaced.
func (n *NodeStatuses) With(changed iter.Seq2[string, *NodeStatus]) *NodeStatuses {
	out := &NodeStatuses{n.names, slices.Clone(n.blocks)}
	for name, s := range changed {
		i, ok := slices.BinarySearch(n.names, name)
		if !ok {
			continue
		}
		block := &out.blocks[i/blockLength]
		if sameArray(*block, n.blocks[i/blockLength]) {
			*block = slices.Clone(*block)
		}
		(*block)[i%blockLength] = s
	}
	return out
}

// Len counts the nodes.
func (n *NodeStatuses) Len() int {
	if n == nil {
		return 0
	}
	return len(n.names)
}

// Find returns the status of a node, which callers must not change; nil for an unknown one.
func (n *NodeStatuses) Find(name string) *NodeStatus {
	if n == nil {
		return nil
	}
	i, ok := slices.BinarySearch(n.names, name)
	if !ok {
		return nil
	}
	return n.blocks[i/blockLength][i%blockLength]
}

// Of returns the status of a node; the zero status for an unknown one.
func (n *NodeStatuses) Of(name string) NodeStatus {
	if s := n.Find(name); s != nil {
		return *s
	}
	return NodeStatus{}
}

// All yields the nodes in the order of their names, with their statuses, which callers must not change.
func (n *NodeStatuses) All() iter.Seq2[string, *NodeStatus] {
	return func(yield func(string, *NodeStatus) bool) {
		for i := range n.Len() {
			if !yield(n.names[i], n.blocks[i/blockLength][i%blockLength]) {
				return
			}
		}
	}
}

// Since yields the names of the nodes of n whose statuses n does not share with former, which may be nil. They may be equal
// all the same.
func (n *NodeStatuses) Since(former *NodeStatuses) iter.Seq[string] {
	return func(yield func(string) bool) {
		if n == nil || n == former {
			return
		}
		shares := former != nil && slices.Equal(n.names, former.names)
		for b, block := range n.blocks {
			if shares && sameArray(block, former.blocks[b]) {
				continue
			}
			for i, s := range block {
				if (!shares || s != former.blocks[b][i]) && !yield(n.names[b*blockLength+i]) {
					return
				}
			}
		}
	}
}

// Same reports whether the nodes have the same names and the same statuses by a comparison, which is not asked about what n and
// other share.
func (n *NodeStatuses) Same(other *NodeStatuses, same func(a, b *NodeStatus) bool) bool {
	if n == other || n.Len() == 0 && other.Len() == 0 {
		return true
	}
	if n == nil || other == nil || !slices.Equal(n.names, other.names) {
		return false
	}
	return slices.EqualFunc(n.blocks, other.blocks, func(a, b []*NodeStatus) bool {
		return sameArray(a, b) || slices.EqualFunc(a, b, func(a, b *NodeStatus) bool { return a == b || same(a, b) })
	})
}

// sameArray reports whether two slices, neither of them empty, begin at the same element.
func sameArray[T any](a, b []T) bool { return &a[0] == &b[0] }

// MarshalJSON encodes the nodes as an object, sorted by names.
func (n *NodeStatuses) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // whoever encodes the whole decides about that
	err := enc.Encode(maps.Collect(n.All()))
	return b.Bytes(), err
}

// UnmarshalJSON decodes an object.
func (n *NodeStatuses) UnmarshalJSON(data []byte) error {
	all, ok := sortedNodes(bytes.Clone(data))
	if !ok {
		byName := map[string]NodeStatus{}
		if err := json.Unmarshal(data, &byName); err != nil {
			return err
		}
		all = NodeStatusesOf(byName)
	}
	*n = NodeStatuses{}
	if all != nil {
		*n = *all
	}
	return nil
}

// sortedNodes decodes an object whose keys are sorted, as MarshalJSON writes them, without a map in between. It returns false for
// any other one. The strings are parts of data.
func sortedNodes(data []byte) (*NodeStatuses, bool) {
	room := bytes.Count(data, []byte(`"state":`))
	names, all := make([]string, 0, room), make([]NodeStatus, 0, room)
	next, ok := data, true // the separator before a name
	for sep := byte('{'); ok && !startsWith(next, '}'); sep = ',' {
		names, all = append(names, ""), append(all, NodeStatus{})
		last := len(names) - 1
		if next, ok = parseAfter(next, sep, &names[last]); ok {
			next, ok = parseAfter(next, ':', &all[last])
		}
		if last > 0 && names[last] <= names[last-1] {
			return nil, false
		}
	}
	statuses := make([]*NodeStatus, len(all))
	for i := range all {
		statuses[i] = &all[i]
	}
	return newNodeStatuses(names, statuses), ok
}

// parseAfter decodes the JSON value after a separator, a string or an object, into v, and returns what follows it; false for something
// else. The decoder looks at all that it is given first, so it is given a part that holds most values: a longer one is decoded again.
func parseAfter[T any](data []byte, sep byte, v *T) (rest []byte, ok bool) {
	if !startsWith(data, sep) {
		return nil, false
	}
	data = data[1:]
	for most := 512; ; most *= 2 {
		part := data[:min(most, len(data))]
		rest, err := quick.Parse(part, v, quick.ZeroCopy)
		if err == nil || len(part) == len(data) {
			return bytes.TrimLeft(data[len(part)-len(rest):], " \t\r\n"), err == nil
		}
		*v = *new(T)
	}
}

func startsWith(data []byte, c byte) bool { return len(data) > 0 && data[0] == c }
