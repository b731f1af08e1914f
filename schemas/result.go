package schemas

import (
	"errors"
	"fmt"
	"strings"

	"reconcile.dev/reconcile/schemas/shorten"
	"reconcile.dev/reconcile/schemas/validator"
)

// CheckResult validates the result of a node by its outputs.schema. The error has the path and the cause for each of the
// first violations; nil: the result is valid. An empty result counts as missing.
func CheckResult(schema, result []byte) error {
	const most = 5
	if len(result) == 0 {
		return errors.New("there is no result, and outputs.schema asks for one")
	}
	compiled, err := validator.Compile(schema, nil)
	if err != nil {
		return fmt.Errorf("outputs.schema: %w", err)
	}
	v, err := validator.Value(result)
	if err != nil {
		return fmt.Errorf("the result cannot be judged by outputs.schema: %w", err)
	}
	found, err := compiled.Validate(v)
	if err != nil || len(found) == 0 {
		return err
	}
	var b strings.Builder
	b.WriteString("the result does not keep outputs.schema")
	for i, violation := range found[:min(len(found), most)] {
		b.WriteString([]string{": ", "; "}[min(i, 1)])
		if at := pathText(validator.Steps(v, violation.Path)); at != "" {
			b.WriteString(at + ": ")
		}
		b.WriteString(shorten.Text(violation.Message, 300))
	}
	if more := len(found) - most; more > 0 {
		fmt.Fprintf(&b, "; and %s", Count(more, "further problem"))
	}
	return errors.New(b.String())
}
