package dags

import (
	"fmt"

	"reconcile.dev/reconcile/controllers/actions"
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/schemas"
)

// People may take a change whatever its inspector or its tester says. That is an approval of one verdict, about one change: the next
// change is verified as before.

// ignore takes the word of a person about a step's verdict on the change of node i, or says in done why it is refused.
func (f *fold) ignore(i int32, a actions.Pending, done *schemas.AppliedAction) bool {
	id := a.Identity(f.World)
	done.By, done.Proof = id.Who, id.Proof
	switch now := f.recs[i].verify.change; {
	case agents.Acts(f.Tree, id):
		done.Refused = "only people do that, and " + id.Who + " is an agent"
	case f.pipelineOf(i) == nil:
		done.Refused = "nothing inspects or tests what " + f.p.Spec.Nodes[i].Name + " changes"
	case now == nil || f.recs[i].verify.landed():
		done.Refused = "there is no change that is verified, waits, or was sent back"
	case f.namesApprovers(i):
		done.Refused = fmt.Sprintf("it needs approval%s, whatever its steps say; when it waits for that: reconcile approve dag/%s %s",
			f.whoApproves(f.previewOf(i).Approval(), nil), f.p.Name, f.p.Spec.Nodes[i].Name)
	case a.Spec.Digest == "":
		done.Refused = "it names no digest of the change; now it is " + f.shownCommit(now)
	case a.Spec.Digest != f.shownCommit(now):
		done.Refused = "the change is another one by now; its digest is " + f.shownCommit(now)
	default:
		f.keepApproval(i, schemas.Approval{Action: a.Entry.Name, By: id.Who, Proof: id.Proof, At: done.At, Digest: a.Spec.Digest,
			Ignores: schemas.IgnoredStep(a.Spec.Verb), Reason: a.Spec.Reason})
		return true
	}
	return false
}

// namesApprovers reports whether land.preview of node i says who approves commits, or how many people do: then no one else takes one.
func (f *fold) namesApprovers(i int32) bool {
	a := f.previewOf(i).Approval()
	return len(a.By) > 0 || a.Quorum() > 1
}

// overruled reports whether a run of node i mends what people have taken as it is, by now or when it was to land.
func (f *fold) overruled(i int32, run *schemas.Run) bool {
	r, v := &f.recs[i], &f.recs[i].verify
	switch {
	case v.change == nil || v.sentBack != nil || run.Seq <= v.seq:
		return false
	case v.tried == nil && v.of == nil && !r.won:
		return false
	case v.tried != nil && (run.StartedAt.IsZero() || !run.StartedAt.Before(v.tried.StartedAt.Time)):
		return false
	}
	return f.ignoring(i, v.change, schemas.StepInspect) != nil || f.ignoring(i, v.change, schemas.StepTest) != nil
}
