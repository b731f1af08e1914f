package advice

import "reconcile.dev/reconcile/schemas"

// Advice is a warning about a spec that is valid and will probably not do what it is meant to.
type Advice struct {
	Code       string
	Ref        schemas.Ref
	File       string // slash path below the root
	Field      []any  // below the root of the document: "spec", "nodes", 3
	Message    string
	Suggestion string
	// Refused says that validate fails, although a run takes the spec, as one of an earlier version.
	Refused bool
}
