package advice

import (
	"maps"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/state"
)

// owner is where a field is, for advice about it.
type owner struct {
	ref  schemas.Ref
	file string
}

const (
	agentKey = "revoke the key, and name where the new one is: runner.keyFrom: {env: …_API_KEY}, or {file: …}"
	hookKey  = "revoke the address, and name where the new one is: url: {from: env, name: …_WEBHOOK_URL}, or {from: file, path: …}"
	otherKey = "revoke the key, and name where the new one is: env: {NAME: {from: env}}, or {from: file, path: …}"
)

// adviseKeys refuses keys in the spec of an agent: everything in a tree is visible to all readers of the repository.
func adviseKeys(e *state.Entry, spec *schemas.AgentSpec) (all []Advice) {
	o := owner{e.Ref, e.Object.Path}
	if c := spec.Runner.Command; c != nil {
		all = o.keys([]any{"spec", "runner", "command"}, c.Env, c.Argv, agentKey)
	}
	if a := spec.Runner.ACP; a != nil {
		all = o.keys([]any{"spec", "runner", "acp"}, a.Env, a.Argv, agentKey)
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Runner.MCPServers)) {
		s := spec.Runner.MCPServers[name]
		all = append(all, o.keys([]any{"spec", "runner", "mcpServers", name}, s.Env, s.Argv, otherKey)...)
	}
	return all
}

// adviseEnv refuses keys in the environment of sessions, and of nodes.
func adviseEnv(t *state.Tree) (all []Advice) {
	for _, e := range t.Entries(schemas.SessionKind.Name) {
		if spec := schemas.SpecAs[*schemas.SessionSpec](e.Object); spec != nil {
			all = append(all, owner{e.Ref, e.Object.Path}.keys([]any{"spec"}, spec.Env, nil, otherKey)...)
		}
	}
	for _, e := range t.Entries(schemas.DAGKind.Name) {
		spec := schemas.SpecAs[*schemas.DAGSpec](e.Object)
		if spec == nil {
			continue
		}
		for i := range spec.Nodes {
			if n := &spec.Nodes[i]; len(n.Env) > 0 {
				all = append(all, owner{e.Ref, e.Object.Path}.keys([]any{"spec", "nodes", i}, n.Env, nil, otherKey)...)
			}
		}
		all = owner{e.Ref, e.Object.Path}.notices(all, schemas.OnFailure, spec.OnFailure)
		all = owner{e.Ref, e.Object.Path}.notices(all, schemas.OnSuccess, spec.OnSuccess)
	}
	return all
}

// notices adds advice about keys in notifications.
func (o owner) notices(all []Advice, field string, list schemas.Notifications) []Advice {
	for i := range list {
		n, at := &list[i], []any{"spec", field, i}
		all = append(all, o.keys(at, n.Env, nil, otherKey)...)
		if w := n.Webhook; w != nil && w.URL.From == "" && isKey("", w.URL.Text) {
			all = append(all, o.literalKey(append(at, "webhook", "url"), hookKey))
		}
	}
	return all
}

// keys finds what looks like a key in variables and arguments of a program. No message repeats it.
func (o owner) keys(at []any, env schemas.Env, argv []string, do string) (all []Advice) {
	add := func(field ...any) {
		all = append(all, o.literalKey(append(slices.Clone(at), field...), do))
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if isKey(name, env[name].Text) {
			add("env", name)
		}
	}
	for i, arg := range argv {
		before := ""
		if i > 0 && strings.HasPrefix(argv[i-1], "-") {
			before = strings.TrimLeft(argv[i-1], "-")
		}
		if isKey(before, arg) {
			add("argv", i)
		}
	}
	return all
}

// LiteralKey is the code of a text that looks like a key.
const LiteralKey = "literal-key"

func (o owner) literalKey(field []any, do string) Advice {
	return Advice{Code: LiteralKey, Ref: o.ref, File: o.file, Field: field, Refused: true,
		Message: "looks like a key, and everybody who can read the repository can read it", Suggestion: do}
}

// isKey reports whether a text looks like a key, on its own or as the value of its name.
func isKey(name, value string) bool {
	return len(secrets.Find(value)) > 0 || name != "" && len(secrets.Find(name+"="+value)) > 0
}
