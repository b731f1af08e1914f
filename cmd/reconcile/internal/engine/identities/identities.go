// Package identities proves who wrote an Action: by the record of a comment on GitHub, or by the signature of the commit that added the
// file.
package identities

import (
	"context"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/mirroring"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// Prover proves who wrote Actions of a tree.
type Prover struct {
	Store   *state.Store
	Environ []string // of git
}

// Identify says who wrote an Action. An unproved author gives a reason, not an error.
func (p *Prover) Identify(ctx context.Context, settings *schemas.SettingsSpec, o *schemas.Object) (settle.Identity, error) {
	spec := schemas.SpecAs[*schemas.ActionSpec](o)
	if spec == nil {
		return settle.Identity{}, nil
	}
	if settle.FromComment(o) {
		return p.commenter(ctx, settings, o)
	}
	return p.signer(ctx, settings, o)
}

// commenter is the author of the comment that became the Action.
func (p *Prover) commenter(ctx context.Context, settings *schemas.SettingsSpec, o *schemas.Object) (settle.Identity, error) {
	records := mirroring.NewRecords(p.Store, settings.GitHub.Repo, true, func(string) {})
	issues, err := records.Issues()
	if err != nil {
		return settle.Identity{}, err
	}
	for _, n := range issues {
		f, err := records.Issue(ctx, n)
		if err != nil {
			return settle.Identity{}, err
		}
		for _, h := range f.Handled {
			i := slices.IndexFunc(h.Proofs, func(c schemas.MirrorProof) bool { return c.Spec == o.Path && c.Digest == o.Digest })
			if i >= 0 {
				return settle.Identity{Who: settle.CommentAuthorPrefix + h.Proofs[i].Author, Proof: schemas.ProofGitHub}, nil
			}
		}
	}
	return settle.Identity{Why: "no record of a comment proves who wrote it; approve it in a new comment"}, nil
}

// signer is the person whose signature the commit has that added the file.
func (p *Prover) signer(ctx context.Context, settings *schemas.SettingsSpec, o *schemas.Object) (settle.Identity, error) {
	content, err := regular.Read(p.Store.Root(), o.Path)
	if err != nil {
		return settle.Identity{}, regular.Cause(err)
	}
	const how = "; commit " + "its file with the signature of a person in people of the settings: git commit -S"
	added, err := gitrepo.AdditionOf(ctx, p.Store.Dir(), p.Environ, o.Path, content)
	switch {
	case err != nil:
		return settle.Identity{Why: "nothing proves who wrote it, since git cannot tell: " + firstLine(err.Error())}, ctx.Err()
	case added.Why != "":
		return settle.Identity{Why: "nothing proves who wrote it: " + added.Why + how}, nil
	}
	name, why, err := gitrepo.SignedBy(ctx, p.Store.Dir(), p.Environ, added.Commit, signers(settings))
	switch {
	case err != nil:
		return settle.Identity{}, err
	case name == "":
		return settle.Identity{Why: "nothing proves who wrote it: " + why + how}, nil
	}
	return settle.Identity{Who: name, Proof: schemas.ProofSignature}, nil
}

func signers(settings *schemas.SettingsSpec) (out []gitrepo.Signer) {
	for i := range settings.People {
		if person := &settings.People[i]; person.Key() != "" {
			out = append(out, gitrepo.Signer{Name: person.Name, Key: person.Key(), SSH: person.SSH()})
		}
	}
	return out
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
