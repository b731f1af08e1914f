package gitrepo

import (
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// faults are those in finding what differs from a commit without reading it, which the tests must notice.
var faults = []mutants.Mutant{
	{"what was made here is in the way of what was made there", "remote_checkout.go", "if owner == Made && e.was.mode != 0 {", "if owner == Made {", "TestAdoptMade"},
	{"what was made and committed here is in the way", "remote_replay.go", "owner == Made && e.was.mode == 0 && at.mode != 0:", "owner == Made && e.was.mode == 9:", "TestAdoptMade"},
	{"the stat data of a racy file are trusted", "dirty.go", "if mtime.sec >= s.written.sec && ", "if mtime.sec == 1 && ", "TestDirtyRacyEntry"},
	{"the trees of another commit are trusted", "dirty.go", "c.files >= 0 && c.hash == hash", "c.files >= 0", "TestDirtyWhatTheUserStaged"},
	{"who has not seen a reservation reserves", "remote_reserve.go", "case seen != r.Seen:", "case seen != r.Seen && false:", "TestReservations"},
	{"a renewal forgets what is reserved", "remote_claim.go", "w, err := m.newClaimRequest(ctx, c, old, reserve)", "w, err := m.newClaimRequest(ctx, c, old, reserve[:0])", "TestReservations"},
	{"both sides of a landing may change one file", "without_git.go", "return len(twice) == len(both) && !moved", "return len(twice) <= len(both) && !moved", "TestPicksAsGit"},
	{"a file that git lists as changed is left out of the commit", "checkout_files.go", "if len(names) == 0 {", "if len(names) < 9 {", "TestCapturesAsGit"},
	{"a file changed in the tick of its checkout is taken for unchanged", "checkout_files.go", "return &dirtyScan{index: ix, written: written}, err", "_ = written\n\treturn &dirtyScan{index: ix}, err", "TestRacyCheckout"},
	{"a checkout loses executable bits", "checkout_files.go", "if mode == modeExec {", "if false {", "TestCapturesAsGit"},
	{"a changed executable bit is not seen", "checkout_files.go", "case s.fileMode && (fi.Mode()", "case false && (fi.Mode()", "TestCapturesAsGit"},
	{"a checkout ignores its own attributes", "checkout_files.go", "w.rules.attrs[dir] = parseAttributes(string(data), dir == \"\")", "_ = data", "TestConvertedCheckouts"},
	{"a checkout ignores conversions", "checkout_files.go", " || !w.rules.conversion(at).plain():", ":", "TestConvertedCheckouts"},
	{"a deleted file is kept", "checkout_files.go", "case errors.Is(err, fs.ErrNotExist), errors.Is(err, errNotFolder), err == nil", "case errors.Is(err, fs.ErrNotExist), errors.Is(err, errNotFolder):\n\t\treturn true, nil\n\tcase err == nil", "TestCapturesAsGit"},
	{"a changed link is kept", "checkout_files.go", "return hashObject(plumbing.BlobObject, []byte(to)) == e.blob().hash, err", "_ = to\n\t\treturn true, err", "TestCapturesAsGit"},
	{"files in submodules are lost", "workspace.go", "if e.blob().mode != modeModule {", "if true {", "TestFilesInSubmodules"},
	{"a submodule may be at a commit that nobody has", "workspace.go", "if now == \"160000\" {", "if now == \"160000\" && was != now {", "TestFilesInSubmodules"},
	{"a new file is not seen", "checkout_files.go", "s.found = append(s.found, at)", "_ = at", "TestCapturesAsGit"},
	{"an ignored file is committed", "checkout_files.go", "entry.fixed == nil && !s.rules.ignored(at):", "entry.fixed == nil:", "TestCapturesAsGit"},
	{"a repository in a checkout is committed as files", "checkout_files.go", "if dir != \"\" || d.Name() != \".git\" {", "if false {", "TestCapturesAsGit"},
	{"what is no file is committed as one", "checkout_files.go", "!gone && (err != nil || !fi.Mode().IsRegular()) {", "!gone && (err != nil || fi == nil) {", "TestCapturesAsGit"},
	{"what git captured before is lost", "checkout_files.go", "|| ix.folders.files < 0 || ix.folders.hash != base {", "|| ix.folders.files < 0 {", "TestCapturesAfterGit"},
	{"a git command of a killed process keeps work from being committed", "workspace.go", "c.Index = filepath.Join(scratch, \"index\")", "_ = filepath.Join(scratch, \"index\")", "TestCapturesBesideGit"},
	{"a renewed checkout has seconds only", "renew.go", "err == nil && !statOf(fi).matches(e.fixed) {", "err == nil && fi == nil {", "TestRenews"},
	{"a renewed checkout lacks files", "renew.go", "if err == nil && n != len(ix.entries) {", "if false {", "TestRenews"},
	{"a renewed checkout keeps new files", "renew.go", "if err := here.RemoveAll(d.Name()); err != nil {", "if err := error(nil); err != nil {", "TestRenews"},
	{"a renewed checkout keeps its repository", "renew.go", "if err := root.RemoveAll(\".git\"); err != nil {", "if false {", "TestRenews"},
	{"a copy of an index is younger", "workspace.go", "return os.Chtimes(to, time.Time{}, fi.ModTime())", "return os.Chtimes(to, time.Time{}, fi.ModTime().Add(time.Hour))", "TestCopiesOfIndexes"},
	{"git trusts what the user trusts", "renew.go", "c.config = slices.Concat(exactStat, c.config)", "_ = slices.Concat(exactStat, c.config)", "TestRenews"},
	{"a renewed checkout has folders of other modes", "renew.go", "if err == nil && fi.Mode() != folders {", "if false {", "TestRenews"},
	{"what is staged is not seen", "work_tree.go", "entries[0].path != at || entries[0].blob() != e.blob:", "entries[0].path != at:", "TestWorkTreesAsGit"},
	{"what was added to the index is not seen", "work_tree.go", "if err == nil && len(rest) > 0 {", "if false {", "TestWorkTreesAsGit"},
	{"a filter of the configuration runs", "config.go", "bytes.Contains(text, []byte(\"filter\")) || ", "", "TestFiltersAreFound"},
	{"a filter of an included file runs", "config.go", " || bytes.Contains(text, []byte(\"include\")) {", " {", "TestFiltersAreFound"},
	{"a filter of the environment runs", "config.go", "strings.HasPrefix(kv, \"GIT_CONFIG_COUNT=\") || ", "", "TestFiltersAreFound"},
	{"names of another kind are taken for git's", "checkout_files.go", "cfg.flag(ctx, \"core.ignorecase\", false) || ", "", "TestCheckoutOfAnotherFileSystem"},
}

func TestMutants(t *testing.T) { mutants.Suite{Mutants: faults}.Run(t) }
