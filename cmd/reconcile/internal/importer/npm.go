package importer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/tools"
)

// npmOwn are scripts that npm runs automatically on install, pack, publish or version.
var npmOwn = []string{"preinstall", "install", "postinstall", "preprepare", "prepare", "postprepare", "prepublish", "prepublishOnly",
	"prepack", "postpack", "publish", "postpublish", "preversion", "version", "postversion", "preuninstall", "uninstall", "postuninstall",
	"dependencies"}

// npm finds the scripts of an npm package, in the JSON of its package.json, as commands of npm or the manager that this names.
func npm(path string, src []byte) (Found, error) {
	var found Found
	var doc struct {
		Scripts json.RawMessage `json:"scripts"`
	}
	if err := json.Unmarshal(src, &doc); err != nil {
		return found, fmt.Errorf("%s is not JSON of a package: %w", path, err)
	}
	names, scripts, err := orderedFields(doc.Scripts)
	if err != nil {
		return found, fmt.Errorf("%s: scripts: %w", path, err)
	}
	manager := cmp.Or(tools.NodeManager(nil, string(src)), "npm")
	for _, name := range names {
		var text string
		if err := json.Unmarshal(scripts[name], &text); err != nil || strings.TrimSpace(text) == "" {
			found.omit(path, name, "it is no text")
			continue
		}
		if why := npmOmitted(name, text, scripts); why != "" {
			found.omit(path, name, "%s", why)
			continue
		}
		found.Commands = append(found.Commands, Command{ID: name, Name: name, Description: short(text), Run: []string{manager, "run", name},
			Inputs: []string{path}, Held: heldBecause(name), From: path})
	}
	return found, nil
}

// npmOmitted returns why a script is not a node, or "".
func npmOmitted(name, text string, scripts map[string]json.RawMessage) string {
	switch {
	case !isShown(name):
		return "its name cannot be an argument"
	case slices.Contains(npmOwn, name):
		return "npm runs it by itself"
	case name == "test" && strings.Contains(text, "Error: no test specified"):
		return "it stands for tests that there are not"
	}
	for _, around := range []string{"pre", "post"} {
		if main, ok := strings.CutPrefix(name, around); ok && scripts[main] != nil {
			return fmt.Sprintf("npm runs it with %s", main)
		}
	}
	return ""
}

// orderedFields returns the fields of a JSON object in file order, each once.
func orderedFields(src json.RawMessage) (names []string, fields map[string]json.RawMessage, err error) {
	fields = map[string]json.RawMessage{}
	if len(src) == 0 || string(src) == "null" {
		return nil, fields, nil
	}
	if src[0] != '{' {
		return nil, nil, fmt.Errorf("they are no JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(src))
	if _, err := d.Token(); err != nil {
		return nil, nil, err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, nil, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, nil, err
		}
		name := fmt.Sprint(key)
		if fields[name] == nil {
			names = append(names, name)
		}
		fields[name] = value
	}
	return names, fields, nil
}
