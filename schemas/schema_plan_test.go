package schemas

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// judged is one published schema, itself and in the forms that judge documents.
type judged struct {
	*kindSchema
	name string
	root *value
	sh   *shape
}

func publishedSchemas(t testing.TB) []judged {
	t.Helper()
	files, err := published.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var out []judged
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".schema.json")
		k := Kind{Name: name}
		root, err := parseSchema(Schema(k))
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := compile(k)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, judged{compiled, name, root, newShape(root)})
	}
	return out
}

// valid reports whether the library finds nothing wrong with a document.
func (j judged) valid(t testing.TB, root *value) bool {
	t.Helper()
	found, err := j.violations(root)
	if err != nil {
		t.Fatal(err)
	}
	return len(found) == 0
}

// differs reports whether the plan and the library disagree about a document. A plan accepts nothing that was reported when it
// was parsed; the library knows nothing of that.
func (j judged) differs(t testing.TB, root *value) bool {
	accepts, valid := j.plan.accepts(root), j.valid(t, root)
	return accepts != valid && (accepts || !hasBad(root))
}

// hasBad reports whether anything of the document was reported when it was parsed.
func hasBad(v *value) bool {
	return v.bad || slices.ContainsFunc(v.items, hasBad) ||
		slices.ContainsFunc(v.fields, func(f field) bool { return hasBad(f.value) })
}

// TestUnknownKeywords: what a plan cannot judge by is found when the schema is compiled, not passed over.
func TestUnknownKeywords(t *testing.T) {
	for schema, want := range map[string]string{
		`false`:                                 `true or false, not a schema`,
		`{"type": "any"}`:                       `type "any"`,
		`{"type": "string", "oneOf": []}`:       `oneOf: not known here`,
		`{"type": "string", "format": "email"}`: `format: not known here`,
		`{"type": "string", "pattern": "("}`:    `pattern: not known here`,
		`{"type": "string", "maximum": 3}`:      `maximum: not known here`,
		`{"type": "number", "maximum": 2.5}`:    `maximum: not known here`,
		`{"type": "number", "maxLength": 3}`:    `maxLength: not known here`,
		`{"type": "integer", "enum": [1]}`:      `enum: not known here`,
		`{"type": "string", "enum": [1]}`:       `enum: not known here`,
		`{"type": "object", "properties": []}`:  `properties: has no schemas`,
		`{"type": "object", "required": ["a"]}`: `required names`,
		`{"type": "object", "additionalProperties": {"type": "array", "uniqueItems": true}}`:                 `uniqueItems: not`,
		`{"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string", "not": {}}}}}`: `not: not known`,
	} {
		p, err := newPlan([]byte(schema))
		if err = cmp.Or(err, p.firstUnknown()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", schema, err, want)
		}
	}
}

// firstUnknown returns an error of a plan or of a part of it, and makes all parts.
func (p *plan) firstUnknown() error {
	if p == nil {
		return nil
	}
	err := p.unknown
	for _, part := range []func() *plan{p.items, p.others} {
		if part != nil {
			err = cmp.Or(err, part().firstUnknown())
		}
	}
	for _, f := range p.fields {
		err = cmp.Or(err, f.plan().firstUnknown())
	}
	return err
}

// TestPublishedSchemasHavePlans: every keyword of them is known.
func TestPublishedSchemasHavePlans(t *testing.T) {
	for _, j := range publishedSchemas(t) {
		if err := j.plan.firstUnknown(); err != nil {
			t.Errorf("%s: %v", j.name, err)
		}
	}
}

// TestPlanAcceptsTheExamples: what people write is accepted.
func TestPlanAcceptsTheExamples(t *testing.T) {
	bySchema := map[string]judged{}
	for _, j := range publishedSchemas(t) {
		bySchema[j.name] = j
	}
	for name, text := range samples(t) {
		if strings.Contains(name, "testdata") {
			continue
		}
		s := newSource(name)
		if !s.gate([]byte(text), 0) {
			t.Fatal(s.problems)
		}
		root := s.parseYAML()
		if j := bySchema[strings.ToLower(root.str("kind"))]; !j.plan.accepts(root) {
			t.Errorf("%s is not accepted", name)
		}
	}
}

