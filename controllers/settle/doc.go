// Package settle decides trees: for each object it calls the decision of its kind, and again for what the results affect, until
// nothing changes any more. It knows kinds only through their rows ([Kind]); the table of a tree is the one that it was read with.
//
// [Out.Effects] lists everything that should be running or start running now, including what already runs. The loop cancels running
// effects that are not in the list, and starts the others when package admission finds a place for them. The result of an effect is a
// [schemas.Run] in the tree. Decisions over one tree share values through a [World]. Each value is computed once, on first use, so
// the order of the kinds has no effect.
package settle
