// Package gitrepo commits the files that reconcile wrote without disturbing other users of the repository.
//
// A commit is made at the level of objects: blobs of the given files, the trees of their folders (derived in memory
// from the branch's tree), and one commit object. They are written durably, and then one reference moves, under
// git's own lock files and only if it is unchanged since the work started; if it moved, the commit is built again
// on the new tip. No hook runs, no file of the work tree changes, no other path is read.
//
// When the branch is checked out, the index entries of exactly the committed paths follow, so that git status does
// not show the commit as a staged reversal. An entry that the user staged differently stays, as does the rest of
// the index. If the index is locked for long, or the process dies first, a record in <git dir>/reconcile lets the
// next commit (or [Repo.Settle]) catch up.
//
// Objects, configuration, ignore and attribute rules are read with go-git; this package searches pack indexes
// itself. It does not use go-git to write references, index or objects, because go-git neither locks nor syncs: a
// kill, a full disk or a concurrent git command damages the repository. What go-git cannot read (SHA-256 object
// names, reftable, missing objects of a partial clone) is done by the git command with the same result, and refused
// with a clear error without git.
//
// # Sharing a branch
//
// A [Remote] is the same branch in another repository. The git command is the transport. Nothing is pushed with
// force, except references that only reconcilers use, which are compared before they are exchanged.
//
// [Remote.Fetch] reads the state of the remote in one exchange and moves no reference of this repository: git
// fetches into a temporary git directory. [Remote.Adopt] then rebases the local branch: files first, then index and
// branch as a commit does, so that a killed process leaves at worst files that are too new, which the record of the
// move lets the next command revert. Files owned by people are checked out by git, with their filters and line
// ends, into a temporary folder and renamed; reconcile's files are written as they are. [Remote.Push] only
// fast-forwards. A refused caller starts over; [Remote.Turn] gives the longest-waiting callers precedence.
//
// # Files under <git dir>/reconcile
//
//	guard           held with flock for the length of a commit; never deleted
//	pending.json    the commits whose index entries have yet to follow
//	anything else   temporary; leftover if another process holds the guard, and then swept
//
// A lock file of this program is a hard link to such a temporary file. After a kill, the next process therefore
// recognizes its own stale locks by identity, not by age, and never removes one of git's.
//
// # Stored form
//
// A file is committed as git would store it: line ends, identifiers and the encodings UTF-16 and UTF-32 are
// converted here, by the attributes and the configuration, see conversion. Paths with a filter, and other
// encodings, go through the git command. Untracked files that match .gitignore are left out, as in git add.
// Symlinks and submodules are refused.
package gitrepo
