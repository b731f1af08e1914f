package schemas

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// Env are environment variables by name.
type Env map[string]EnvValue

// EnvValue is the value of a variable: a text of the spec, or where the value is read when a program starts. It marshals as the
// text, or as the fields of the source.
type EnvValue struct {
	Text string // the value, unless From is set
	EnvSource
}

// EnvSource says where the value of a variable is read when a program starts. A spec never has the value.
type EnvSource struct {
	// From says where the value is: env is the environment of reconcile, file a file.
	From string `json:"from" jsonschema:"enum=env,enum=file"`
	// Name is the variable to read. Default: the variable's own name.
	Name string `json:"name,omitempty" jsonschema:"maxLength=200,example=GITHUB_TOKEN"`
	// Path is the file to read: an absolute path, one that begins with ~/, or one below the root of the tree. A line break at its end
	// is not part of the value.
	Path string `json:"path,omitempty" jsonschema:"maxLength=1000,example=~/.config/app/token"`
}

// Values of EnvSource.From.
const (
	EnvFromCaller = "env"
	EnvFromFile   = "file"
)

// MarshalJSON encodes a text as a string, and a source as a set of fields.
func (v EnvValue) MarshalJSON() ([]byte, error) {
	if v.From == "" {
		return json.Marshal(v.Text)
	}
	return json.Marshal(v.EnvSource)
}

// UnmarshalJSON decodes a string, or the fields of a source.
func (v *EnvValue) UnmarshalJSON(b []byte) error {
	*v = EnvValue{}
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &v.Text)
	}
	return json.Unmarshal(b, &v.EnvSource)
}

// Source is the variable to read for one of this name.
func (v *EnvSource) Source(name string) string { return cmp.Or(v.Name, name) }

// EnvOf makes an Env of texts.
func EnvOf(texts map[string]string) Env {
	out := make(Env, len(texts))
	for name, text := range texts {
		out[name] = EnvValue{Text: text}
	}
	return out
}

// check reports invalid names of variables, those that reconcile sets, and sources that cannot be read.
func (e Env) check(r *Report, field ...any) {
	for name, value := range e {
		checkVariable(r, name, value.Text, field)
		if value.From != "" {
			value.check(r.At(field...).At(name), name)
		}
	}
}

// check reports the fields of a source that do not fit together. Their values may be secrets by mistake: they are not repeated.
func (v *EnvSource) check(at Spot, name string) {
	switch variable := v.Source(name); {
	case v.From == EnvFromCaller && v.Path != "":
		at.At("path").Errorf("conflict", "a variable has no path").suggest("write from: file, or remove path")
	case v.From == EnvFromFile && v.Name != "":
		at.At("name").Errorf("conflict", "a file has no name").suggest("write from: env, or remove name")
	case v.From == EnvFromFile && v.Path == "":
		at.Errorf("missing", "says no path").suggest("add path, the file to read")
	case v.From == EnvFromFile:
		checkFilePath(at.At("path"), v.Path)
	case !isEnvName(variable):
		at.At("name").Errorf("bad-env", "this is no name for a variable; use letters, digits and _, no digit first")
	case strings.HasPrefix(strings.ToUpper(variable), "RECONCILE_"):
		at.At("name").Errorf("bad-env", "variables that begin with RECONCILE_ belong to reconcile").
			suggest("put the value into a variable with another name")
	}
}

// Missing is what to do about a source that has no value; name is that of the variable to set.
func (v *EnvSource) Missing(name string) error {
	if v.From == EnvFromFile {
		return fmt.Errorf("variable %s: the file %s does not exist; make it, or change path", name, v.Path)
	}
	return fmt.Errorf("variable %s: %s is not set in the environment of reconcile; set it there, then retry", name, v.Source(name))
}

func isEnvName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// mergeEnv returns variables with those of another environment that are set there.
func mergeEnv(env, over map[string]string) map[string]string {
	if len(over) == 0 {
		return env
	}
	merged := maps.Clone(over)
	for k, v := range env {
		if _, ok := merged[k]; !ok {
			merged[k] = v
		}
	}
	return merged
}
