package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"

	yaml3 "go.yaml.in/yaml/v3"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/durable"
	"sigs.k8s.io/yaml"
)

// SpecText is a text of one or several YAML documents with specs.
type SpecText struct {
	Name string // the name in problems; for a file with the extension of its format
	Text []byte
}

// ApplyRequest requests that specs are written.
type ApplyRequest struct {
	Texts  []SpecText
	DryRun bool // write nothing
}

// SpecChange is the change of one object's spec.
type SpecChange struct {
	Ref    string `json:"ref"`
	Path   string `json:"path"`
	Change string `json:"change"` // created, configured, unchanged or deleted
}

// Apply decodes the specs in the texts of an ApplyRequest, and writes each object to its file; a new object's file is
// specs/<kinds>/<name>.yaml. All are checked first: if one cannot be written, none is.
func Apply(ctx context.Context, env Env, q ApplyRequest) ([]SpecChange, error) {
	s, t, err := env.load(ctx)
	if err != nil {
		return nil, typed(err)
	}
	defer s.Close()
	all, err := decodeAll(t, q.Texts)
	if err != nil {
		return nil, typed(err)
	}
	changes := make([]SpecChange, len(all))
	var files []durable.Op
	for i, d := range all {
		var data []byte
		if changes[i], data, err = env.planApply(s, t, d); err != nil {
			return nil, typed(err)
		}
		if data != nil {
			files = append(files, durable.Op{Path: changes[i].Path, Data: data})
		}
	}
	if q.DryRun || len(files) == 0 {
		return changes, nil
	}
	return changes, typed(errors.Join(durable.Apply(s.Root(), specs.Scratch, files), s.Announce()))
}

// document is one decoded spec with its text.
type document struct {
	*schemas.Object
	text []byte
}

// decodeAll decodes all documents, which must be valid and have different objects.
func decodeAll(t *state.Tree, texts []SpecText) ([]document, error) {
	decoder := schemas.DecoderFor(settle.TableOf(t).Schemas(), t.Settings())
	var all []document
	var problems []schemas.Problem
	seen := map[schemas.Ref]bool{}
	for _, text := range texts {
		for _, part := range specsIn(text) {
			d := decoder.Decode(part.name, part.text)
			switch {
			case d.Object == nil:
				for _, p := range d.Problems {
					if p.Severity == schemas.Error {
						problems = append(problems, part.locate(p, text.Name))
					}
				}
			case seen[d.Object.Ref]:
				return nil, badRequest("%s: %s is given twice; nothing was written", text.Name, d.Object.Ref)
			default:
				seen[d.Object.Ref] = true
				all = append(all, document{d.Object, bytes.TrimLeft(part.text, "\n")})
			}
		}
	}
	switch {
	case len(problems) > 0:
		return nil, &Error{Code: Invalid, Err: &ProblemsError{problems}}
	case len(all) == 0:
		return nil, badRequest("there is no object in %s; nothing was written", givenNames(texts))
	}
	return all, nil
}

// givenNames lists the names of texts for a message.
func givenNames(texts []SpecText) string {
	names := make([]string, len(texts))
	for i, t := range texts {
		names[i] = t.Name
	}
	return schemas.Shorten(names, 5)
}

// splitDocuments splits a stream of YAML documents. Leading empty lines preserve the line numbers of each. Empty
// documents are omitted.
func splitDocuments(text []byte) [][]byte {
	var out [][]byte
	var part []byte
	empty := true
	end := func() {
		if !empty {
			out = append(out, part)
		}
		part, empty = bytes.Repeat([]byte("\n"), bytes.Count(part, []byte("\n"))+1), true
	}
	for line := range bytes.Lines(text) {
		content := bytes.TrimSpace(line)
		if bytes.Equal(content, []byte("---")) && line[0] == '-' {
			end()
			continue
		}
		part = append(part, line...)
		empty = empty && (len(content) == 0 || content[0] == '#')
	}
	end()
	return out
}

// appliedPart is one spec of a text.
type appliedPart struct {
	name string // for the decoder; its extension names the format of text
	text []byte
	// place is that of an object whose text has other lines than the given one; nil: the lines are the same.
	place *schemas.Place
	field string // items[2], for an item of a list
}

// locate moves a problem of the part's text to its place in the given text.
func (p appliedPart) locate(problem schemas.Problem, given string) schemas.Problem {
	problem.Path = given
	if p.place != nil {
		problem.Line, problem.Column, problem.Source = p.place.Line, p.place.Column, ""
		problem.Field = strings.TrimSuffix(p.field+"."+problem.Field, ".")
	}
	return problem
}

