package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
)

// discreet is a text of the command line as it may be written: without secrets and private text. That something was taken
// out is told.
func (a *app) discreet(what, text string) string {
	plain := secrets.Redact(text)
	if plain != text {
		fmt.Fprintf(a.stderr, "warning: %s held a secret or private text, which was taken out\n", what)
	}
	return plain
}

// checkDiscreet refuses a name that holds a secret or private text: unlike a text, it would be another one without. The
// name is not repeated.
func checkDiscreet(what, name string) error {
	if found := slices.Concat(secrets.Find(name), secrets.Private(name)); len(found) > 0 {
		return badUsage("%s holds a secret (%s), and nothing was written; give it another name", what, found[0].Rule)
	}
	return nil
}

// checkDiscreetSpec is checkDiscreet for a name and for every string of a spec: what may be taken out of texts was before.
func checkDiscreetSpec(name string, spec schemas.Spec) error {
	src, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	var all map[string]any
	if err := json.Unmarshal(src, &all); err != nil {
		return err
	}
	if err := checkDiscreet("the name", name); err != nil {
		return err
	}
	return checkDiscreetValue("the spec", all)
}

// checkDiscreetValue walks over a JSON value. Keys are not named: they may be what is not to be told.
func checkDiscreetValue(what string, v any) error {
	switch v := v.(type) {
	case string:
		return checkDiscreet(what, v)
	case []any:
		for _, one := range v {
			if err := checkDiscreetValue(what, one); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, one := range v {
			if err := checkDiscreet("a key of "+what, key); err != nil {
				return err
			}
			if err := checkDiscreetValue(key, one); err != nil {
				return err
			}
		}
	}
	return nil
}
