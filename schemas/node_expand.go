package schemas

import (
	"maps"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas/condition"
	"reconcile.dev/reconcile/schemas/template"
	"reconcile.dev/reconcile/schemas/validator"
)

// Matrix makes several nodes of one: one for each combination of its values, or for each element of a list that another node made.
type Matrix struct {
	// Values are the values by name; the nodes are all combinations of them.
	Values map[string][]any `json:"values,omitempty"`
	// From is an expression over the result of another node, needs.<name>.result and fields of it; it must be a list. The nodes are
	// made when that node has succeeded. An element that is an object gives its fields as values, another one the value "value".
	From string `json:"from,omitempty" jsonschema:"maxLength=2000"`
	// Include are further combinations.
	Include []map[string]any `json:"include,omitempty" jsonschema:"maxItems=1000"`
	// Exclude leaves out the combinations that have all of the values of one of its entries.
	Exclude []map[string]any `json:"exclude,omitempty" jsonschema:"maxItems=1000"`
	// Max bounds the number of nodes. Default 256.
	Max int `json:"max,omitempty" jsonschema:"minimum=1,maximum=10000,default=256"`
}

// Made is what the expansion of a DAG says of a node that it made. Package expand fills it in.
type Made struct {
	// From is the name of the node that it was made of, in the file of the DAG at Path; empty: its own name, and the file of the DAG itself.
	From, Path string
	// Params are the parameters that the node uses, Matrix all values of its element: its expressions and variables have these and no
	// others.
	Params, Matrix map[string]any
	// Key is the canonical JSON of these values. Former is the same with all parameters of the DAG, as earlier versions made it; nil
	// where that is no different.
	Key, Former []byte
	// Known are the names of Needs for the node's author, in their order; nil: the same.
	Known []string
	// Joins are the nodes that this one represents: it does nothing itself, and its result has theirs by their short names. They are
	// not known yet where Open names nodes, whose results they are made of.
	Joins []Joined
	Join  bool
	Open  []string
	// Problem says why the nodes that this one would represent cannot be made from a result.
	Problem string
	// Finally says that the node runs when its needs have ended, in whatever state.
	Finally bool
	// Spared says that a failure of the node does not fail the DAG: it is part of one that is optional.
	Spared bool
}

// Joined is a node that another one represents.
type Joined struct{ Node, Name string }

// Expansion is what a spec was expanded with.
type Expansion struct {
	Uses    map[Ref]string     // the digests of the other objects
	Results map[string]string  // what nodes made of which others are made, by their names
	Fault   string             // why it could not be expanded; empty where it could
	Unset   bool               // that is since a parameter has no value
	Calls   map[string][]*Call // the calls with bounds that a node is part of, the innermost first, by the names of nodes
}

// Call is the call of a DAG that bounds its nodes.
type Call struct {
	Node, DAG      string // the node that calls, and the DAG that it calls
	Path           string // of the called DAG's file
	MaxConcurrency int
	Budget         *Budget
	Timeout        *Duration
}

// CallsOf returns the calls with bounds that a node is part of, the innermost first.
func (s *DAGSpec) CallsOf(node string) []*Call {
	if s.Expansion == nil {
		return nil
	}
	return s.Expansion.Calls[node]
}

// Calls returns the calls with bounds, each once.
func (s *DAGSpec) Calls() []*Call {
	if s.Expansion == nil {
		return nil
	}
	var out []*Call
	seen := map[*Call]bool{}
	for i := range s.Nodes {
		for _, c := range s.Expansion.Calls[s.Nodes[i].Name] {
			if !seen[c] {
				seen[c] = true
				out = append(out, c)
			}
		}
	}
	return out
}

// CheckMade returns the first problem of a node that an expansion made; "" for none.
func (n *Node) CheckMade() string {
	var r Report
	n.check(&r, "nodes", 0)
	for _, f := range r.findings {
		if f.Severity == Error {
			return f.Message
		}
	}
	return ""
}

// templated reports whether texts of the node may have expressions.
func (s *DAGSpec) templated(n *Node) bool {
	return len(s.Params) > 0 || n.Matrix != nil || n.DAG != "" || s.Workflow != nil
}