// specsIn splits a text into specs. It accepts the output of reconcile get: it removes statuses, and splits lists, also
// lists in lists.
func specsIn(given SpecText) []appliedPart {
	var out []appliedPart
	for _, part := range splitDocuments(given.Text) {
		var root yaml3.Node
		var fields map[string]any
		if yaml3.Unmarshal(part, &root) != nil || len(root.Content) == 0 || yaml.Unmarshal(part, &fields) != nil {
			out = append(out, appliedPart{name: given.Name, text: part})
			continue
		}
		anew := appliedPart{name: strings.TrimSuffix(given.Name, path.Ext(given.Name)) + ".yaml"}
		switch items := itemsOf(root.Content[0], fields); {
		case items != nil:
			out = append(out, anew.items(items, fields)...)
		case fields["status"] != nil && fields["spec"] != nil:
			delete(fields, "status")
			if spec, err := yaml.Marshal(fields); err == nil {
				anew.text = spec
				if anew.name != given.Name {
					anew.place = &schemas.Place{Line: root.Content[0].Line, Column: root.Content[0].Column}
				}
				out = append(out, anew)
			}
		default:
			out = append(out, appliedPart{name: given.Name, text: part})
		}
	}
	return out
}

// itemsOf returns the items of a list with their places; nil for any other object.
func itemsOf(object *yaml3.Node, fields map[string]any) *yaml3.Node {
	if _, isList := fields["items"].([]any); !isList || fields["kind"] != "List" {
		return nil
	}
	for i := 0; i+1 < len(object.Content); i += 2 {
		if object.Content[i].Value == "items" && object.Content[i+1].Kind == yaml3.SequenceNode {
			return object.Content[i+1]
		}
	}
	return nil
}

// items returns the specs in a list. Each has the name of p, and a field below that of p.
func (p appliedPart) items(places *yaml3.Node, list map[string]any) []appliedPart {
	var out []appliedPart
	values, _ := list["items"].([]any)
	for i, value := range values {
		at := places.Content[i]
		item := appliedPart{name: p.name, field: strings.TrimPrefix(fmt.Sprintf("%s.items[%d]", p.field, i), "."),
			place: &schemas.Place{Line: at.Line, Column: at.Column}}
		fields, _ := value.(map[string]any)
		if inner := itemsOf(at, fields); inner != nil {
			out = append(out, item.items(inner, fields)...)
			continue
		}
		delete(fields, "status")
		if spec, err := yaml.Marshal(value); err == nil {
			item.text = spec
			out = append(out, item)
		}
	}
	return out
}

// planApply determines the file and the content for the spec of an object; nil content if the spec is unchanged.
func (e Env) planApply(s *state.Store, t *state.Tree, d document) (SpecChange, []byte, error) {
	c := SpecChange{Ref: d.Ref.String()}
	is := t.Entry(d.Ref)
	if err := e.mayWrite(t, d.Ref, is, d.Object); err != nil {
		return c, nil, err
	}
	if err := specs.CheckSecrets(d.Name, d.Spec()); err != nil {
		return c, nil, err
	}
	switch {
	case is != nil && is.Object != nil:
		c.Path, c.Change = is.Object.Path, "configured"
		if is.Object.Digest == d.Digest && reflect.DeepEqual(is.Object.Metadata, d.Metadata) {
			c.Change = "unchanged"
			return c, nil, nil
		}
		if err := immutable(d.Ref); err != nil {
			return c, nil, err
		}
	case is != nil && is.Broken():
		c.Path, c.Change = is.Problems[0].Path, "configured"
	default:
		c.Path, c.Change = newSpecPath(t, d.Ref), "created"
		if _, err := s.Root().Lstat(c.Path); !errors.Is(err, fs.ErrNotExist) {
			return c, nil, fmt.Errorf("%s exists, and does not hold %s: move it away first; nothing was written", c.Path, d.Ref)
		}
	}
	data, err := asFile(d.text, c.Path)
	return c, data, err
}

// newSpecPath returns the file for the spec of a new object.
func newSpecPath(t *state.Tree, ref schemas.Ref) string {
	k, _ := settle.TableOf(t).Schemas().Find(ref.Kind)
	if k.Name == schemas.SettingsKind.Name {
		return schemas.SettingsPath
	}
	return path.Join(t.Settings().Folders.Specs, k.Plural, ref.Name+".yaml")
}

