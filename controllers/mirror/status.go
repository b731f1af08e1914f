package mirror

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/graph"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Limits of a comment about a large object: GitHub draws no diagram of more than 500 edges, and larger ones are
// unreadable.
const (
	mostNodes  = 100 // rows of a table, and boxes of a picture
	mostEdges  = 400
	cellLength = 160 // characters
	whyLength  = 400
)

// Session mirrors sessions.
var Session = Projector{
	Home: func(o *schemas.Object) (int, schemas.Ref) {
		return schemas.SpecAs[*schemas.SessionSpec](o).Issue, schemas.Ref{}
	},
	About: func(o *schemas.Object) (title, description string) {
		spec := schemas.SpecAs[*schemas.SessionSpec](o)
		return spec.Title, spec.Description
	},
	Write: writeSession,
}

// DAG mirrors DAGs.
var DAG = Projector{
	Home: func(o *schemas.Object) (int, schemas.Ref) {
		spec := schemas.SpecAs[*schemas.DAGSpec](o)
		return spec.Issue, schemas.Ref{Kind: schemas.SessionKind.Name, Name: spec.Session}
	},
	About: func(o *schemas.Object) (title, description string) {
		return "", schemas.SpecAs[*schemas.DAGSpec](o).Description
	},
	Write: writeDAG,
}

// writeSession shows the state of a session.
func writeSession(p *Page) {
	e := p.Entry
	st, ok := e.Status().(*schemas.SessionStatus)
	if !ok {
		return
	}
	spec := schemas.SpecAs[*schemas.SessionSpec](e.Object)
	b := p.NewBody()
	b.Paragraph("### Session %s: %s", codeText(e.Name), codeText(st.Phase))
	if spec.Title != "" {
		b.Paragraph("%s", lineText(spec.Title, whyLength))
	}
	b.progress(st.Progress)
	var rows [][]string
	for _, ref := range p.projection.t.ReferrersOf(e.Ref, schemas.DAGKind.Name) {
		d := p.projection.t.Entry(ref)
		if d == nil {
			continue
		}
		if ds, ok := d.Status().(*schemas.DAGStatus); ok {
			rows = append(rows, []string{codeText(ref.Name), codeText(ds.Phase), fmt.Sprintf("%d of %d", ds.Progress.Done, ds.Progress.Total)})
		}
	}
	if len(rows) > 0 {
		b.table([]string{"DAG", "Phase", "Tasks done"}, bodyRows(rows))
	}
	b.List("What it waits for, and why", p.why())
	p.Status(b)
}

// writeDAG shows the state of a DAG: a table, a picture, and what waits for whom.
func writeDAG(p *Page) {
	e := p.Entry
	st, ok := e.Status().(*schemas.DAGStatus)
	if !ok {
		return
	}
	spec := schemas.SpecAs[*schemas.DAGSpec](e.Object)
	b := p.NewBody()
	b.Paragraph("### DAG %s: %s", codeText(e.Name), codeText(st.Phase))
	b.Quoted(spec.Description)
	b.progress(st.Progress)
	writeRun(p, spec, st, b)
	b.table([]string{"Task", "State", "Attempts", "Why"}, bodyRows(nodeRows(spec, st)))
	if drawing := dagPicture(e.Ref, spec, st); drawing != "" {
		b.block([]string{"```mermaid", strings.TrimRight(drawing, "\n"), "```"}, true)
	}
	b.List("What it waits for, and why", p.why())
	p.Status(b)
}

// nodeRows has what a reader looks for first at the top: what failed, is blocked, runs; the rest as it was declared.
func nodeRows(spec *schemas.DAGSpec, st *schemas.DAGStatus) [][]string {
	order := []string{schemas.NodeFailed, schemas.NodeBlocked, schemas.NodeRunning, schemas.NodeQueued}
	rank := func(n schemas.Node) int {
		if at := slices.Index(order, nodeState(st, n.Name)); at >= 0 {
			return at
		}
		return len(order)
	}
	nodes := slices.Clone(spec.Nodes)
	if len(nodes) > mostNodes {
		slices.SortStableFunc(nodes, func(a, b schemas.Node) int { return cmp.Compare(rank(a), rank(b)) })
	}
	rows := make([][]string, len(nodes))
	for i, n := range nodes {
		ns := st.Nodes.Of(n.Name)
		why, attempts := "", ""
		if ns.Attempts > 0 {
			attempts = strconv.Itoa(ns.Attempts)
		}
		if ns.Message != "" && ns.State != schemas.NodeSucceeded {
			why = lineText(ns.Message, cellLength)
		}
		rows[i] = []string{codeText(n.Name), nodeState(st, n.Name), attempts, why}
	}
	return rows
}

func nodeState(st *schemas.DAGStatus, node string) string {
	return cmp.Or(st.Nodes.Of(node).State, schemas.NodePending)
}

// dagPicture draws a DAG; "" for one that is too large to be drawn.
func dagPicture(ref schemas.Ref, spec *schemas.DAGSpec, st *schemas.DAGStatus) string {
	g := graph.Picture{Title: ref.String()}
	edges := 0
	for _, n := range spec.Nodes {
		g.Nodes = append(g.Nodes, graph.Node{Name: n.Name, State: nodeState(st, n.Name), Needs: n.Needs})
		edges += len(n.Needs)
	}
	if len(g.Nodes) > mostNodes || edges > mostEdges {
		return ""
	}
	return g.Mermaid()
}

// statusSpan formats a duration, up to a maximum.
func statusSpan(seconds int64) string {
	const longest = 100 * 365 * 24 * time.Hour
	if seconds > int64(longest/time.Second) {
		return "more than 100 years"
	}
	s := (time.Duration(seconds) * time.Second).String() // 1h0m0s
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func requestStatus(e *state.Entry) *schemas.ClarificationRequestStatus {
	if st, ok := e.Status().(*schemas.ClarificationRequestStatus); ok {
		return st
	}
	return new(schemas.ClarificationRequestStatus)
}
