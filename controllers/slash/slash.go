// Package slash understands what people write on GitHub: the commands in comments on mirrored issues, who may give them,
// and what they become. Everything here is a pure function.
//
// [Parse] finds commands, [Authorize] says whether their author counts, and [Decide] makes of comments the specs that
// have to be written, a receipt for each, and what is to be said to its author. Nothing else acts: a command takes
// effect because its spec is there, as one from the command line does.
//
// Of a comment all commands are taken, or none is. Whether they can be is found out by deciding a tree that has them,
// with the code that decides in a run. What is decided of a comment follows from its text and the tree, and the names
// of specs from its id: when it is read once more because whoever read it was killed, the same files come of it.
package slash
