package importer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// commandsOf returns the commands of recipes, sorted by name, as in "just --list".
func commandsOf(path string, recipes []recipe, found *Found) {
	slices.SortStableFunc(recipes, func(a, b recipe) int { return strings.Compare(a.name, b.name) })
	recipes = slices.CompactFunc(recipes, func(a, b recipe) bool { return a.name == b.name })
	for _, r := range recipes {
		switch {
		case r.private:
			continue
		case len(r.params) > 0:
			found.omit(path, r.name, "it needs %s", strings.Join(r.params, ", "))
			continue
		}
		held := heldBecause(r.name)
		if r.asks {
			held = heldAsks
		}
		found.Commands = append(found.Commands, Command{ID: r.name, Name: r.name, Description: short(r.doc), Run: []string{"just", r.name},
			Needs: r.needs, Inputs: []string{path}, Held: held, From: path})
	}
}

// justModule is a justfile, or a module of it, as "just --dump --dump-format json" prints it.
type justModule struct {
	Recipes map[string]struct {
		Attributes   []json.RawMessage `json:"attributes"`
		Dependencies []struct {
			Recipe string `json:"recipe"`
		} `json:"dependencies"`
		Doc        string `json:"doc"`
		Parameters []struct {
			Default json.RawMessage `json:"default"`
			Kind    string          `json:"kind"`
			Name    string          `json:"name"`
		} `json:"parameters"`
		Priors  int  `json:"priors"`
		Private bool `json:"private"`
	} `json:"recipes"`
	Modules map[string]justModule `json:"modules"`
}

// JustDump finds the recipes in the JSON dump of just: those without required arguments, as commands.
func JustDump(path string, dump []byte) (Found, error) {
	var found Found
	var m justModule
	if err := json.Unmarshal(dump, &m); err != nil {
		return found, fmt.Errorf("what just prints of %s is not the JSON that is expected: %w", path, err)
	}
	commandsOf(path, m.recipes("", nil), &found)
	return found, nil
}

func (m *justModule) recipes(prefix string, all []recipe) []recipe {
	for _, name := range sortedKeys(m.Recipes) {
		from := m.Recipes[name]
		r := recipe{name: prefix + name, doc: from.Doc, private: from.Private}
		for i, d := range from.Dependencies {
			if i < from.Priors {
				r.needs = append(r.needs, prefix+d.Recipe)
			}
		}
		for _, p := range from.Parameters {
			if (len(p.Default) == 0 || string(p.Default) == "null") && p.Kind != "star" {
				r.params = append(r.params, p.Name)
			}
		}
		for _, a := range from.Attributes {
			r.asks = r.asks || strings.Contains(string(a), `"confirm"`)
		}
		if isShown(r.name) {
			all = append(all, r)
		}
	}
	for _, name := range sortedKeys(m.Modules) {
		sub := m.Modules[name]
		all = sub.recipes(prefix+name+"::", all)
	}
	return all
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// forSystem reports whether a recipe with these attributes applies to this system.
func forSystem(attributes []string, os string) bool {
	bound := false
	for _, a := range attributes {
		if !slices.Contains(justSystems, a) {
			continue
		}
		bound = true
		if a == os || a == "macos" && os == "darwin" || a == "unix" && os != "windows" {
			return true
		}
	}
	return !bound
}
