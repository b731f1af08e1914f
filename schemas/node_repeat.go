package schemas

import "slices"

// Repeat has a node, and those on the ways to it from an earlier one, run again until its result is good.
type Repeat struct {
	// Until is an expression like when, which also sees the result of the node itself, as result. Where it is false after a
	// success, the next round begins.
	Until string `json:"until" jsonschema:"minLength=1,maxLength=2000"`
	// From is the node at which a round begins: it, and all nodes on the ways from it to this one, run again. Default: this node.
	From string `json:"from,omitempty" jsonschema:"maxLength=63"`
	// Max bounds the rounds. After as many, the node fails.
	Max int `json:"max,omitempty" jsonschema:"minimum=1,maximum=100,default=3"`
}

// Loop is the nodes that run again together, by position: the one that repeats, and all of them.
type Loop struct {
	Node    int32
	Members []int32
}

// Loops returns the loops of the nodes, in their order; nil for none. Unknown names are left out.
func (s *DAGSpec) Loops() []Loop {
	var out []Loop
	var index map[string]int32
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Repeat == nil {
			continue
		}
		if n.Repeat.From == "" || n.Repeat.From == n.Name {
			out = append(out, Loop{int32(i), []int32{int32(i)}})
			continue
		}
		if index == nil {
			index = make(map[string]int32, len(s.Nodes))
			for k := range s.Nodes {
				index[s.Nodes[k].Name] = int32(k)
			}
		}
		if from, ok := index[n.Repeat.From]; ok {
			w := ways{s, index, map[int32]bool{from: true}}
			if w.reach(int32(i)) {
				out = append(out, Loop{int32(i), w.members()})
			}
		}
	}
	return out
}

// ways finds the nodes on the ways between two.
type ways struct {
	spec  *DAGSpec
	index map[string]int32
	on    map[int32]bool // whether a way leads from the first node to this one
}

// reach reports whether a way leads to a node. In a circle it ends.
func (w ways) reach(to int32) bool {
	if on, known := w.on[to]; known {
		return on
	}
	w.on[to] = false
	for _, need := range w.spec.Nodes[to].Needs {
		if i, ok := w.index[need]; ok && w.reach(i) {
			w.on[to] = true
		}
	}
	return w.on[to]
}

func (w ways) members() []int32 {
	var out []int32
	for i, on := range w.on {
		if on {
			out = append(out, i)
		}
	}
	slices.Sort(out)
	return out
}

// checkRepeats reports rounds that begin nowhere, loops that share nodes, and bad expressions.
func (s *DAGSpec) checkRepeats(r *Report) {
	repeats := false
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Repeat == nil {
			continue
		}
		repeats = true
		at := r.At("nodes", i, "repeat")
		names := s.scope(n)
		names.Result = true
		checkExpression(at.At("until"), n.Repeat.Until, names, "result.ok == true")
		if n.Repeat.From != "" && s.Node(n.Repeat.From) == nil {
			at.At("from").Errorf("unknown-need", "there is no node called %q", n.Repeat.From)
		}
	}
	if repeats {
		s.checkLoops(r)
	}
}

func (s *DAGSpec) checkLoops(r *Report) {
	loops := s.Loops()
	in := map[int32]int32{} // the node that repeats, by member
	for _, l := range loops {
		at := r.At("nodes", int(l.Node), "repeat")
		for _, m := range l.Members {
			if first, ok := in[m]; ok {
				at.Errorf("conflict", "node %q would be in the loops of both %q and %q", s.Nodes[m].Name, s.Nodes[first].Name,
					s.Nodes[l.Node].Name).suggest("let the loops have no node in common").also("the other one", "nodes", int(first), "repeat")
				break
			}
			in[m] = l.Node
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Repeat == nil || slices.ContainsFunc(loops, func(l Loop) bool { return l.Node == int32(i) }) || s.Node(n.Repeat.From) == nil {
			continue
		}
		r.At("nodes", i, "repeat", "from").Errorf("bad-loop", "no way leads from %q to %q by needs", n.Repeat.From, n.Name).
			suggest("name a node that this one needs, directly or through others")
	}
}
