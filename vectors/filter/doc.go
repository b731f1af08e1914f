// Package filter tells in nanoseconds that no text of a domain has a word, so that a search for it can end, or name the
// domains where it would find something.
//
// A [Set] has for each domain a set of keys, see [Key]: those that were there when it was built in an XOR filter (Graf
// and Lemire, "Xor Filters: Faster and Smaller Than Bloom and Cuckoo Filters", 2020), 10 bits for a key, which can be
// asked but not added to; and what came since in blocked Bloom filters (Putze, Sanders and Singler, "Cache-, Hash- and
// Space-Efficient Bloom Filters", 2007), about 16 to 32 bits for a key. What is in the set is always found. What is not
// is taken for something that is about once in 256 times, and, with what came since, a little more often; keys that went
// are found until the set is built again.
//
// The bytes of a set that was built depend on its keys only: not on their order, how often each is given, or the machine.
//
// # Format
//
// Little-endian; what follows the header begins at multiples of 64 bytes:
//
//	header   magic with version; then for each domain its XOR filter: seed (8 bytes), keys, length of a third of the
//	         fingerprints, layers of Bloom filters (4 bytes each), 4 bytes of zeros
//	domains  for each domain: the fingerprints, one byte each; then for each layer 64 bytes with how many keys it got and
//	         how many blocks it has (4 bytes each), and its blocks of 32 bytes
//
// [Open] compares all lengths with each other; whatever the bytes are, nothing panics. That they are those that were
// written is for the checksum of the file to say that the set is a section of.
package filter
