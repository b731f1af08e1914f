package planchanges

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/permits"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state"
)

// Item is a node of an edited DAG. Value is its JSON; nil for a node that stays as it is written.
type Item struct {
	Name  string
	Value []byte
}

// Edited is a DAG with an edit.
type Edited struct {
	Object  *schemas.Object // valid
	Items   []Item          // all nodes, in their order
	Changes []string        // what the edit does, a line each
}

// draft is the list of nodes of a DAG while it is edited.
type draft struct {
	before *schemas.DAGSpec
	status *schemas.DAGStatus
	nodes  []Item // Value is set for all
	known  map[string][]byte
	// again says that the edit was decided before, and may be in the file already.
	again bool
	lines []string
}

// apply returns a DAG with an edit, which change allows. The error says why it cannot be applied. again says that the edit was accepted
// before, so that parts of it may be in the file.
func apply(t *state.Tree, dag *state.Entry, change string, e *schemas.PlanEdit, again bool) (*Edited, error) {
	d, err := newDraft(dag)
	if err != nil {
		return nil, err
	}
	d.again = again
	if change == schemas.ChangeReplace {
		d.clear(e)
	}
	for _, step := range []func(*schemas.PlanEdit) error{d.remove, d.add, d.modify, d.need, d.keepsDone} {
		if err := step(e); err != nil {
			return nil, err
		}
	}
	out := &Edited{Changes: d.lines}
	if out.Object, err = d.decode(t, dag); err != nil {
		return nil, err
	}
	for _, n := range d.nodes {
		if bytes.Equal(d.known[n.Name], n.Value) {
			n.Value = nil
		}
		out.Items = append(out.Items, n)
	}
	return out, refused(t, dag, out.Object)
}

func newDraft(dag *state.Entry) (*draft, error) {
	if dag == nil || dag.Object == nil {
		return nil, errors.New("the DAG does not exist, or its file is broken")
	}
	was := dag.Object.Declared()
	d := &draft{before: schemas.SpecAs[*schemas.DAGSpec](was), known: map[string][]byte{}}
	d.status, _ = dag.Status().(*schemas.DAGStatus)
	if d.status == nil {
		d.status = new(schemas.DAGStatus)
	}
	var spec struct{ Nodes []json.RawMessage }
	if err := json.Unmarshal(was.Canonical(), &spec); err != nil {
		return nil, err
	}
	for i, raw := range spec.Nodes {
		name := d.before.Nodes[i].Name
		d.nodes, d.known[name] = append(d.nodes, Item{name, raw}), raw
	}
	return d, nil
}

func (d *draft) index(name string) int {
	return slices.IndexFunc(d.nodes, func(n Item) bool { return n.Name == name })
}

// missing is the error of an edit of a node that is not there.
func (d *draft) missing(name string) error {
	names := make([]string, len(d.nodes))
	for i := range d.nodes {
		names[i] = d.nodes[i].Name
	}
	return fmt.Errorf("there is no node %q%s", name, schemas.DidYouMean(name, names))
}

