package render

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/digest"
	"reconcile.dev/reconcile/controllers/work"
	"reconcile.dev/reconcile/schemas"
)

func instant(s string) schemas.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return schemas.NewTime(t)
}

// TestReadyTable writes each state of an item, plain and with explanations and colours.
func TestReadyTable(t *testing.T) {
	now := instant("2026-02-27T10:00:00Z").Time
	items := []work.Item{
		{Name: "dag/a/review", State: work.ItemReady, Priority: schemas.High, Session: "s", Issue: 42, Agent: "lead",
			Task: "Review\x1b[31m it", Reason: "WaitsForPerson", Message: "waits for lead",
			Claim: &work.ItemClaim{By: "lead", Since: instant("2026-02-27T09:00:00Z")}},
		{Name: "dag/a/flaky", State: work.ItemQueued, Priority: schemas.Normal, Task: "make", Reason: "BackOff",
			Message: "the next one is due", Again: instant("2026-02-27T10:01:30Z")},
		{Name: "agent/pair", State: work.ItemBlocked, Priority: schemas.Normal, Issue: 7, Agent: "pair", Task: "go on",
			Reason: "WaitsForAnswer", Blocked: "BLOCKED: Clarification CLR-7-001 pending from lead",
			Again: instant("2026-02-27T10:00:00Z")},
	}
	for _, c := range []struct {
		explain bool
		on      bool
		want    string
	}{
		{false, false, `
ITEM          ISSUE  SESSION  PRIORITY  AGENT  WHAT
dag/a/review  #42    s        high      lead   Review\x1b[31m it
dag/a/flaky   -      -        normal    -      queued: the next one is due
agent/pair    #7     -        normal    pair   BLOCKED: Clarification CLR-7-001 pending from lead
`},
		{true, false, `
ITEM          ISSUE  SESSION  PRIORITY  AGENT  REASON          AGAIN   CLAIMED    WHAT
dag/a/review  #42    s        high      lead   WaitsForPerson  -       lead, 60m  Review\x1b[31m it (waits for lead)
dag/a/flaky   -      -        normal    -      BackOff         in 90s  -          make (the next one is due)
agent/pair    #7     -        normal    pair   WaitsForAnswer  now     -          BLOCKED: Clarification CLR-7-001 pending from lead
`},
		{false, true, `
[1mITEM[0m          [1mISSUE[0m  [1mSESSION[0m  [1mPRIORITY[0m  [1mAGENT[0m  [1mWHAT[0m
dag/a/review  #42    s        high      lead   Review\x1b[31m it
dag/a/flaky   -      -        normal    -      [2mqueued: the next one is due[0m
agent/pair    #7     -        normal    pair   [33mBLOCKED: Clarification CLR-7-001 pending from lead[0m
`},
	} {
		var b bytes.Buffer
		if err := ReadyTable(&b, Palette{On: c.on}, items, c.explain, now); err != nil {
			t.Fatal(err)
		}
		if got := "\n" + strings.ReplaceAll(b.String(), "\x1b", ""); got != c.want {
			t.Errorf("explain %t, colours %t:%s\nwant:%s", c.explain, c.on, got, c.want)
		}
	}
}

func TestAgentTable(t *testing.T) {
	now := instant("2026-02-27T10:00:00Z").Time
	text := func(s string) *string { return &s }
	issue := 42
	var b bytes.Buffer
	err := AgentTable(&b, Palette{On: true}, []schemas.NamedActivity{
		{Name: "engineer", AgentActivity: schemas.AgentActivity{Status: schemas.AgentBlocked, Issue: &issue, ClarificationID: text("CLR-42-001"),
			WaitingOn: text("architect"), LastActivity: instant("2026-02-27T09:30:00Z")}},
		{Name: "new"},
	}, now)
	const want = `
[1mAGENT[0m     [1mSTATUS[0m                 [1mISSUE[0m  [1mCLARIFICATION[0m  [1mWAITING ON[0m  [1mRESPONDING TO[0m  [1mLAST ACTIVITY[0m
engineer  [33mblocked-clarification[0m  #42    CLR-42-001     architect   -              30m
new       unknown                -      -              -           -              -
`
	if got := "\n" + strings.ReplaceAll(b.String(), "\x1b", ""); err != nil || got != want {
		t.Errorf("%v, got:%s\nwant:%s", err, got, want)
	}
}

// TestDigestLists shows the first ten of a list only, with bars that are never empty.
func TestDigestLists(t *testing.T) {
	d := digest.Digest{Until: instant("2026-02-27T10:00:00Z"), Topics: []digest.Tally{{Name: "most", Count: 100}}}
	for i := range 11 {
		d.Topics = append(d.Topics, digest.Tally{Name: string(rune('a' + i)), Count: 1})
	}
	var b bytes.Buffer
	if err := DigestText(&b, Palette{}, d); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"most   100    ████████████████████\n", "\ni      1      █\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no line %q in:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "\nj ") || strings.Contains(b.String(), "ASKS") {
		t.Errorf("more than ten topics, or a list of nothing:\n%s", b.String())
	}
}

// TestMarkdownCell lets nothing of a topic become markup.
func TestMarkdownCell(t *testing.T) {
	const topic = "a|b `c` [x](http://e) <img> @ada #1 *s*\n\x1b"
	const want = `a\|b \` + "`c\\`" + ` \[x\]\(http://e\) \<img\> \@ada \#1 \*s\*\\n\\x1b`
	if got := markdownCell(topic); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
