package controllers

import "reconcile.dev/reconcile/schemas"

// RequestPending is the phase of a request that has not been answered.
const RequestPending = "pending"

// decideRequest tells that a question waits for the one that was asked.
func decideRequest(in In) Out {
	if in.Gone() {
		return Out{}
	}
	st := &schemas.ClarificationRequestStatus{Common: common(in.Status)}
	if in.Broken() {
		brokenJudgement(in, st.Phase).settle(&st.Common, st.ObservedDigest, in.Now)
		return Out{Status: st}
	}
	if st.ObservedDigest != "" && st.ObservedDigest != in.Object.Digest {
		immutable(st.Phase, "a request cannot be changed once it was accepted; write a new one").
			settle(&st.Common, st.ObservedDigest, in.Now)
		return Out{Status: st}
	}
	spec := in.Object.Spec().(*schemas.ClarificationRequestSpec)
	judgement{phase: RequestPending, class: waiting, reason: ReasonPending, message: "waits for " + spec.To}.
		settle(&st.Common, in.Object.Digest, in.Now)
	return Out{Status: st}
}
