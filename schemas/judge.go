package schemas

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"reconcile.dev/reconcile/schemas/validator"
)

// kindSchema is the published schema of a kind in two forms. The plan validates quickly. The library decides about all
// documents that the plan does not accept, and describes the problems; the schema is compiled for it when the first such
// document is read.
type kindSchema struct {
	plan     *plan
	compiled func() (*validator.Schema, error)
}

// compile prepares the published schema of a kind.
func compile(k Kind) (*kindSchema, error) {
	text := Schema(k)
	root, err := parseSchema(text)
	if err != nil {
		return nil, err
	}
	p, err := newPlan(root, newShape(root))
	if err != nil {
		return nil, fmt.Errorf("compile the published schema of %s: %w", k.Name, err)
	}
	return &kindSchema{p, sync.OnceValues(func() (*validator.Schema, error) { return validator.Compile(text, formats) })}, nil
}

// violations returns what the library finds wrong with a document, in the order of the document.
func (k *kindSchema) violations(root *value) ([]violation, error) {
	compiled, err := k.compiled()
	if err != nil {
		return nil, fmt.Errorf("compile the published schema: %w", err)
	}
	found, err := compiled.Validate(plain(root))
	out := make([]violation, len(found))
	for i, v := range found {
		out[i] = resolve(root, k.plan.shape, v)
	}
	slices.SortStableFunc(out, func(a, b violation) int {
		return cmp.Or(a.value.line-b.value.line, a.value.col-b.value.col)
	})
	return out, err
}

// resolve follows the path of a violation through the document and the schema. Where either has nothing more, the violation
// is one of the last value that both have.
func resolve(root *value, s *shape, v validator.Violation) violation {
	x := violation{value: root, shape: s, required: true, keyword: v.Keyword, cause: v.Message}
	if x.keyword == "const" {
		x.keyword = "enum"
	}
	for _, token := range v.Path {
		var step any = strings.TrimPrefix(token, nameless)
		below, shape, required := x.value.get(step.(string)), x.shape.prop(step.(string)), slices.Contains(x.shape.required, token)
		if x.value.form == list {
			i, err := strconv.Atoi(token)
			if err != nil || i >= len(x.value.items) {
				return x
			}
			step, below, shape, required = i, x.value.items[i], x.shape.items, true
		}
		if below == nil || shape == nil {
			return x
		}
		x.path, x.value, x.shape, x.required = append(x.path, step), below, shape, required
	}
	return x
}

// nameless replaces empty field names for the library, which does not distinguish such a field from its parent. It cannot
// occur in a text that was read, since it is not UTF-8.
const nameless = "\xff"

// plain converts to the types that the library takes.
func plain(v *value) any {
	switch v.form {
	case boolean:
		return v.text == "true"
	case number:
		if n, err := strconv.ParseInt(v.text, 10, 64); err == nil {
			return n
		}
		f, _ := strconv.ParseFloat(v.text, 64) // canonical: it was parsed before
		return f
	case text:
		return v.text
	case list:
		out := make([]any, len(v.items))
		for i, item := range v.items {
			out[i] = plain(item)
		}
		return out
	case object:
		out := make(map[string]any, len(v.fields))
		for i := range v.fields {
			out[cmp.Or(v.fields[i].name, nameless)] = plain(v.fields[i].value)
		}
		return out
	}
	return nil
}
