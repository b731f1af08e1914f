package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"

	"reconcile.dev/reconcile/schemas"
)

// baseURL is where the schemas are published; it is a name, nothing is fetched from it.
const baseURL = "https://reconcile.dev/schemas/v1alpha1/"

// durationPattern is a non-negative Go duration; schemas.ParseDuration has the last word.
const durationPattern = `^([0-9]+(\.[0-9]*)?(ns|us|µs|μs|ms|s|m|h))+$|^0$`

// reflector turns Go types into schemas, with the doc comments of the package in folder dir as descriptions.
func reflector(dir string) (*jsonschema.Reflector, error) {
	r := &jsonschema.Reflector{DoNotReference: true, Anonymous: true}
	r.Mapper = func(t reflect.Type) *jsonschema.Schema { return special(r, t) }
	if err := r.AddGoComments("reconcile.dev/reconcile", dir, jsonschema.WithFullComment()); err != nil {
		return nil, fmt.Errorf("read comments of %s: %w", dir, err)
	}
	for name, text := range r.CommentMap {
		r.CommentMap[name] = describe(name[strings.LastIndexByte(name, '.')+1:], text)
	}
	return r, nil
}

// describe turns a doc comment into a description. Go's comments begin with the name of the field; the reader of a
// schema knows the field by another name, which is shown next to the description anyway.
func describe(name, comment string) string {
	text := strings.Join(strings.Fields(comment), " ")
	rest, ok := strings.CutPrefix(text, name+" ")
	if !ok {
		return text
	}
	for _, verb := range []string{"is ", "are "} {
		if after, ok := strings.CutPrefix(rest, verb); ok {
			rest = after
			break
		}
	}
	return strings.ToUpper(rest[:1]) + rest[1:]
}

// special gives the schemas of types that marshal as something else than they are.
func special(r *jsonschema.Reflector, t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[schemas.Schedules]():
		s := either(part(r, schemas.Schedule{}), "object", "array")
		s.Items = part(r, schemas.Schedule{})
		return s
	case reflect.TypeFor[schemas.Notifications]():
		s := either(part(r, schemas.Notification{}), "object", "array")
		s.Items = part(r, schemas.Notification{})
		return s
	case reflect.TypeFor[schemas.EnvValue]():
		return either(part(r, schemas.EnvSource{}), "string", "object")
	case reflect.TypeFor[schemas.Duration]():
		return &jsonschema.Schema{Type: "string", Format: "go-duration", Pattern: durationPattern,
			Examples: []any{"90s", "10m", "1h30m"}}
	case reflect.TypeFor[schemas.Time]():
		return &jsonschema.Schema{Type: "string", Format: "date-time", Examples: []any{"2026-02-27T10:00:00Z"}}
	}
	return nil
}

// either lets a value have one of two types.
func either(s *jsonschema.Schema, a, b string) *jsonschema.Schema {
	s.Type, s.Extras = "", map[string]any{"type": []string{a, b}}
	return s
}

// document is the schema of a whole file of kind k.
func document(r *jsonschema.Reflector, k schemas.Kind) *jsonschema.Schema {
	props := jsonschema.NewProperties()
	props.Set("apiVersion", &jsonschema.Schema{Type: "string", Const: schemas.APIVersion,
		Description: "The version of this format."})
	props.Set("kind", &jsonschema.Schema{Type: "string", Const: k.Name, Description: k.Short})
	props.Set("metadata", described(part(r, schemas.Metadata{}), "Names and describes the object."))
	props.Set("spec", described(part(r, k.New()), "What is wanted."))
	return &jsonschema.Schema{
		Version: jsonschema.Version, ID: jsonschema.ID(baseURL + k.Singular() + ".schema.json"),
		Title: k.Name, Description: k.Short, Type: "object", Properties: props,
		Required: []string{"apiVersion", "kind", "metadata", "spec"}, AdditionalProperties: jsonschema.FalseSchema,
	}
}

// workflowTOML is the schema of a workflow's TOML form, for editors: the same spec without the envelope.
func workflowTOML(r *jsonschema.Reflector) *jsonschema.Schema {
	spec := part(r, schemas.WorkflowSpec{})
	steps, _ := spec.Properties.Get("steps")
	head := jsonschema.NewProperties()
	name, _ := part(r, schemas.Metadata{}).Properties.Get("name")
	head.Set("name", name)
	for _, field := range []string{"title", "description", "params"} {
		s, _ := spec.Properties.Get(field)
		head.Set(field, s)
	}
	props := jsonschema.NewProperties()
	props.Set("workflow", &jsonschema.Schema{Type: "object", Properties: head, Required: []string{"name"},
		AdditionalProperties: jsonschema.FalseSchema, Description: "Names and describes the workflow."})
	props.Set("steps", steps)
	return &jsonschema.Schema{
		Version: jsonschema.Version, ID: baseURL + "workflow.toml.schema.json", Title: "Workflow (TOML)",
		Description: schemas.WorkflowKind.Short, Type: "object", Properties: props,
		Required: []string{"workflow", "steps"}, AdditionalProperties: jsonschema.FalseSchema,
	}
}

func part(r *jsonschema.Reflector, v any) *jsonschema.Schema {
	s := r.Reflect(v)
	s.Version, s.ID = "", ""
	return s
}

func described(s *jsonschema.Schema, text string) *jsonschema.Schema {
	s.Description = text
	return s
}

func encode(s *jsonschema.Schema) ([]byte, error) {
	b, err := json.MarshalIndent(s, "", " ") // they are a part of the program
	if err != nil {
		return nil, fmt.Errorf("encode the schema %s: %w", s.Title, err)
	}
	return append(b, '\n'), nil
}
