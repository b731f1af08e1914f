package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/regular"
	"sigs.k8s.io/yaml"
)

// CreateRequest requests the spec of a new object.
type CreateRequest struct {
	Kind, Name string
	Labels     map[string]string
	// Fields are fields of the spec with their values, as YAML.
	Fields map[string]string
	DryRun bool // only return the text
	// Change lets a person change the text before it is applied, as in [EditRequest]; nil: it is applied unchanged.
	Change func(ctx context.Context, copy string) error
}

// Create creates an object of a kind: it makes the text of its spec from a template, with a comment on each field, and
// applies it. text is the text of the spec before Change.
func Create(ctx context.Context, env Env, q CreateRequest) (changes []SpecChange, text []byte, err error) {
	k, ok := env.kinds().Find(q.Kind)
	if !ok {
		return nil, nil, badRequest("no kind is called %q%s", q.Kind, kindHint(env.kinds(), q.Kind))
	}
	if err := schemas.CheckName(q.Name); err != nil {
		return nil, nil, badRequest("%w", err)
	}
	ref := schemas.Ref{Kind: k.Name, Name: q.Name}
	text, missing, err := template(k, ref, q)
	switch {
	case err != nil || q.DryRun:
		return nil, text, typed(err)
	case len(missing) > 0 && q.Change == nil:
		return nil, text, badField("set", ": %s needs %s: give each with --set %s=VALUE, or write the spec in an editor with --edit; nothing was written",
			k.Singular(), strings.Join(missing, ", "), missing[0])
	}
	s, t, err := env.load(ctx)
	if err != nil {
		return nil, text, typed(err)
	}
	is, where := t.Entry(ref), newSpecPath(t, ref)
	if err := s.Close(); err != nil {
		return nil, text, typed(err)
	}
	if is != nil && !is.Gone() {
		return nil, text, badRequest("%s exists already, in %s: reconcile edit %[1]s changes it", ref, specPath(is))
	}
	if q.Change != nil {
		changes, err = env.applyEdited(ctx, where, text, ref, q.Change)
	} else {
		changes, err = env.applyOne(ctx, where, text, ref)
	}
	return changes, text, typed(err)
}

// template returns the text of a spec, the given fields, and the other fields as comments; and the required fields that
// are missing.
func template(k schemas.Kind, ref schemas.Ref, q CreateRequest) (text []byte, missing []string, err error) {
	spec, err := schemas.Explain(k, []string{"spec"})
	if err != nil {
		return nil, nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n", schemas.APIVersion, k.Name, ref.Name)
	if len(q.Labels) > 0 {
		labels, err := yaml.Marshal(map[string]any{"labels": q.Labels})
		if err != nil {
			return nil, nil, err
		}
		b.WriteString(indent(string(labels), "  "))
	}
	b.WriteString("spec:\n")
	left := maps.Clone(q.Fields)
	for _, f := range spec.Fields {
		name := f.Path[strings.LastIndexByte(f.Path, '.')+1:]
		first, _, _ := strings.Cut(f.Description, ". ")
		fmt.Fprintf(&b, "  # %s\n", strings.Join(strings.Fields(first), " "))
		value, given := left[name]
		delete(left, name)
		switch {
		case given:
			text, err := fieldText(name, value)
			if err != nil {
				return nil, nil, err
			}
			b.WriteString(indent(text, "  "))
		case f.Required:
			missing = append(missing, name)
			fmt.Fprintf(&b, "  # %s: (%s, required)\n", name, f.Type)
		case f.Default != "":
			fmt.Fprintf(&b, "  # %s: %s\n", name, f.Default)
		default:
			fmt.Fprintf(&b, "  # %s: (%s)\n", name, f.Type)
		}
	}
	if len(left) > 0 {
		name := slices.Sorted(maps.Keys(left))[0]
		var words []string
		for _, f := range spec.Fields {
			words = append(words, f.Path[strings.LastIndexByte(f.Path, '.')+1:])
		}
		return nil, nil, badField("set", " %s: %s has no such field%s; reconcile explain %[2]s.spec lists them", name, k.Singular(), schemas.DidYouMean(name, words))
	}
	text = []byte(b.String())
	if len(q.Fields)+len(missing) == 0 && q.Change == nil { // comments alone are no value
		text = bytes.Replace(text, []byte("\nspec:\n"), []byte("\nspec: {} # without the braces when it has a field\n"), 1)
	}
	return text, missing, nil
}

// fieldText returns a field of a spec as YAML. value is YAML, too.
func fieldText(name, value string) (string, error) {
	v, err := schemas.JSONOfYAML(name, []byte(value))
	if err != nil {
		return "", badField("set", " %s: the value is not YAML: %v", name, err)
	}
	text, err := yaml.Marshal(map[string]json.RawMessage{name: v})
	return string(text), err
}

func indent(text, by string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(by + line)
	}
	return b.String()
}

// Edit edits the spec of an existing object: it calls the change of an EditRequest on a copy of the spec, and applies
// the edited text.
func Edit(ctx context.Context, env Env, q EditRequest) ([]SpecChange, error) {
	s, t, err := env.load(ctx)
	if err != nil {
		return nil, typed(err)
	}
	defer s.Close()
	e, err := find(t, q.Object)
	switch {
	case err != nil:
	case e.Gone():
		err = notFound(t, e.Ref)
	default:
		err = errors.Join(env.mayWrite(t, e.Ref, e, e.Object), immutable(e.Ref))
	}
	if err != nil {
		return nil, typed(err)
	}
	text, err := regular.Read(s.Root(), specPath(e))
	if err != nil {
		return nil, typed(err)
	}
	return env.applyEdited(ctx, specPath(e), text, e.Ref, q.Change)
}

// applyEdited lets the caller change a text and applies it. If the text cannot be applied it is kept, and the error
// names its file.
func (e Env) applyEdited(ctx context.Context, name string, text []byte, ref schemas.Ref, change func(context.Context, string) error) ([]SpecChange, error) {
	dir, err := os.MkdirTemp("", "reconcile-edit-")
	if err != nil {
		return nil, typed(err)
	}
	root, err := regular.Root(dir)
	if err != nil {
		return nil, typed(err)
	}
	defer root.Close()
	file := filepath.Join(dir, path.Base(name))
	err = regular.Write(root, path.Base(name), text, 0o600)
	if err == nil {
		err = change(ctx, file)
	}
	var edited []byte
	if err == nil {
		edited, err = regular.ReadPath(file)
	}
	var changes []SpecChange
	if err == nil {
		changes, err = e.applyOne(ctx, name, edited, ref)
	}
	if err != nil {
		return nil, &Error{Code: CodeOf(err), Err: fmt.Errorf("%w; your text is kept in %s", err, file)}
	}
	return changes, typed(os.RemoveAll(dir))
}
