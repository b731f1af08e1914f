package graph

import (
	"fmt"
	"slices"
	"strings"
)

// Domain is the domain of a node. The zero value is invalid.
type Domain uint8

// The domains.
const (
	Code     Domain = iota + 1 // the software: files and their declarations
	History                    // the work: sessions, tasks, decisions, observations and questions
	Academic                   // knowledge: documents, articles, practices
)

// Domains are all domains, in their order.
var Domains = []Domain{Code, History, Academic}

var domainNames = []string{Code: "code", History: "history", Academic: "academic"}

// NodeType is the type of a node. The zero value is invalid.
type NodeType uint8

// The types of nodes. Their numbers are in snapshots: new ones go to the end of the list.
const (
	File     NodeType = iota + 1 // a file of the work tree
	Function                     // a function
	Method                       // a method of a type
	Type                         // a type
	Package                      // a package, or a folder of sources
	Import                       // a third-party package, by its import path

	Session       // a session
	Workflow      // a workflow or pipeline
	DAG           // a DAG
	Task          // a node of a DAG, and its result
	Decision      // something that was decided
	Failure       // something that failed
	Pattern       // an approach that worked, or did not
	Observation   // something that an agent learned
	Clarification // a question and its answer

	Repo         // a third-party repository
	Doc          // a document, or a section of one
	Article      // an article or paper
	Concept      // an idea by its name
	BestPractice // how something is best done

	Constant // a constant
	Variable // a variable that a file declares
)

var nodeNames = []string{
	File: "file", Function: "function", Method: "method", Type: "type", Package: "package", Import: "import",
	Session: "session", Workflow: "workflow", DAG: "dag", Task: "task", Decision: "decision", Failure: "failure",
	Pattern: "pattern", Observation: "observation", Clarification: "clarification",
	Repo: "repo", Doc: "doc", Article: "article", Concept: "concept", BestPractice: "best_practice",
	Constant: "constant", Variable: "variable",
}

// EdgeType is the type of an edge. The zero value is invalid.
type EdgeType uint8

// The types of edges; [CheckEdge] says between which domains. Their numbers are in snapshots: new ones go to the
// end of the list.
const (
	// Structural: how code is made.
	Calls      EdgeType = iota + 1 // a function calls another
	Imports                        // a file or package imports a package
	Defines                        // a file defines a function, type, constant or variable
	Implements                     // a type implements an interface
	Contains                       // a whole has a part: a package its files, a document its sections, a DAG its tasks

	// Temporal: order and cause.
	Follows  // came after
	Causes   // is why the other happened
	Resolves // answers or repairs the other
	LedTo    // a decision led to an outcome

	// Between domains.
	References  // mentions or links to the other
	AppliesTo   // a practice holds for code
	Documents   // a document describes code
	Modified    // a session or task changed a file
	UsedPattern // a session or task went by a practice
)

var edgeNames = []string{
	Calls: "calls", Imports: "imports", Defines: "defines", Implements: "implements", Contains: "contains",
	Follows: "follows", Causes: "causes", Resolves: "resolves", LedTo: "led_to",
	References: "references", AppliesTo: "applies_to", Documents: "documents", Modified: "modified",
	UsedPattern: "used_pattern",
}

// Node is something that can be found.
type Node struct {
	// ID is unique in a graph, and is what people type: "session/login" (kind and name of an object), "dag/build:test"
	// (a node of a DAG), "clarification/CLR-20260102-…", "observation/obs-…", "state/tree.go" (a file),
	// "state/tree.go:Tree.Entry" (a symbol), "state/" (a package), "import:fmt", "docs/git.md#sharing-a-branch" (a
	// section).
	ID   string
	Type NodeType
	// Name is short and for people: Tree.Entry, a heading, the name of an object.
	Name string
	// Path is its file: a slash path below the root of the tree. "" if it has no file.
	Path string
	// Line and End are its first and last line in the file, from 1. 0 if unknown.
	Line, End int
	// Digest is the xxhash64 of its source.
	Digest uint64
	// Labels are "key=value", sorted: kind=dag, issue=42, agent=architect, lang=go, category=decision.
	Labels []string
	// At is the time of the event, in Unix seconds, from the files; 0 if unknown.
	At int64
}

