package settle

import (
	"strings"

	"reconcile.dev/reconcile/schemas"
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
	// OriginMade is a file that the program wrote from another input for users to edit: the program commits it where the branch
	// has no such file, and edits of it belong to a user.
	OriginMade
)

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
