package ops

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/edit"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/controllers/permits"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/commands"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// answerPermission makes an approval or a refusal the answer to the first request of the node's agent that is open, and returns
// the request; nil if there is none. With PermitAlways it writes a rule.
func (e Env) answerPermission(s *state.Store, t *state.Tree, spec *schemas.ActionSpec, q ActRequest) (*schemas.Permission, error) {
	if spec.Verb != schemas.VerbApprove && spec.Verb != schemas.VerbDeny {
		return nil, nil
	}
	var open []schemas.Permission
	ref, err := spec.TargetRef()
	if entry := t.Entry(ref); err == nil && entry != nil && spec.Node != "" {
		open = permits.Waiting(t, entry, spec.Node)
	}
	if len(open) == 0 {
		if spec.Verb == schemas.VerbDeny || q.For != "" {
			return nil, fmt.Errorf("the agent of %s asks for nothing; reconcile ready lists what waits", strings.TrimSpace(spec.Target+" "+spec.Node))
		}
		return nil, nil
	}
	asked := &open[0]
	if q.For == PermitAlways {
		if err := e.allowAlways(s, t, ref, spec.Node, asked); err != nil {
			return nil, err
		}
		q.For = ""
	}
	spec.Permission = permits.Answer(asked, q.For)
	return asked, nil
}

// allowAlways writes a rule that allows a command into the list of the settings that applies to the node's agent.
func (e Env) allowAlways(s *state.Store, t *state.Tree, dag schemas.Ref, node string, asked *schemas.Permission) error {
	if len(asked.Argv) == 0 {
		return badField("always", " makes a rule about a command, and the agent asks to use %q: use --session", asked.Title)
	}
	patterns, err := commands.Exact(commands.Command{Argv: asked.Argv, Shell: asked.Shell})
	if err != nil {
		return badField("always", " cannot make a rule about this command: %v; use --session", err)
	}
	settings, agent := t.Settings(), ""
	for _, n := range state.SpecOf[*schemas.DAGSpec](t.Entry(dag)).Nodes {
		if n.Name == node {
			agent = n.Agent
		}
	}
	field, list := []string{"commands", "allow"}, settings.Commands.Allow
	if role := permits.Role(t, agent); role != "" {
		field, list = []string{"commands", "roles", role}, settings.Commands.Roles[role]
	}
	src, err := regular.Read(s.Root(), schemas.SettingsPath)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return regular.Cause(err)
	}
	if err != nil {
		src = []byte("apiVersion: " + schemas.APIVersion + "\nkind: Settings\nmetadata: {name: settings}\nspec: {}\n")
	}
	if len(list) == 0 {
		patterns = append([]string{commands.Default}, patterns...)
	}
	data, err := edit.AddToList(src, field, patterns)
	if err == nil {
		err = checkRule(t, src, data, field, append(patterns[:len(patterns):len(patterns)], list...))
	}
	if err != nil {
		return fmt.Errorf("%s: %w; add %q to spec.%s by hand, and approve without --always", schemas.SettingsPath, err, patterns, strings.Join(field, "."))
	}
	if err := durable.Apply(s.Root(), specs.Scratch, []durable.Op{{Path: schemas.SettingsPath, Data: data}}); err != nil {
		return err
	}
	e.note("%s allows %s", schemas.SettingsPath, schemas.Shorten(patterns, 3))
	return nil
}

// checkRule verifies with the decoder that the edit changed one list of the settings and nothing else.
func checkRule(t *state.Tree, before, after []byte, field, want []string) error {
	decode := func(src []byte) *schemas.SettingsSpec {
		d := schemas.DecoderFor(append(settle.TableOf(t).Schemas(), schemas.SettingsKind), t.Settings()).Decode(schemas.SettingsPath, src)
		if d.Object == nil {
			return nil
		}
		return schemas.SpecAs[*schemas.SettingsSpec](d.Object)
	}
	was, is := decode(before), decode(after)
	if was == nil || is == nil {
		return errors.New("the text cannot be changed safely")
	}
	expected := *was
	if len(field) == 2 {
		expected.Commands.Allow = want
	} else {
		expected.Commands.Roles = map[string][]string{field[2]: want}
		for role, list := range was.Commands.Roles {
			if role != field[2] {
				expected.Commands.Roles[role] = list
			}
		}
	}
	if !reflect.DeepEqual(&expected, is) {
		return errors.New("the text cannot be changed safely")
	}
	return nil
}