// TestLibraryDecides: what the plan refuses by mistake is valid, because the library says so.
func TestLibraryDecides(t *testing.T) {
	broken := map[string]judged{}
	for _, j := range publishedSchemas(t) {
		j.plan.required++ // so that it accepts nothing
		broken[j.name] = j
	}
	judged := 0
	for name, text := range samples(t) {
		if strings.Contains(name, "testdata") {
			continue
		}
		s := newSource(name)
		if !s.gate([]byte(text), 0) {
			t.Fatal(s.problems)
		}
		root := s.parseYAML()
		if s.judge(root, broken[strings.ToLower(root.str("kind"))].kindSchema, &damage{}); len(s.problems) > 0 {
			t.Errorf("%s: %v", name, s.problems)
		}
		judged++
	}
	if judged < len(broken)-1 { // workflows in TOML have no example here
		t.Errorf("only %d documents were judged", judged)
	}
}

// TestPlanAgreesWithTheLibrary compares them on a document that has every field of a schema, and on those that differ
// from it in one value: by its form, by a bound, by a word, by a field more or less.
func TestPlanAgreesWithTheLibrary(t *testing.T) {
	for _, j := range publishedSchemas(t) {
		t.Run(j.name, func(t *testing.T) {
			t.Parallel()
			bad := 0
			if full := newDocument(j.sh, true); !j.plan.accepts(full) {
				t.Error("a good document is not accepted")
			}
			j.eachDocument(func(root *value, path []any, mutation *value) bool {
				if j.differs(t, root) {
					t.Errorf("%s becomes %.200s: the plan accepts: %v, the library does not say so", pathText(path),
						mutation.canonical(nil, nil), j.plan.accepts(root))
				}
				if !j.plan.accepts(root) {
					bad++
				}
				return true
			})
			if bad < 20 {
				t.Errorf("only %d bad documents: the test says little", bad)
			}
		})
	}
}

// corpus returns the documents that are known to be hard, with their names.
func corpus(t testing.TB) []txtar.File {
	t.Helper()
	archives, err := filepath.Glob("testdata/corpus/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var out []txtar.File
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(a.Files); i += 2 { // what a user is told of it follows
			out = append(out, a.Files[i])
		}
	}
	return out
}

// TestPlanAgreesOnTheCorpus compares them on every document of the corpus, as every kind.
func TestPlanAgreesOnTheCorpus(t *testing.T) {
	all, bad := publishedSchemas(t), 0
	for _, f := range corpus(t) {
		s := newSource("specs/" + f.Name)
		root := s.parse(f.Data, DefaultFileSize)
		if root == nil {
			continue
		}
		for _, j := range all {
			if j.differs(t, root) {
				t.Errorf("%s as %s: the plan accepts: %v, the library does not say so", f.Name, j.name, j.plan.accepts(root))
			}
			if !j.plan.accepts(root) {
				bad++
			}
		}
	}
	if bad < 1000 {
		t.Errorf("only %d bad documents: the test says little", bad)
	}
}

// TestPlanMutants: a plan that forgets any keyword would be found out. (Only durations have a pattern, and their format
// refuses more.)
func TestPlanMutants(t *testing.T) {
	for _, keyword := range []string{"const", "enum", "minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum",
		"required", "items", "properties", "additionalProperties", "format"} {
		caught := false
		for _, j := range publishedSchemas(t) {
			strip(j.root, keyword, keyword == "properties")
			mutant, err := newPlan(j.root.canonical(nil, nil))
			if err != nil { // found before any document is judged
				caught = strings.Contains(err.Error(), "required names")
				break
			}
			j.eachDocument(func(root *value, _ []any, _ *value) bool {
				caught = mutant.accepts(root) != j.valid(t, root)
				return !caught
			})
			if caught {
				break
			}
		}
		if !caught {
			t.Errorf("a plan without %s is not told from a right one", keyword)
		}
	}
}

// strip takes a keyword out of a schema.
func strip(schema *value, keyword string, top bool) {
	schema.fields = slices.DeleteFunc(schema.fields, func(f field) bool { return f.name == keyword && !top })
	for i := range schema.fields {
		f := &schema.fields[i]
		switch f.name {
		case "properties":
			for k := range f.value.fields {
				strip(f.value.fields[k].value, keyword, false)
			}
		case "items", "additionalProperties":
			strip(f.value, keyword, false)
		}
	}
}

