package cron

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	is, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return is
}

func parse(t *testing.T, expression, zone string) *Schedule {
	t.Helper()
	s, err := Parse(expression, zone)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTimesFollowTheClocksOfTheirZone(t *testing.T) {
	for _, c := range []struct{ name, cron, zone, after, want string }{
		{"UTC", "30 2 * * *", "", "2026-03-28T12:00:00Z", "2026-03-29T02:30:00Z 2026-03-30T02:30:00Z"},
		{"a change to summer time skips 02:30", "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:30:00Z 2026-03-30T00:30:00Z"},
		{"one that is looked for from within the hour after", "30 2 * * *", "Europe/Berlin", "2026-03-29T01:10:00Z", "2026-03-29T01:30:00Z 2026-03-30T00:30:00Z"},
		{"a change to winter time repeats 02:30", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z 2026-10-26T01:30:00Z"},
		{"and it is over in the repeated hour", "30 2 * * *", "Europe/Berlin", "2026-10-25T00:45:00Z", "2026-10-26T01:30:00Z"},
		{"every hour follows real time", "30 * * * *", "Europe/Berlin", "2026-10-24T23:45:00Z", "2026-10-25T00:30:00Z 2026-10-25T01:30:00Z 2026-10-25T02:30:00Z"},
		{"also in spring", "*/30 * * * *", "America/New_York", "2026-03-08T06:20:00Z", "2026-03-08T06:30:00Z 2026-03-08T07:00:00Z 2026-03-08T07:30:00Z"},
		{"half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-03T15:45:00Z 2026-10-04T15:15:00Z"},
		{"a time that is left out comes after one that is shown", "20,45 2 * * *", "Australia/Lord_Howe", "2026-10-03T15:00:00Z", "2026-10-03T15:45:00Z 2026-10-03T15:50:00Z 2026-10-04T15:20:00Z"},
		{"words", "@monthly", "Asia/Tokyo", "2026-01-15T00:00:00Z", "2026-01-31T15:00:00Z"},
		{"leap years", "0 0 29 2 *", "", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"},
	} {
		s, now := parse(t, c.cron, c.zone), at(t, c.after)
		for _, want := range strings.Fields(c.want) {
			if now = s.Next(now); !now.Equal(at(t, want)) {
				t.Errorf("%s: %s, want %s", c.name, now.Format(time.RFC3339), want)
			}
		}
	}
}

// TestSundayIsAlsoSeven compares days of the week with a 7 with the same without, as cron(8) reads them.
func TestSundayIsAlsoSeven(t *testing.T) {
	for with, without := range map[string]string{
		"7": "0", "1,7": "1,0", "5-7": "5,6,0", "0-7": "0-6", "1-7/2": "1,3,5,0", "1-7/4": "1,5", "3,6-7": "3,6,0", "7/2": "0",
	} {
		got, want := parse(t, "30 6 * * "+with, ""), parse(t, "30 6 * * "+without, "")
		from, until := at(t, "2026-03-01T00:00:00Z"), at(t, "2026-04-01T00:00:00Z")
		if !slices.Equal(got.Between(from, until, 100), want.Between(from, until, 100)) {
			t.Errorf("%s: other times than %s", with, without)
		}
	}
	for _, none := range []string{"8", "7-1", "1-8", "7-7/0", "-7", "7-"} {
		if _, err := Parse("30 6 * * "+none, ""); err == nil {
			t.Errorf("%s is a day of the week", none)
		}
	}
}

// TestTimesAscend: whatever the change of clocks, times ascend, and Next does not depend on where one begins to look.
func TestTimesAscend(t *testing.T) {
	for _, zone := range []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"} {
		for _, cron := range []string{"*/7 * * * *", "0,30 1-3 * * *", "15 */2 * * *", "0 0 * * 0", "59 23 L * *"} {
			s, err := Parse(cron, zone)
			if err != nil {
				continue // L is not known
			}
			all := s.Between(at(t, "2026-03-01T00:00:00Z"), at(t, "2026-04-10T00:00:00Z"), 1<<20)
			for i, is := range all {
				if i > 0 && !is.After(all[i-1]) {
					t.Fatalf("%s %s: %s follows %s", cron, zone, is, all[i-1])
				}
				if got := s.Next(is.Add(-time.Second)); !got.Equal(is) {
					t.Fatalf("%s %s: from just before it is %s, not %s", cron, zone, got, is)
				}
			}
		}
	}
}

func TestBetweenIsBounded(t *testing.T) {
	s := parse(t, "* * * * *", "")
	got := s.Between(at(t, "2006-01-01T00:00:00Z"), at(t, "2026-01-01T00:00:30Z"), 3)
	if len(got) != 3 || !got[2].Equal(at(t, "2026-01-01T00:00:00Z")) || !got[0].Equal(at(t, "2025-12-31T23:58:00Z")) {
		t.Errorf("%v", got)
	}
	if got = s.Between(at(t, "2026-01-01T00:00:00Z"), at(t, "2026-01-01T00:00:59Z"), 3); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if got = s.Between(at(t, "2026-01-02T00:00:00Z"), at(t, "2026-01-01T00:00:00Z"), 3); len(got) != 0 {
		t.Errorf("a clock that was set back: %v", got)
	}
}

func TestExpressionsThatAreNone(t *testing.T) {
	for cron, want := range map[string]string{
		"":                        "is no cron expression",
		"* * * *":                 "is no cron expression",
		"0 0 0 0 0 0":             "is no cron expression",
		"61 * * * *":              "is no cron expression",
		"1,2,,3 * * * *":          "the list 1,2,,3 has an empty part",
		"a * * * *":               "is no cron expression: \"a\" is no number",
		"-1 * * * *":              "is no cron expression: a number is missing",
		"@every 1h":               "names no times, only a distance",
		"TZ=Europe/Berlin @daily": "write it into timeZone",
		"TZ=0":                    "write it into timeZone",
		"0 0 31 2 *":              "is never",
	} {
		if _, err := Parse(cron, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", cron, err, want)
		}
	}
	for zone, want := range map[string]string{"Europe/Bärlin": "is no time zone", "Local": "differs from machine to machine"} {
		if _, err := Parse("@daily", zone); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", zone, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"* * * * *", "*/5 1-3 1,15 jan mon-fri", "@daily", "? * * * ?", "5/0 * * * *", "*-* * * * *"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		s, err := Parse(expression, "Europe/Berlin")
		if err != nil {
			return
		}
		now := at(t, "2026-03-28T12:00:00Z")
		for range 5 {
			next := s.Next(now)
			if next.IsZero() {
				return
			}
			if !next.After(now) {
				t.Fatalf("%q: %s after %s", expression, next, now)
			}
			now = next
		}
	})
}
