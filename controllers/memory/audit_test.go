package memory

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/vectors/lexical/lexicaltest"
)

var auditDay = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// noted is an observation made some days before auditDay.
func noted(days int, content string) schemas.Observation {
	at := auditDay.AddDate(0, 0, -days)
	return schemas.Observation{
		ID: NewID("engineer", 7, at, "note", days, content), Agent: "engineer", IssueNumber: 7,
		Category: schemas.CategoryKeyFact, Content: content, Summary: content, Timestamp: schemas.StampOfTime(at),
	}
}

func TestAudit(t *testing.T) {
	const long = "The retry of the outbox worker waits between attempts and doubles the pause each time until an hour " +
		"is reached"
	old, again := noted(90, long), noted(80, long+"\n")
	near := noted(70, strings.Replace(long, "doubles the", "doubles a", 1)+" at last")
	other := noted(60, "Ports are named by five letters")
	replaced, newer := noted(50, "Tests use port 8081"), noted(40, "Tests use port 0")
	replaced.SupersededBy, replaced.RecallCount = newer.ID, 2
	early, later := noted(45, "Builds take ten minutes"), noted(35, "Builds take two minutes")
	early.SupersededBy, early.RecallCount = later.ID, 1
	away := noted(95, long)
	away.Archived = true
	leaky := noted(5, "Deploy with password = hunter2hunter2 <private>his name</private>")
	stale := noted(3, "The pool is in pool.go")
	other.RecallCount = 1
	record := func(days int, ids ...string) schemas.MemoryRecord {
		at := schemas.StampOfTime(auditDay.AddDate(0, 0, -days))
		return schemas.MemoryRecord{Type: schemas.RecordRecalled, At: at, IDs: ids}
	}
	all := []schemas.Observation{leaky, away, newer, replaced, near, again, old, other, early, later, stale}
	in := AuditInput{
		Observations: all, Now: auditDay, Unused: 30 * 24 * time.Hour,
		Records: map[string]schemas.MemoryRecord{
			"a": record(48, replaced.ID, early.ID), "b": record(20, replaced.ID, newer.ID, other.ID),
		},
		Stale: func(o *schemas.Observation) string {
			if o.ID == stale.ID {
				return "pool.go changed since"
			}
			return ""
		},
	}
	a := NewAudit(in)
	slices.Reverse(all)
	if b := NewAudit(in); !reflect.DeepEqual(a, b) {
		t.Errorf("the order of what is audited matters:\n%v\n%v", a, b)
	}
	if a.Observations != 8 {
		t.Errorf("%d observations stand, want 8", a.Observations)
	}
	if len(a.Exact) != 1 || !slices.Equal(a.Exact[0], []string{old.ID, again.ID}) {
		t.Errorf("exact duplicates: %v", a.Exact)
	}
	if len(a.Near) != 1 || !slices.Equal(a.Near[0], []string{old.ID, near.ID}) {
		t.Errorf("near duplicates: %v, want %s and %s", a.Near, old.ID, near.ID)
	}
	if len(a.Superseded) != 1 || a.Superseded[0].ID != replaced.ID || !strings.Contains(a.Superseded[0].Reason, newer.ID) {
		t.Errorf("superseded but recalled: %v, want only %s", a.Superseded, replaced.ID)
	}
	if len(a.Secrets) != 1 || a.Secrets[0].ID != leaky.ID || strings.Contains(fmt.Sprint(a), "hunter2") ||
		!strings.Contains(a.Secrets[0].Reason, "private text") {
		t.Errorf("secrets: %v, want one of %s without what it is", a.Secrets, leaky.ID)
	}
	if !slices.Equal(a.Stale, []Reason{{stale.ID, "pool.go changed since"}}) {
		t.Errorf("stale: %v", a.Stale)
	}
	if want := []string{old.ID, again.ID, near.ID, later.ID}; !slices.Equal(a.Unused, want) {
		t.Errorf("never recalled: %v, want %v", a.Unused, want)
	}
	in.Records["c"] = record(10, again.ID)
	if got, want := NewAudit(in).Unused, []string{near.ID, later.ID}; !slices.Equal(got, want) {
		t.Errorf("never recalled: %v, want %v, without the one with the text of another that was", got, want)
	}
}

