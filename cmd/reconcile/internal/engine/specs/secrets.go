package specs

import (
	"encoding/json"
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
)

// CheckSecret refuses a name that holds a secret or private text: unlike a text, it would be another one without. The
// name is not repeated.
func CheckSecret(what, name string) error {
	if found := slices.Concat(secrets.Find(name), secrets.Private(name)); len(found) > 0 {
		return invalid("%s holds a secret (%s), and nothing was written; give it another name", what, found[0].Rule)
	}
	return nil
}

// CheckSecrets is [CheckSecret] for a name and for every string of a spec, of whose texts secrets were removed before.
func CheckSecrets(name string, spec schemas.Spec) error {
	src, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	var all map[string]any
	if err := json.Unmarshal(src, &all); err != nil {
		return err
	}
	if err := CheckSecret("the name", name); err != nil {
		return err
	}
	return checkValue("the spec", all)
}

// checkValue walks over a JSON value. Keys are not repeated: they may be secrets.
func checkValue(what string, v any) error {
	switch v := v.(type) {
	case string:
		return CheckSecret(what, v)
	case []any:
		for _, one := range v {
			if err := checkValue(what, one); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, one := range v {
			if err := CheckSecret("a key of "+what, key); err != nil {
				return err
			}
			if err := checkValue(key, one); err != nil {
				return err
			}
		}
	}
	return nil
}
