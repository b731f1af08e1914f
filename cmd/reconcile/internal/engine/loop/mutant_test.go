package loop

import (
	"slices"
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// faults are those in finding what differs from the settled tree, which the comparison with whole runs must notice, and in how
// long the lock of the tree is held.
var faults = []mutants.Mutant{
	{"what becomes due is forgotten", "../../../../../state/base_diff.go", "range u.base.clocks {\n\t\tu.update.touch", "range u.base.clocks[:0] {\n\t\tu.update.touch"},
	{"who refers to what changed is forgotten", "../../../../../state/base_diff.go", "\tu.touchReferrers()\n", ""},
	{"inputs are forgotten", "../../../../../state/base_diff.go", "\tu.inputs()\n", ""},
	{"inputs are not looked at before a node starts", "turn.go", "if owner := s.tree.Entry(e.Owner); s.endedSinceScan && ",
		"if owner := s.tree.Entry(e.Owner); false && "},
	{"an object loses its status and nobody notices", "turn.go", "return before != nil && before.HasStatus()", "return before != nil && !before.HasStatus()", "TestLostStatus"},
	{"the lock of the tree is kept over slow commands", "wait.go", "quick = time.After(startFor)", "quick = nil"},
	{"outputs are forgotten", "../../../../../state/base_diff.go", "\tu.outputs()\n", ""},
	{"what is gone is forgotten", "../../../../../state/base_diff.go", "if left--; !u.touchFormer(p, was.content) {", "if left--; was.content == 0 {"},
	{"a status changed by hand is believed", "../../../../../state/base_diff.go", "if had && was.content == f.content() {",
		"if had && (f.area == areaStatus || was.content == f.content()) {"},
	{"failures are not reported again", "run.go", "readiness.ReportOf(s.tree)", "readiness.ReportOf(state.NewTree(nil, nil, nil))"},
	{"the memory is believed after a day", "memory.go", " && now.Before(was.Compacted.Add(compactEvery))", "", "TestMemorySinceSettled"},
	{"the memory is believed whatever changed", "run.go", "\t\ts.trustMemory(was)\n\t\ts.touch(changed...)\n", "\t\ts.touch(changed...)\n\t\ts.trustMemory(was)\n", "TestMemorySinceSettled"},
	{"ledgers are believed", "../../../../../state/base_diff.go", "\t\tu.about(f, !had)\n",
		"\t\tif f.area != areaLedgers {\n\t\t\tu.about(f, !had)\n\t\t}\n"},
}

// lockFaults are those in waiting for the lock of the tree.
var lockFaults = []mutants.Mutant{
	{"one that hangs is waited for", "lock.go", "!ok || !busy.Works()", "!ok"},
	{"one that goes on is not waited for", "lock.go", "!ok || !busy.Works()", "ok || err == nil"},
}

// dormantFaults are those in leaving dormant objects.
var dormantFaults = []mutants.Mutant{
	{"a change of a dormant file is not seen during a run", "../../../../../state/refresh.go", "if was.statHash == new(fingerprinter)", "if true || was.statHash == new(fingerprinter)"},
	{"a dormant file that went is not missed", "../../../../../state/active.go", "if !is && !l.base.thawedFile(i)", "if !is && is && !l.base.thawedFile(i)"},
	{"what bears on dormant objects is ignored", "../../../../../state/active.go", "(!there || was.content != f.content()) && !m.wake", "(!there || was.content != f.content()) && false && !m.wake"},
	{"what bears on them during a run is ignored", "../../../../../state/update.go", "\tindices := d.affected(f)\n", "\tindices := d.affected(f)[:0]\n"},
	{"who refers to what changed stays dormant", "../../../../../state/dormant.go", "for i := range d.referrers(b.ref) {", "for i := range d.referrers(schemas.Ref{}) {"},
	{"a path that differs in case stays dormant", "../../../../../state/dormant.go", "d.at([]string{f.path})", "d.at(nil)"},
	{"what an unfinished file hides is forgotten", "../../../../../state/base_diff.go", "if u.hides || len(u.update.model.scanErrors) > 0 {", "if u.hides && false {"},
	{"a damaged file of dormant objects is believed", "../../../../../state/frozen.go", " || xxhash.Sum64(rest[16:]) != hash", "", "TestDamagedFileOfDormantObjects"},
	{"dormant objects are not counted", "../../../../../controllers/sessions/sums.go", "schemas.SessionKind.Ref(session), schemas.DAGKind.Name) {", "schemas.SessionKind.Ref(session), \"None\") {"},
	{"a DAG that declares tools is dormant", "../../../../../state/dormant_next.go", " || b.object.Mentions(schemas.MarkTools)", "", "TestToolsOfFinishedDAGs"},
	{"a DAG that wakes counts twice", "../../../../../controllers/sessions/sums.go", "\ts.parts[name] = p // also where", "\tif !had || was != p {\n\t\ts.parts[name] = p\n\t} // where", "TestDormantObjectsMovedDuringARun"},
	{"what others do not agree with is dormant", "../../../../../state/dormant_next.go", "ok && !disputed[ref]", "ok && len(disputed) >= 0", "TestDisputedObjectsAreLoaded"},
	{"a dormant object is not found by its path", "../../../../../state/tree_entries.go", "range t.dormant.at(paths)", "range t.dormant.at(nil)", "TestTreeWithDormantObjects"},
	{"a DAG that a workflow made is dormant", "../../../../../controllers/dags/dormant.go", "return planchanges.NamesFix(e.Name) ||", "return false && ", "TestOriginsWithDormantObjects"},
	{"offsets in another cache are believed", "../../../../../state/active.go", "+maxLookGrowth && l.records.read(last) != nil", "+maxLookGrowth", "TestDormantObjectsInCacheThatWasWrittenAgain"},
	{"what a look has read is read again", "../../../../../state/active.go", "known := l.later[is.path]", "known := l.later[\"\"]", "TestLooksReadAnEditOnce"},
	{"what a journal says of dormant objects is not seen", "../../../../../state/active.go", " || !m.wake(m.dormantInJournals()...)", ""},
	{"of what a tree has other entries is forgotten", "../../../../../state/dormant.go", "r.woken = append(r.woken, indices...)", "_ = indices", "TestTreeWithDormantObjects"},
}

// restFaults are those in which objects rest, and what wakes them.
var restFaults = []mutants.Mutant{
	{"the questions that rest have no numbers", "../../../../../controllers/clarifications/index.go", "\t\tadd(o.Ref, &o.Brief)\n", "\t\t_ = o\n"},
	{"a session that rests is missing", "../../../../../controllers/sessions/slot.go", "s == nil && w.tree.IsDormant(ref)", "s == nil && false && w.tree.IsDormant(ref)"},
	{"a watcher archives nothing that rests", "archive.go", "all := !s.dormantDue.IsZero() && ", "all := s.dormantDue.IsZero() && ", "TestWatchArchivesDormantObjects"},
	{"the questions that rest are no work of a session", "../../../../../controllers/sessions/slot.go", "ok && of == issue && schemas", "ok && of < 0 && schemas"},
	{"those that rest are ready", "../../../../../controllers/readiness/readiness.go", "Ready: dormant - unready, Waiting: unready", "Ready: dormant - 0*unready"},
	{"those that rest are ready when they are frozen", "../../../../../state/frozen.go", "if d.Unready() {", "if d.Name == \"\" {"},
	{"those that rest are not listed", "../../../../../controllers/settle/selection.go", "if o.Unready() {", "if o.Name == \"\" {"},
	{"who refers to those that rest is forgotten", "../../../../../state/frozen.go", "for i := z.firstReferrer(at); i < z.firstReferrer(at+1); i++ {", "for i := z.firstReferrer(at); i+1 < z.firstReferrer(at+1); i++ {"},
}

// shareFaults are those in sharing a tree through a remote.
var shareFaults = []mutants.Mutant{
	{"nothing is committed while the remote is away", "write.go", "(s.loop.Transient == nil || !s.loop.Transient(away))", "true"},
}

// distrustFaults are those in telling the files of programs that nothing confines from those of people.
var distrustFaults = []mutants.Mutant{
	{"a mark outlives the run after the killed one", "run.go", "\ts.seenWhole(open)\n", "\t_ = open\n"},
	{"what appears during an unconfined run counts", "distrust.go", "if !trusted {\n\t\t\tmarked", "if !trusted && false {\n\t\t\tmarked"},
	{"a preference is believed", "distrust.go", ", s.tree.Active(schemas.PreferenceKind.Name))", ")"},
	{"a distrusted preference counts", "../../../../../controllers/preferences/preferences.go", "Distrusted(e.Object.Digest) != \"\" {", "Distrusted(e.Object.Digest) == \"-\" {"},
	{"a preference of before is distrusted", "../../../../../controllers/preferences/preferences.go", "\tj.Settle(&st.Common, in.Object.Digest, in.Now)\n", "\tj.Settle(&st.Common, \"\", in.Now)\n"},
	{"nobody is warned of a reply", "distrust.go", "s.warn(fmt.Sprintf(\"%s, %s of %s, appeared", "_ = (fmt.Sprintf(\"%s, %s of %s, appeared"},
	{"a proof does not count", "distrust.go", "return id.Proof != \"\", nil", "return id.Proof == \"never\", nil"},
	{"effects start before what people decided is on disk", "write.go", "early = early || ref.Kind == schemas.ActionKind.Name ||", "early = early ||"},
	{"a receipt does not count", "distrust.go", "if vouched || s.loop.Identify == nil {", "if s.loop.Identify == nil {"},
	{"a mark goes before its run", "distrust.go", "return claimed[key] })", "return claimed[key] && false })"},
	{"a receipt is for any content", "../../../../../state/unconfined.go", "hexDigest(name+\"\\x00\"+string(data))", "hexDigest(name+\"\\x00\"+string(data[:0]))"},
}

// startFaults are those in what a watcher does while runs start and go on.
var startFaults = []mutants.Mutant{
	{"a watcher takes turns all the time while something runs", "wait.go", "s.watching && len(s.mine) == 0 && ", "s.watching && ", "TestWatcherSleepsWhileARunGoesOn"},
	{"a run ends that nobody knew to go on", "turn.go", "c != nil && c.StartedAt.IsZero() {", "c != nil && false {"},
}

// stampFaults are those in finding what of a status is written while effects run.
var stampFaults = []mutants.Mutant{
	{"a status that was found to wait waits for ever", "turn.go", "\t\tdelete(s.deferred, ref)\n\t\tif s.requests", "\t\tif s.requests", "TestWordOfAPersonIsWrittenAfterAStatusWaited"},
	{"what nobody wants any more goes on", "turn.go", "if s.wants(e.Owner, key) != nil {", "if true {", "TestEditWhileARunStarts"},
	{"a phase waits", "status_stamp.go", "was.phase == is.phase && ", ""},
	{"readiness waits", "status_stamp.go", "was.ready == is.ready && ", ""},
	{"a reason waits", "status_stamp.go", "string(c.Status) + c.Reason", "string(c.Status)"},
	{"the word of a person waits", "status_stamp.go", "is.actions = len(st.Actions)", "is.actions = 0"},
	{"a hand-off waits", "status_stamp.go", " && was.handoffs == is.handoffs", ""},
	{"the next hand-off waits", "status_stamp.go", "fmt.Sprintln(name, len(n.Handoff.Chain), x.Phase)", "fmt.Sprintln(name, x.Phase)"},
	{"the phase of a hand-off waits", "status_stamp.go", "len(n.Handoff.Chain), x.Phase)", "len(n.Handoff.Chain))"},
	{"who waits for a person waits", "status_stamp.go", "return !old })", "return old })"},
	{"one that waits no more is as one that waits", "status_stamp.go", "if n.State == schemas.NodeBlocked {", "if n.State != schemas.NodeBlocked {"},
}

// TestMutants tests all of them with one program: most are in packages that many others import, which take long to build.
func TestMutants(t *testing.T) {
	mutants.Suite{Args: []string{"-short"}, Mutants: slices.Concat(
		mutants.NoticedBy("TestRunSinceSettledEquals|TestInputsThatANodeMakes|TestLockDoesNotLinger", faults),
		mutants.NoticedBy("TestRunSinceSettledLeaves|TestTreeWithDormantObjects", dormantFaults),
		mutants.NoticedBy("TestRunSinceSettledLeavesObjectsOfAllKinds", restFaults),
		mutants.NoticedBy("TestDistrust$|TestDecisionsAreOnDiskFirst|TestDistrustPreferences|TestDistrustReplies|TestMarkedWhileItRuns", distrustFaults),
		mutants.NoticedBy("TestStatusThatWaits", stampFaults),
		mutants.NoticedBy("TestSharedRunsWhileTheRemoteIsAway", shareFaults),
		mutants.NoticedBy("TestEditWhileARunStarts", startFaults),
		mutants.NoticedBy("TestAcquireWaitsForOneThatGoesOn", lockFaults),
	)}.Run(t)
}