func (d *draft) note(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// clear removes nodes that have not succeeded and that the edit does not name.
func (d *draft) clear(e *schemas.PlanEdit) {
	d.nodes = slices.DeleteFunc(d.nodes, func(n Item) bool {
		_, modified := e.Modify[n.Name]
		_, needs := e.Needs[n.Name]
		named := modified || needs || slices.ContainsFunc(e.Add, func(a schemas.Node) bool { return a.Name == n.Name })
		if named || d.done(n.Name) || slices.Contains(e.Remove, n.Name) {
			return false
		}
		d.note("removes %s", n.Name)
		return true
	})
}

func (d *draft) remove(e *schemas.PlanEdit) error {
	for _, name := range e.Remove {
		i := d.index(name)
		if i < 0 && d.again {
			continue
		} else if i < 0 {
			return d.missing(name)
		}
		d.nodes = slices.Delete(d.nodes, i, i+1)
		d.note("removes %s", name)
	}
	return nil
}

func (d *draft) add(e *schemas.PlanEdit) error {
	for i := range e.Add {
		n := &e.Add[i]
		raw, err := json.Marshal(n)
		if err != nil {
			return err
		}
		switch at := d.index(n.Name); {
		case at < 0:
			d.nodes = append(d.nodes, Item{n.Name, raw})
			d.note("adds %s", n.Name)
		case !d.again && !sameNode(d.nodes[at].Value, raw):
			return fmt.Errorf("there is a node %q already: modify changes it", n.Name)
		}
	}
	return nil
}

func (d *draft) modify(e *schemas.PlanEdit) error {
	for _, name := range slices.Sorted(maps.Keys(e.Modify)) {
		if err := d.set(name, e.Modify[name]); err != nil {
			return err
		}
	}
	return nil
}

func (d *draft) need(e *schemas.PlanEdit) error {
	for _, name := range slices.Sorted(maps.Keys(e.Needs)) {
		var needs any = e.Needs[name]
		if len(e.Needs[name]) == 0 {
			needs = nil
		}
		if err := d.set(name, map[string]any{"needs": needs}); err != nil {
			return err
		}
	}
	return nil
}

// set changes fields of a node.
func (d *draft) set(name string, fields map[string]any) error {
	i := d.index(name)
	if i < 0 {
		return d.missing(name)
	}
	var node map[string]any
	if err := json.Unmarshal(d.nodes[i].Value, &node); err != nil {
		return err
	}
	for field, value := range fields {
		if node[field] = value; value == nil {
			delete(node, field)
		}
	}
	raw, err := json.Marshal(node)
	if err != nil || sameNode(d.nodes[i].Value, raw) {
		return err
	}
	d.nodes[i].Value = raw
	d.note("changes %s of %s", strings.Join(slices.Sorted(maps.Keys(fields)), ", "), name)
	return nil
}

// keepsDone refuses to change or to remove nodes that have succeeded.
func (d *draft) keepsDone(*schemas.PlanEdit) error {
	for name, was := range d.known {
		i := d.index(name)
		if d.done(name) && (i < 0 || !sameNode(d.nodes[i].Value, was)) {
			return fmt.Errorf("node %s has succeeded, and stays as it is: add a node instead", name)
		}
	}
	return nil
}

// done reports whether a node has succeeded, or one that was made from it.
func (d *draft) done(name string) bool {
	if d.status.Nodes.Of(name).State == schemas.NodeSucceeded {
		return true
	}
	n := d.before.Node(name)
	if n == nil || n.Matrix == nil && n.DAG == "" {
		return false
	}
	for other, st := range d.status.Nodes.All() {
		if strings.HasPrefix(other, name+"_") && st.State == schemas.NodeSucceeded {
			return true
		}
	}
	return false
}

// decode makes an object of the nodes, as a file with them would be read.
func (d *draft) decode(t *state.Tree, dag *state.Entry) (*schemas.Object, error) {
	was := dag.Object.Declared()
	var spec map[string]json.RawMessage
	if err := json.Unmarshal(was.Canonical(), &spec); err != nil {
		return nil, err
	}
	nodes := make([]json.RawMessage, len(d.nodes))
	for i := range d.nodes {
		nodes[i] = d.nodes[i].Value
	}
	var err error
	if spec["nodes"], err = json.Marshal(nodes); err != nil {
		return nil, err
	}
	text, err := json.Marshal(map[string]any{"apiVersion": schemas.APIVersion, "kind": was.Kind, "metadata": was.Metadata, "spec": spec})
	if err != nil {
		return nil, err
	}
	out := schemas.DecoderFor(settle.TableOf(t).Schemas(), t.Settings()).Decode(strings.TrimSuffix(was.Path, ".yaml")+".json", text)
	if out.Object == nil {
		return nil, errors.New(problems(out.Problems))
	}
	for _, r := range out.Object.Refs {
		if to := t.Entry(r.To); r.Hard && (to == nil || to.Gone()) {
			return nil, fmt.Errorf("%s does not exist", r.To)
		}
	}
	return out.Object, nil
}

// problems are the errors of a file, without their places: the text was made for this.
func problems(all []schemas.Problem) string {
	var out []string
	for _, p := range all {
		if p.Severity == schemas.Error {
			out = append(out, strings.TrimPrefix(p.Field+": "+p.Message, ": "))
		}
	}
	return schemas.Shorten(out, 5)
}

// refused says why agents may not make a change of a DAG, no matter who accepts it: it removes a gate or a check, say.
func refused(t *state.Tree, dag *state.Entry, after *schemas.Object) error {
	before := dag.Object.Declared()
	if what := agents.Bounds(t, dag, "", "").OnlyPeople(dag.Ref, before, after); what != "" {
		return fmt.Errorf("it would %s: only people do that, in the file", what)
	}
	was, is := schemas.SpecAs[*schemas.DAGSpec](before), schemas.SpecAs[*schemas.DAGSpec](after)
	for i := range is.Nodes {
		n := &is.Nodes[i]
		old := was.Node(n.Name)
		if path := guarded(t, n); path != "" && (old == nil || guarded(t, old) != path) {
			return fmt.Errorf("node %s would write %s: only people change specs and settings", n.Name, path)
		}
	}
	return nil
}

// guarded is a path of the specs or the settings that a node declares to write; "" for none.
func guarded(t *state.Tree, n *schemas.Node) string {
	for _, p := range append(n.Outputs.Paths(), n.Touches...) {
		if p == schemas.SettingsPath || treepath.Within(p, t.Settings().Folders.Specs) {
			return p
		}
	}
	return ""
}

// beyond says which command an edit adds or changes that commands.allow does not allow; "" for none. An agent's consent lets run what
// agents may run, and nothing else.
func beyond(t *state.Tree, dag *state.Entry, after *schemas.Object) string {
	was, is := schemas.SpecAs[*schemas.DAGSpec](dag.Object.Declared()), schemas.SpecAs[*schemas.DAGSpec](after)
	for i := range is.Nodes {
		n := &is.Nodes[i]
		old := was.Node(n.Name)
		if old == nil {
			old = new(schemas.Node)
		}
		for _, c := range commandsOf(n) {
			switch v := permits.Rule(t, permits.Request{Asked: c}); {
			case sameCommands(old, n):
			case len(n.Env) > 0:
				return "node " + n.Name + " would " + permits.Describe(c) + ", with variables of its own"
			case !v.Decided || !v.Allow:
				return "node " + n.Name + " would " + permits.Describe(c)
			}
		}
	}
	return ""
}

// commandsOf are the commands that a node runs.
func commandsOf(n *schemas.Node) (out []*schemas.Permission) {
	if len(n.Run) > 0 {
		out = append(out, &schemas.Permission{Argv: n.Run})
	}
	if n.Script != "" {
		out = append(out, &schemas.Permission{Argv: []string{n.Script}, Shell: true})
	}
	return out
}

func sameCommands(a, b *schemas.Node) bool {
	return reflect.DeepEqual(commandsOf(a), commandsOf(b)) && a.WorkingDir == b.WorkingDir && reflect.DeepEqual(a.Env, b.Env)
}

// sameNode reports whether two nodes in JSON are equal.
func sameNode(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
