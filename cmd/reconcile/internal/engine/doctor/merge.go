package doctor

import (
	"context"
	"strings"
)

// gitMerge looks whether git merges the files of the state field by field: the tree has to say so, and the clone has to
// know the command. A tree whose state git does not keep has nothing to merge.
func (e *Env) gitMerge(ctx context.Context, _ string) []Finding {
	folder := e.settings().Folders.State
	attribute, err := e.git(ctx, "check-attr", "merge", "--", folder+"/dags/any.json")
	if err != nil {
		return nil // of another git than we know
	}
	wanted := strings.HasSuffix(attribute, ": reconcile")
	kept, err := e.git(ctx, "ls-files", "--", folder+"/*.json")
	if err != nil || kept == "" && !wanted || !wanted && !strings.HasSuffix(attribute, ": unspecified") {
		return nil
	}
	if command, err := e.git(ctx, "config", "--get", "merge.reconcile.driver"); wanted && err == nil && command != "" {
		return nil
	}
	return []Finding{warn("where branches meet, state files are merged as text, with conflict markers in them",
		"reconcile merge-driver --install")}
}
