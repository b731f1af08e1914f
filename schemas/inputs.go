package schemas

// InputGlobs returns the globs of each node that declares inputs, by the node's name; nil when none does.
func (s *DAGSpec) InputGlobs() map[string][]string {
	var out map[string][]string
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if len(n.Inputs) == 0 {
			continue
		}
		if out == nil {
			out = map[string][]string{}
		}
		out[n.Name] = n.Inputs
	}
	return out
}
