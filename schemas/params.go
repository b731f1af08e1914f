package schemas

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Param is a parameter of a DAG.
type Param struct {
	// Type is the type of its values.
	Type string `json:"type,omitempty" jsonschema:"enum=string,enum=integer,enum=number,enum=boolean,enum=list,enum=object,default=string"`
	// Default is the value where none is given. Without it, one has to be given.
	Default any `json:"default,omitempty"`
	// Enum are the values that are allowed. Default: all of the type.
	Enum []any `json:"enum,omitempty" jsonschema:"maxItems=1000"`
	// Description says what it is for.
	Description string `json:"description,omitempty" jsonschema:"maxLength=2000"`
}

// Types of parameters.
const (
	paramString  = "string"
	paramInteger = "integer"
	paramNumber  = "number"
	paramBoolean = "boolean"
	paramList    = "list"
	paramObject  = "object"
)

// Take returns a value as one of the parameter's type; a text is read as that type. The error says what is wrong with it.
func (p *Param) Take(v any) (any, error) {
	if text, ok := v.(string); ok && p.Type != paramString {
		v = p.parse(text)
	}
	if !p.fits(v) {
		return nil, fmt.Errorf("%s is no %s", inJSON(v), p.Type)
	}
	if len(p.Enum) > 0 && !slices.ContainsFunc(p.Enum, func(e any) bool { return reflect.DeepEqual(e, v) }) {
		return nil, fmt.Errorf("%s is not one of %s", inJSON(v), inJSON(p.Enum))
	}
	return v, nil
}

// parse reads a text, as people write one on a command line; a text that is none of the type stays.
func (p *Param) parse(text string) any {
	var v any
	switch p.Type {
	case paramBoolean:
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
	default:
		if json.Unmarshal([]byte(text), &v) == nil {
			return v
		}
	}
	return text
}

// largestInteger is the largest one up to which all integers are exact as JSON numbers: 2^53 - 1.
const largestInteger = 1<<53 - 1

func (p *Param) fits(v any) bool {
	ok := false
	switch p.Type {
	case paramInteger:
		var f float64
		f, ok = v.(float64)
		ok = ok && f == math.Trunc(f) && math.Abs(f) <= largestInteger
	case paramNumber:
		_, ok = v.(float64)
	case paramBoolean:
		_, ok = v.(bool)
	case paramList:
		_, ok = v.([]any)
	case paramObject:
		_, ok = v.(map[string]any)
	default:
		_, ok = v.(string)
	}
	return ok
}

func inJSON(v any) string {
	raw, _ := json.Marshal(v) // it was JSON
	return string(raw)
}

// ParamVariable begins the names of the variables in which programs find the values of parameters.
const ParamVariable = "RECONCILE_PARAM_"

// VariableOf is the end of the name of the variable for a parameter, or for a value of a matrix.
func VariableOf(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }

// ParamNames returns the names of the parameters, sorted.
func (s *DAGSpec) ParamNames() []string { return slices.Sorted(maps.Keys(s.Params)) }

// checkParams reports bad names, defaults and values of parameters.
func (s *DAGSpec) checkParams(r *Report) {
	for _, name := range s.ParamNames() {
		p, at := s.Params[name], r.At("params", name)
		if !isNodeName(name) || strings.Contains(name, "-") {
			at.Errorf("bad-name", "%q is no name of a parameter: a lower-case letter, then lower-case letters, digits and _", name)
		}
		if p.Default != nil {
			if _, err := p.Take(p.Default); err != nil {
				at.At("default").Errorf("bad-value", "%v", err)
			}
		}
		for i, v := range p.Enum {
			if !p.fits(v) {
				at.At("enum", i).Errorf("bad-value", "%s is no %s", inJSON(v), p.Type)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.With)) {
		at := r.At("with", name)
		p, ok := s.Params[name]
		if !ok {
			at.Errorf("unknown-param", "there is no parameter %q", name).near(name, s.ParamNames())
			continue
		}
		if _, err := p.Take(s.With[name]); err != nil {
			at.Errorf("bad-value", "%v", err)
		}
	}
}

// Values returns the values of the parameters that have one, as With or their defaults say.
func (s *DAGSpec) Values() map[string]any {
	out := map[string]any{}
	for name, p := range s.Params {
		v, given := s.With[name]
		if !given {
			v = p.Default
		}
		if taken, err := p.Take(v); err == nil && v != nil {
			out[name] = taken
		}
	}
	return out
}
