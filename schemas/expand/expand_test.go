package expand

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/mutants"
)

// decode returns the object of a spec, which must be valid.
func decode(t testing.TB, kind schemas.Kind, name string, spec map[string]any) *schemas.Object {
	t.Helper()
	text, err := json.Marshal(map[string]any{"apiVersion": schemas.APIVersion, "kind": kind.Name, "metadata": map[string]any{"name": name}, "spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	d := schemas.DecoderFor(schemas.Kinds{schemas.DAGKind, schemas.SessionKind}, new(schemas.SettingsSpec)).Decode("specs/"+name+".json", text)
	if d.Object == nil {
		t.Fatalf("%s: %v", text, d.Problems)
	}
	return d.Object
}

func world(results map[string]string, objects ...*schemas.Object) World {
	return World{
		Object: func(ref schemas.Ref) *schemas.Object {
			for _, o := range objects {
				if o.Ref == ref {
					return o
				}
			}
			return nil
		},
		Result: func(node string) (json.RawMessage, bool) {
			raw, ok := results[node]
			return json.RawMessage(raw), ok
		},
	}
}

func expanded(t testing.TB, w World, spec map[string]any) *schemas.DAGSpec {
	t.Helper()
	spec["session"] = "s"
	out := Object(decode(t, schemas.DAGKind, "d", spec), nil, w).Spec().(*schemas.DAGSpec)
	if out.Expansion != nil && out.Expansion.Fault != "" {
		t.Fatal(out.Expansion.Fault)
	}
	return out
}

type fields = map[string]any

// TestAnotherValueChangesNoOtherNode: an expansion is the same each time, and with one more value every node of before is there as it
// was, but for the one that joins them.
func TestAnotherValueChangesNoOtherNode(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	value := func() any {
		return []any{fmt.Sprint("v", r.IntN(1000)), float64(r.IntN(1000)), r.IntN(2) == 0, fields{"id": fmt.Sprint("o", r.IntN(1000)), "n": 1.0}}[r.IntN(4)]
	}
	distinct := func(n int) []any {
		var out []any
		for seen := map[string]bool{}; len(out) < n; {
			if v := value(); !seen[plain(v)] {
				seen[plain(v)], out = true, append(out, v)
			}
		}
		return out
	}
	for range mutants.Size(20, 50, 200) {
		a, b := distinct(1+r.IntN(4)), distinct(2+r.IntN(4))
		listed := func(b []any) []schemas.Node {
			spec := fields{"nodes": []any{fields{"name": "n", "run": []any{"x", "{{ matrix.a }}", "{{ matrix.b }}"}, "matrix": fields{"values": fields{"a": a, "b": b}}}}}
			return expanded(t, world(nil), spec).Nodes
		}
		made := func(b []any) []schemas.Node {
			raw, _ := json.Marshal(b)
			spec := fields{"nodes": []any{fields{"name": "p", "run": []any{"x"}}, fields{"name": "n", "run": []any{"x"}, "matrix": fields{"from": "needs.p.result"}}}}
			return expanded(t, world(map[string]string{"p": string(raw)}), spec).Nodes
		}
		for _, nodes := range []func([]any) []schemas.Node{listed, made} {
			if !reflect.DeepEqual(nodes(b), nodes(b)) {
				t.Fatalf("%v: two expansions differ", b)
			}
			less := append(append([]any(nil), b[:1]...), b[2:]...)
			now := map[string]schemas.Node{}
			for _, n := range nodes(b) {
				now[n.Name] = n
			}
			for _, n := range nodes(less) {
				if !n.Joins() && !reflect.DeepEqual(now[n.Name], n) {
					t.Fatalf("%v: %s became\n%+v, was\n%+v", b, n.Name, now[n.Name], n)
				}
			}
		}
	}
}

func names(s *schemas.DAGSpec) string {
	var out []string
	for i := range s.Nodes {
		out = append(out, s.Nodes[i].Name)
	}
	return strings.Join(out, " ")
}

func TestMatrix(t *testing.T) {
	for matrix, want := range map[string]string{
		`{"values": {"os": ["linux", "Mac OS"], "go": ["1.26", 2]}}`:                                      "n_1-26_linux n_2_linux n_1-26_mac-os n_2_mac-os n",
		`{"values": {"os": ["a", "b"]}, "exclude": [{"os": "a"}], "include": [{"os": "c"}, {"os": "b"}]}`: "n_b n_c n",
		`{"include": [{"name": "one", "x": 1}, {"name": "two", "x": 2}]}`:                                 "n_one n_two n",
		`{"values": {"x": [[1], [2]]}}`:                                                                   "n_080a9ed4 n_d6e1f0f2 n",
	} {
		var m fields
		if err := json.Unmarshal([]byte(matrix), &m); err != nil {
			t.Fatal(err)
		}
		got := names(expanded(t, world(nil), fields{"nodes": []any{fields{"name": "n", "run": []any{"x"}, "matrix": m}}}))
		a, b := strings.Fields(got), strings.Fields(want)
		if len(a) != len(b) || !strings.Contains(want, "080a9ed4") && !sameWords(a, b) {
			t.Errorf("%s: %s, want %s", matrix, got, want)
		}
	}
}

func sameWords(a, b []string) bool {
	seen := map[string]int{}
	for i := range a {
		seen[a[i]]++
		seen[b[i]]--
	}
	for _, n := range seen {
		if n != 0 {
			return false
		}
	}
	return true
}

// TestDigestHasSessionParams: the digest of a DAG has the parameters of its session, also where it calls a DAG with parameters, and
// nothing else of the session.
func TestDigestHasSessionParams(t *testing.T) {
	callee := decode(t, schemas.DAGKind, "c", fields{"template": true, "params": fields{"host": fields{"default": "h"}}, "nodes": []any{fields{"name": "a", "run": []any{"x"}}}})
	caller := decode(t, schemas.DAGKind, "d", fields{"session": "s", "params": fields{"env": fields{}}, "nodes": []any{fields{"name": "n", "dag": "c"}}})
	digest := func(title, env string) string {
		session := decode(t, schemas.SessionKind, "s", fields{"title": title, "params": fields{"env": env}})
		return Object(caller, nil, world(nil, callee, session)).Digest
	}
	if digest("T", "staging") == digest("T", "prod") {
		t.Error("another value of a parameter leaves the digest as it was")
	}
	if digest("T", "staging") != digest("U", "staging") {
		t.Error("another title of the session changes the digest")
	}
}

// TestFaults: what cannot be expanded says what to do.
func TestFaults(t *testing.T) {
	ring := decode(t, schemas.DAGKind, "ring", fields{"session": "s", "nodes": []any{fields{"name": "a", "dag": "d"}}})
	w := world(map[string]string{"p": `{"n": 1}`}, ring)
	for text, want := range map[string]string{
		`{"params": {"env": {}}, "nodes": [{"name": "a", "run": ["x"]}]}`:                                                          "the parameter env has no value",
		`{"params": {"n": {"default": "x"}}, "nodes": [{"name": "a", "run": ["x"], "outputs": {"files": ["../{{ params.n }}"]}}]}`: "node a: ",
		`{"nodes": [{"name": "a", "dag": "ring"}]}`:                                                                                "d -> ring -> d",
		`{"nodes": [{"name": "a", "dag": "none"}]}`:                                                                                "dag/none, which is missing",
		`{"nodes": [{"name": "a", "run": ["x"], "matrix": {"values": {"v": ["1.2", "1-2"]}}}]}`:                                    "would be called 1-2",
		`{"nodes": [{"name": "a", "run": ["x"], "matrix": {"values": {"v": [1, 2, 3]}, "max": 2}}]}`:                               "raise matrix.max",
		`{"nodes": [{"name": "a_x", "run": ["x"]}, {"name": "a", "run": ["x"], "matrix": {"values": {"v": ["x"]}}}]}`:              "two nodes would be called a_x",
	} {
		var spec fields
		if err := json.Unmarshal([]byte(text), &spec); err != nil {
			t.Fatal(err)
		}
		spec["session"] = "s"
		made := Object(decode(t, schemas.DAGKind, "d", spec), nil, World{Object: func(ref schemas.Ref) *schemas.Object {
			if ref.Name == "d" {
				return decode(t, schemas.DAGKind, "d", spec)
			}
			return w.Object(ref)
		}, Result: w.Result}).Spec().(*schemas.DAGSpec).Expansion
		if made == nil || !strings.Contains(made.Fault, want) {
			t.Errorf("%s: %+v, want %s", text, made, want)
		}
	}
}

// BenchmarkExpand shows that the time is linear in the elements.
func BenchmarkExpand(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			values := make([]any, n)
			for i := range values {
				values[i] = fmt.Sprint("v", i)
			}
			o := decode(b, schemas.DAGKind, "d", fields{"session": "s", "nodes": []any{fields{"name": "n", "run": []any{"x", "{{ matrix.v }}"},
				"matrix": fields{"values": fields{"v": values}, "max": n}}}})
			for b.Loop() {
				if got := Object(o, nil, world(nil)).Spec().(*schemas.DAGSpec); len(got.Nodes) != n+1 {
					b.Fatal(len(got.Nodes), got.Expansion.Fault)
				}
			}
		})
	}
}

