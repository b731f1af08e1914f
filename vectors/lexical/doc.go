// Package lexical finds texts by their words: an inverted index with BM25 ranking in one flat slice of bytes, which is
// used in place, without decoding, and has the same bytes for the same documents on every machine.
//
// # Terms
//
// A text is cut into terms, see [Terms]: words in lower case without accents; identifiers, paths and compounds, whole
// and by their parts; no stop words. Queries are cut the same way, and a document matches if it has any of the terms.
//
// # Ranking
//
// The score is BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009, with k1 =
// 1.2 and b = 0.75), with the idf that is never negative, ln(1 + (N-n+0.5)/(n+0.5)). A document is a [Document.Title]
// and a [Document.Body] in one bag: an occurrence in the title counts as titleWeight occurrences. How often a term
// occurs counts up to maxTF, where BM25 has long become flat, and lengths are rounded to seven bits (exactly up to 32,
// then to an eighth).
//
// All arithmetic is on integers (idf in 1/1024, the rest in 1/16384), so the sum over the terms depends neither on
// their order nor on the machine. Equal scores are ordered by [Document.Key], then by document number.
//
// # Segments
//
// An index never changes. Added documents go into another small index, removed ones are marked as deleted, and a [Set]
// searches the segments together: N, n and the average length are those of all live documents, so the answers are
// exactly those of one index built from them. [Merge] makes that one index without the texts.
//
// # Search
//
// Scores of rare terms are accumulated document by document; for frequent terms the windows give an upper bound
// (block-max). Documents that have only frequent terms are visited where the bound of a window exceeds the lowest score
// in the result, 64 at once: the masks show which documents have enough of the terms.
//
// # Format
//
// A file of package sections:
//
//	numbers   number of postings, sum of all lengths, documents and length of the reference, 8 bytes each
//	lengths   for each document its rounded length, one byte
//	keys      for each document its key, 8 bytes
//	slots     hash table of terms: number of the term + 1, or 0; 4 bytes each, a power of two of them
//	terms     for each term, sorted, and once more for the end: begin of its text, of its block, number of its documents
//	text      the texts of the terms, one after the other
//	blocks    for each term its block, in units of 4 bytes
//
// The block of a term that fewer than every 32nd document has is its postings, ascending: document<<12 | in title<<11 |
// frequency<<7 | length; 4 bytes each. That of a more frequent one has, for windows of 64 documents and groups of 1024
// windows:
//
//	bases     for each group the number of its first posting, 4 bytes
//	masks     for each window its documents as bits, 8 bytes
//	begins    for each window the number of its first posting in the group, 2 bytes
//	highest   for each window the highest possible weight, in 1/142, rounded up, one byte
//	counts    for each posting in title<<4 | frequency, one byte
//
// A page is compared with its checksum on its first use: one query of a short process reads a few pages, not megabytes. No content of a file causes a panic; a file with other bytes than Build wrote gives
// [ErrDamaged] and must be rebuilt.
package lexical
