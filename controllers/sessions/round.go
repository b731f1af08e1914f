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

// fixName is the name of the DAG of a round.
func fixName(session string, round int) string {
	suffix := "-fix-" + strconv.Itoa(round)
	return strings.TrimRight(session[:min(len(session), longestName-len(suffix)-len("-plan"))], "-._") + suffix
}

const longestName = 63

// planOf is the reference of the DAG that plans what the DAG of a reference mends.
func planOf(fix string) string {
	if fix == "" {
		return ""
	}
	return fix + "-plan"
}

// isPlan reports whether a DAG of a session plans what is mended.
func isPlan(session, dag string) bool {
	for n := range strings.SplitSeq(strings.TrimSuffix(dag, "-plan"), "-fix-") {
		if round, err := strconv.Atoi(n); err == nil && dag == fixName(session, round)+"-plan" {
			return true
		}
	}
	return false
}

// lastFix is the highest round for which there is a DAG that mends a session.
func lastFix(t *state.Tree, session *state.Entry) (last int) {
	for _, e := range dagsOf(t, session.Ref) {
		if i := strings.LastIndex(e.Name, "-fix-"); i > 0 {
			if n, err := strconv.Atoi(e.Name[i+len("-fix-"):]); err == nil && e.Name == fixName(session.Name, n) {
				last = max(last, n)
			}
		}
	}
	return last
}

// engineersOf lists the agents that may mend the work of a session, by name: the programs with the role engineer.
func engineersOf(t *state.Tree, session string) (out []string) {
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
		if st := brief(e); st != nil && !isPlan(session.Name, e.Name) {
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

// verifying reports whether the work of a session is being verified.
func verifying(e *state.Entry) bool {
	if state.SpecOf[*schemas.SessionSpec](e).Quality == nil {
		return false
	}
	st, ok := e.Status().(*schemas.SessionStatus)
	return ok && st.Quality != nil && (st.Quality.State == schemas.QualityInspecting || st.Quality.State == schemas.QualityTesting)
}
