// Package sections is the format of binary files that are derived from others and can be rebuilt, such as indexes and
// caches: a list of sections, with checksums. A reader uses the bytes in place, as they are mapped from a file.
//
// # Format
//
// Little-endian; the body and each section in it begin at a multiple of 64 bytes:
//
//	magic     8 bytes, of the format
//	version   4 bytes, of the format
//	count     4 bytes: the number of sections, at most 4,096
//	lengths   for each section its length in bytes, 8 bytes
//	checksum  of everything before it, 8 bytes, at the end of what precedes the body
//	body      the sections, in order; gaps are zeros
//	sums      for each page of 64 KiB of the file, up to the end of the body, the checksum of what is in the body, 8 bytes;
//	          none without a body
//	sum       of the header's checksum and of sums, 8 bytes: it identifies the file
//
// Checksums are xxhash64. A section is known by its number in the order of the format; an absent one is empty. Equal
// sections give equal bytes.
//
// # Reading
//
// [Format.Open] checks the header and the sums: its cost depends little on the size. The content of sections is checked
// when a reader asks for it: pages on their first use, see [Section.Rows], or whole sections on all processors, see
// [File.Check]. No content causes a panic, or an allocation that is larger than a small part of the data.
//
// [Encoder] and [Decoder] are for sections of values of different sizes.
package sections
