package runner

import (
	"bytes"
	"os"
	"path"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/regular"
)

// askedBy reports whether the run with that key wrote a question below the folder of specs, as "reconcile clarify ask" and
// "clarify question" do.
func askedBy(root *os.Root, specs, key string) bool {
	for _, k := range []schemas.Kind{schemas.ClarificationRequestKind, schemas.ReplyKind} {
		dir := path.Join(specs, k.Plural)
		files, err := regular.List(root, dir)
		if err != nil {
			continue // no question yet
		}
		for _, f := range files {
			data, err := regular.Read(root, path.Join(dir, f.Name()))
			if err == nil && bytes.Contains(data, []byte("\n  run: "+key+"\n")) {
				return true
			}
		}
	}
	return false
}
