package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/edit"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// setParams writes the values of parameters into the spec of the DAG that is to run.
func (e Env) setParams(ctx context.Context, q RunRequest) error {
	switch {
	case len(q.Params) == 0:
		return nil
	case q.Object == "":
		return badField("param", " sets a parameter of one DAG: name it, as dag/NAME")
	}
	if err := e.authorize("Run"); err != nil {
		return err
	}
	s, t, err := e.load(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	found, err := find(t, q.Object)
	if err != nil {
		return badRequest("%w", err)
	}
	spec := schemas.SpecAs[*schemas.DAGSpec](found.Object)
	if spec == nil {
		return badRequest("%s is no DAG that can run; reconcile describe %[1]s says why", found.Ref)
	}
	values := maps.Clone(spec.With)
	if values == nil {
		values = map[string]any{}
	}
	given := map[string]string{}
	for _, p := range q.Params {
		name, text, ok := strings.Cut(p, "=")
		param, known := spec.Params[name]
		switch {
		case !ok:
			return badField("param", ": %q is not NAME=VALUE", p)
		case !known:
			return badField("param", ": %s has no parameter %q; it has: %s", found.Ref, name, strings.Join(spec.ParamNames(), ", "))
		}
		v, err := param.Take(text)
		if err != nil {
			return badField("param", ": %s: %v", name, err)
		}
		raw, err := json.Marshal(v)
		if err != nil {
			return err
		}
		values[name], given[name] = v, string(raw)
	}
	return writeParams(s.Root(), t, found.Object, given, values)
}

// writeParams changes values in a spec's text, and verifies with the decoder that nothing else changed.
func writeParams(root *os.Root, t *state.Tree, o *schemas.Object, given map[string]string, values map[string]any) error {
	byHand := func(err error) error {
		return badRequest("%s: %w; write the values into spec.with by hand", o.Path, err)
	}
	src, err := regular.Read(root, o.Path)
	if err != nil {
		return byHand(regular.Cause(err))
	}
	data, err := edit.SetIn(src, "with", given)
	if err != nil {
		return byHand(err)
	}
	d := schemas.DecoderFor(settle.TableOf(t).Schemas(), t.Settings()).Decode(o.Path, data)
	if d.Object == nil || d.Object.Ref != o.Ref {
		return byHand(errors.New("the text cannot be changed safely"))
	}
	want := *schemas.SpecAs[*schemas.DAGSpec](o.Declared())
	want.With = values
	if !reflect.DeepEqual(&want, schemas.SpecAs[*schemas.DAGSpec](d.Object)) {
		return byHand(errors.New("the text cannot be changed safely"))
	}
	if err := durable.Apply(root, specs.Scratch, []durable.Op{{Path: o.Path, Data: data}}); err != nil {
		return fmt.Errorf("write %s: %w", o.Path, err)
	}
	return nil
}
