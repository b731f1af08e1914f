package main

import (
	"bytes"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
)

// checkObject reports what schemas cannot know of an object: conditions of nodes that do not compile. It is part of
// decoding, in validate and in a run alike.
func checkObject(o *schemas.Object, r *schemas.Report) {
	if o.Kind != schemas.DAGKind.Name || !bytes.Contains(o.Canonical(), []byte(`"when":`)) {
		return // most need not be decoded for it
	}
	dag := schemas.SpecAs[*schemas.DAGSpec](o)
	defer o.Release()
	for i, n := range dag.Nodes {
		if n.When == "" {
			continue
		}
		if err := controllers.CheckWhen(n.When, n.Needs); err != nil {
			r.At("nodes", i, "when").Errorf("bad-condition", "%v", err).
				Suggest(`for example: needs.build.exitCode == 0`)
		}
	}
}
