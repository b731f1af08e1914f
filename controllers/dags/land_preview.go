package dags

import (
	"cmp"
	"strings"

	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/schemas"
)

// A commit that land.preview or a pipeline holds back is a gate, like a node with approve: it lands only when people have approved its content.

// shownDigits is the length of the digest of what a gate shows: 128 bits, so that no one finds two works with one digest.
const shownDigits = 32

// previewOf says which commits of node i wait for people; nil for none.
func (f *fold) previewOf(i int32) *schemas.Preview {
	return f.p.Spec.Nodes[i].PreviewOf(f.b.SessionSpec())
}

// heldBack says why the commit of node i needs an approval before it lands; "" if it needs none, or does not exist.
func (f *fold) heldBack(i int32) string {
	r := &f.recs[i]
	if !r.won || r.again || r.land.of == nil || r.land.claim != nil {
		return ""
	}
	held := cmp.Or(r.verify.held, r.verify.doubts, f.previewOf(i).Holds(r.land.of.Workspace.Change))
	if t := testsOf(r.verify.tests); t != nil && held == "" {
		return f.previewOf(i).Holds(r.verify.tests.Workspace.Change)
	}
	return held
}

// shownLanding is the digest of what of node i is to land: its commit, and the tests that land with it.
func (f *fold) shownLanding(i int32) string {
	digest := f.shownCommit(f.recs[i].land.of.Workspace)
	if t := testsOf(f.recs[i].verify.tests); t != nil {
		digest = strings.TrimPrefix(keys.Digest([]byte(digest+" "+t.Commit)), "sha256:")[:shownDigits]
	}
	return digest
}

// shownCommit is the digest of the commit of a workspace, its base, and the branch that it is for.
func (f *fold) shownCommit(w *schemas.RunWorkspace) string {
	o := keys.Begin(nil)
	o.Text("base", w.Base)
	o.Text("branch", f.b.SessionSpec().Branch)
	o.Text("commit", w.Commit)
	return strings.TrimPrefix(keys.Digest(o.End()), "sha256:")[:shownDigits]
}