// plain returns the node without its texts that have expressions; what they become is checked when it is known.
func (s *DAGSpec) plain(n *Node) *Node {
	if !s.templated(n) {
		return n
	}
	out := *n
	plain := func(text string) string {
		if template.Has(text) {
			return "x"
		}
		return text
	}
	lists := func(texts []string) []string {
		texts = slices.Clone(texts)
		for i := range texts {
			texts[i] = plain(texts[i])
		}
		return texts
	}
	out.Inputs, out.Outputs.Files = lists(n.Inputs), lists(n.Outputs.Files)
	out.Outputs.JSON, out.WorkingDir = plain(n.Outputs.JSON), plain(n.WorkingDir)
	return &out
}

// NeedNames returns the names by which the node's expressions and programs know its needs, in their order.
func (n *Node) NeedNames() []string {
	if n.Made != nil && n.Made.Known != nil {
		return n.Made.Known
	}
	return n.Needs
}

// Scope is the names that the node's expressions may use.
func (n *Node) Scope() condition.Scope {
	s := condition.Scope{Needs: n.NeedNames()}
	if n.Made != nil {
		s.Params = slices.Sorted(maps.Keys(n.Made.Params))
		s.AnyMatrix = n.Made.Matrix != nil
	}
	return s
}

// FailsAlone reports whether a failure of the node does not fail the DAG.
func (n *Node) FailsAlone() bool { return n.Optional || n.Made != nil && n.Made.Spared }

// Joins reports whether the node only represents others.
func (n *Node) Joins() bool { return n.Made != nil && n.Made.Join }

// RunsFinally reports whether the node runs when its needs have ended, in whatever state.
func (n *Node) RunsFinally() bool { return n.Made != nil && n.Made.Finally }

// Expands reports whether nodes of the DAG represent others, or are made from values.
func (s *DAGSpec) Expands() bool {
	return len(s.Params) > 0 || len(s.Finally) > 0 || slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.Matrix != nil || n.DAG != "" })
}

// mayMake reports whether the expansion of the DAG may make a node of that name: the results of nodes and other DAGs decide about it.
func (s *DAGSpec) mayMake(name string) bool {
	return slices.ContainsFunc(s.Finally, func(n Node) bool { return n.Name == name }) ||
		slices.ContainsFunc(s.Nodes, func(n Node) bool { return (n.Matrix != nil || n.DAG != "") && strings.HasPrefix(name, n.Name+"_") })
}

// scope is the names that expressions of a node may use in the file.
func (s *DAGSpec) scope(n *Node) condition.Scope {
	names := condition.Scope{Needs: n.Needs, Params: s.ParamNames()}
	if m := n.Matrix; m != nil {
		known := maps.Clone(m.Values)
		if known == nil {
			known = map[string][]any{}
		}
		for _, entry := range m.Include {
			for name := range entry {
				known[name] = nil
			}
		}
		names.Matrix, names.AnyMatrix = slices.Sorted(maps.Keys(known)), m.From != ""
	}
	return names
}

// checkExpansion reports problems of matrices, calls, final nodes and templates.
func (s *DAGSpec) checkExpansion(r *Report, compiled map[string]*validator.Error) {
	s.checkParams(r)
	for i := range s.Nodes {
		n, at := &s.Nodes[i], r.At("nodes", i)
		s.checkMatrix(at, n)
		n.checkCall(at)
		if s.templated(n) {
			n.checkTexts(at, s.scope(n))
		}
	}
	s.checkFinally(r, compiled)
}

func (s *DAGSpec) checkMatrix(at Spot, n *Node) {
	m := n.Matrix
	if m == nil {
		return
	}
	at = at.At("matrix")
	for _, name := range slices.Sorted(maps.Keys(m.Values)) {
		if !isNodeName(name) {
			at.At("values", name).Errorf("bad-name", "%q is no name of a value: a lower-case letter, then lower-case letters, digits and _", name)
		}
	}
	switch {
	case m.From == "" && len(m.Values) == 0 && len(m.Include) == 0:
		at.Errorf("missing", "the matrix has no values").suggest("add values, as values: {os: [linux, mac]}, or from")
	case m.From != "" && len(m.Values) > 0:
		at.At("from").Errorf("conflict", "a matrix has either values or from").suggest("keep one of them").also("the other one", at.At("values").field...)
	}
	if m.From != "" {
		source, _, err := condition.CompileSource(m.From)
		switch {
		case err != nil:
			at.At("from").Errorf("bad-condition", "%v", err).suggest("for example: needs.plan.result.items")
		case s.Node(source) == nil:
			at.At("from").Errorf("unknown-need", "there is no node called %q", source)
		case source == n.Name:
			at.At("from").Errorf("self-need", "node %q would be made of itself", source)
		}
	}
	if n.Repeat != nil && n.Repeat.From != "" {
		at.Errorf("conflict", "a node with a matrix can only repeat itself").suggest("remove repeat.from")
	}
}

