package ops

import (
	"context"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/doctor"
)

// DoctorRequest requests an examination of the tree and its surroundings.
type DoctorRequest struct {
	Fix bool // repair what is safe to repair
}

// DoctorResult has the findings.
type DoctorResult struct {
	Findings []doctor.Finding
	Verdict  Code // Failure if there are errors, Invalid if only specs are at fault
}

// Doctor checks the health of the tree and its surroundings, and returns the findings with a verdict; with Fix it
// makes the repairs that are safe. It examines the tree, leftovers of killed runs, the caches, the repository, the file
// system and the environment.
func Doctor(ctx context.Context, env Env, q DoctorRequest) (r DoctorResult, err error) {
	examine := doctor.Check
	if q.Fix {
		if err := env.authorize("Doctor"); err != nil {
			return r, typed(err)
		}
		examine = doctor.Fix
	}
	r.Findings = examine(ctx, doctor.New(doctor.Options{Tree: env.Tree, Indexing: env.indexing(), WarnMemory: env.warnMemory, Sandbox: env.Sandbox}))
	if worst, invalid := doctor.Worst(r.Findings); worst == doctor.Error {
		if r.Verdict = Failure; invalid {
			r.Verdict = Invalid
		}
	}
	return r, typed(ctx.Err())
}
