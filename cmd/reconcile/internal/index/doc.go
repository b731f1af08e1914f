// Package index maintains the index of a tree: it scans the work tree and the objects, has changed inputs parsed and
// embedded, and stores the snapshot and the delta in vectors/, from where they are mapped. Both are derived data: if lost
// or damaged, they are rebuilt.
//
// # Inputs
//
// Each text file is an input, and so is each indexed object, each file of the memory, and the package of a folder with Go
// files. An input changed if the digests of its files changed, or, for a Go file, the declarations in its folder that it
// depends on. The digests are cached in .reconcile/cache/index-files under the files' stat data, so that unchanged files
// are not read again.
//
// # Excluded files
//
// The index excludes files that git ignores, itself, folders that begin with a dot, testdata, vendor and node_modules,
// specs, statuses and records (their content is indexed as objects), settings.index.exclude, files larger than
// settings.index.maxFileSize, and binary files.
//
// # Facts
//
// Facts about nodes are stored in files graph/*.json in the state folder, not in specs: edges, provenances with their
// confidence, conflicts, reviews, and changes of trust. A file is one object, with any of
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
// Nodes are named by their ids; edges may name symbols without the file ("state/:Tree.Entry"). Weights are above 0 up to 1,
// with 1 as the default; a confidence and a trust are 0 to 1. All may have a note; edges and conflicts may have an author
// ("by"), and edges a time ("at"). In the graph, reviews and trusts are provenances of these types. A file with other
// fields, with more than 10,000 facts of a kind or more than 4 MiB is skipped with a warning, and so is a fact about a
// missing node.
//
// A [FactStore] writes a file for each fact, KIND-<key>-<content>.json with digests of its key fields and of its content,
// and never changes or deletes one: a file of the same name that ends in -removed.json is its tombstone. Files of other
// names belong to people.
package index
