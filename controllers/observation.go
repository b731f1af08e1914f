package controllers

import "reconcile.dev/reconcile/schemas"

// decideObservation reports an observation that cannot be read, or that was edited after the memory had imported it
// (decision 5).
func decideObservation(in In) Out {
	switch {
	case in.Gone():
		return Out{}
	case in.Broken():
		return decideRecord[schemas.ObservationStatus](in)
	}
	accepted := acceptedDigest(in)
	if accepted == "" || accepted == in.Object.Digest {
		return Out{}
	}
	st := &schemas.ObservationStatus{Common: common(in.Status())}
	immutable("", "an observation cannot be changed once the memory has taken it in, and what it said before stands; put "+
		"the text back, and write a new one, which may supersede it").settle(&st.Common, accepted, in.Now)
	return Out{Status: st}
}

// acceptedDigest is the digest of the spec that the memory imported; "" if unknown. If the memory was not read, the
// status has the digest of an observation that was edited.
func acceptedDigest(in In) string {
	if in.Accepted != "" || !in.HasStatus() {
		return in.Accepted
	}
	base := in.Status().Base()
	if c := base.Condition(schemas.Stalled); c != nil && c.Reason == ReasonImmutable {
		return base.ObservedDigest
	}
	return ""
}

// decideRecord is the decision about objects that only record something (replies, observations): they have a status
// only while something is wrong with them.
func decideRecord[S any, P interface {
	*S
	schemas.Status
}](in In) Out {
	if !in.Broken() {
		return Out{}
	}
	st := P(new(S))
	*st.Base() = common(in.Status())
	brokenJudgement(in, st.Base().Phase).settle(st.Base(), st.Base().ObservedDigest, in.Now)
	return Out{Status: st}
}