// TestAuditRecalledThoughSuperseded: only a recall that had both counts, whatever the times say.
func TestAuditRecalledThoughSuperseded(t *testing.T) {
	older, newer, other := noted(50, "Tests use port 8081"), noted(40, "Tests use port 0"), noted(30, "Ports are free")
	older.SupersededBy = newer.ID
	merged := noted(20, "Ports of tests")
	merged.Compacts = []string{newer.ID, other.ID}
	again := newer
	again.SeenCount = 2
	for _, c := range []struct {
		name  string
		newer schemas.Observation
		ids   []string
		since time.Time
		want  int
	}{
		{"both at once", newer, []string{older.ID, newer.ID}, time.Time{}, 1},
		{"the older one, on a branch that knew no newer one", newer, []string{older.ID, other.ID}, time.Time{}, 0},
		{"the newer one, merged with others", newer, []string{older.ID, merged.ID}, time.Time{}, 1},
		{"perhaps replaced by a repetition", again, []string{older.ID, newer.ID}, time.Time{}, 0},
		{"both, before what is asked about", newer, []string{older.ID, newer.ID}, auditDay.AddDate(0, 0, -5), 0},
		{"both, since then", newer, []string{older.ID, newer.ID}, auditDay.AddDate(0, 0, -15), 1},
	} {
		r := schemas.MemoryRecord{Type: schemas.RecordRecalled, At: schemas.StampOfTime(auditDay.AddDate(0, 0, -10)), IDs: c.ids}
		a := NewAudit(AuditInput{
			Observations: []schemas.Observation{older, c.newer, other, merged}, Now: auditDay, Since: c.since,
			Records: map[string]schemas.MemoryRecord{"r": r}, Stale: func(*schemas.Observation) string { return "" },
		})
		if len(a.Superseded) != c.want {
			t.Errorf("%s: found %v, want %d", c.name, a.Superseded, c.want)
		}
	}
}

// TestAuditSince: what is older is left out, but for a group that something newer joined.
func TestAuditSince(t *testing.T) {
	const said = "The retry of the outbox worker waits between attempts and doubles the pause each time"
	all := []schemas.Observation{
		noted(90, said), noted(5, said+"\n"), noted(80, "Ports are named by letters"), noted(70, "Ports are named  by letters"),
		noted(60, "password = hunter2hunter2"), noted(4, "password = hunter3hunter3"),
	}
	a := NewAudit(AuditInput{
		Observations: all, Now: auditDay, Since: auditDay.AddDate(0, 0, -30),
		Stale: func(*schemas.Observation) string { return "changed" },
	})
	if len(a.Exact) != 1 || !slices.Contains(a.Exact[0], all[1].ID) {
		t.Errorf("exact duplicates: %v", a.Exact)
	}
	if len(a.Stale) != 2 || len(a.Secrets) != 1 || a.Secrets[0].ID != all[5].ID || len(a.Unused) != 2 {
		t.Errorf("%d are stale, secrets %v, unused %v", len(a.Stale), a.Secrets, a.Unused)
	}
}

// TestNearDuplicatesMissNone compares with looking at all pairs.
func TestNearDuplicatesMissNone(t *testing.T) {
	for seed := range uint64(3) {
		random, corpus := rand.New(rand.NewPCG(seed, 2)), lexicaltest.New(seed)
		var all []*schemas.Observation
		for i := range 250 {
			content := corpus.Text(3 + random.IntN(40))
			if i > 0 && random.IntN(3) == 0 { // a word or two are another
				words := strings.Fields(all[random.IntN(i)].Content)
				for range random.IntN(3) {
					words[random.IntN(len(words))] = corpus.Word()
				}
				content = strings.Join(words, " ")
			}
			o := noted(250-i, content)
			all = append(all, &o)
		}
		var want []string
		var firsts, members []int
		for i, o := range all {
			at := slices.IndexFunc(firsts, func(f int) bool { return Same(o.Content, all[f].Content) })
			if at < 0 {
				firsts = append(firsts, i)
			} else {
				members = append(members, i)
				want = append(want, all[firsts[at]].ID+" "+o.ID)
			}
		}
		var got []string
		for _, group := range nearDuplicates(all) {
			for _, id := range group[1:] {
				got = append(got, group[0]+" "+id)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if len(members) < 30 || !slices.Equal(got, want) {
			t.Fatalf("seed %d: %d near duplicates, want %d", seed, len(got), len(want))
		}
	}
}

// TestNearDuplicatesOfMany: many that all say the same, and many that do not, take no longer for each than few do; with
// all pairs compared this test would not end.
func TestNearDuplicatesOfMany(t *testing.T) {
	corpus := lexicaltest.New(9)
	same := corpus.Text(40)
	var all []*schemas.Observation
	for i := range 20_000 {
		content := same + " " + corpus.Word()
		if i%2 == 0 {
			content = corpus.Text(30)
		}
		o := schemas.Observation{ID: fmt.Sprint(i), Content: content}
		all = append(all, &o)
	}
	groups := nearDuplicates(all)
	if len(groups) == 0 || len(groups[0]) < 9000 {
		t.Errorf("%d groups, the first of %d", len(groups), len(groups[0]))
	}
}
