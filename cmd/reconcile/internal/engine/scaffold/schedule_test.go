package scaffold

import (
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

func TestSchedulesInUTC(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		s    schemas.Schedule
		want []string
	}{
		{schemas.Schedule{Cron: "30 2 * * 1-5"}, []string{"30 2 * * 1-5"}},
		{schemas.Schedule{Cron: "@daily", TimeZone: "UTC"}, []string{"0 0 * * *"}},
		{schemas.Schedule{Cron: "30 2 * * 1-5", TimeZone: "Europe/Berlin"}, []string{"30 0,1 * * *"}},
		{schemas.Schedule{Cron: "*/30 9 1 * ?", TimeZone: "Asia/Kolkata"}, []string{"0 4 * * *", "30 3 * * *"}},
		{schemas.Schedule{Cron: "30 2 * * 5-7"}, []string{"30 2 * * 5,6,0"}},
		{schemas.Schedule{Cron: "wrong", TimeZone: "Asia/Tokyo"}, nil},
	} {
		if got := inUTC(c.s, now); !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, want %q", c.s, got, c.want)
		}
	}
	files := Workflows("")
	Scheduled(files, map[string]schemas.Schedules{"b": {{Cron: "5 4 * * *"}}, "a": {{Cron: "@weekly"}}}, now)
	i := slices.IndexFunc(files, func(f File) bool { return strings.HasSuffix(f.Path, "/reconcile.yml") })
	if text := string(files[i].Data); !strings.Contains(text, "five minutes.\n    - cron: \"0 0 * * 0\" # dag/a\n    - cron: \"5 4 * * *\" # dag/b\n  issue_comment:\n") {
		t.Error(text)
	}
	before := Workflows("")
	Scheduled(before, nil, now)
	if !slices.EqualFunc(before, Workflows(""), func(a, b File) bool { return string(a.Data) == string(b.Data) }) {
		t.Error("a tree without schedules has other workflows")
	}
}