// checkCall reports fields that a call of another DAG has no use for.
func (n *Node) checkCall(at Spot) {
	if n.DAG == "" {
		if len(n.With) > 0 {
			at.At("with").Errorf("conflict", "only a called DAG has parameters").suggest("name it in dag, or remove with")
		}
		return
	}
	checkRef(at.At("dag"), n.DAG)
	for field, set := range map[string]bool{"inputs": len(n.Inputs) > 0, "tools": len(n.Tools) > 0, "outputs": len(n.Outputs.Paths()) > 0, "env": len(n.Env) > 0,
		"workingDir": n.WorkingDir != "", "timeout": n.Timeout != nil, "retry": n.Retry != nil, "when": n.When != "", "repeat": n.Repeat != nil,
		"limits": n.Limits != nil, "land": n.Land != nil, "pipeline": n.Pipeline != nil, "touches": len(n.Touches) > 0, "priority": n.Priority != "", "approve": n.Approve != nil} {
		if set {
			at.At(field).Errorf("conflict", "a node that calls a DAG has no %s", field).
				suggest("give it to the nodes of dag/%s; a parameter can carry what differs from call to call", n.DAG)
		}
	}
}

// checkTexts compiles the texts of a node that may have expressions, which may use the names of a scope.
func (n *Node) checkTexts(at Spot, late condition.Scope) {
	early := late
	early.Needs = nil
	for i, text := range n.Run {
		checkTemplate(at.At("run", i), text, late)
	}
	checkTemplate(at.At("prompt"), n.Prompt, late)
	for i, text := range n.Acceptance {
		checkTemplate(at.At("acceptance", i), text, late)
	}
	for _, name := range slices.Sorted(maps.Keys(n.Env)) {
		checkTemplate(at.At("env", name), n.Env[name].Text, late)
	}
	for i, text := range n.Inputs {
		checkTemplate(at.At("inputs", i), text, early)
	}
	for i, text := range n.Outputs.Files {
		checkTemplate(at.At("outputs", "files", i), text, early)
	}
	checkTemplate(at.At("outputs", "json"), n.Outputs.JSON, early)
	checkTemplate(at.At("workingDir"), n.WorkingDir, early)
	for _, name := range slices.Sorted(maps.Keys(n.With)) {
		if text, ok := n.With[name].(string); ok {
			checkTemplate(at.At("with", name), text, late)
		}
	}
	if template.Has(n.Script) {
		at.At("script").warnf("no-template", "expressions are not evaluated in a script: a value would be read as shell text").
			suggest("use the variables RECONCILE_PARAM_NAME and RECONCILE_MATRIX_NAME")
	}
}

func checkTemplate(at Spot, text string, names condition.Scope) {
	if !template.Has(text) {
		return
	}
	if _, err := template.Compile(text, names); err != nil {
		at.Errorf("bad-template", "%v", err).suggest(`for example: {{ params.env }}; a literal {{ is {{ "{{" }}`)
	}
}

// checkFinally reports bad final nodes. They need all nodes, and may need each other. compiled is that of [Node.checkSchema].
func (s *DAGSpec) checkFinally(r *Report, compiled map[string]*validator.Error) {
	if len(s.Finally) == 0 {
		return
	}
	tasks := make([]task, len(s.Finally))
	names := make([]string, len(s.Nodes))
	for i := range s.Nodes {
		names[i] = s.Nodes[i].Name
	}
	for i := range s.Finally {
		n := &s.Finally[i]
		at := r.At("finally", i)
		s.plain(n).check(r, "finally", i)
		n.checkSchema(at, compiled)
		tasks[i] = task{n.Name, n.Needs}
		if slices.Contains(names, n.Name) {
			at.At("name").Errorf("duplicate-name", "a node called %q exists already", n.Name)
		}
		if n.Matrix != nil || n.DAG != "" || n.Repeat != nil {
			at.Errorf("conflict", "a final node has no matrix, dag or repeat").suggest("write a node with run, script, or agent with prompt")
		}
		scope := condition.Scope{Needs: slices.Concat(names, n.Needs), Params: s.ParamNames()}
		checkExpression(at.At("when"), n.When, scope, `needs.build.state == "Failed"`)
		n.checkCall(at)
		n.checkTexts(at, scope)
	}
	checkGraph(r, graphWords{list: "finally", name: "name", noun: "final node"}, tasks)
}