// Edge is a relation from one node to another. From, To, Type and Source identify it: of two equal edges the heavier
// is kept.
type Edge struct {
	From, To string // ids of nodes
	Type     EdgeType
	// Weight is the strength of the relation, above 0 up to 1. 0 means 1.
	Weight float32
	// Source is the path of the file that states the edge. "" if it is derived from the source of From; then it is
	// removed when From is removed or replaced.
	Source string
}

// Item is a node with the text that it is found by.
type Item struct {
	Node
	// Title is a name with signature, a heading, a summary: what says most.
	Title string
	// Body is the text: a doc comment, a section, an observation; at most MaxBody bytes.
	Body string
}

// MaxBody is the maximum length of the text of an item; longer texts are not prose.
const MaxBody = 1 << 20

// Provenance is a stated origin of a node, with the confidence in it.
type Provenance struct {
	ID         string // its name
	Node       string // id of the node
	SourceType string // file, commit, review, url, agent: what SourceID is
	SourceID   string
	// Confidence is how sure that is, in thousandths: 0 to 1000.
	Confidence uint16
	// VerifiedAt is when Verifier verified it, in Unix seconds; 0 and "" if it is not verified.
	VerifiedAt int64
	Verifier   string
	// Source is the path of the file that states it.
	Source string
}

// Conflict is a stated contradiction between two nodes.
type Conflict struct {
	ID         string // its name
	A, B       string // ids of the nodes
	Type       string // contradiction, supersession, duplicate: the kind of the problem
	DetectedAt int64  // Unix seconds
	// Resolution is how it ended, and ResolvedAt when, in Unix seconds; "" and 0 if it did not.
	Resolution string
	ResolvedAt int64
	// Source is the path of the file that states it.
	Source string
}

// Domain returns the domain of nodes of the type; 0 for an invalid type.
func (t NodeType) Domain() Domain {
	switch {
	case t >= File && t <= Import, t == Constant, t == Variable:
		return Code
	case t >= Session && t <= Clarification:
		return History
	case t >= Repo && t <= BestPractice:
		return Academic
	}
	return 0
}

// IsSymbol reports whether the node type is a symbol of code: function, method, type, constant or variable.
func (t NodeType) IsSymbol() bool {
	switch t {
	case Function, Method, Type, Constant, Variable:
		return true
	}
	return false
}

// Types are the types of nodes of the domain.
func (d Domain) Types() []NodeType {
	var out []NodeType
	for t := File; int(t) < len(nodeNames); t++ {
		if t.Domain() == d {
			out = append(out, t)
		}
	}
	return out
}

// EdgeTypes are all types of edges.
func EdgeTypes() []EdgeType {
	var out []EdgeType
	for t := Calls; int(t) < len(edgeNames); t++ {
		out = append(out, t)
	}
	return out
}

// String returns the name of the domain: code, history or academic.
func (d Domain) String() string { return nameOf(domainNames, d) }

// String returns the name of the node type in snake case, as best_practice.
func (t NodeType) String() string { return nameOf(nodeNames, t) }

// String returns the name of the edge type in snake case, as led_to.
func (t EdgeType) String() string { return nameOf(edgeNames, t) }

// ParseDomain is the domain of that name.
func ParseDomain(name string) (Domain, error) { return parseName[Domain](domainNames, "domain", name) }

// ParseNodeType is the type of nodes of that name.
func ParseNodeType(name string) (NodeType, error) {
	return parseName[NodeType](nodeNames, "type of node", name)
}

// ParseEdgeType is the type of edges of that name.
func ParseEdgeType(name string) (EdgeType, error) {
	return parseName[EdgeType](edgeNames, "type of edge", name)
}

func nameOf[T ~uint8](names []string, value T) string {
	if value == 0 || int(value) >= len(names) {
		return fmt.Sprintf("unknown(%d)", value)
	}
	return names[value]
}

func parseName[T ~uint8](names []string, what, name string) (T, error) {
	if i := slices.Index(names[1:], name); i >= 0 {
		return T(i + 1), nil
	}
	return 0, fmt.Errorf("%q is no %s; write one of %s", name, what, strings.Join(names[1:], ", "))
}

// mask is a set of types.
type mask uint64

func (m mask) has(t byte) bool { return m>>(t&63)&1 != 0 }

// maskOf returns the set of the types; all if types is empty.
func maskOf[T ~uint8](types []T) mask {
	if len(types) == 0 {
		return ^mask(0)
	}
	m := mask(0)
	for _, t := range types {
		m |= 1 << (t & 63)
	}
	return m
}
