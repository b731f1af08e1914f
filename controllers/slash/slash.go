// Package slash interprets what people write on GitHub: the commands in comments on mirrored issues, their
// authorization, and their effects. Everything here is a pure function.
//
// [Parse] finds commands, [Authorize] decides whether their author is permitted, and [Decide] turns comments into the
// specs to write, a receipt for each, and the reply to its author. Nothing else acts: a command takes effect because
// its spec exists, like one from the command line.
//
// A comment takes effect with all its commands or none. To find out, Decide decides a tree with the specs, with the
// code that decides in a run. The verdict on a comment is a function of its text and the tree, and the names of specs
// of its id: if it is processed again after a crash, the same files result.
package slash