func TestMutants(t *testing.T) {
	mutants.Suite{Mutants: []mutants.Mutant{
		{"names are positions", "matrix.go", "out = append(out, element{name, v})", "out = append(out, element{fmt.Sprint(\"n\", len(out)), v})"},
		{"elements with one name are made", "matrix.go", "if names[name] && problem == \"\" {", "if false {"},
		{"a matrix has no bound", "matrix.go", "if len(all) > m.Max {", "if false {"},
		{"a node sees parameters that it does not use", "uses.go", "n.Made.Params = s.uses(n)", ""},
		{"a name that a program makes stands for none", "uses.go", "u.note(nil, true)", ""},
		{"the variables of a script are not seen", "uses.go", "u.variables(n.Script)", ""},
		{"a command has no former key", "uses.go", "n.Made.Former = given(all, n.Made.Matrix)", ""},
	}, Args: []string{"-run", "TestAnother|TestFaults|TestUses"}}.Run(t)
}

// TestSmallFilesThatMakeMuch: an expansion ends once it has too many nodes, or too many calls inside of each other.
func TestSmallFilesThatMakeMuch(t *testing.T) {
	values := make([]any, 256)
	for i := range values {
		values[i] = float64(i)
	}
	chain := func(length int, node fields) *schemas.DAGSpec {
		var callees []*schemas.Object
		for i := range length {
			n := fields{"name": "x", "run": []string{"true"}}
			if i > 0 {
				n = fields{"name": "x", "dag": fmt.Sprint("c", i-1)}
			}
			for field, v := range node {
				n[field] = v
			}
			callees = append(callees, decode(t, schemas.DAGKind, fmt.Sprint("c", i), fields{"template": true, "nodes": []any{n}}))
		}
		d := decode(t, schemas.DAGKind, "d", fields{"session": "s", "nodes": []any{fields{"name": "go", "dag": fmt.Sprint("c", length-1)}}})
		return Object(d, nil, world(nil, callees...)).Spec().(*schemas.DAGSpec)
	}
	matrix := fields{"matrix": fields{"values": fields{"a": values}}}
	for _, c := range []struct {
		length int
		node   fields
		want   string
	}{
		{2, matrix, ""}, {8, matrix, "the DAG would have more than 100000 nodes"}, {32, nil, ""},
		{33, nil, "DAGs call each other more than 32 deep: d -> c32 -> c31 -> c30"},
	} {
		if got := chain(c.length, c.node).Expansion.Fault; (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%d calls: %q, want %q", c.length, got, c.want)
		}
	}
}
