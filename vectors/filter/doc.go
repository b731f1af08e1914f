// Package filter reports in nanoseconds that no text of a domain has a word, so that a search for it can end, or name
// the domains with results.
//
// A [Set] has for each domain a set of keys, see [Key]: those of the build in an XOR filter (Graf and Lemire, "Xor
// Filters: Faster and Smaller Than Bloom and Cuckoo Filters", 2020), 10 bits for a key, to which keys cannot be added;
// and the keys added later in blocked Bloom filters (Putze, Sanders and Singler, "Cache-, Hash- and Space-Efficient
// Bloom Filters", 2007), about 16 to 32 bits for a key. There are no false negatives. False positives are about 1 in
// 256, and a little more with added keys; removed keys are found until the set is rebuilt.
//
// The bytes of a set that was built depend on its keys only: not on their order, how often each is given, or the machine.
//
// # Format
//
// A file of package sections:
//
//	numbers  8 bytes each: for each domain the seed of its XOR filter, the keys in it, and the number of layers of Bloom
//	         filters; then for each layer how many keys it got
//	domains  for each domain a section with the fingerprints, one byte each, and for each layer one with its blocks of 32
//	         bytes
//
// [Open] checks all lengths; no content causes a panic. The file that contains the set as a section must compare the
// checksums.
package filter
