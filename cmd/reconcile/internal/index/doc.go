// Package index keeps the index of a tree: it looks at the work tree and the objects, has what changed parsed and
// embedded, and keeps the snapshot and the delta in vectors/, from where they are mapped. What they say is derived: lost
// or damaged, they are built anew.
//
// # Inputs
//
// A folder's Go files are one input, every other text file is one, so is every object that is indexed, and every file of
// the memory. Whether an input changed is told by the digests of its files; those are kept in
// .reconcile/cache/index-files by what the file system says of a file, so that files that stayed are not read again.
//
// # What is left out
//
// What git ignores, folders that begin with a dot, testdata, vendor and node_modules, specs, statuses and records
// (what they tell of is indexed), settings.index.exclude, files larger than settings.index.maxFileSize, and what is no text.
package index
