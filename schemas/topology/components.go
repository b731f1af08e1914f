package topology

// Next returns the successor of a node at a position, which it advances; false after the last one. Positions begin with
// 0; their other values are up to the function.
type Next func(node uint32, at *int) (to uint32, ok bool)

// Components finds strongly connected components: maximal groups of nodes that can all be reached from each other. It is
// Tarjan's algorithm ("Depth-first search and linear graph algorithms", 1972) with an explicit stack, so that a long
// chain does not recurse deeply. It takes linear time. Later searches reuse its memory; it is not safe for concurrent
// use.
type Components struct {
	number, low []uint32 // by node; number: 0 before the node is visited, done once its component is known
	visited     uint32
	open        []uint32 // visited, component not yet known
	stack       []step
}

type step struct {
	node uint32
	at   int
}

const done = 1<<32 - 1

// NewComponents returns a search for the strongly connected components of a graph whose n nodes have the numbers from 0 to
// n-1.
func NewComponents(n int) *Components {
	return &Components{number: make([]uint32, n), low: make([]uint32, n)}
}

// Forget resets the number of a node, so that the search for components sees it as not visited.
func (c *Components) Forget(node uint32) { c.number[node] = 0 }

// Search visits the nodes that can be reached from root, except those that were visited before, and calls found with each
// complete component, successors first. found must not keep the slice.
func (c *Components) Search(root uint32, next Next, found func(component []uint32)) {
	if c.number[root] != 0 {
		return
	}
	c.stack = append(c.stack[:0], c.visit(root))
	for len(c.stack) > 0 {
		top := &c.stack[len(c.stack)-1]
		node := top.node
		if to, ok := next(node, &top.at); ok {
			switch n := c.number[to]; n {
			case 0:
				c.stack = append(c.stack, c.visit(to))
			case done:
			default:
				c.low[node] = min(c.low[node], n)
			}
			continue
		}
		c.stack = c.stack[:len(c.stack)-1]
		if len(c.stack) > 0 {
			up := c.stack[len(c.stack)-1].node
			c.low[up] = min(c.low[up], c.low[node])
		}
		if c.low[node] == c.number[node] {
			c.close(node, found)
		}
	}
	c.visited = 0 // all visited nodes are done
}

func (c *Components) visit(node uint32) step {
	c.visited++
	c.number[node], c.low[node] = c.visited, c.visited
	c.open = append(c.open, node)
	return step{node: node}
}

// close pops the component of its first node from the open ones.
func (c *Components) close(first uint32, found func([]uint32)) {
	from := len(c.open) - 1
	for c.open[from] != first {
		from--
	}
	component := c.open[from:]
	for _, node := range component {
		c.number[node] = done
	}
	c.open = c.open[:from]
	found(component)
}
