package sessions

import (
	"fmt"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

func dagRef(name string) schemas.Ref {
	_, name, _ = strings.Cut(name, "/")
	return schemas.DAGKind.Ref(name)
}

// fixName is the name of the DAG of a round, from the first name on that is free.
func fixName(t *state.Tree, session string, round int) string {
	base := session
	if most := longestName - len("-fix-000-plan"); len(base) > most {
		base = strings.TrimRight(base[:most-7], "-._") + "-" + strings.TrimPrefix(keys.Digest([]byte(session)), "sha256:")[:6]
	}
	for ; ; round++ {
		name := base + fixInfix + strconv.Itoa(round)
		if e := t.Entry(schemas.DAGKind.Ref(name)); e == nil || e.Gone() {
			return name
		}
	}
}

const (
	longestName = 63
	fixInfix    = "-fix-"
	planSuffix  = "-plan"
)

// planOf is the reference of the DAG that plans what the DAG of a reference mends.
func planOf(fix string) string {
	if fix == "" {
		return ""
	}
	return fix + planSuffix
}

// mends reports whether reconcile made a DAG to mend the work of a session, or to plan that.
func mends(session string, e *state.Entry) bool {
	if e == nil || e.Gone() || !strings.Contains(e.Name, fixInfix) {
		return false
	}
	spec := state.SpecOf[*schemas.DAGSpec](e)
	return spec != nil && spec.Fixes == session
}

// isPlan reports whether a DAG only plans the corrections of a session.
func isPlan(session string, e *state.Entry) bool {
	return strings.HasSuffix(e.Name, planSuffix) && mends(session, e)
}

// fixes counts the DAGs that mend a session.
func fixes(t *state.Tree, session *state.Entry) (n int) {
	for _, e := range dagsOf(t, session.Ref) {
		if mends(session.Name, e) && !strings.HasSuffix(e.Name, planSuffix) {
			n++
		}
	}
	return n
}

// engineersOf lists the agents that may mend the work of sessions, by name: the programs with the role engineer.
func engineersOf(t *state.Tree) (out []string) {
	for _, e := range t.Entries(schemas.AgentKind.Name) {
		if a := state.SpecOf[*schemas.AgentSpec](e); a != nil && a.Role == schemas.RoleEngineer && a.Runner.AsCommand() != nil {
			out = append(out, e.Name)
		}
	}
	return out
}

// architectOf is the program that plans what mends a session; "" for none.
func architectOf(t *state.Tree) string {
	for _, e := range t.Entries(schemas.AgentKind.Name) {
		if a := state.SpecOf[*schemas.AgentSpec](e); a != nil && a.Role == schemas.RoleArchitect && a.Runner.AsCommand() != nil {
			return e.Name
		}
	}
	return ""
}

// endedAs is the digest of the DAGs of a session as they ended, without those that only plan. brief returns that of a DAG.
func endedAs(t *state.Tree, session *state.Entry, brief func(*state.Entry) *schemas.Brief) string {
	var b strings.Builder
	for _, e := range dagsOf(t, session.Ref) {
		if st := brief(e); st != nil && !isPlan(session.Name, e) {
			fmt.Fprintf(&b, "%s %s %s\n", e.Name, st.Phase, st.FinishedAt.UTC().Format("20060102T150405.000000000"))
		}
	}
	return keys.Digest([]byte(b.String()))
}

// verifiedAs reports whether the status of a session says that its work was verified, as its DAGs ended by their statuses.
func verifiedAs(t *state.Tree, session *state.Entry) bool {
	st, ok := session.Status().(*schemas.SessionStatus)
	return ok && st.Quality != nil && st.Quality.State == schemas.QualityVerified &&
		st.Quality.Of == endedAs(t, session, func(e *state.Entry) *schemas.Brief { return e.Brief() })
}

// toVerify reports whether the work of a session has ended well, and is not verified yet.
func (s *dagSums) toVerify(e *state.Entry) bool {
	if state.SpecOf[*schemas.SessionSpec](e).Quality == nil {
		return false
	}
	if st, ok := e.Status().(*schemas.SessionStatus); ok && st.Quality != nil && (st.Quality.State == schemas.QualityVerified || st.Quality.State == schemas.QualityWaiting) {
		return false
	}
	return s.sum(e.Name).endedWell()
}

// endedWell reports whether all DAGs have ended well, and some work was done, be it of one that was cancelled then.
func (s *dagSum) endedWell() bool {
	return (s.phases[schemas.DAGSucceeded] > 0 || s.progress.Done > 0) && s.phases[schemas.DAGSucceeded]+s.phases[schemas.DAGCancelled] == s.dags && len(s.invalid) == 0
}

// VerifiesAgain reports whether an action on a session has its work verified again. Then it is about none of its DAGs.
func VerifiesAgain(session *state.Entry, action string, spec *schemas.ActionSpec) bool {
	st, ok := session.Status().(*schemas.SessionStatus)
	if !ok || st.Quality == nil || spec.Verb != schemas.VerbRetry || spec.Target == schemas.TargetAll {
		return false
	}
	for _, a := range st.Actions {
		if a.Name == action {
			return a.Verifies
		}
	}
	return st.Quality.State == schemas.QualityVerified || st.Quality.State == schemas.QualityWaiting
}
