// Package expand makes the nodes of a DAG that are not written one by one: it puts in parameters, makes several nodes of one with a
// matrix, puts the nodes of a called DAG in place of the call, and has final nodes need all others.
//
// The result is a spec of ordinary nodes. Their names are made from names and values, never of positions, so that another value adds
// a node and changes no other one.
package expand

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// World is what an expansion looks up.
type World struct {
	// Object returns an object as it was written; nil without one.
	Object func(schemas.Ref) *schemas.Object
	// Result returns what a node of the DAG has left; ok is false unless it has succeeded.
	Result func(node string) (result json.RawMessage, ok bool)
}

// May reports whether an object may have to be expanded, without decoding it.
func May(o *schemas.Object) bool {
	return o != nil && o.Kind == schemas.DAGKind.Name && o.Mentions(schemas.MarkExpansion)
}

// Object returns a DAG with its spec expanded, or the DAG as it was written if that has nothing to expand. was is a former
// result, or nil; it is returned where nothing that it was made from has changed.
func Object(o, was *schemas.Object, w World) *schemas.Object {
	o = o.Declared()
	spec := schemas.SpecAs[*schemas.DAGSpec](o)
	if spec == nil || spec.Template || !spec.Expands() {
		return o
	}
	if was != nil && was != o && was.Declared() == o && Fresh(was, w) {
		return was
	}
	e := &expander{World: w, name: o.Name, session: spec.Session, made: &schemas.Expansion{Uses: map[schemas.Ref]string{}, Results: map[string]string{}}}
	out := *spec
	out.Expansion, out.Finally = e.made, nil
	if nodes := e.dag(o.Name, spec, "", nil, func(name string) string { return name }); e.made.Fault == "" {
		out.Nodes = nodes
		e.checkNames(nodes)
	}
	return o.WithSpec(&out, e.digest(o), references(o, &out))
}

// Fresh reports whether nothing has changed that a DAG was expanded with.
func Fresh(was *schemas.Object, w World) bool {
	spec := schemas.SpecAs[*schemas.DAGSpec](was)
	if spec == nil || spec.Expansion == nil {
		return true // nothing was
	}
	made := spec.Expansion
	for ref, digest := range made.Uses {
		if digestOf(w.Object(ref)) != digest {
			return false
		}
	}
	for node, result := range made.Results {
		if resultOf(w, node) != result {
			return false
		}
	}
	return true
}

// digestOf is the digest of an object that an expansion uses, such as a workflow.
func digestOf(o *schemas.Object) string {
	if o == nil {
		return ""
	}
	return o.Declared().Digest
}

// resultOf tells results apart, and none.
func resultOf(w World, node string) string {
	raw, ok := w.Result(node)
	if !ok {
		return ""
	}
	return "is " + string(raw)
}

