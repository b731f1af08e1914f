package kernel

import "unsafe"

// PrefetchRows does as Prefetch for the rows of s, width elements each, that ids lists. It reads none of them: there may be
// fewer.
func PrefetchRows[T any](s []T, width int, ids []uint32) {
	var one T
	if len(s) > 0 && len(ids) > 0 {
		prefetchRows(unsafe.Pointer(unsafe.SliceData(s)), width*int(unsafe.Sizeof(one)), &ids[0], len(ids))
	}
}

// Prefetch prefetches the memory of a slice into the cache of the processor, and does not wait for it. It is of use for
// what will be read some hundred instructions later; where a processor or its assembly is not known here, it does
// nothing.
func Prefetch[T any](s []T) {
	var one T
	if len(s) > 0 {
		prefetch(unsafe.Pointer(unsafe.SliceData(s)), len(s)*int(unsafe.Sizeof(one)))
	}
}
