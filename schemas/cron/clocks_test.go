package cron

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// changeDays are days around the changes of clocks, of each zone one in each direction.
var changeDays = []struct{ zone, day string }{
	{"Europe/Berlin", "2026-03-29T00:00:00Z"}, {"Europe/Berlin", "2026-10-25T00:00:00Z"},
	{"America/New_York", "2026-03-08T00:00:00Z"}, {"America/New_York", "2026-11-01T00:00:00Z"},
	{"Australia/Lord_Howe", "2026-04-04T12:00:00Z"}, {"Australia/Lord_Howe", "2026-10-03T12:00:00Z"},
}

// TestTimesWhereClocksChange compares the times of random schedules around the changes of clocks with those that are found minute by
// minute: all of them, and the last ones, as for times that were missed.
func TestTimesWhereClocksChange(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for _, c := range changeDays {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		from, until := at(t, c.day).Add(-12*time.Hour), at(t, c.day).Add(36*time.Hour)
		all := minutesBetween(zone, from, until)
		for range 15 {
			expression := randomTimes(random)
			s, want := parse(t, expression, c.zone), naive(expression, all)
			for _, most := range []int{1 << 20, 100, 1} {
				want := want[max(0, len(want)-most):]
				if got := s.Between(from, until, most); !slices.EqualFunc(got, want, time.Time.Equal) {
					t.Fatalf("%q in %s, at most %d: %s", expression, c.zone, most, differing(got, want))
				}
			}
		}
	}
}

// differing are the times that only one of two lists has.
func differing(got, want []time.Time) string {
	out := ""
	for _, is := range got {
		if !slices.ContainsFunc(want, is.Equal) {
			out += " added " + is.Format(time.RFC3339)
		}
	}
	for _, is := range want {
		if !slices.ContainsFunc(got, is.Equal) {
			out += " missing " + is.Format(time.RFC3339)
		}
	}
	return out
}

// randomTimes is a schedule with minutes and hours, most of them in the hours in which clocks change.
func randomTimes(random *rand.Rand) string {
	field := func(most int) string {
		switch random.IntN(4) {
		case 0:
			return "*"
		case 1:
			return "*/" + strconv.Itoa(1+random.IntN(most/2))
		case 2:
			first := random.IntN(most)
			return fmt.Sprintf("%d-%d", first, first+random.IntN(most-first))
		}
		return fmt.Sprintf("%d,%d", random.IntN(most), random.IntN(most))
	}
	hours := field(24)
	if random.IntN(2) == 0 {
		hours = field(4)
	}
	return field(60) + " " + hours + " * * *"
}

// minute is a minute of real time.
type minute struct {
	at     time.Time
	shown  time.Time   // what the clock shows
	counts []time.Time // the local times that count in it, in a schedule that is not one of every hour
}

// minutesBetween goes through the minutes after one time and up to another one. Each local time counts once: when the clock shows it first.
// Those over which the clock jumps count one by one in the minutes after the jump.
func minutesBetween(zone *time.Location, from, until time.Time) (out []minute) {
	seen, late := map[time.Time]bool{}, map[time.Time]time.Time{}
	now := from.Add(-24 * time.Hour) // so that what is shown for the second time is known
	for last := wallOf(now.In(zone)); !now.After(until); now = now.Add(time.Minute) {
		m := minute{at: now, shown: wallOf(now.In(zone))}
		first := last.Add(time.Minute)
		for skipped := first; skipped.Before(m.shown); skipped = skipped.Add(time.Minute) {
			late[now.Add(skipped.Sub(first))] = skipped
		}
		if wall, ok := late[now]; ok {
			m.counts = append(m.counts, wall)
		}
		if !seen[m.shown] {
			m.counts = append(m.counts, m.shown)
		}
		seen[m.shown], last = true, m.shown
		if now.After(from) {
			out = append(out, m)
		}
	}
	return out
}

// naive are the minutes in which a schedule has a time.
func naive(expression string, all []minute) (out []time.Time) {
	fields := strings.Fields(expression)
	minutes, hours := members(fields[0], 60), members(fields[1], 24)
	shows := func(wall time.Time) bool { return minutes[wall.Minute()] && hours[wall.Hour()] }
	everyHour := fields[1] == "*" || fields[1] == "*/1"
	for _, m := range all {
		if everyHour && shows(m.shown) || !everyHour && slices.ContainsFunc(m.counts, shows) {
			out = append(out, m.at)
		}
	}
	return out
}

// members are the numbers below most of a field such as 1,2 or 3-5 or */6 or *.
func members(field string, most int) []bool {
	out := make([]bool, most)
	number := func(text string) int { n, _ := strconv.Atoi(text); return n }
	if step, ok := strings.CutPrefix(field, "*"); ok {
		for n := 0; n < most; n += max(1, number(strings.TrimPrefix(step, "/"))) {
			out[n] = true
		}
		return out
	}
	for part := range strings.SplitSeq(field, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		for n := number(first); n <= number(last); n++ {
			out[n] = true
		}
	}
	return out
}
