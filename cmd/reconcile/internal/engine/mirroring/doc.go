// Package mirroring keeps issues on GitHub in step with a tree.
//
// What should stand there is decided by controllers/mirror; [Mirror.Out] compares it with what is on record below
// state/github, and makes, edits, adds and removes what differs. A tree of which nothing changed costs no request.
//
// Everything is made once. That something is about to be made is on disk before the call, and its id afterwards; whoever
// finds an intent without an id looks at what stands on the issue first. What is ours is told by its author and by the
// marker that only we can make, so that even lost records make no second comment. Edits, and adding and removing labels,
// can be repeated without harm.
//
// Nobody else's work is touched: not a comment that somebody edited, not a label that was there before, not who is
// assigned, nor whether an issue is open.
package mirroring
