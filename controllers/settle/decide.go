package settle

import (
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// In is all that a decision may depend on.
type In struct {
	*state.Entry // never nil; Gone() and Broken() tell what became of the spec
	Tree         *state.Tree
	World        *World // What is shared by all decisions over one tree
	Now          time.Time
}

// DecideRecord is the decision about objects that only record something (replies, observations): they have a status
// only while something is wrong with them.
func DecideRecord[S any, P interface {
	*S
	schemas.Status
}](in In) Out {
	if !in.Broken() {
		return Out{}
	}
	st := P(new(S))
	*st.Base() = Common(in.Status())
	JudgeBroken(in, st.Base().Phase).Settle(st.Base(), st.Base().ObservedDigest, in.Now)
	return Out{Status: st}
}
