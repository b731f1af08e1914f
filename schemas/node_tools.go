package schemas

import (
	"regexp"
	"sync"
)

// toolName is the name of a program, without a folder, a blank or an argument: a spec must not say what is run to ask for a version.
var toolName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,62}$`) })

// checkTools reports tools that are no names of programs, or occur twice.
func (n *Node) checkTools(at Spot) {
	seen := map[string]bool{}
	for i, name := range n.Tools {
		switch {
		case !toolName().MatchString(name):
			at.At(i).Errorf("bad-tool", "%q is no name of a program", name).
				suggest("write the name as on the PATH, such as go; without a folder and arguments")
		case seen[name]:
			at.At(i).Errorf("duplicate", "%s is here twice", name).suggest("remove one of them")
		}
		seen[name] = true
	}
}

// toolNames returns the programs whose versions the nodes declare, each once; nil when none does.
func (s *DAGSpec) toolNames() []string {
	var out []string
	seen := map[string]bool{}
	for i := range s.Nodes {
		for _, name := range s.Nodes[i].Tools {
			if !seen[name] {
				seen[name] = true
				out = append(out, name)
			}
		}
	}
	return out
}

// ToolsOf returns the programs whose versions an object's nodes declare. It searches the canonical form first: most objects have none
// and need not be decoded.
func ToolsOf(o *Object) []string {
	if o == nil || o == o.Declared() && !o.Mentions(MarkTools) {
		return nil
	}
	if s, ok := o.Spec().(*DAGSpec); ok {
		return s.toolNames()
	}
	return nil
}
