package githubtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// api validates requests by GitHub's API description (OpenAPI 3.0). It is safe for concurrent use.
type api struct {
	doc    map[string]any
	routes map[string][]route // by method, lower case, and number of parts

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	schemas  map[string]*jsonschema.Schema // by their pointer in the description
}

// route is a path of the description.
type route struct {
	template string
	parts    []string
}

func routeKey(method string, parts []string) string { return fmt.Sprint(method, " ", len(parts)) }

// base is the name of the description among the schemas.
const base = "https://api.rig.test/openapi.json"

var (
	descriptions   = map[string]*api{}
	descriptionsMu sync.Mutex
)

// readDescription reads the description once for the program: it has 13 MB.
func readDescription(file string) (*api, error) {
	descriptionsMu.Lock()
	defer descriptionsMu.Unlock()
	if a := descriptions[file]; a != nil {
		return a, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	a := &api{compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}, routes: map[string][]route{}}
	if err := json.Unmarshal(data, &a.doc); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for template, item := range a.at("paths") {
		parts := strings.Split(template, "/")
		for method := range item.(map[string]any) {
			key := routeKey(method, parts)
			a.routes[key] = append(a.routes[key], route{template, parts})
		}
	}
	a.compiler.Draft = jsonschema.Draft4 // the most similar draft to OpenAPI 3.0
	a.compiler.AssertFormat = true
	descriptions[file] = a
	return a, a.compiler.AddResource(base, bytes.NewReader(data))
}

// check returns the problems of a request. It does not check GraphQL, which this description does not cover.
func (a *api) check(method string, u *url.URL, body []byte) []string {
	if u.Path == "/graphql" {
		return nil
	}
	template, values := a.route(u.EscapedPath(), strings.ToLower(method))
	if template == "" {
		return []string{"GitHub's API has no such operation"}
	}
	item := a.at("paths", template)
	op := item[strings.ToLower(method)].(map[string]any)
	at := "#/paths/" + escape(template) + "/" + strings.ToLower(method)
	found := a.parameters(op, values, u.Query(), at)
	if wrong := a.body(op, at, body); wrong != "" {
		found = append(found, wrong)
	}
	return found
}

func (a *api) at(keys ...string) map[string]any {
	node := a.doc
	for _, k := range keys {
		node, _ = node[k].(map[string]any)
	}
	return node
}

func escape(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(url.PathEscape(s), "~", "~0"), "%2F", "~1")
}

// route returns the path template of the description that matches a request's path, the one with most literal parts, and
// the values of its parameters.
func (a *api) route(path, method string) (template string, values map[string]string) {
	parts := strings.Split(path, "/")
	best := -1
	for _, r := range a.routes[routeKey(method, parts)] {
		if v, literal, ok := fit(r.parts, parts); ok && literal > best {
			template, values, best = r.template, v, literal
		}
	}
	return template, values
}

// fit compares a path with a template of the same number of parts.
func fit(template, parts []string) (values map[string]string, literal int, ok bool) {
	values = map[string]string{}
	for i, t := range template {
		if name, is := strings.CutPrefix(t, "{"); is {
			v, err := url.PathUnescape(parts[i])
			if err != nil || v == "" {
				return nil, 0, false
			}
			values[strings.TrimSuffix(name, "}")] = v
			continue
		}
		if t != parts[i] {
			return nil, 0, false
		}
		literal++
	}
	return values, literal, true
}

// parameters validates the parameters of the path and of the query.
func (a *api) parameters(op map[string]any, path map[string]string, query url.Values, at string) []string {
	var found []string
	known := map[string]bool{}
	list, _ := op["parameters"].([]any)
	for i, entry := range list {
		p, ref := entry.(map[string]any), fmt.Sprintf("%s/parameters/%d", at, i)
		if r, is := p["$ref"].(string); is {
			p, ref = a.at(strings.Split(strings.TrimPrefix(r, "#/"), "/")...), r
		}
		name, in := p["name"].(string), p["in"].(string)
		value, given := path[name], in == "path"
		if in == "query" {
			known[name] = true
			value, given = query.Get(name), query.Has(name)
		}
		switch {
		case given:
			if err := a.validate(ref+"/schema", parse(value, p["schema"])); err != nil {
				found = append(found, fmt.Sprintf("parameter %s=%q: %v", name, value, err))
			}
		case in == "query" && p["required"] == true:
			found = append(found, "parameter "+name+" is missing")
		}
	}
	for name := range query {
		if !known[name] {
			found = append(found, "there is no parameter "+name)
		}
	}
	slices.Sort(found)
	return found
}

// parse parses a parameter with the type of its schema.
func parse(value string, schema any) any {
	s, _ := schema.(map[string]any)
	switch s["type"] {
	case "integer", "number", "boolean":
		var v any
		d := json.NewDecoder(strings.NewReader(value))
		d.UseNumber()
		if d.Decode(&v) == nil {
			return v
		}
	}
	return value
}

// body validates a request's body. Unknown fields are problems, too, although the description allows them.
func (a *api) body(op map[string]any, at string, body []byte) string {
	described, _ := op["requestBody"].(map[string]any)
	if len(bytes.TrimSpace(body)) == 0 {
		if described["required"] == true {
			return "the body is missing"
		}
		return ""
	}
	if described == nil {
		return "there is to be no body"
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return "the body: " + err.Error()
	}
	content, _ := described["content"].(map[string]any)
	media, _ := content["application/json"].(map[string]any)
	if err := a.validate(at+"/requestBody/content/application~1json/schema", v); err != nil {
		return "the body: " + err.Error()
	}
	fields, _ := v.(map[string]any)
	known := fieldsOf(media["schema"])
	for name := range fields {
		if !known[name] {
			return "the body has a field that GitHub does not know: " + name
		}
	}
	return ""
}

// fieldsOf returns the names of a schema's fields.
func fieldsOf(schema any) map[string]bool {
	known := map[string]bool{}
	s, _ := schema.(map[string]any)
	properties, _ := s["properties"].(map[string]any)
	for name := range properties {
		known[name] = true
	}
	for _, way := range []string{"oneOf", "anyOf", "allOf"} {
		branches, _ := s[way].([]any)
		for _, b := range branches {
			for name := range fieldsOf(b) {
				known[name] = true
			}
		}
	}
	return known
}

// validate validates a value by the schema at a pointer of the description.
func (a *api) validate(ref string, v any) error {
	schema, err := a.schema(ref)
	if err != nil {
		return fmt.Errorf("GitHub's description at %s: %w", ref, err)
	}
	return schema.Validate(v)
}

func (a *api) schema(ref string) (s *jsonschema.Schema, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s = a.schemas[ref]; s != nil {
		return s, nil
	}
	s, err = a.compiler.Compile(base + ref)
	a.schemas[ref] = s
	return s, err
}
