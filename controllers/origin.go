package controllers

import (
	"strings"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Origin says how the spec file of an object came about. It decides who commits the file.
type Origin int

const (
	// OriginUser is a file that a user wrote, and commits.
	OriginUser Origin = iota
	// OriginRecord is a file that the program wrote from another input: a comment, a ledger, the record of a run.
	OriginRecord
	// OriginMemory is as OriginRecord. It is committed together with the memory, which follows from it.
	OriginMemory
	// OriginCommand is a file that has taken effect as it is. It belongs to the program if it has the form that the commands
	// of the program write, and to a user otherwise.
	OriginCommand
	// OriginOnce is as OriginCommand, but the program also commits a file in another form that the branch does not know:
	// a clone that received the file without its effect would apply it again.
	OriginOnce
)

// Origins groups the sound objects of a tree by the origin of their files. Those of users are left out.
func Origins(t *state.Tree) map[Origin][]*schemas.Object {
	out := map[Origin][]*schemas.Object{}
	for _, k := range TableOf(t) {
		if k.Origin == nil {
			continue
		}
		of := k.Origin(t)
		for _, e := range t.Entries(k.Name) {
			if e.Object == nil {
				continue
			}
			if is := of(e); is != OriginUser {
				out[is] = append(out[is], e.Object)
			}
		}
	}
	return out
}

// requestOrigin: an agent's run or a ledger asked, or a command, once the question has its number.
func requestOrigin(*state.Tree) func(*state.Entry) Origin {
	return func(e *state.Entry) Origin {
		spec, st := requestSpec(e), requestStatusOf(e)
		switch {
		case spec.Run+spec.Imported != "":
			return OriginRecord
		case st.ID != "" && st.ObservedDigest == e.Object.Digest:
			return OriginCommand
		}
		return OriginUser
	}
}

// replyOrigin: a comment, or a command, once the question has accepted or refused the reply.
func replyOrigin(t *state.Tree) func(*state.Entry) Origin {
	index := &clarificationIndex{tree: t}
	return func(e *state.Entry) Origin {
		if FromComment(e.Object) {
			return OriginRecord
		}
		spec := replySpec(e)
		to := index.request(spec.Clarification)
		if to == nil || requestSpec(to) == nil || requestStatusOf(to).ID == "" {
			return OriginUser
		}
		switch is, _ := clarify.StandingOf(requestStatusOf(to), clarify.Reply{Name: e.Name, Digest: e.Object.Digest, Spec: spec}); is {
		case clarify.Accepted, clarify.Refused:
			return OriginCommand
		}
		return OriginUser
	}
}

// actionOrigin: a comment, or a command, once the action was applied.
func actionOrigin(*state.Tree) func(*state.Entry) Origin {
	return func(e *state.Entry) Origin {
		b := e.Brief()
		switch {
		case FromComment(e.Object):
			return OriginRecord
		case b.Phase == schemas.ActionApplied && b.ObservedDigest == e.Object.Digest:
			return OriginOnce
		}
		return OriginUser
	}
}

// observationOrigin: the memory, for an observation that it has as it is.
func observationOrigin(*state.Tree) func(*state.Entry) Origin {
	return func(e *state.Entry) Origin {
		if e.Accepted == "" || e.Accepted == e.Object.Digest {
			return OriginMemory
		}
		return OriginUser
	}
}

// Prefixes of the names of specs from comments, and of the names of the authors of comments.
const (
	CommentSpecPrefix   = "gh-"
	CommentAuthorPrefix = "github:"
)

// FromComment reports whether a reply or an action comes from a comment.
func FromComment(o *schemas.Object) bool {
	if !strings.HasPrefix(o.Name, CommentSpecPrefix) {
		return false
	}
	by := ""
	switch spec := o.Spec().(type) {
	case *schemas.ReplySpec:
		by = spec.From
	case *schemas.ActionSpec:
		by = spec.By
	}
	return strings.HasPrefix(by, CommentAuthorPrefix)
}
