package sandbox

import (
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// faults are those that the tests of this package must notice on every machine.
var faults = []mutants.Mutant{
	{"a required level falls back to none", "sandbox.go", "if found.Missing != \"\" {", "if found.Missing != \"\" && found.Level == \"\" {", "TestChoose"},
	{"a sandbox that is required falls back to none", "sandbox.go", "best.Level == schemas.SandboxNone && s.Required", "s.Required && false", "TestChoose"},
	{"a level is not tried out", "probe_linux.go", "if err := h.try(level, s.Network); err != nil {", "if err := h.try(level, s.Network); false {", "TestProbeFindsWhatDoesNotConfine"},
}

func TestMutants(t *testing.T) { mutants.Suite{Mutants: faults}.Run(t) }

// confinedFaults are those that are noticed where Landlock is available.
var confinedFaults = []mutants.Mutant{
	{"no restriction is applied", "landlock_linux.go", "err = ll.LandlockRestrictSelf(r.fd, 0)", "err = nil", "TestLandlockOfTheKernel"},
	{"everything may be written", "landlock_linux.go", "r.grant(\"/\", reading)", "r.grant(\"/\", working)", "TestLandlockOfTheKernel"},
	{"work in shared memory shares what is beside it", "start_linux.go", "strings.HasPrefix(path+\"/\", sharedMemory+\"/\")", "path == sharedMemory", "TestWorkInSharedMemory"},
	{"everything may be read", "landlock_linux.go", "if p.Read != nil {", "if false {", "TestReadOnlyWhatIsGranted"},
	{"every port may be connected to", "landlock_linux.go", "attr.HandledAccessNet = ll.AccessNetConnectTCP", "_ = ll.AccessNetConnectTCP", "TestLandlockOfTheKernel"},
	{"the thread is used again", "landlock_linux.go", "if unix.Gettid() == unix.Getpid() {", "runtime.UnlockOSThread()\n\tif unix.Gettid() == unix.Getpid() {", "TestOnlyTheProgramIsConfined"},
}

func TestLandlockMutants(t *testing.T) {
	skipWithoutLandlock(t)
	mutants.Suite{Mutants: confinedFaults}.Run(t)
}
