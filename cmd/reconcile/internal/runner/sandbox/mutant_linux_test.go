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
	{"no restriction is applied", "helper_linux.go", "return c.BestEffort().Restrict(rules...)", "_ = rules\n\treturn nil", "TestLandlockOfTheKernel"},
	{"everything may be written", "helper_linux.go", "rules = append(rules, landlock.RODirs(\"/\"))", "rules = append(rules, landlock.RWDirs(\"/\"))", "TestLandlockOfTheKernel"},
	{"everything may be read", "helper_linux.go", "if p.Read == nil {", "if true {", "TestReadOnlyWhatIsGranted"},
	{"every port may be connected to", "helper_linux.go", "c.HandledAccessNet = ll.AccessNetConnectTCP", "c.HandledAccessNet = 0", "TestLandlockOfTheKernel"},
}

func TestLandlockMutants(t *testing.T) {
	skipWithoutLandlock(t)
	mutants.Suite{Mutants: confinedFaults}.Run(t)
}
