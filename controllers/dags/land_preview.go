package dags

import (
	"strings"

	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/schemas"
)

// A commit that land.preview holds back is a gate, like a node with approve: it lands only when people have approved what it shows.

// previewOf says which commits of node i wait for people; nil for none.
func (f *fold) previewOf(i int32) *schemas.Preview {
	return f.p.Spec.Nodes[i].PreviewOf(f.b.SessionSpec())
}

// heldBack says why the commit of node i has to be approved before it lands; "" if it has not, or there is none.
func (f *fold) heldBack(i int32) string {
	r := &f.recs[i]
	if !r.won || r.again || r.land.of == nil || r.land.claim != nil {
		return ""
	}
	return f.previewOf(i).Holds(r.land.of.Workspace.Change)
}

// shownCommit is the digest of the commit of node i, what it was made from, and the branch that it is for.
func (f *fold) shownCommit(i int32) string {
	w := f.recs[i].land.of.Workspace
	o := keys.Begin(nil)
	o.Text("base", w.Base)
	o.Text("branch", f.b.SessionSpec().Branch)
	o.Text("commit", w.Commit)
	return strings.TrimPrefix(keys.Digest(o.End()), "sha256:")[:shownDigits]
}

// commitSpan is the time in which the commit of node i could have landed, had it been approved.
func (f *fold) commitSpan(i int32) []schemas.Span {
	last := f.recs[i].last
	if f.previewOf(i) == nil || last == nil {
		return nil
	}
	span := schemas.Span{From: last.FinishedAt}
	if f.heldBack(i) == "" || f.next[i].Landed == nil || f.next[i].Landed.Reason != schemas.LandedHeld {
		for _, a := range f.approvals(i) {
			span.To = schemas.Later(span.To, a.At)
		}
		if !span.To.After(span.From.Time) {
			return nil
		}
	}
	return []schemas.Span{span}
}
