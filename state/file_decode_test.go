package state

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

func TestMinify(t *testing.T) {
	for in, want := range map[string]string{
		"{\n  \"a b\": [\n    1,\n    \"x , \\\" y\"\n  ]\n}\n": `{"a b":[1,"x , \" y"]}`,
		"[ true , null ]": "[true,null]",
		`"\\" `:           `"\\"`,
		"1 2":             "1 2",
		"tr ue":           "tr ue",
		"[1 \n 2]":        "[1 2]",
		"\"a,\n b":        "\"a,\n b",
		`"a\" `:           `"a\" `,
		"\"a,\n b\"":      "\"a,\n b\"",
		" \t":             "",
	} {
		if got := string(minify(nil, []byte(in))); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// FuzzMinify: what is JSON says the same, and what is none stays none.
func FuzzMinify(f *testing.F) {
	f.Add([]byte("{\n  \"a b\": [\n    1,\n    \"x , \\\" y\"\n  ]\n}\n"))
	f.Add([]byte("1 2"))
	f.Add([]byte("\"a,\n b\""))
	f.Add([]byte(`{"a\\": - 1, "b": tr ue}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got := minify(nil, data)
		if json.Valid(data) != json.Valid(got) {
			t.Fatalf("%q is JSON: %v; %q: %v", data, json.Valid(data), got, json.Valid(got))
		}
		var want bytes.Buffer
		if json.Compact(&want, data) == nil && want.String() != string(got) {
			t.Fatalf("%q becomes %q, want %q", data, got, want.Bytes())
		}
	})
}

// TestStatusKeepsNoRoom: no list of a status from a file has more room than it needs, and the file's bytes are not kept.
func TestStatusKeepsNoRoom(t *testing.T) {
	data := []byte(`{"apiVersion": "reconcile.dev/v1alpha1", "kind": "DAG", "metadata": {"name": "checks"}, "status": {
  "phase": "Paused", "conditions": [{"type": "Ready"}], "history": [{"reason": "Applied"}, {"reason": "é \u0041"}],
  "layers": [["a", "b"], ["c"]], "nodes": {"a": {"state": "Pending"}}, "actions": [{"name": "x"}]}}`)
	k, _ := testKinds.Find("DAG")
	got, err := new(decodeBuffer).decodeStatus(k, "checks", data, nil)
	if err != nil {
		t.Fatal(err)
	}
	st := got.(*schemas.DAGStatus)
	for name, room := range map[string]int{"conditions": cap(st.Conditions) - len(st.Conditions), "history": cap(st.History) - len(st.History),
		"layers": cap(st.Layers) - len(st.Layers), "a layer": cap(st.Layers[1]) - len(st.Layers[1]), "actions": cap(st.Actions) - len(st.Actions)} {
		if room != 0 {
			t.Errorf("%s: room for %d more", name, room)
		}
	}
	want := envelope{Status: k.NewStatus()}
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	clear(data)
	if !reflect.DeepEqual(got, want.Status) {
		t.Errorf("got %+v, want %+v", got, want.Status)
	}
}
