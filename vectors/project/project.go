// Package project makes nodes, edges and texts of the objects of a tree: sessions, workflows, DAGs, their nodes with
// results, questions with their answers, and observations of agents. It is a pure function of the tree: each object
// makes a separate part, so that only changed objects are processed again.
//
// Objects are named by kind and name ("session/login"), a node of a DAG by DAG and name ("dag/checks:build"),
// observations by their id ("observation/obs-…").
package project

import (
	"cmp"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/source"
)

// Kinds are the kinds of objects that are indexed.
var Kinds = []string{
	schemas.SessionKind.Name, schemas.WorkflowKind.Name, schemas.DAGKind.Name, schemas.ClarificationRequestKind.Name,
}

// Entry makes the part of an object; an empty one for other kinds and for objects without a usable spec. text is the
// object's file, used to find the lines of the nodes of a DAG; without it they are at the first line.
func Entry(e *state.Entry, text []byte) graph.Part {
	if e.Object == nil {
		return graph.Part{}
	}
	b := &builder{entry: e, id: e.Ref.String(), text: text}
	switch spec := e.Object.Spec().(type) {
	case *schemas.SessionSpec:
		b.session(spec)
	case *schemas.WorkflowSpec:
		b.workflow(spec)
	case *schemas.DAGSpec:
		b.dag(spec)
	case *schemas.ClarificationRequestSpec:
		b.addRequest(spec)
	}
	return b.Part
}

type builder struct {
	graph.PartBuilder
	entry *state.Entry
	id    string
	text  []byte
}

// node is the node of the object itself.
func (b *builder) node(t graph.NodeType, at schemas.Time, more ...string) graph.Node {
	n := graph.Node{ID: b.id, Type: t, Name: b.entry.Name, Path: b.entry.Object.Path, Line: 1, Labels: b.labels(more...)}
	if !at.IsZero() {
		n.At = at.Unix()
	}
	return n
}

// labels are those of the object and some more, given in pairs; pairs without a value are left out.
func (b *builder) labels(pairs ...string) []string {
	out := labels(append(pairs, "kind", strings.ToLower(b.entry.Kind))...)
	for _, k := range slices.Sorted(maps.Keys(b.entry.Object.Metadata.Labels)) {
		out = append(out, k+"="+b.entry.Object.Metadata.Labels[k])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func labels(pairs ...string) []string {
	var out []string
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out = append(out, pairs[i]+"="+pairs[i+1])
		}
	}
	slices.Sort(out)
	return out
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func phase(s schemas.Status) string {
	if s == nil {
		return ""
	}
	return s.Base().Phase
}

func (b *builder) session(s *schemas.SessionSpec) {
	b.Add(graph.Item{
		Node:  b.node(graph.Session, schemas.Time{}, "issue", number(s.Issue), "owner", s.Owner, "phase", phase(b.entry.Status())),
		Title: cmp.Or(s.Title, b.entry.Name), Body: lines(s.Description, s.Branch, values(s.Metadata)),
	})
}

// values are the texts in free metadata, in the order of their keys.
func values(m map[string]any) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		text, ok := m[k].(string)
		if !ok {
			data, err := json.Marshal(m[k])
			if err != nil {
				continue
			}
			text = string(data)
		}
		out = append(out, k+": "+text)
	}
	return strings.Join(out, "\n")
}

// lines joins the texts that are not empty.
func lines(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "\n")
}

func (b *builder) workflow(s *schemas.WorkflowSpec) {
	var body []string
	for _, st := range s.Steps {
		body = append(body, lines(st.ID+" "+st.Agent, st.Title, st.Condition, st.CompletionCriteria))
	}
	b.Add(graph.Item{
		Node:  b.node(graph.Workflow, schemas.Time{}),
		Title: cmp.Or(s.Title, b.entry.Name), Body: lines(s.Description, strings.Join(body, "\n")),
	})
}

