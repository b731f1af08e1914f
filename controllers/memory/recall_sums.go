package memory

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// A sum replaces the records of recalls of one observation in one month. It lists them by the ends of their names, so that
// overlapping records are counted once: clones sum independently, and a merge of branches keeps the sums of both. The name
// of its file has a digest of the list, so that two sums never share a file.

// recallOf returns the name in sums of the recall in a record with the name.
func recallOf(name string) string { return strings.TrimPrefix(name, schemas.RecordRecalled+"-") }

// recallTime is when a recall was, by how sums name it; ok is false where it is not named so.
func recallTime(recall string) (at time.Time, ok bool) {
	parts := strings.Split(recall, "-")
	if len(parts) != 3 || len(parts[2]) != 6 || len(recall) > 40 {
		return at, false
	}
	_, err := strconv.ParseUint(parts[0], 10, 64)
	ms, err2 := strconv.ParseInt(parts[1], 10, 64)
	_, err3 := hex.DecodeString(parts[2])
	return time.UnixMilli(ms).UTC(), err == nil && err2 == nil && err3 == nil && ms >= 0
}

const monthLayout = "2006-01"

// sumOf is the sum of recalls of an observation, which are sorted.
func sumOf(id string, recalls []string) schemas.MemoryRecord {
	_, issue, _, _ := ParseID(id)
	r := schemas.MemoryRecord{Type: schemas.RecordRecalls, Issue: issue, IDs: []string{id}, Recalls: recalls}
	for _, recall := range recalls {
		if at, ok := recallTime(recall); ok {
			r.At = laterCapture(r.At, schemas.StampOfTime(at))
		}
	}
	return r
}

// encodeSum writes a sum on one line, its recalls first and in an order that depends on all of them: if two clones
// replace one file by different ones, git must not detect a rename, which would be a conflict. Git detects renames by the
// share of equal content.
func encodeSum(r schemas.MemoryRecord) (name string, data []byte, err error) {
	if len(r.IDs) != 1 {
		return "", nil, fmt.Errorf("a sum of recalls is of one observation, not of %d", len(r.IDs))
	}
	recalls := sortedIDs(r.Recalls)
	seed := sha256.Sum256([]byte(r.IDs[0] + "\n" + strings.Join(recalls, "\n")))
	order := make(map[string]string, len(recalls))
	for _, recall := range recalls {
		sum := sha256.Sum256([]byte(string(seed[:]) + recall))
		order[recall] = string(sum[:8])
	}
	slices.SortFunc(recalls, func(a, b string) int { return cmp.Or(cmp.Compare(order[a], order[b]), cmp.Compare(a, b)) })
	data, err = schemas.Marshal(struct {
		Recalls []string      `json:"recalls"`
		Version int           `json:"version"`
		Type    string        `json:"type"`
		Issue   int           `json:"issueNumber"`
		At      schemas.Stamp `json:"at"`
		IDs     []string      `json:"ids"`
	}{recalls, schemas.MemoryVersion, r.Type, r.Issue, r.At, r.IDs})
	return fmt.Sprintf("%s-%s-%s-%s", r.Type, r.At.UTC().Format(monthLayout), r.IDs[0], hex.EncodeToString(seed[:3])), append(data, '\n'), err
}

// checkSum returns the error of an invalid sum.
func checkSum(r *schemas.MemoryRecord) error {
	if len(r.IDs) != 1 {
		return fmt.Errorf("%w: a sum of recalls is of one observation, not of %d", ErrDamaged, len(r.IDs))
	}
	for _, recall := range r.Recalls {
		if _, ok := recallTime(recall); !ok {
			return fmt.Errorf("%w: %.60q is not the name of a recall", ErrDamaged, recall)
		}
	}
	return nil
}

// Recalls returns the recalls in records, each once, as one record. By, Tokens and Displaced of summed recalls are lost.
func Recalls(records map[string]schemas.MemoryRecord) map[string]schemas.MemoryRecord {
	out := map[string]schemas.MemoryRecord{}
	for _, r := range records {
		for _, recall := range r.Recalls {
			at, _ := recallTime(recall)
			one := out[recall]
			one.Type, one.At, one.IDs = schemas.RecordRecalled, schemas.StampOfTime(at), append(one.IDs, r.IDs...)
			out[recall] = one
		}
	}
	for recall, r := range out {
		r.IDs = sortedIDs(r.IDs)
		out[recall] = r
	}
	for name, r := range records {
		if r.Type == schemas.RecordRecalled {
			out[recallOf(name)] = r // all of it, where some of it may be in sums
		}
	}
	return out
}

