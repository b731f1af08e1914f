package kernel

import "unsafe"

// Prefetch asks the processor to have the memory of s in its cache soon, and does not wait. It is of use for what will be
// read some hundred instructions later; where a processor or its assembly is not known here, it does nothing.
func Prefetch[T any](s []T) {
	var one T
	if len(s) > 0 {
		prefetch(unsafe.Pointer(unsafe.SliceData(s)), len(s)*int(unsafe.Sizeof(one)))
	}
}