func (b *builder) dag(s *schemas.DAGSpec) {
	st, _ := b.entry.Status().(*schemas.DAGStatus)
	if st == nil {
		st = &schemas.DAGStatus{}
	}
	var names []string
	for i := range s.Nodes {
		names = append(names, s.Nodes[i].Name)
	}
	b.Add(graph.Item{
		Node:  b.node(graph.DAG, st.FinishedAt, "issue", number(s.Issue), "session", s.Session, "phase", st.Phase),
		Title: b.entry.Name, Body: lines(s.Description, strings.Join(names, " ")),
	})
	session := schemas.Ref{Kind: schemas.SessionKind.Name, Name: s.Session}.String()
	b.Edge(session, graph.Contains, b.id)
	stand := schemas.LinesOf(b.entry.Object.Path, b.text, "spec", "nodes")
	for i := range s.Nodes {
		at := schemas.Lines{From: 1}
		if i < len(stand) {
			at = stand[i]
		}
		b.addTask(&s.Nodes[i], st.Nodes[s.Nodes[i].Name], at)
	}
}

// addTask adds a node of a DAG with its result.
func (b *builder) addTask(n *schemas.Node, st schemas.NodeStatus, at schemas.Lines) {
	id := b.id + ":" + n.Name
	node := b.node(graph.Task, st.FinishedAt, "agent", n.Agent, "state", st.State)
	node.ID, node.Name, node.Line, node.End = id, n.Name, at.From, at.To
	b.Add(graph.Item{
		Node:  node,
		Title: strings.TrimSpace(b.entry.Name + " " + n.Name + " " + n.Description),
		Body:  lines(n.Prompt, strings.Join(n.Run, " "), n.Script, st.Message, string(st.Result), st.Output),
	})
	b.Edge(b.id, graph.Contains, id)
	for _, need := range n.Needs {
		b.Edge(id, graph.Follows, b.id+":"+need)
	}
	for _, file := range n.Outputs.Files {
		b.Edge(id, edgeToFile(file), path.Clean(file))
	}
}

// edgeToFile returns the type of the edge from a task to a file that it wrote: Modified for code, References for a
// document.
func edgeToFile(file string) graph.EdgeType {
	if source.IsMarkdown(file) {
		return graph.References
	}
	return graph.Modified
}

func (b *builder) addRequest(s *schemas.ClarificationRequestSpec) {
	st, _ := b.entry.Status().(*schemas.ClarificationRequestStatus)
	if st == nil {
		st = &schemas.ClarificationRequestStatus{}
	}
	said := []string{s.Question}
	for _, t := range st.Thread {
		if t.Body != s.Question {
			said = append(said, t.From+": "+t.Body)
		}
	}
	b.Add(graph.Item{
		Node: b.node(graph.Clarification, st.Created, "clr", st.ID, "issue", number(s.Issue), "from", s.From, "to", s.To,
			"phase", st.Phase),
		// The result is more specific than the request.
		Title: s.Topic, Body: lines(append([]string{st.Summary}, said...)...),
	})
	for _, a := range s.Artifacts {
		b.Edge(b.id, graph.References, path.Clean(a))
	}
	if dag, node, ok := taskOf(s.Run); ok {
		b.Edge(schemas.Ref{Kind: schemas.DAGKind.Name, Name: dag}.String()+":"+node, graph.Causes, b.id)
	}
}

// taskOf reads the key of a run of a DAG's node: dags/checks/implement-0123456789abcdef-1.
func taskOf(key string) (dag, node string, ok bool) {
	parts := strings.Split(key, "/")
	if len(parts) != 3 || parts[0] != schemas.DAGKind.Plural {
		return "", "", false
	}
	node = parts[2]
	for range 2 {
		i := strings.LastIndexByte(node, '-')
		if i < 1 {
			return "", "", false
		}
		node = node[:i]
	}
	return parts[1], node, true
}
