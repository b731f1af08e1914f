package ops_test

import (
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
)

func TestParseSince(t *testing.T) {
	now := time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		word string
		want time.Time
	}{
		{"7d", now.AddDate(0, 0, -7)},
		{"2w", now.AddDate(0, 0, -14)},
		{"24h", now.AddDate(0, 0, -1)},
		{"1w1d1h30m", now.Add(-(8*24*time.Hour + 90*time.Minute))},
		{"2026-02-01", time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)},
		{"2026-02-01T12:00:00+02:00", time.Date(2026, 2, 1, 10, 0, 0, 0, time.UTC)},
		{"36500d", now.AddDate(0, 0, -36500)},
		{"all", time.Time{}},
	} {
		if got, err := ops.ParseSince(c.word, now); err != nil || !got.Equal(c.want) {
			t.Errorf("%s: %s, %v; want %s", c.word, got, err, c.want)
		}
	}
	for _, word := range []string{
		"", "7", "d", "0d", "-7d", "+7d", "7d-1h", "1d1w", "1d2d", "1.5d", "36501d", "99999999999999999999d",
		"4294967295w", "7 d", "7D", "yesterday", "2026-02-30", "36500d1h", "0h", "-1h",
	} {
		if got, err := ops.ParseSince(word, now); err == nil || ops.CodeOf(err) != ops.BadRequest {
			t.Errorf("%q is taken for %s, error %v", word, got, err)
		}
	}
}