// eachDocument visits every document that one mutation makes of a full document of the schema, until visit returns false.
func (j judged) eachDocument(visit func(root *value, path []any, mutation *value) bool) {
	root := newDocument(j.sh, true)
	var walk func(v *value, s *shape, path []any) bool
	walk = func(v *value, s *shape, path []any) bool {
		was := *v
		for _, m := range mutations(v, s) {
			if *v = m; !visit(root, path, v) {
				return false
			}
		}
		*v = was
		for i := range v.fields {
			below := s.prop(v.fields[i].name)
			if below != nil && !walk(v.fields[i].value, below, append(path[:len(path):len(path)], v.fields[i].name)) {
				return false
			}
		}
		for i, item := range v.items {
			if !walk(item, s.items, append(path[:len(path):len(path)], i)) {
				return false
			}
		}
		return true
	}
	walk(root, j.sh, nil)
}

// newDocument has every field of a schema, or only those that must be there.
func newDocument(s *shape, full bool) *value {
	switch s.types {
	case "boolean":
		return &value{form: boolean, text: "true"}
	case "integer", "number":
		return &value{form: number, text: s.limits["minimum"]}
	case "string":
		return &value{form: text, text: goodText(s)}
	case "array":
		return &value{form: list, items: []*value{newDocument(s.items, full)}}
	}
	v := &value{form: object}
	for _, p := range s.props {
		if full || slices.Contains(s.required, p.name) {
			v.fields = append(v.fields, field{name: p.name, value: newDocument(p.shape, full)})
		}
	}
	if s.others != nil && full {
		v.fields = append(v.fields, field{name: "another", value: newDocument(s.others, full)})
	}
	return v
}

func goodText(s *shape) string {
	switch {
	case len(s.enum) > 0:
		return s.enum[0]
	case s.format == formatDuration:
		return "10m"
	case s.format == formatTime:
		return "2026-02-27T10:00:00Z"
	}
	return "ok"
}

// mutations are what may stand in the place of a value.
func mutations(v *value, s *shape) []value {
	out := []value{{form: null}, {form: boolean, text: "true"}, {form: number, text: "3"}, {form: number, text: "2.5"},
		{form: text, text: "word"}, {form: list}, {form: object}}
	for _, keyword := range slices.Sorted(maps.Keys(s.limits)) {
		limit, err := strconv.Atoi(s.limits[keyword])
		for n := limit - 1; err == nil && n <= limit+1; n++ {
			out = append(out, bounded(v, s, n))
		}
	}
	for _, word := range slices.Concat(s.enum, hostileTexts) {
		out = append(out, value{form: text, text: word})
	}
	for i := range v.fields {
		out = append(out, value{form: object, fields: slices.Delete(slices.Clone(v.fields), i, i+1)})
	}
	if v.form == object {
		more := field{name: "zz", value: &value{form: number, text: "1"}}
		out = append(out, value{form: object, fields: append(slices.Clone(v.fields), more)})
	}
	return out
}

// bounded is a value of the length or size n.
func bounded(v *value, s *shape, n int) value {
	switch v.form {
	case text:
		return value{form: text, text: strings.Repeat("ü", max(n, 0))}
	case list:
		return value{form: list, items: slices.Repeat([]*value{newDocument(s.items, false)}, max(n, 0))}
	}
	return value{form: number, text: strconv.Itoa(n)}
}

// hostileTexts are durations, times and others, good and bad.
var hostileTexts = []string{"", " ", "0", "10m", "1.5h", ".5s", "-1s", "+1s", "1e3s", "366h", "8785h", "1us", "1µs", "10",
	"2026-02-27T10:00:00Z", "2026-02-27T10:00:00+01:00", "2026-02-27 10:00:00Z", "2026-02-30T10:00:00Z", "0000-01-01T00:00:00Z",
	"2026-02-27", "a\nb"}

// FuzzPlan: of any file, the plan says what the library says.
func FuzzPlan(f *testing.F) {
	all := publishedSchemas(f)
	for _, text := range samples(f) {
		for i := range all {
			f.Add(uint8(i), text)
		}
	}
	for n, file := range corpus(f) {
		f.Add(uint8(n), string(file.Data))
	}
	f.Fuzz(func(t *testing.T, n uint8, text string) {
		s := newSource("x.yaml")
		if !s.gate([]byte(text), 1<<16) {
			return
		}
		root := s.parseYAML()
		if root == nil {
			return
		}
		j := all[int(n)%len(all)]
		if j.differs(t, root) {
			t.Fatalf("%s: the plan accepts: %v, the library does not say so\n%s", j.name, j.plan.accepts(root), text)
		}
	})
}