// asFile converts the text of a spec to the format of its file.
func asFile(text []byte, name string) ([]byte, error) {
	switch path.Ext(name) {
	case ".json":
		data, err := schemas.JSONOfYAML(name, text)
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		err = json.Indent(&out, data, "", "  ")
		return append(out.Bytes(), '\n'), err
	case ".toml":
		return nil, fmt.Errorf("%s is TOML: edit it, or move it away first; nothing was written", name)
	}
	if !bytes.HasSuffix(text, []byte("\n")) {
		text = append(text, '\n')
	}
	return text, nil
}

// instead names the command to use instead of changing an object of an immutable kind.
var instead = map[string]string{
	schemas.ActionKind.Name:               "act again, with reconcile retry, pause, resume, …",
	schemas.ReplyKind.Name:                "say more with reconcile clarify answer",
	schemas.ClarificationRequestKind.Name: "ask anew with reconcile clarify ask, and end this one with reconcile clarify resolve",
	schemas.ObservationKind.Name:          "use reconcile memory capture, and reconcile memory remove for what is wrong",
}

// immutable refuses to change an object that records an action or a reply.
func immutable(ref schemas.Ref) error {
	if word, ok := instead[ref.Kind]; ok {
		return badRequest("%s is a record and cannot be changed: %s", ref, word)
	}
	return nil
}

// Delete deletes the specs of objects. The next run stops their running effects and removes their statuses. All are
// checked first: if one cannot be deleted, none is.
func Delete(ctx context.Context, env Env, objects []string) ([]SpecChange, error) {
	s, t, err := env.load(ctx)
	if err != nil {
		return nil, typed(err)
	}
	defer s.Close()
	var changes []SpecChange
	var files []durable.Op
	for _, word := range objectNames(objects) {
		e, err := find(t, word)
		switch {
		case err != nil:
		case e.Gone():
			err = notFound(t, e.Ref)
		default:
			err = errors.Join(env.mayWrite(t, e.Ref, e, nil), immutable(e.Ref))
		}
		if err != nil {
			return nil, typed(fmt.Errorf("%w; nothing was deleted", err))
		}
		where := specPath(e)
		changes = append(changes, SpecChange{e.Ref.String(), where, "deleted"})
		files = append(files, durable.Op{Path: where})
	}
	return changes, typed(errors.Join(durable.Apply(s.Root(), specs.Scratch, files), s.Announce()))
}

// specPath returns the file of an object that still exists.
func specPath(e *state.Entry) string {
	if e.Object != nil {
		return e.Object.Path
	}
	return e.Problems[0].Path
}

// EditRequest requests that a person changes the spec of an object.
type EditRequest struct {
	Object string
	// Change changes a file; copy is the path of a copy of the spec.
	Change func(ctx context.Context, copy string) error
}

// applyOne applies the text of one object.
func (e Env) applyOne(ctx context.Context, name string, text []byte, ref schemas.Ref) ([]SpecChange, error) {
	changes, err := Apply(ctx, e, ApplyRequest{Texts: []SpecText{{name, text}}, DryRun: true})
	if err != nil {
		return nil, err
	}
	if len(changes) != 1 || changes[0].Ref != ref.String() {
		return nil, badRequest("the text is to be about %s, and nothing else; nothing was written", ref)
	}
	return Apply(ctx, e, ApplyRequest{Texts: []SpecText{{name, text}}})
}

func (e Env) noteWritten(path string) { e.note("wrote %s", path) }

// checkNames returns an error if another file has an object with the name.
func checkNames(t *state.Tree, folder, name string) error {
	for _, k := range []schemas.Kind{schemas.SessionKind, schemas.DAGKind} {
		e := t.Entry(schemas.Ref{Kind: k.Name, Name: name})
		if e != nil && e.Object != nil && e.Object.Path != specFile(folder, k, name) {
			return fmt.Errorf("%s exists already, in %s; nothing was written", e.Ref, e.Object.Path)
		}
	}
	return nil
}

// sameSpec reports whether a session is in a file as given, by the canonical JSON.
func sameSpec(a, b *schemas.SessionSpec) bool {
	x, err1 := state.Encode(a)
	y, err2 := state.Encode(b)
	return err1 == nil && err2 == nil && slices.Equal(x, y)
}
