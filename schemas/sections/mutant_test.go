package sections_test

import (
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// faults are those that a test of this package must notice: those that use bytes which nobody wrote.
var faults = []mutants.Mutant{
	{"pages are not compared", "file.go", "if xxhash.Sum64(x.page(page)) !=", "if false && xxhash.Sum64(x.page(page)) !=", "TestEveryByteIsChecked"},
	{"the header is not compared", "file.go", "|| binary.LittleEndian.Uint64(data[body-sumSize:]) !=", "|| false && binary.LittleEndian.Uint64(data[body-sumSize:]) !=", "TestEveryByteIsChecked"},
	{"the sums are not compared", "file.go", "if x.Sum() != x.sum() {", "if false {", "TestEveryByteIsChecked"},
	{"another version is read", "file.go", "v != f.Version", "v < f.Version", "TestErrors"},
	{"only the first page of rows is compared", "file.go", "page <= (s.at+to-1)>>pageShift", "page <= (s.at+from)>>pageShift", "TestEveryByteIsChecked"},
}

func TestMutants(t *testing.T) { mutants.Suite{Mutants: faults}.Run(t) }
