package gitrepo

import (
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// faults are those in finding what differs from a commit without reading it, which the tests must notice.
var faults = []mutants.Mutant{
	{"the stat data of a racy file are trusted", "dirty.go", "if mtime.sec >= s.written.sec && ", "if mtime.sec == 1 && ", "TestDirtyRacyEntry"},
	{"the trees of another commit are trusted", "dirty.go", "c.files >= 0 && c.hash == hash", "c.files >= 0", "TestDirtyWhatTheUserStaged"},
	{"who has not seen a reservation reserves", "remote_reserve.go", "case seen != r.Seen:", "case seen != r.Seen && false:", "TestReservations"},
	{"a renewal forgets what is reserved", "remote_claim.go", "w, err := m.newClaimRequest(ctx, c, old, reserve)", "w, err := m.newClaimRequest(ctx, c, old, reserve[:0])", "TestReservations"},
	{"both sides of a landing may change one file", "without_git.go", "return len(twice) == len(both) && !moved", "return len(twice) <= len(both) && !moved", "TestPicksAsGit"},
	{"a file that git lists as changed is left out of the commit", "checkout_files.go", "if len(names) == 0 {", "if len(names) < 9 {", "TestCapturesAsGit"},
}

func TestMutants(t *testing.T) { mutants.Suite{Mutants: faults}.Run(t) }
