package clarify

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// ledgerOf is a ledger with records, each with its turns.
func ledgerOf(t *testing.T, all ...schemas.Clarification) []byte {
	t.Helper()
	f := &ledgerFile{issue: 42}
	for _, c := range all {
		f.records = append(f.records, ledgerRecord{Clarification: c, entries: make([]extras, len(c.Thread))})
	}
	b, err := f.encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// matter is a record of a question that was asked a minute after the start.
func matter(seq int, request, topic, status string, more ...schemas.ClarificationTurn) schemas.Clarification {
	return schemas.Clarification{ID: FormatID(42, seq), Request: request, From: "a", To: "b", Topic: topic, Status: status,
		Round: 1, MaxRounds: 5, Created: minute(1), Thread: append([]schemas.ClarificationTurn{other(1, "question", "a", topic+"?", 1)}, more...)}
}

// TestCarry: a ledger takes the place of another, and what other programs wrote into that one is kept, and nothing else.
func TestCarry(t *testing.T) {
	t.Parallel()
	x, y := matter(1, "x", "X", "pending"), matter(2, "y", "Y", "pending")
	told := other(1, "answer", "b", "Told.", 2)
	answered := matter(1, "x", "X", "answered", told)
	foreign := matter(3, "", "F", "resolved", told)
	for _, c := range []struct {
		name              string
		base, there, next []schemas.Clarification // nil: no file
		ours              []schemas.Clarification
		want              string // number, request, status and number of turns of each record
	}{
		{"nothing new", s(x), s(x), s(x, y), s(x), "1xpending1 2ypending1"},
		{"a record that we do not take up", s(x), s(x, foreign), s(x, y), s(x), "1xpending1 2ypending1 3resolved2"},
		{"where the remote has no ledger", nil, s(foreign), nil, nil, "3resolved2"},
		{"a record that was removed there", s(x, foreign), s(x, foreign), s(x), s(x), "1xpending1"},
		{"a record that is there already", s(x), s(x, foreign), s(x, foreign), s(x), "1xpending1 3resolved2"},
		{"a question of which there is a spec", s(x), s(x, matter(2, "", "Z", "pending")), s(x, y),
			s(x, matter(3, "imported", "Z", "pending")), "1xpending1 2ypending1"},
		{"the number is another matter's", s(x), s(x, matter(2, "", "Z", "pending")), s(x, y), s(x),
			"1xpending1 2pending1 2ypending1"},
		{"an answer", s(x), s(answered), s(x, y), s(x), "1xpending2 2ypending1"},
		{"an answer of our own", s(x), s(answered), s(x, y), s(answered), "1xpending1 2ypending1"},
		{"an answer that both have", s(x), s(answered), s(answered), s(x), "1xanswered2"},
		{"an answer to a question that the remote does not know", nil, s(answered), s(y), s(x), "1xanswered2 2ypending1"},
		{"our own question that the remote does not know", nil, s(x), s(y), s(x), "2ypending1"},
		{"it was given up", s(x), s(matter(1, "x", "X", "abandoned")), s(x), s(x), "1xabandoned1"},
		{"we gave it up", s(x), s(matter(1, "x", "X", "abandoned")), s(x), s(matter(1, "x", "X", "abandoned")), "1xpending1"},
		{"of a request that is gone", s(x), s(answered), s(y), nil, "2ypending1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := func(all []schemas.Clarification) []byte {
				if all == nil {
					return nil
				}
				return ledgerOf(t, all...)
			}
			base, there, next := file(c.base), file(c.there), file(c.next)
			out, err := Carry(base, there, next, 42, c.ours)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range carriedRecords(out, 42) {
				got = append(got, strings.TrimLeft(strings.TrimPrefix(r.ID, "CLR-42-"), "0")+r.Request+r.Status+string(rune('0'+len(r.Thread))))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %q, want %s", got, c.want)
			}
			if again, err := Carry(base, there, out, 42, c.ours); err != nil || !bytes.Equal(again, out) {
				t.Errorf("carried again: %v\n%s\n%s", err, again, out)
			}
		})
	}
}

func s(all ...schemas.Clarification) []schemas.Clarification { return slices.Clip(all) }

// TestCarryDamaged: of what cannot be read nothing is taken, and it is not written over where it comes from the remote.
func TestCarryDamaged(t *testing.T) {
	t.Parallel()
	foreign := ledgerOf(t, matter(3, "", "F", "resolved"))
	for _, c := range []struct{ there, next, want []byte }{
		{[]byte("{"), foreign, foreign},
		{foreign, []byte("{"), []byte("{")},
		{nil, nil, nil},
	} {
		if got, err := Carry(nil, c.there, c.next, 42, nil); err != nil || !bytes.Equal(got, c.want) {
			t.Errorf("carried %q into %q: %q, %v", c.there, c.next, got, err)
		}
	}
}
