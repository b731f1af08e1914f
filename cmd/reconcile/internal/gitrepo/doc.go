// Package gitrepo commits what reconcile wrote, without getting in the way of whoever else works in the repository.
//
// A commit is made at the level of objects: blobs of the given files, the trees of the folders they stand in (grown
// from the branch's tree, in memory), and one commit object. They are written durably, and then one reference moves,
// under git's own lock files and only if it still is where the work started; if it moved, the commit is built again
// on what won. No hook runs, no file of the work tree is touched, no other path is looked at.
//
// When the branch is the one that is checked out, the index entries of exactly the committed paths follow, so that
// git status does not show the commit as a staged reversal. An entry that the user staged differently is left alone,
// and so is all the rest of the index. If the index is locked for long, or the process dies first, a record in
// <git dir>/reconcile lets the next commit (or [Repo.Settle]) catch up.
//
// Objects, configuration, ignore and attribute rules are read with go-git, packs are found by a search of their indexes
// here. go-git's writing of references, index and objects is not used, because it locks and syncs nothing: a kill, a
// full disk or a concurrent git command damages the repository. What go-git
// cannot read (SHA-256 object names, reftable, missing objects of a partial clone) is done by the git command with
// the same result, and refused with a clear error where there is no git.
//
// # Sharing a branch
//
// A [Remote] is the same branch elsewhere. The git command is the transport; nothing is ever pushed with force, but for
// references that only reconcilers use and that are compared before they are exchanged.
//
// [Remote.Fetch] learns how everything stands in one exchange, and moves no reference of this repository: git fetches
// into a git directory of its own, which is gone again at the end. [Remote.Adopt] then puts the local branch on top:
// files first, then index and branch as a commit does, so that a killed process leaves at worst files that are too new,
// which the record of the move lets the next command take back. Files that people own are checked out by git, with their
// filters and line ends, into a folder beside, and renamed; those of reconcile are written as they are. [Remote.Push]
// goes forward only. Whoever is refused starts over; [Remote.Turn] lets those who wait longest go first.
//
// # Files under <git dir>/reconcile
//
//	guard           held with flock for the length of a commit; never deleted
//	pending.json    the commit whose index entries have yet to follow
//	anything else   temporary; while the guard is held by someone else than its maker, it is litter and swept
//
// A lock file of ours is a hard link to such a temporary file. After a kill, the next process therefore knows a stale
// lock of ours for what it is, by identity and not by age, and never removes one of git's.
//
// # What is committed as what
//
// A file is committed as git would store it: line ends, identifiers and the encodings UTF-16 and UTF-32 are converted here,
// by the attributes and the configuration, see conversion. Paths with a filter, and other encodings, go through the git
// command. Untracked files that .gitignore names are left out, as git add would. Symlinks and submodules are refused.
package gitrepo
