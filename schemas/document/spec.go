package document

import (
	"bytes"

	"reconcile.dev/reconcile/schemas"
)

// envelope is a spec as it is written to a file.
type envelope struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Metadata   schemas.Metadata `json:"metadata"`
	Spec       schemas.Spec     `json:"spec"`
}

// Spec encodes the spec of the object ref as a YAML document, with its apiVersion, kind and name.
func Spec(ref schemas.Ref, spec schemas.Spec) ([]byte, error) {
	e := envelope{APIVersion: schemas.APIVersion, Kind: ref.Kind, Spec: spec}
	e.Metadata.Name = ref.Name
	var b bytes.Buffer
	err := YAML(&b, e)
	return b.Bytes(), err
}