// digest is that of the object and of the others that it was made with. The results of its own nodes are no part of it.
func (e *expander) digest(o *schemas.Object) string {
	if len(e.made.Uses) == 0 {
		return o.Digest
	}
	h := sha256.New()
	fmt.Fprintln(h, o.Digest)
	for _, ref := range slices.SortedFunc(maps.Keys(e.made.Uses), schemas.Ref.Compare) {
		if ref.Kind == schemas.SessionKind.Name {
			raw, _ := json.Marshal(e.sessionSpec(ref.Name).Params) // they came from JSON
			fmt.Fprintln(h, string(raw))                           // nothing else of it counts
			continue
		}
		fmt.Fprintln(h, ref, e.made.Uses[ref])
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// references are those of the object, and the agents of the nodes that were made.
func references(o *schemas.Object, spec *schemas.DAGSpec) []schemas.Reference {
	out := slices.Clone(o.Refs)
	seen := map[schemas.Ref]bool{}
	for _, r := range out {
		seen[r.To] = true
	}
	for _, r := range spec.References() {
		if !seen[r.To] {
			seen[r.To] = true
			out = append(out, schemas.Reference{Field: []any{"nodes"}, To: r.To, Hard: r.Hard})
		}
	}
	return out
}

// expander expands one DAG.
type expander struct {
	World
	name, session string
	stack         []string // the DAGs that are being called
	nodes         int      // how many were made
	made          *schemas.Expansion
}

func (e *expander) fail(format string, args ...any) {
	if e.made.Fault == "" {
		e.made.Fault = fmt.Sprintf(format, args...)
	}
}

// object looks up an object, and notes it.
func (e *expander) object(ref schemas.Ref) *schemas.Object {
	o := e.Object(ref)
	e.made.Uses[ref] = digestOf(o)
	if o == nil {
		return nil
	}
	return o.Declared()
}

// maxNodes bounds the nodes of an expanded DAG, and maxCalls how many calls they may be inside of: what a small file makes is bounded.
const (
	maxNodes = 100_000
	maxCalls = 32
)

// count counts a node that is made. Once there are too many, the expansion has failed, and is to end.
func (e *expander) count() {
	if e.nodes++; e.nodes > maxNodes {
		e.fail("the DAG would have more than %d nodes", maxNodes)
	}
}

// dag expands the nodes of a spec. caller is the node that calls it, "" for none, with are the values that it gives; full makes the names
// that its nodes have in the end.
func (e *expander) dag(name string, spec *schemas.DAGSpec, caller string, with map[string]any, full func(string) string) []schemas.Node {
	if slices.Contains(e.stack, name) {
		e.fail("node %s: DAGs call each other in a circle: %s", caller, strings.Join(append(e.stack, name), " -> "))
		return nil
	}
	if len(e.stack) > maxCalls {
		e.fail("node %s: DAGs call each other more than %d deep: %s -> …", caller, maxCalls, strings.Join(e.stack[:4], " -> "))
		return nil
	}
	e.stack = append(e.stack, name)
	defer func() { e.stack = e.stack[:len(e.stack)-1] }()
	s := &scope{e: e, spec: spec, full: full, params: e.params(name, spec, caller, with)}
	var out []schemas.Node
	for i := range spec.Nodes {
		if out = append(out, s.node(&spec.Nodes[i])...); e.made.Fault != "" {
			return nil
		}
	}
	return append(out, s.final()...)
}

// params are the values of the parameters: those of the caller, of the spec, of its session, or else the defaults.
func (e *expander) params(name string, spec *schemas.DAGSpec, caller string, with map[string]any) map[string]any {
	if len(spec.Params) == 0 {
		return nil
	}
	session, dag := e.sessionSpec(spec.Session), "dag/"+name+": "
	out := make(map[string]any, len(spec.Params))
	for _, p := range spec.ParamNames() {
		param := spec.Params[p]
		for _, from := range []struct {
			where  string
			values map[string]any
		}{{"node " + caller + ": with." + p, with}, {dag + "spec.with." + p, spec.With},
			{dag + "spec.params." + p + " of session/" + spec.Session, session.Params},
			{dag + "spec.params." + p + ".default", map[string]any{p: param.Default}}} {
			v, ok := from.values[p]
			if !ok || v == nil {
				continue
			}
			taken, err := param.Take(v)
			if err != nil {
				e.fail("%s: %v", from.where, err)
			}
			out[p] = taken
			break
		}
		if _, ok := out[p]; !ok && caller != "" {
			e.fail("node %s: dag/%s: the parameter %s has no value: give it one in with, or a default", caller, name, p)
		} else if !ok {
			e.made.Unset = e.made.Unset || e.made.Fault == ""
			e.fail("dag/%s: the parameter %s has no value: give it a default, a value in spec.with, or run reconcile run dag/%s --param %s=VALUE",
				name, p, e.name, p)
		}
	}
	return out
}

// sessionSpec returns the spec of a session, and notes it; an empty one if the session is missing or the name is empty.
func (e *expander) sessionSpec(name string) *schemas.SessionSpec {
	if name != "" {
		if s := schemas.SpecAs[*schemas.SessionSpec](e.object(schemas.SessionKind.Ref(name))); s != nil {
			return s
		}
	}
	return new(schemas.SessionSpec)
}

// checkNames reports nodes with one name, or with names that are one in the names of variables.
func (e *expander) checkNames(nodes []schemas.Node) {
	seen := make(map[string]string, len(nodes))
	for i := range nodes {
		name := nodes[i].Name
		plain := strings.ReplaceAll(name, "-", "_")
		if first, ok := seen[plain]; ok {
			e.fail("two nodes would be called %s and %s; give the node, or a value of its matrix, another name", first, name)
			return
		}
		seen[plain] = name
	}
}
