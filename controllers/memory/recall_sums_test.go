package memory

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// files are the records of a clone, by name.
type files map[string][]byte

func (f files) records(t *testing.T) map[string]schemas.MemoryRecord {
	t.Helper()
	out := map[string]schemas.MemoryRecord{}
	for name, data := range f {
		r, err := ParseRecord(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		again, same, err := EncodeRecord(r)
		if err != nil || again != name || !bytes.Equal(same, data) {
			t.Fatalf("%s was read and written as %s, %v", name, again, err)
		}
		out[name] = r
	}
	return out
}

// heard are the recalls that a clone is to know, by observation.
type heard map[string]map[string]bool

func (h heard) add(id, recall string) {
	if h[id] == nil {
		h[id] = map[string]bool{}
	}
	h[id][recall] = true
}

// site is a clone: its files, what it was last in step with, and what it has heard of.
type site struct {
	files, base files
	heard       heard
}

// merge makes of two trees what git does, without a driver: files come and go, and none is ever changed.
func merge(t *testing.T, base, a, b files) files {
	t.Helper()
	out := files{}
	for _, side := range []files{a, b} {
		other := a
		if fmt.Sprintf("%p", side) == fmt.Sprintf("%p", a) {
			other = b
		}
		for name, data := range side {
			there, both := other[name]
			_, before := base[name]
			if both && !bytes.Equal(data, there) {
				t.Fatalf("two clones wrote %s differently: a conflict", name)
			}
			if both || !before {
				out[name] = data
			}
		}
	}
	return out
}

// TestSumsOfClones: clones that recall, sum what they have, which overlaps, and merge by git in any order, lose no recall
// and count none twice, at any moment.
func TestSumsOfClones(t *testing.T) {
	overlapped := false
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 14))
		now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
		var ids []string
		for i := range 4 {
			ids = append(ids, fmt.Sprintf("obs-ann-%d-177218640000%d-abcde%d", 1+i%2, i, i))
		}
		hub := &site{files{}, files{}, heard{}}
		clones := make([]*site, 3)
		for i := range clones {
			clones[i] = &site{files{}, files{}, heard{}}
		}
		sum := func(s *site, many int) {
			add, drop, err := sumRecalls(s.files.records(t), now, many)
			if err != nil {
				t.Fatal(err)
			}
			maps.Copy(s.files, add)
			s.agree(t, ids) // as after a crash between the two
			for _, name := range drop {
				delete(s.files, name)
			}
		}
		sync := func(s *site) {
			merged := merge(t, s.base, s.files, hub.files)
			s.files, s.base, hub.files = merged, maps.Clone(merged), maps.Clone(merged)
			for _, h := range []heard{hub.heard, s.heard} {
				for id, all := range h {
					for recall := range all {
						hub.heard.add(id, recall)
						s.heard.add(id, recall)
					}
				}
			}
		}
		for range 80 {
			s := clones[r.IntN(len(clones))]
			switch r.IntN(6) {
			case 0, 1:
				told := []string{ids[r.IntN(4)], ids[r.IntN(4)]}
				name, data, err := EncodeRecord(schemas.MemoryRecord{Type: schemas.RecordRecalled, Issue: 1,
					At: schemas.StampOfTime(now), By: fmt.Sprint("agent-", r.IntN(3)), IDs: told})
				if err != nil {
					t.Fatal(err)
				}
				s.files[name] = data
				for _, id := range told {
					s.heard.add(id, recallOf(name))
				}
			case 2, 3:
				sum(s, r.IntN(4))
			case 4:
				sync(s)
			case 5:
				now = now.Add(time.Duration(r.IntN(20)) * time.Hour)
			}
			s.agree(t, ids)
			overlapped = overlapped || s.overlaps(t)
		}
		now = now.AddDate(0, 2, 0)
		for range 3 {
			for _, s := range clones {
				sync(s)
				sum(s, manyRecalls)
				s.agree(t, ids)
			}
		}
		for _, s := range clones {
			sync(s)
		}
		for i, s := range clones {
			if !maps.EqualFunc(s.files, hub.files, bytes.Equal) {
				t.Errorf("seed %d: clone %d ends with other files than the hub", seed, i)
			}
		}
		months := map[string]bool{}
		for name, rec := range hub.files.records(t) {
			key := rec.IDs[0] + rec.At.UTC().Format(monthLayout)
			if rec.Type != schemas.RecordRecalls || months[key] {
				t.Errorf("seed %d: %s is not the one sum of its observation and month", seed, name)
			}
			months[key] = true
		}
	}
	if !overlapped {
		t.Error("no two sums overlapped: the test shows nothing")
	}
}

