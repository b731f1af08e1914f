package schemas

import (
	"errors"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// parseTOML reads the TOML form of a workflow and puts it into the envelope of the YAML form, every value keeping its
// place. The values come from go-toml's low-level parser, which knows the places; go-toml itself then judges whether
// the text is TOML. Not the other way round: its judgement takes quadratic time in the number of keys of a table.
func (s *source) parseTOML() *value {
	root := s.tomlTree()
	if s.has("too-many") {
		return nil
	}
	var any map[string]any
	if err := toml.Unmarshal(s.text, &any); err != nil {
		s.tomlError(err)
		return nil
	}
	if len(root.fields) == 0 {
		s.fail("empty", 1, 1, "", "the file holds no workflow").hint("write [workflow] with a name, and [[steps]]")
		return nil
	}
	s.toml = true
	return s.workflow(root)
}

// tomlTree builds the values of a text that may yet turn out not to be TOML.
func (s *source) tomlTree() *value {
	root := &value{form: object, line: 1, col: 1}
	t := tomlReader{s: s, lines: newLines(s.text), index: map[*value]map[string]int{}}
	t.parser.Reset(s.text)
	here := root
	for t.parser.NextExpression() {
		e := t.parser.Expression()
		switch e.Kind {
		case unstable.Table:
			here = t.table(root, e.Key())
		case unstable.ArrayTable:
			here = t.element(root, e.Key())
		case unstable.KeyValue:
			t.assign(here, e)
		}
	}
	return root
}

// tomlError reports what go-toml says about the text.
func (s *source) tomlError(err error) {
	var d *toml.DecodeError
	line, col, message := 1, 1, strings.TrimPrefix(err.Error(), "toml: ")
	if errors.As(err, &d) {
		line, col = d.Position()
		message = strings.TrimPrefix(d.Error(), "toml: ")
	}
	code := "syntax"
	if strings.Contains(message, "already") || strings.Contains(message, "duplicate") {
		code = "duplicate-key"
	}
	last := 1 + strings.Count(string(s.text), "\n")
	s.fail(code, min(max(line, 1), last), max(col, 1), "", "this is not TOML: %s", message)
}

// tomlReader builds values.
type tomlReader struct {
	s      *source
	parser unstable.Parser
	lines  *lines
	index  map[*value]map[string]int // of tables that have many fields
}

// keyAt is one part of a dotted key with its place.
type keyAt struct {
	name      string
	line, col int
}

func (t *tomlReader) keys(it unstable.Iterator) []keyAt {
	var out []keyAt
	for it.Next() {
		n := it.Node()
		line, col := t.lines.place(int(n.Raw.Offset))
		out = append(out, keyAt{string(n.Data), line, col})
	}
	return out
}

// enter goes down a key, making tables on the way; in a list of tables the last one is meant.
func (t *tomlReader) enter(v *value, keys []keyAt) *value {
	for _, k := range keys {
		f := t.find(v, k.name)
		if f == nil {
			f = t.add(v, k, &value{form: object, line: k.line, col: k.col})
		}
		v = f.value
		if v.form == list && len(v.items) > 0 {
			v = v.items[len(v.items)-1]
		}
	}
	return v
}

func (t *tomlReader) find(v *value, name string) *field { return v.find(name, t.index[v]) }

// add appends a field; a table that grows gets an index.
func (t *tomlReader) add(v *value, k keyAt, val *value) *field {
	const many = 16
	if t.s.full(v, k.line, k.col, nil) {
		return &field{k.name, k.line, k.col, val}
	}
	v.fields = append(v.fields, field{k.name, k.line, k.col, val})
	last := len(v.fields) - 1
	switch {
	case len(v.fields) == many:
		t.index[v] = make(map[string]int, 2*many)
		for i := range v.fields {
			t.index[v][v.fields[i].name] = i
		}
	case len(v.fields) > many:
		t.index[v][k.name] = last
	}
	return &v.fields[last]
}

func (t *tomlReader) table(root *value, it unstable.Iterator) *value {
	return t.enter(root, t.keys(it))
}

// element starts a new table of a list of tables.
func (t *tomlReader) element(root *value, it unstable.Iterator) *value {
	keys := t.keys(it)
	last := keys[len(keys)-1]
	parent := t.enter(root, keys[:len(keys)-1])
	f := t.find(parent, last.name)
	if f == nil {
		f = t.add(parent, last, &value{form: list, line: last.line, col: last.col})
	}
	item := &value{form: object, line: last.line, col: last.col}
	f.value.items = append(f.value.items, item)
	t.s.bounded(item.line, item.col, len(keys))
	return item
}

func (t *tomlReader) assign(here *value, e *unstable.Node) {
	keys := t.keys(e.Key())
	last := keys[len(keys)-1]
	parent := t.enter(here, keys[:len(keys)-1])
	t.add(parent, last, t.value(e.Value(), last, len(keys)+1))
}

// value converts a node; near is the key that it belongs to, for nodes that have no place of their own.
func (t *tomlReader) value(n *unstable.Node, near keyAt, depth int) *value {
	v := &value{line: near.line, col: near.col}
	if n.Raw.Length > 0 {
		v.line, v.col = t.lines.place(int(n.Raw.Offset))
	}
	if v.bad = !t.s.bounded(v.line, v.col, depth); v.bad {
		return v
	}
	here := keyAt{near.name, v.line, v.col}
	switch n.Kind {
	case unstable.Array:
		v.form = list
		for it := n.Children(); it.Next(); {
			if c := it.Node(); c.Kind != unstable.Comment {
				v.items = append(v.items, t.value(c, here, depth+1))
			}
		}
	case unstable.InlineTable:
		v.form = object
		for it := n.Children(); it.Next(); {
			if c := it.Node(); c.Kind == unstable.KeyValue {
				t.assign(v, c)
			}
		}
	default:
		t.scalar(v, n, near.name)
	}
	return v
}

func (t *tomlReader) scalar(v *value, n *unstable.Node, name string) {
	s := string(n.Data)
	switch n.Kind {
	case unstable.Integer, unstable.Float:
		if why, hint := v.tomlNumber(strings.ReplaceAll(s, "_", "")); why != "" {
			t.s.fail("bad-number", v.line, v.col, pathText([]any{name}), "%s", why).hint("%s", hint)
			v.bad = true
		}
	case unstable.Bool:
		v.form, v.text, v.raw, v.bare = boolean, s, s, true
	default: // text, and dates, which are text here
		v.form, v.text = text, s
		if why := badText(s); why != "" {
			t.s.fail("bad-character", v.line, v.col, pathText([]any{name}), "contains %s", why).hint("remove it")
			v.bad = true
		}
	}
}

// workflow puts [workflow] and [[steps]] into the envelope.
func (s *source) workflow(root *value) *value {
	steps, head := root.field("steps"), root.field("workflow")
	s.tomlUnknown(root, "", []string{"workflow", "steps"})
	spec := &value{form: object, line: 1, col: 1}
	meta := &value{form: object, line: 1, col: 1}
	if head != nil && head.value.form == object {
		s.tomlUnknown(head.value, "workflow.", []string{"name", "title", "description", "params"})
		*meta = value{form: object, line: head.line, col: head.col}
		for _, f := range head.value.fields {
			switch f.name {
			case "name":
				meta.fields = append(meta.fields, f)
			case "title", "description", "params":
				spec.fields = append(spec.fields, f)
			}
		}
	}
	if steps != nil {
		spec.fields = append(spec.fields, *steps)
	}
	at := func(name string, v *value) field { return field{name, v.line, v.col, v} }
	word := func(w string) *value { return &value{form: text, text: w, line: 1, col: 1} }
	return &value{form: object, line: 1, col: 1, fields: []field{
		at("apiVersion", word(APIVersion)), at("kind", word(WorkflowKind.Name)), at("metadata", meta), at("spec", spec),
	}}
}

func (s *source) tomlUnknown(v *value, prefix string, known []string) {
	for _, f := range v.fields {
		if slices.Contains(known, f.name) {
			continue
		}
		p := s.fail("unknown-field", f.line, f.col, prefix+f.name, "there is no field %q here", f.name)
		p.nearField(f.name, known, "")
	}
}

// tomlField writes a path of the envelope as it is called in the TOML form.
func tomlField(f string) string {
	for _, r := range []struct{ of, to string }{
		{"spec.steps", "steps"}, {"spec.", "workflow."}, {"metadata.", "workflow."}, {"metadata", "workflow"},
	} {
		if rest, ok := strings.CutPrefix(f, r.of); ok {
			return r.to + rest
		}
	}
	return f
}
