package controllers

import "reconcile.dev/reconcile/schemas"

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
	*st.Base() = common(in.Status)
	brokenJudgement(in, st.Base().Phase).settle(st.Base(), st.Base().ObservedDigest, in.Now)
	return Out{Status: st}
}
