// Package controllers is the table of kinds, and answers questions about the objects of all kinds: what a run would do and what that
// costs at most, how files came about and when they go to the archive, and the statuses that follow from a journal.
//
// A controller is a pure function of one object, the tree and the time. It returns the object's status, the effects that it
// wants, and when it must be called again. It performs nothing, returns no error, reads no clock and starts no goroutine: a spec
// that can never work is Stalled in its status, a failed effect is a record in the tree, and back-off is computed from recorded
// attempts.
//
// Package settle decides a tree until nothing changes any more. It knows kinds only through their rows. Each kind has a package
// with its row: sessions, agents, workflows, dags, planchanges, clarifications (also replies), observations, actions and preferences. A package may
// import those after it in this order, and never the reverse: dags, planchanges, clarifications, agents, sessions, actions, workflows; readiness, keys;
// settle. Otherwise they meet in the tree, through statuses and records. Package derive finds the specs that follow from
// records; admission says which effects may start; nodes, ledgers, threads and work are views of a decided tree.
//
// A status depends on specs, records and the former status only, so the number of turns in which records arrived has no effect:
// times come from records, and the clock is read only if a condition changes and no record has the time.
package controllers

import (
	"path"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/actions"
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/dags"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/controllers/observations"
	"reconcile.dev/reconcile/controllers/planchanges"
	"reconcile.dev/reconcile/controllers/preferences"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/sessions"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/workflows"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Kinds is the table of kinds. A new kind is a file in schemas, a package of its own, and a row here.
var Kinds = settle.Table{
	sessions.Kind,
	agents.Kind,
	workflows.Kind,
	dags.Kind,
	planchanges.Kind,
	clarifications.Kind,
	clarifications.ReplyKind,
	observations.Kind,
	actions.Kind,
	preferences.Kind,
	{Kind: schemas.SettingsKind, Affects: func(c *settle.Change) { c.AddAll() }},
}

// Schemas returns the schema half of [Kinds].
func Schemas() schemas.Kinds { return Kinds.Schemas() }

// MirrorOptions adds to the options of the mirror what the table of a tree says.
func MirrorOptions(t *state.Tree, o mirror.Options) mirror.Options {
	o.Why = readiness.Why
	for _, k := range settle.TableOf(t) {
		if k.Mirror != nil {
			o.Kinds = append(o.Kinds, mirror.Mirrored{Kind: k.Name, Projector: k.Mirror})
		}
	}
	return o
}

// Resting lists the objects of a tree that want nothing, by the rows of their kinds, except those that are dormant already.
func Resting(t *state.Tree) (out []schemas.Ref) {
	for _, k := range settle.TableOf(t) {
		if k.Rests == nil {
			continue
		}
		rests := k.Rests(t)
		for _, e := range t.Active(k.Name) {
			if isSettled(e) && rests(e) {
				out = append(out, e.Ref)
			}
		}
	}
	return out
}

// isSettled reports whether nothing of an object is under way: it is declared as it is, its status is about that, and no run of it asked
// anything, taught anything, was an agent's or left outputs.
func isSettled(e *state.Entry) bool {
	return e.Object != nil && e.Object == e.Object.Declared() && len(e.Claims) == 0 &&
		!e.RunsHave(state.Asks|state.Learned|state.OfAgent|state.Outputs) &&
		(!e.HasStatus() || e.Brief().ObservedDigest == e.Object.Digest && e.Brief().Stalled != schemas.True)
}

// Origins groups the sound objects of a tree by the origin of their files. Those of users are left out.
func Origins(t *state.Tree) map[settle.Origin][]*schemas.Object {
	return origins(t, func(k *settle.Kind) []*state.Entry {
		if k.RestOfUsers {
			return t.Active(k.Name)
		}
		return t.Entries(k.Name)
	})
}

// OriginsAt is Origins for the objects whose spec files have these paths. It loads no others.
func OriginsAt(t *state.Tree, paths []string) map[settle.Origin][]*schemas.Object {
	at := map[string][]*state.Entry{}
	for _, e := range t.EntriesAt(paths) {
		at[e.Kind] = append(at[e.Kind], e)
	}
	return origins(t, func(k *settle.Kind) []*state.Entry { return at[k.Name] })
}

func origins(t *state.Tree, entries func(*settle.Kind) []*state.Entry) map[settle.Origin][]*schemas.Object {
	out := map[settle.Origin][]*schemas.Object{}
	for _, k := range settle.TableOf(t) {
		if k.Origin == nil {
			continue
		}
		among := entries(&k)
		if len(among) == 0 {
			continue
		}
		of := k.Origin(t)
		if of == nil {
			continue
		}
		for _, e := range among {
			if e.Object == nil {
				continue
			}
			if is := of(e); is != settle.OriginUser {
				out[is] = append(out[is], e.Object)
			}
		}
	}
	return out
}

// Archivable lists the spec files that were retired longer ago than archive.after. They go to the archive, where they are read
// as before. They are sorted by their paths. next is when another one is due; zero means never. Without all, dormant objects are left out:
// they are not due before the time that it returned for the settled tree.
func Archivable(t *state.Tree, now time.Time, all bool) (moves []state.Move, next time.Time) {
	after := t.Settings().Archive.After.Std()
	if after == 0 {
		return nil, time.Time{}
	}
	folders, entries := t.Settings().Folders, t.Active
	if all {
		entries = t.Entries
	}
	for _, k := range settle.TableOf(t) {
		if k.Retired == nil {
			continue
		}
		retired := k.Retired(t)
		for _, e := range entries(k.Name) {
			if e.Object == nil || !strings.HasPrefix(e.Object.Path, folders.Specs+"/") {
				continue
			}
			at := retired(e)
			if at.IsZero() {
				continue
			}
			if due := at.Add(after); due.After(now) {
				if next.IsZero() || due.Before(next) {
					next = due
				}
				continue
			}
			to := state.ArchivePath(folders.State, k.Plural, at, path.Base(e.Object.Path))
			moves = append(moves, state.Move{From: e.Object.Path, To: to})
		}
	}
	slices.SortFunc(moves, func(a, b state.Move) int { return strings.Compare(a.From, b.From) })
	return moves, next
}
