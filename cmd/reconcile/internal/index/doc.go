// Package index keeps the index of a tree: it looks at the work tree and the objects, has what changed parsed and
// embedded, and keeps the snapshot and the delta in vectors/, from where they are mapped. What they say is derived: lost
// or damaged, they are built anew.
//
// # Inputs
//
// Every text file is an input, so is every object that is indexed, and every file of the memory; and, of a folder with Go
// files, the package. Whether an input changed is told by the digests of its files, and of Go files by what they depend on
// in their folder; those are kept in .reconcile/cache/index-files by what the file system says of a file, so that files
// that stayed are not read again.
//
// # What is left out
//
// What git ignores, the index itself, folders that begin with a dot, testdata, vendor and node_modules, specs, statuses
// and records (what they tell of is indexed), settings.index.exclude, files larger than settings.index.maxFileSize, and
// what is no text.
//
// # Facts
//
// What somebody states of nodes stands in files graph/*.json among the state, and is in no spec: edges, where something
// comes from and how sure that is, what contradicts what, reviews, and changes of trust. A file is one object, with any of
//
//	{
//	  "edges": [{"from": "docs/git.md", "to": "state/tree.go", "type": "documents", "weight": 0.5}],
//	  "provenances": [{"id": "p1", "node": "state/tree.go", "sourceType": "review", "sourceId": "42", "confidence": 0.9,
//	    "verifiedAt": "2026-01-02T03:04:05Z", "verifier": "ada"}],
//	  "conflicts": [{"id": "c1", "a": "observation/obs-1", "b": "observation/obs-2", "type": "contradiction",
//	    "detectedAt": "2026-01-02T03:04:05Z", "resolution": "the second", "resolvedAt": "2026-01-03T03:04:05Z"}],
//	  "reviews": [{"id": "r1", "node": "state/tree.go", "verdict": "approved", "by": "ada", "at": "2026-01-02T03:04:05Z"}],
//	  "trusts": [{"id": "t1", "node": "state/tree.go", "trust": 0.8, "by": "ada", "at": "2026-01-02T03:04:05Z"}]
//	}
//
// Nodes are named by their ids; edges may name symbols without the file ("state/:Tree.Entry"). Weights are above 0 up to
// 1, and 1 if left out; a confidence and a trust are 0 to 1. All may have a note, edges and conflicts who states them
// ("by") and edges when ("at"). In the graph, reviews and trusts are provenances of these types. A file with other fields,
// with more than 10,000 facts of a kind or more than 4 MiB is passed over with a warning, and so is a fact of what is not
// there.
//
// A [Book] writes a file for each fact, KIND-<key>-<content>.json with digests of what makes it the fact that it is and of
// all of it, and never changes or deletes one: a file of the same name that ends in -removed.json takes it back. Files of
// other names are people's.
package index
