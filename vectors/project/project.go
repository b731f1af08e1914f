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

// Projector makes the part of the index for the objects of a kind.
type Projector struct {
	// Build adds the nodes, edges and texts of an object.
	Build func(*Builder)
	// Lines is set if Build uses Builder.Text, and so the part differs with the file, not only with the spec.
	Lines bool
}

// Part builds the part of an object's entry with the projector; it is empty for an entry without an object, whose spec
// is not valid. text is the object's file, for a projector with Lines; nil if it is not readable.
func (p *Projector) Part(e *state.Entry, text []byte) graph.Part {
	if e.Object == nil {
		return graph.Part{}
	}
	b := &Builder{Entry: e, ID: e.Ref.String(), Text: text}
	p.Build(b)
	return b.Part
}

// The projectors of the kinds of this program.
var (
	Session       = Projector{Build: session}
	Workflow      = Projector{Build: workflow}
	DAG           = Projector{Build: dag, Lines: true}
	Clarification = Projector{Build: request}
	PlanChange    = Projector{Build: planChange}
)

// Builder collects the part of one object.
type Builder struct {
	graph.PartBuilder
	Entry *state.Entry // with an Object
	ID    string       // of the object's own node: "session/login"
	Text  []byte       // the object's file; may be nil
}

// Node returns the graph node of the builder's entry, with the entry's id, name, path and labels, and a time. more are
// labels in pairs.
func (b *Builder) Node(t graph.NodeType, at schemas.Time, more ...string) graph.Node {
	n := graph.Node{ID: b.ID, Type: t, Name: b.Entry.Name, Path: b.Entry.Object.Path, Line: 1, Labels: b.labels(more...)}
	if !at.IsZero() {
		n.At = at.Unix()
	}
	return n
}

// labels are those of the object and some more, given in pairs; pairs without a value are left out.
func (b *Builder) labels(pairs ...string) []string {
	out := labels(append(pairs, "kind", strings.ToLower(b.Entry.Kind))...)
	for _, k := range slices.Sorted(maps.Keys(b.Entry.Object.Metadata.Labels)) {
		out = append(out, k+"="+b.Entry.Object.Metadata.Labels[k])
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

func session(b *Builder) {
	s := schemas.SpecAs[*schemas.SessionSpec](b.Entry.Object)
	b.Add(graph.Item{
		Node:  b.Node(graph.Session, schemas.Time{}, "issue", number(s.Issue), "owner", s.Owner, "phase", phase(b.Entry.Status())),
		Title: cmp.Or(s.Title, b.Entry.Name), Body: lines(s.Description, s.Branch, values(s.Metadata)),
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

func workflow(b *Builder) {
	s := schemas.SpecAs[*schemas.WorkflowSpec](b.Entry.Object)
	var body []string
	for _, st := range s.Steps {
		body = append(body, lines(st.ID+" "+st.Agent, st.Title, st.Condition, st.CompletionCriteria))
	}
	b.Add(graph.Item{
		Node:  b.Node(graph.Workflow, schemas.Time{}),
		Title: cmp.Or(s.Title, b.Entry.Name), Body: lines(s.Description, strings.Join(body, "\n")),
	})
}

func dag(b *Builder) {
	s := schemas.SpecAs[*schemas.DAGSpec](b.Entry.Object)
	st, _ := b.Entry.Status().(*schemas.DAGStatus)
	if st == nil {
		st = &schemas.DAGStatus{}
	}
	var names []string
	for i := range s.Nodes {
		names = append(names, s.Nodes[i].Name)
	}
	b.Add(graph.Item{
		Node:  b.Node(graph.DAG, st.FinishedAt, "issue", number(s.Issue), "session", s.Session, "phase", st.Phase),
		Title: b.Entry.Name, Body: lines(s.Description, strings.Join(names, " ")),
	})
	session := schemas.Ref{Kind: schemas.SessionKind.Name, Name: s.Session}.String()
	b.Edge(session, graph.Contains, b.ID)
	stand := schemas.LinesOf(b.Entry.Object.Path, b.Text, "spec", "nodes")
	for i := range s.Nodes {
		at := schemas.Lines{From: 1}
		if i < len(stand) {
			at = stand[i]
		}
		b.addTask(&s.Nodes[i], st.Nodes.Of(s.Nodes[i].Name), at)
	}
}

// addTask adds a node of a DAG with its result.
func (b *Builder) addTask(n *schemas.Node, st schemas.NodeStatus, at schemas.Lines) {
	id := b.ID + ":" + n.Name
	node := b.Node(graph.Task, st.FinishedAt, "agent", n.Agent, "state", st.State)
	node.ID, node.Name, node.Line, node.End = id, n.Name, at.From, at.To
	b.Add(graph.Item{
		Node:  node,
		Title: strings.TrimSpace(b.Entry.Name + " " + n.Name + " " + n.Description),
		Body:  lines(n.Prompt, strings.Join(n.Run, " "), n.Script, st.Message, string(st.Result), st.Output),
	})
	b.Edge(b.ID, graph.Contains, id)
	for _, need := range n.Needs {
		b.Edge(id, graph.Follows, b.ID+":"+need)
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

func request(b *Builder) {
	s := schemas.SpecAs[*schemas.ClarificationRequestSpec](b.Entry.Object)
	st, _ := b.Entry.Status().(*schemas.ClarificationRequestStatus)
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
		Node: b.Node(graph.Clarification, st.Created, "clr", st.ID, "issue", number(s.Issue), "from", s.From, "to", s.To,
			"phase", st.Phase),
		// The result is more specific than the request.
		Title: s.Topic, Body: lines(append([]string{st.Summary}, said...)...),
	})
	for _, a := range s.Artifacts {
		b.Edge(b.ID, graph.References, path.Clean(a))
	}
	if dag, node, ok := taskOf(s.Run); ok {
		b.Edge(schemas.Ref{Kind: schemas.DAGKind.Name, Name: dag}.String()+":"+node, graph.Causes, b.ID)
	}
}

func planChange(b *Builder) {
	s := schemas.SpecAs[*schemas.PlanChangeSpec](b.Entry.Object)
	st, _ := b.Entry.Status().(*schemas.PlanChangeStatus)
	if st == nil {
		st = &schemas.PlanChangeStatus{}
	}
	body := append([]string{s.Reason}, s.Tried...)
	if s.Suggestions != nil {
		body = append(body, s.Suggestions.Text)
	}
	if a := st.Answer; a != nil {
		body = append(body, a.Reason, a.Instructions)
	}
	b.Add(graph.Item{
		Node:  b.Node(graph.Decision, st.Created, "change", s.Change, "by", s.By, "phase", st.Phase),
		Title: s.Said(), Body: lines(append(body, st.Changes...)...),
	})
	if s.Node != "" {
		b.Edge(s.Target+":"+s.Node, graph.Causes, b.ID)
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
