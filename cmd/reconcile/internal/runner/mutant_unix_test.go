//go:build unix

package runner

import (
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// faults are those in giving a file to another run, and in what precedes the start, which the tests must notice.
var faults = []mutants.Mutant{
	{"a file with other names is used again", "workfile.go", "err != nil || !onlyName(is)", "err != nil"},
	{"a file that was replaced is used again", "workfile.go", "err == nil && os.SameFile(is, there)", "err == nil && there != nil"},
	{"a command starts before its record is durable", "run.go", "asFault(a.runner.o.Durable())", "nil"},
	{"the rest of a longer text stays", "workfile.go", "f.file.Truncate(int64(len(data)))", "nil"},
}

func TestMutants(t *testing.T) {
	mutants.Suite{Mutants: faults, Args: []string{"-run", "TestWorkFilesAreUsedAgain|TestCommandsStartAfter"}}.Run(t)
}