// Uncounted counts, by observation, the recalls that are in news and not in counted, each once. A record of a recall in
// counted counts for all observations that it names or named. counted is not read if news has no sums.
func Uncounted(news map[string]schemas.MemoryRecord, counted iter.Seq2[string, schemas.MemoryRecord]) map[string]int {
	type one struct{ id, recall string }
	told, whole := map[one]bool{}, map[string]bool{}
	for _, r := range news {
		if r.Type != schemas.RecordRecalls {
			continue
		}
		for name, r := range counted {
			if r.Type == schemas.RecordRecalled {
				whole[recallOf(name)] = true
			}
			for _, recall := range r.Recalls {
				told[one{r.IDs[0], recall}] = true
			}
		}
		break
	}
	out := map[string]int{}
	count := func(id, recall string) {
		if is := (one{id, recall}); !whole[recall] && !told[is] {
			told[is] = true
			out[id]++
		}
	}
	for name, r := range news {
		for _, id := range r.IDs {
			if r.Type == schemas.RecordRecalled {
				count(id, recallOf(name))
			}
			for _, recall := range r.Recalls {
				count(id, recall)
			}
		}
	}
	return out
}

// manyRecalls is how many records of recalls of the month are left as they are.
const manyRecalls = 1000

// monthly identifies the recalls of an observation in a month.
type monthly struct{ id, month string }

// sums are the existing sums, and their new content.
type sums struct {
	have map[monthly]map[string][]string // recalls of each, by name
	want map[monthly]map[string]bool
}

// SumRecalls sums the records of recalls: those of months that have ended, or all if there are more than a thousand. add
// are the sums to write, by name, and drop the names of the records and sums that they replace, sorted. If the caller
// writes the former before it removes the latter, no recall is lost or counted twice at any moment.
func SumRecalls(records map[string]schemas.MemoryRecord, now time.Time) (add map[string][]byte, drop []string, err error) {
	return sumRecalls(records, now, manyRecalls)
}

func sumRecalls(records map[string]schemas.MemoryRecord, now time.Time, many int) (add map[string][]byte, drop []string, err error) {
	s := sums{map[monthly]map[string][]string{}, map[monthly]map[string]bool{}}
	var single []string
	ended := false
	month := now.UTC().Format(monthLayout)
	for name, r := range records {
		switch r.Type {
		case schemas.RecordRecalls:
			s.take(name, &r)
		case schemas.RecordRecalled:
			if at, ok := recallTime(recallOf(name)); ok && len(r.IDs) > 0 {
				single = append(single, name)
				ended = ended || at.Format(monthLayout) < month
			}
		}
	}
	due := ended || len(single) > many
	for _, name := range single {
		if r := records[name]; due || s.hold(name, r.IDs) {
			s.add(name, r.IDs)
			drop = append(drop, name)
		}
	}
	add, replaced, err := s.write()
	drop = append(drop, replaced...)
	slices.Sort(drop)
	return add, drop, err
}

func (s *sums) take(name string, r *schemas.MemoryRecord) {
	key := monthly{r.IDs[0], r.At.UTC().Format(monthLayout)}
	if s.have[key] == nil {
		s.have[key] = map[string][]string{}
	}
	s.have[key][name] = r.Recalls
	s.want[key] = unionOfLists(s.want[key], r.Recalls...)
}

// keyOf is where a recall of an observation is summed.
func keyOf(id, recall string) monthly {
	at, _ := recallTime(recall)
	return monthly{id, at.Format(monthLayout)}
}

// hold reports whether the sums include all recalls of a record.
func (s *sums) hold(name string, ids []string) bool {
	recall := recallOf(name)
	return !slices.ContainsFunc(ids, func(id string) bool { return !s.want[keyOf(id, recall)][recall] })
}

func (s *sums) add(name string, ids []string) {
	recall := recallOf(name)
	for _, id := range ids {
		key := keyOf(id, recall)
		s.want[key] = unionOfLists(s.want[key], recall)
	}
}

// write makes one sum of each observation and month, where there is not just that one.
func (s *sums) write() (add map[string][]byte, drop []string, err error) {
	add = map[string][]byte{}
	for key, recalls := range s.want {
		have := s.have[key]
		if len(have) == 1 && len(slices.Collect(maps.Values(have))[0]) == len(recalls) {
			continue
		}
		name, data, err := encodeSum(sumOf(key.id, slices.Sorted(maps.Keys(recalls))))
		if err != nil {
			return nil, nil, err
		}
		add[name] = data
		for old := range have {
			if old != name {
				drop = append(drop, old)
			}
		}
	}
	return add, drop, nil
}
