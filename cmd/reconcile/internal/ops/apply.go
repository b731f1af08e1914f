package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/document"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/durable"
)

// SpecText is a text of one or several YAML documents with specs.
type SpecText struct {
	Name string // the name in problems, with the extension of its format; without one the text decides; "-": standard input
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
	all, err := decodeAll(t, named(q.Texts))
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

// decodedSpec is one decoded spec with its text.
type decodedSpec struct {
	*schemas.Object
	text []byte
}

// decodeAll decodes all documents, which must be valid and have different objects.
func decodeAll(t *state.Tree, texts []SpecText) ([]decodedSpec, error) {
	decoder := schemas.DecoderFor(settle.TableOf(t).Schemas(), t.Settings())
	var all []decodedSpec
	var problems []schemas.Problem
	seen := map[schemas.Ref]bool{}
	for _, text := range texts {
		parts, wrong := specsIn(text)
		problems = append(problems, wrong...)
		for _, part := range parts {
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
				all = append(all, decodedSpec{d.Object, bytes.TrimLeft(part.text, "\n")})
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
	from *schemas.Part // the object in the given text that the text was made of; nil: the given text itself
}

// locate moves a problem of the part's text to its place in the given text.
func (p appliedPart) locate(problem schemas.Problem, given string) schemas.Problem {
	problem.Path = given
	if p.from != nil {
		problem.Line, problem.Column, problem.Source = p.from.Place.Line, p.from.Place.Column, ""
		problem.Field = strings.Trim(p.from.Field+"."+problem.Field, ".")
	}
	return problem
}

// named adds to names without an extension the one of their format.
func named(texts []SpecText) []SpecText {
	texts = slices.Clone(texts)
	for i := range texts {
		t := &texts[i]
		if t.Name == "-" {
			t.Name = "stdin"
		}
		if filepath.Ext(t.Name) == "" {
			t.Name += formatOf(t.Text)
		}
	}
	return texts
}

// formatOf is the extension of the format that a text without a name has: JSON starts with a brace and a string or a
// comment, everything else is YAML.
func formatOf(text []byte) string {
	rest, brace := bytes.CutPrefix(bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\uFEFF"))), []byte("{"))
	if rest = bytes.TrimSpace(rest); brace && len(rest) > 0 && (rest[0] == '"' || rest[0] == '/') {
		return ".json"
	}
	return ".yaml"
}

// specsIn splits a text into specs. It accepts the output of reconcile get: it removes statuses, and splits lists, also
// lists in lists.
func specsIn(given SpecText) (out []appliedPart, problems []schemas.Problem) {
	for _, text := range splitDocuments(given.Text) {
		parts, wrong := schemas.Parts(given.Name, text)
		problems = append(problems, wrong...)
		for i := range parts {
			var spec bytes.Buffer
			if err := document.YAML(&spec, json.RawMessage(parts[i].JSON)); err != nil {
				problems = append(problems, schemas.Problem{Place: parts[i].Place, Field: parts[i].Field, Severity: schemas.Error, Message: err.Error()})
				continue
			}
			out = append(out, appliedPart{strings.TrimSuffix(given.Name, path.Ext(given.Name)) + ".yaml", spec.Bytes(), &parts[i]})
		}
		if len(parts)+len(wrong) == 0 {
			out = append(out, appliedPart{name: given.Name, text: text})
		}
	}
	return out, problems
}

// planApply determines the file and the content for the spec of an object; nil content if the spec is unchanged.
func (e Env) planApply(s *state.Store, t *state.Tree, d decodedSpec) (SpecChange, []byte, error) {
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
