package schemas

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// oracle judges documents by a published schema as any program with a validator of JSON Schema would.
type oracle struct {
	validator *jsonschema.Schema
	shape     *shape
}

// newOracle compiles the published schema of a kind. Formats are asserted.
func newOracle(t testing.TB, k Kind, sh *shape) oracle {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat = true
	for name, check := range formats {
		c.Formats[name] = func(v any) bool {
			s, ok := v.(string)
			return !ok || check(s) == nil
		}
	}
	const base = "https://reconcile.dev/schemas/v1alpha1/"
	name := base + k.Singular() + ".schema.json"
	if err := c.AddResource(name, strings.NewReader(string(Schema(k)))); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return oracle{s, sh}
}

// keeps reports whether the validator accepts a document.
func (o oracle) keeps(root *value) bool { return o.validator.Validate(plain(root)) == nil }

// explain tells of the leaves of the validator's error: they are the violations, everything above says where.
func (o oracle) explain(t testing.TB, root *value, tell func(violation)) {
	err := o.validator.Validate(plain(root))
	var invalid *jsonschema.ValidationError
	if err != nil && !errors.As(err, &invalid) {
		t.Fatalf("the validator fails: %v", err)
	}
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		for _, cause := range e.Causes {
			walk(cause)
		}
		if len(e.Causes) > 0 {
			return
		}
		x := o.resolve(t, root, e.InstanceLocation)
		x.keyword = e.AbsoluteKeywordLocation[strings.LastIndexByte(e.AbsoluteKeywordLocation, '/')+1:]
		if x.keyword == "const" {
			x.keyword = "enum"
		}
		tell(x)
	}
	if invalid != nil {
		walk(invalid)
	}
}

// resolve follows a JSON pointer through the document and the schema.
func (o oracle) resolve(t testing.TB, root *value, pointer string) violation {
	x := violation{value: root, shape: o.shape, required: true}
	for _, token := range strings.Split(pointer, "/")[1:] {
		switch x.value.form {
		case list:
			i, err := strconv.Atoi(token)
			if err != nil {
				t.Fatalf("%s: %v", pointer, err)
			}
			x = violation{path: append(x.path, i), value: x.value.items[i], shape: x.shape.items, required: true}
		case object:
			name := unescape(token)
			x = violation{path: append(x.path, name), value: x.value.get(name), shape: x.shape.prop(name),
				required: slices.Contains(x.shape.required, name)}
		}
		if x.value == nil || x.shape == nil {
			t.Fatalf("%s leads nowhere", pointer)
		}
	}
	return x
}

// unescape undoes the validator's escaping of a pointer's token.
func unescape(token string) string {
	if t, err := url.PathUnescape(token); err == nil {
		token = t
	}
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}

// plain converts to the types that a validator takes.
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
			out[v.fields[i].name] = plain(v.fields[i].value)
		}
		return out
	}
	return nil
}

// differs says where the plan and the validator part over a document: over what a user is told, over what is left of the
// document, or over whether it keeps the schema at all; "" where they agree.
func (j judged) differs(t testing.TB, root *value, text []byte) string {
	if accepts, keeps := j.plan.accepts(root), j.oracle.keeps(root); accepts && !keeps || keeps && !accepts && !hasBad(root) {
		return fmt.Sprintf("the plan accepts: %v, the validator accepts: %v", accepts, keeps)
	}
	if hasNameless(root) {
		return "" // the validator does not tell such a field from what it is in
	}
	mine, theirs := source{path: "x.yaml", text: text}, source{path: "x.yaml", text: text}
	var hurt, damaged damage
	mine.judge(root, j.plan, &hurt)
	other := judge{s: &theirs, root: root, damage: &damaged, said: map[string]bool{}}
	j.oracle.explain(t, root, other.violation)
	if mine.unsaid != theirs.unsaid {
		return fmt.Sprintf("beyond the problems that are kept, the plan has %d, the validator %d", mine.unsaid, theirs.unsaid)
	}
	if !reflect.DeepEqual(hurt, damaged) {
		return fmt.Sprintf("the plan finds damage at %v, the validator at %v", hurt.at, damaged.at)
	}
	a, b := mine.finish(), theirs.finish()
	if mine.unsaid == 0 && !reflect.DeepEqual(a, b) { // which ones are kept is chance with a validator
		return fmt.Sprintf("the plan says\n%s\nthe validator\n%s", formatted(a), formatted(b))
	}
	return ""
}

func formatted(problems []Problem) string {
	var b strings.Builder
	for _, p := range problems {
		b.WriteString(p.Format())
	}
	return b.String()
}

// hasBad reports whether anything of the document was reported when it was parsed.
func hasBad(v *value) bool {
	return v.bad || slices.ContainsFunc(v.items, hasBad) ||
		slices.ContainsFunc(v.fields, func(f field) bool { return hasBad(f.value) })
}

// hasNameless reports whether any field of the document has the empty name.
func hasNameless(v *value) bool {
	return slices.ContainsFunc(v.items, hasNameless) ||
		slices.ContainsFunc(v.fields, func(f field) bool { return f.name == "" || hasNameless(f.value) })
}