// agree checks what the clone's records say against what it has heard of.
func (s *site) agree(t *testing.T, ids []string) {
	t.Helper()
	records := s.files.records(t)
	f := NewFacts(Truth{Records: records})
	all := Recalls(records)
	for _, id := range ids {
		if f.recalls[id] != len(s.heard[id]) {
			t.Fatalf("%s was recalled %d times, and is counted %d times in %q", id, len(s.heard[id]), f.recalls[id],
				slices.Sorted(maps.Keys(s.files)))
		}
		for recall := range s.heard[id] {
			if at, _ := recallTime(recall); !slices.Contains(all[recall].IDs, id) || !all[recall].At.Equal(at) {
				t.Fatalf("%s is not told of %s: %+v", recall, id, all[recall])
			}
		}
	}
	n := Uncounted(records, maps.All(map[string]schemas.MemoryRecord{}))
	for _, id := range ids {
		if n[id] != len(s.heard[id]) {
			t.Fatalf("%s: %d uncounted of %d", id, n[id], len(s.heard[id]))
		}
	}
	if left := Uncounted(records, maps.All(records)); len(left) > 0 && s.sums() > 0 {
		t.Fatalf("counted already, and counted again: %v", left)
	}
}

func (s *site) sums() (n int) {
	for name := range s.files {
		if strings.HasPrefix(name, schemas.RecordRecalls+"-") {
			n++
		}
	}
	return n
}

// overlaps reports whether adding up what sums and records have would count a recall twice.
func (s *site) overlaps(t *testing.T) bool {
	seen := map[string]bool{}
	for _, r := range s.files.records(t) {
		for _, recall := range r.Recalls {
			if seen[r.IDs[0]+recall] {
				return true
			}
			seen[r.IDs[0]+recall] = true
		}
	}
	return false
}

// TestSummedIsBounded: ten thousand recalls of twenty notes, of two months, become forty files.
func TestSummedIsBounded(t *testing.T) {
	records, bytesBefore := map[string]schemas.MemoryRecord{}, 0
	for i := range 10_000 {
		rec := schemas.MemoryRecord{Type: schemas.RecordRecalled, Issue: 1, By: "ann", Tokens: 900, Displaced: 4000,
			At: schemas.StampOfTime(time.Date(2026, 9, 20, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * 3 * time.Minute))}
		for k := range 10 {
			rec.IDs = append(rec.IDs, fmt.Sprintf("obs-ann-1-177218640000%d-abcde%d", (i+k)%20%10, (i+k)%20/10))
		}
		name, data, err := EncodeRecord(rec)
		if err != nil {
			t.Fatal(err)
		}
		records[name], bytesBefore = rec, bytesBefore+len(data)
	}
	add, drop, err := SumRecalls(records, time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))
	after := 0
	for _, data := range add {
		after += len(data)
	}
	if err != nil || len(add) != 40 || len(drop) != 10_000 || after*2 > bytesBefore {
		t.Errorf("%d bytes became %d sums of %d bytes, %d records went, %v", bytesBefore, len(add), after, len(drop), err)
	}
	t.Logf("%d files of %d bytes became %d of %d", len(records), bytesBefore, len(add), after)
}

func TestWhenRecallsAreSummed(t *testing.T) {
	now := time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)
	record := func(at time.Time) map[string]schemas.MemoryRecord {
		rec := schemas.MemoryRecord{Type: schemas.RecordRecalled, Issue: 1, At: schemas.StampOfTime(at), IDs: []string{"obs-ann-1-1772186400000-abcdef"}}
		name, _, _ := EncodeRecord(rec)
		return map[string]schemas.MemoryRecord{name: rec}
	}
	if add, drop, err := SumRecalls(record(now), now); len(add)+len(drop) > 0 || err != nil {
		t.Errorf("of the month: %q, %q, %v", add, drop, err)
	}
	if add, drop, err := SumRecalls(record(now.AddDate(0, 0, -2)), now); len(add) != 1 || len(drop) != 1 || err != nil {
		t.Errorf("of the last month: %q, %q, %v", add, drop, err)
	}
	other := map[string]schemas.MemoryRecord{"recalled-by-hand": {Type: schemas.RecordRecalled, IDs: []string{"obs-ann-1-1772186400000-abcdef"}}}
	if add, drop, err := SumRecalls(other, now); len(add)+len(drop) > 0 || err != nil {
		t.Errorf("of another name: %q, %q, %v", add, drop, err)
	}
}
