package style

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"

	"reconcile.dev/reconcile/controllers/languages"
)

// Setting is what a configuration file says about the style of a language.
type Setting struct {
	Language, Aspect, Value string
	From                    string // the file and the name of the setting
}

// IsSettings reports whether [Settings] reads a file, by its path.
func IsSettings(p string) bool {
	switch path.Base(p) {
	case ".editorconfig", ".prettierrc", ".prettierrc.json", ".prettierrc.yaml", ".prettierrc.yml", "ruff.toml", ".ruff.toml", "pyproject.toml",
		"rustfmt.toml", ".rustfmt.toml", ".clang-format":
		return true
	}
	return false
}

// Settings reads the configuration of formatters; later files win. What cannot be read declares nothing.
func Settings(files []File) (out []Setting) {
	out = append(out, Setting{languages.Go, "indentStyle", "tabs", "gofmt"})
	for _, f := range files {
		name := path.Base(f.Path)
		add := func(key, aspect, value string, to ...string) {
			for _, l := range to {
				out = append(out, Setting{l, aspect, value, f.Path + ": " + key})
			}
		}
		values := map[string]any{}
		switch {
		case name == ".editorconfig":
			out = append(out, editorConfig(f)...)
		case strings.HasPrefix(name, ".prettierrc"):
			if json.Unmarshal(f.Text, &values) != nil && yaml.Unmarshal(f.Text, &values) != nil {
				continue
			}
			prettier(values, add)
		case name == ".clang-format":
			if yaml.Unmarshal(f.Text, &values) == nil {
				size(values, "IndentWidth", add, languages.C, languages.CPP)
			}
		case name == "rustfmt.toml" || name == ".rustfmt.toml":
			if toml.Unmarshal(f.Text, &values) == nil {
				flag(values, "hard_tabs", "indentStyle", "tabs", "spaces", add, languages.Rust)
				size(values, "tab_spaces", add, languages.Rust)
			}
		default:
			if toml.Unmarshal(f.Text, &values) == nil {
				ruff(values, name == "pyproject.toml", add)
			}
		}
	}
	return out
}

type adder func(key, aspect, value string, languages ...string)

func size(values map[string]any, key string, add adder, to ...string) {
	if v, ok := values[key]; ok {
		add(key, "indentSize", fmt.Sprint(v), to...)
	}
}

func flag(values map[string]any, key, aspect, yes, no string, add adder, to ...string) {
	if v, ok := values[key].(bool); ok {
		if v {
			no = yes
		}
		add(key, aspect, no, to...)
	}
}

func prettier(values map[string]any, add adder) {
	to := []string{languages.TypeScript, languages.JavaScript}
	flag(values, "useTabs", "indentStyle", "tabs", "spaces", add, to...)
	size(values, "tabWidth", add, to...)
	flag(values, "singleQuote", "quoteStyle", "single", "double", add, to...)
	if v, ok := values["trailingComma"].(string); ok {
		value := "yes"
		if v == "none" {
			value = "no"
		}
		add("trailingComma", "trailingComma", value, to...)
	}
}

// ruff reads the settings of ruff, which in pyproject.toml are below tool, and of black.
func ruff(values map[string]any, below bool, add adder) {
	if below {
		tool, _ := values["tool"].(map[string]any)
		if tool["black"] != nil {
			add("tool.black", "quoteStyle", "double", languages.Python)
		}
		if values, _ = tool["ruff"].(map[string]any); values == nil {
			return
		}
	}
	size(values, "indent-width", add, languages.Python)
	format, _ := values["format"].(map[string]any)
	if v, ok := format["quote-style"].(string); ok && (v == "single" || v == "double") {
		add("format.quote-style", "quoteStyle", v, languages.Python)
	}
	switch format["indent-style"] {
	case "tab":
		add("format.indent-style", "indentStyle", "tabs", languages.Python)
	case "space":
		add("format.indent-style", "indentStyle", "spaces", languages.Python)
	}
}

// editorConfig reads the sections for all files and for extensions.
func editorConfig(f File) (out []Setting) {
	var to []string
	for line := range strings.Lines(string(f.Text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			to = sectionLanguages(strings.Trim(line, "[]"))
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.ToLower(strings.TrimSpace(value))
		aspect := map[string]string{"indent_style": "indentStyle", "indent_size": "indentSize", "quote_type": "quoteStyle"}[key]
		if !ok || aspect == "" || value == "unset" || aspect == "indentSize" && value == "tab" {
			continue
		}
		value = strings.NewReplacer("tab", "tabs", "space", "spaces").Replace(value)
		for _, l := range to {
			out = append(out, Setting{l, aspect, value, f.Path + ": " + key})
		}
	}
	return out
}

// sectionLanguages are the languages of files that the pattern of a section matches: *, *.go or *.{js,ts}. Other patterns are for some
// files only.
func sectionLanguages(pattern string) (out []string) {
	seen := map[string]bool{}
	add := func(l string) {
		if l != "" && !seen[l] {
			seen[l] = true
			out = append(out, l)
		}
	}
	if pattern == "*" {
		for l := range grammars() {
			add(l)
		}
		return out
	}
	rest, ok := strings.CutPrefix(pattern, "*.")
	if !ok {
		return nil
	}
	for _, ext := range strings.Split(strings.Trim(rest, "{}"), ",") {
		add(languages.Of("x." + strings.TrimSpace(ext)))
	}
	return out
}
