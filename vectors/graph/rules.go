package graph

import (
	"fmt"
	"slices"
	"strings"
)

// crossing is a way from a domain to a domain.
type crossing struct{ from, to Domain }

var (
	inCode    = []crossing{{Code, Code}}
	inHistory = []crossing{{History, History}}
	ofKind    = []crossing{{Code, Code}, {History, History}, {Academic, Academic}}
	mentions  = []crossing{
		{Code, Academic}, {Academic, Code},
		// Observations, questions and tasks refer to files, documents and records, and documents link to each other.
		{History, Code}, {History, History}, {History, Academic}, {Academic, Academic},
	}
)

// crossings are the ways that edges of a type may go.
var crossings = [][]crossing{
	Calls: inCode, Imports: inCode, Defines: inCode, Implements: inCode, Contains: ofKind,
	Follows: inHistory, Causes: inHistory, Resolves: inHistory, LedTo: inHistory,
	References: mentions, AppliesTo: {{Academic, Code}}, Documents: {{Academic, Code}}, Modified: {{History, Code}},
	UsedPattern: {{History, Academic}},
}

// allows reports whether edges of the type may lead from one domain to the other.
func (t EdgeType) allows(from, to Domain) bool {
	if int(t) >= len(crossings) {
		return false
	}
	return slices.Contains(crossings[t], (crossing{from, to}))
}

// allowed is for people: the ways that edges of the type may go, and the types that may go a way.
func (t EdgeType) allowed() string {
	var ways []string
	for _, c := range crossings[t] {
		ways = append(ways, fmt.Sprintf("%s to %s", c.from, c.to))
	}
	return strings.Join(ways, ", ")
}

func allowedBetween(from, to Domain) string {
	var types []string
	for t := Calls; int(t) < len(crossings); t++ {
		if t.allows(from, to) {
			types = append(types, t.String())
		}
	}
	if len(types) == 0 {
		return "none"
	}
	return strings.Join(types, ", ")
}

// CheckEdge says why an edge of the type cannot lead from one node to the other: nil if it can.
func CheckEdge(t EdgeType, from, to *Node) error {
	switch {
	case t == 0 || int(t) >= len(crossings):
		return fmt.Errorf("edge from %q to %q: %s is no type of edge", from.ID, to.ID, t)
	case !t.allows(from.Type.Domain(), to.Type.Domain()):
		f, d := from.Type.Domain(), to.Type.Domain()
		return fmt.Errorf("edge %s from %q (%s %s) to %q (%s %s): %s goes %s; from %s to %s go %s",
			t, from.ID, f, from.Type, to.ID, d, to.Type, t, t.allowed(), f, d, allowedBetween(f, d))
	case from.ID == to.ID && t != Calls:
		return fmt.Errorf("edge %s from %q to itself: only calls may lead back to where they are from", t, from.ID)
	}
	return nil
}

// CheckNode returns the error of a node that cannot be in a graph, because it has no id, an unknown type or invalid
// lines; nil if it can.
func CheckNode(n *Node) error {
	switch {
	case n.ID == "":
		return fmt.Errorf("a node of type %s (%s) has no id", n.Type, namedPlace(n))
	case n.Type.Domain() == 0:
		return fmt.Errorf("node %q is of no known type: %s", n.ID, n.Type)
	case n.Line < 0 || n.End < 0 || n.Line > maxCount || n.End > maxCount:
		return fmt.Errorf("node %q has lines %d to %d; they count from 1", n.ID, n.Line, n.End)
	}
	for _, label := range n.Labels {
		if label == "" || strings.Contains(label, labelEnd) {
			return fmt.Errorf("node %q has a label %q; labels are key=value", n.ID, label)
		}
	}
	return nil
}

// namedPlace returns the position of a node, for messages.
func namedPlace(n *Node) string {
	if n.Path == "" {
		return fmt.Sprintf("%s %q", n.Type, n.Name)
	}
	return fmt.Sprintf("%s %q in %s:%d", n.Type, n.Name, n.Path, n.Line)
}

func missingNode(e *Edge, id string) error {
	err := fmt.Errorf("edge %s from %q to %q: there is no node %q; add it, or leave the edge out", e.Type, e.From, e.To, id)
	if e.Source != "" {
		err = fmt.Errorf("%s: %w", e.Source, err)
	}
	return err
}
