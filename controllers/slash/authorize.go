package slash

import (
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/derive"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Actor is the author of a comment, as GitHub tells it, never as the comment does.
type Actor struct {
	Login string
	// Association is the relation to the repository: OWNER, MEMBER, COLLABORATOR, CONTRIBUTOR, …, NONE.
	Association string
	Bot         bool     // an app
	Teams       []string // those of TeamsToAsk that the actor is in
	// Permission is what the actor may do in the repository, where AsksPermission: admin, write, read or none.
	Permission string
}

// member is the role of those who belong to the organization that owns a repository.
const member = "MEMBER"

// Authorize returns the reason why a command of the actor must not act; nil permits it. Settings without roles permit
// only the listed actors.
func Authorize(a Actor, set *schemas.GitHubCommands) error {
	switch {
	case isApp(a) || a.Login == "":
		return fmt.Errorf("apps and bots may not give commands")
	case hasRole(a, set):
		return nil
	}
	for _, who := range set.Allow {
		if strings.EqualFold(who, a.Login) || slices.ContainsFunc(a.Teams, func(t string) bool { return strings.EqualFold(t, who) }) {
			return nil
		}
	}
	hint := ""
	if hides(a, set) {
		hint = ". GitHub does not show a membership that is private: who has one counts if he may write to the repository, " +
			"or is listed there"
	}
	return fmt.Errorf("%s may not give commands here: github.commands in %s says who may%s", inertCommandText(a.Login),
		codeText(schemas.SettingsPath), hint)
}

func isApp(a Actor) bool { return a.Bot || strings.HasSuffix(a.Login, "[bot]") }

// hasRole reports whether an actor has one of the roles. A member whose membership is private looks like a stranger, but
// may write, as no stranger may: others who may are shown as collaborators.
func hasRole(a Actor, set *schemas.GitHubCommands) bool {
	return set.Roles != nil && slices.Contains(*set.Roles, a.Association) ||
		hides(a, set) && (a.Permission == "admin" || a.Permission == "write")
}

// hides reports whether an actor may be a member without GitHub saying so, where that counts.
func hides(a Actor, set *schemas.GitHubCommands) bool {
	return set.Roles != nil && slices.Contains(*set.Roles, member) && !slices.Contains([]string{"OWNER", member, "COLLABORATOR"}, a.Association)
}

// AsksPermission reports whether GitHub must be queried for the actor's permission in the repository: if the other known
// data does not decide.
func AsksPermission(a Actor, set *schemas.GitHubCommands) bool {
	return !isApp(a) && a.Permission == "" && Authorize(a, set) != nil && hides(a, set)
}

// TeamsToAsk returns the teams that the settings allow, as organization/team, whose membership must be queried from
// GitHub for the actor: none if it does not affect the result.
func TeamsToAsk(a Actor, set *schemas.GitHubCommands) []string {
	if a.Bot || Authorize(a, set) == nil {
		return nil
	}
	var out []string
	for _, who := range set.Allow {
		if strings.Contains(who, "/") {
			out = append(out, who)
		}
	}
	return out
}

// prove records who approved a gate by a comment.
func (v *Decision) prove(s *derive.Spec, e *state.Entry, author string) {
	if spec := state.SpecOf[*schemas.ActionSpec](e); spec != nil && spec.Permission == nil && (spec.Verb == schemas.VerbApprove || schemas.IgnoredStep(spec.Verb) != "") {
		v.Handled.Proofs = append(v.Handled.Proofs, schemas.MirrorProof{Spec: s.Path, Digest: e.Object.Digest, Author: author})
	}
}
