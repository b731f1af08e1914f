package advice

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// TestAdvise: each warning, and beside it what must not be warned of.
func TestAdvise(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"reconcile.yaml":    "kind: Settings\nmetadata: {name: settings}\nspec: {people: [{name: ada}], commands: {allow: [ls, \"^cat .*\"], block: [\"rm {\"], roles: {tester: [\"@default\", \"...\"]}}}",
		"specs/plain.yaml":  "kind: Session\nmetadata: {name: plain}\nspec: {owner: ada, pipeline: {inspector: person}}",
		"specs/seen.yaml":   "kind: DAG\nmetadata: {name: seen}\nspec: {session: plain, nodes: [{name: a, agent: path, prompt: x, pipeline: {inspector: here}}, {name: b, agent: path, prompt: x, pipeline: {inspector: looks}}, {name: c, agent: path, prompt: x, pipeline: {inspector: blind}}, {name: d, agent: path, prompt: x, pipeline: {inspector: reads}}]}",
		"specs/blind.yaml":  "kind: Agent\nmetadata: {name: blind}\nspec: {role: inspector, model: m, runner: {http: {baseURL: 'https://example.org/v1'}}}",
		"specs/reads.yaml":  "kind: Agent\nmetadata: {name: reads}\nspec: {role: inspector, model: m, runner: {http: {baseURL: 'https://example.org/v1', tools: read}}}",
		"specs/looks.yaml":  "kind: Agent\nmetadata: {name: looks}\nspec: {role: inspector, runner: {command: {argv: [there]}}}",
		"specs/here.yaml":   "kind: Agent\nmetadata: {name: here}\nspec: {role: r, runner: {command: {argv: [there]}}}",
		"specs/gone.yaml":   "kind: Agent\nmetadata: {name: gone}\nspec: {role: r, runner: {command: {argv: [gone]}}}",
		"specs/path.yaml":   "kind: Agent\nmetadata: {name: path}\nspec: {role: r, runner: {command: {argv: [gone], env: {PATH: /opt}}}}",
		"specs/person.yaml": "kind: Agent\nmetadata: {name: person}\nspec: {role: r, runner: {human: {contact: ada}}}",
		"specs/called.yaml": "kind: DAG\nmetadata: {name: called}\nspec:\n  session: plain\n  policy: {timeout: 1m, failFast: false, retry: {limit: 1}}\n  nodes: [{name: a, run: [x], tools: [there, gone]}]",
		"specs/calls.yaml":  "kind: DAG\nmetadata: {name: calls}\nspec:\n  session: plain\n  policy: {timeout: 1m}\n  nodes: [{name: a, dag: called}, {name: b, dag: only}]",
		"specs/only.yaml":   "kind: DAG\nmetadata: {name: only}\nspec:\n  template: true\n  policy: {maxConcurrency: 1, failFast: true}\n  onFailure: {command: [x]}\n  nodes: [{name: a, run: [x]}]",
		"specs/same.yaml": "kind: DAG\nmetadata: {name: same}\nspec:\n  session: plain\n  nodes:\n" +
			"    - {name: a, run: [x], outputs: {json: r.json, files: [alone]}}\n    - {name: b, run: [x], needs: [a]}\n" +
			"    - {name: c, run: [x], needs: [b], outputs: {files: [r.json]}}\n    - {name: d, run: [x], needs: [b], outputs: {json: r.json}}\n" +
			"    - {name: e, run: [x], outputs: {json: e.json}, when: needs.a.exitCode == 0, needs: [a]}\n    - {name: f, run: [x], outputs: {json: e.json}, when: needs.a.exitCode == 1, needs: [a]}\n",
		"specs/tests.yaml": "kind: DAG\nmetadata: {name: tests}\nspec:\n  session: plain\n  nodes:\n    - {name: a, run: [x], matrix: {values: {go: ['1.2', '1.3'], os: [a]}, " +
			"exclude: [{go: '1.2'}, {go: 1.3}, {os: a, arch: b}, {go: '1.3', os: a}]}}",
		"specs/text.yaml": "kind: DAG\nmetadata: {name: text}\nspec:\n  session: plain\n  nodes:\n    - {name: a, run: [x, '{{ .State }}']}\n" +
			"    - {name: b, run: [x, '{{ needs.a.result }}'], needs: [a]}\n    - {name: c, agent: gone, prompt: '{{ needs.a.state }}', needs: [a]}\n    - {name: d, run: [x, 'to {{ params.env }}']}\n",
		"specs/work.yaml": "kind: DAG\nmetadata: {name: work}\nspec:\n  session: plain\n  nodes:\n    - {name: a, run: [x], outputs: {files: [out/a.txt], keep: true}, approve: {by: [ada, nobody], count: 2}}\n    - {name: b, run: [x], inputs: [found, out/*.txt, lost], approve: {by: [ada], count: 2}}",
	}
	var objects []*schemas.Object
	settings := new(schemas.SettingsSpec)
	for p, text := range files {
		d := schemas.NewDecoder(append(controllers.Schemas(), schemas.SettingsKind), 0).Decode(p, []byte("apiVersion: reconcile.dev/v1alpha1\n"+text+"\n"))
		if d.Object == nil {
			t.Fatal(p, d.Problems)
		}
		if s := schemas.SpecAs[*schemas.SettingsSpec](d.Object); s != nil {
			settings = s
			continue
		}
		objects = append(objects, d.Object)
	}
	var entries []*state.Entry
	for _, o := range objects {
		entries = append(entries, &state.Entry{Ref: schemas.Ref{Kind: o.Kind, Name: o.Metadata.Name}, Object: o})
	}
	all := For(state.NewTree(controllers.Schemas(), settings, nil, entries...), Surroundings{
		Program: func(name string) bool { return name == "there" },
		Input:   func(glob string) bool { return glob == "found" },
	})
	for _, a := range For(state.NewTree(controllers.Schemas(), settings, nil, entries...), Surroundings{
		Program: func(string) bool { return true }, Input: func(string) bool { return true }, Git: true}) {
		if a.Code == "no-repository" {
			t.Errorf("in a repository: %+v", a)
		}
	}
	var got []string
	for _, a := range all {
		got = append(got, a.File+" "+a.Code+" "+strings.Trim(fmt.Sprint(a.Field), "[]"))
	}
	want := []string{
		"reconcile.yaml pattern spec commands allow 1", "reconcile.yaml pattern spec commands block 0",
		"reconcile.yaml pattern spec commands roles tester 1", "specs/called.yaml missing-program spec nodes 0 tools 1",
		"specs/calls.yaml no-effect spec nodes 0 dag", "specs/gone.yaml missing-program spec runner command argv 0",
		"specs/only.yaml no-effect spec onFailure", "specs/plain.yaml bad-role spec pipeline inspector", "specs/same.yaml shared-output spec nodes 2 outputs",
		"specs/seen.yaml bad-role spec nodes 0 pipeline inspector", "specs/seen.yaml bad-role spec nodes 2 pipeline inspector",
		"specs/tests.yaml no-effect spec nodes 0 matrix exclude 1", "specs/tests.yaml no-effect spec nodes 0 matrix exclude 2",
		"specs/text.yaml no-effect spec nodes 1 run 1", "specs/text.yaml no-effect spec nodes 2 prompt",
		"specs/text.yaml no-effect spec nodes 3 run 1",
		"specs/work.yaml no-input spec nodes 1 inputs 2", "specs/work.yaml no-repository spec nodes 0 outputs keep",
		"specs/work.yaml unknown-person spec nodes 0 approve by 1",
		"specs/work.yaml too-few-people spec nodes 1 approve count",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
