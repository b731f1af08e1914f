// Package cron computes the times of schedules: cron expressions in time zones.
package cron

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Schedule are the times of a cron expression in a time zone.
type Schedule struct {
	spec *cron.SpecSchedule
	zone *time.Location
}

// Parse parses five fields (minute, hour, day of month, month, day of week), or a word such as @daily, in a time zone of the IANA
// database; "" is UTC.
func Parse(expression, zone string) (*Schedule, error) {
	if strings.Contains(expression, "TZ=") {
		return nil, errors.New("a time zone is no part of the expression: write it into timeZone")
	}
	for _, field := range strings.Fields(expression) {
		if slices.Contains(strings.Split(field, ","), "") {
			return nil, fmt.Errorf("%q is no cron expression: the list %s has an empty part", expression, field)
		}
	}
	parsed, err := cron.ParseStandard(Standard(expression))
	if err != nil {
		return nil, fmt.Errorf("%q is no cron expression: %s", expression, mistake(err))
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("%q names no times, only a distance: write fields, for example */15 * * * *", expression)
	}
	where, err := Zone(zone)
	if err != nil {
		return nil, err
	}
	s := &Schedule{spec, where}
	if s.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("%q is never: no year has such a day", expression)
	}
	return s, nil
}

// mistake is what is wrong with an expression, without the words of package strconv.
func mistake(err error) string {
	text := err.Error()
	_, rest, ok := strings.Cut(text, "failed to parse int from ")
	word, _, _ := strings.Cut(rest, ":")
	switch {
	case !ok:
		return text
	case word == "":
		return "a number is missing"
	}
	return fmt.Sprintf("%q is no number", word)
}

// Standard returns an expression in which Sunday is 0: 7, as many know it, is not known everywhere.
func Standard(expression string) string {
	fields := strings.Fields(expression)
	if len(fields) != 5 {
		return expression
	}
	days := strings.Split(fields[4], ",")
	for i, part := range days {
		days[i] = untilSunday(part)
	}
	fields[4] = strings.Join(days, ",")
	return strings.Join(fields, " ")
}

// untilSunday writes days of the week that end with 7 one by one.
func untilSunday(part string) string {
	days, step, stepped := strings.Cut(part, "/")
	first, last, several := strings.Cut(days, "-")
	if !several {
		last = first
	}
	if !stepped {
		step = "1"
	}
	from, err := strconv.Atoi(first)
	by, wrong := strconv.Atoi(step)
	if last != "7" || err != nil || wrong != nil || by < 1 {
		return part
	}
	var out []string
	for day := from; day <= 7; day += by {
		out = append(out, strconv.Itoa(day%7))
	}
	return strings.Join(out, ",")
}

// Zone returns a time zone of the database of the system; "" is UTC.
func Zone(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, errors.New("the zone Local differs from machine to machine: write a name as Europe/Berlin")
	}
	zone, err := time.LoadLocation(name)
	if err == nil {
		return zone, nil
	}
	if _, none := time.LoadLocation("Europe/London"); none != nil {
		return nil, fmt.Errorf("%q cannot be looked up: this system has no time zones; install tzdata, or use UTC", name)
	}
	return nil, fmt.Errorf("%q is no time zone: write a name as Europe/Berlin", name)
}

// everyHour is the bit of a field that is *.
const everyHour = 1 << 63

// Next returns the first time after another one, in UTC; zero if none is in the next years. Where clocks are changed, a schedule of
// every hour follows real time. Any other one has each local time once: one that occurs twice counts at its first occurrence, and one
// that is left out counts as late as it would be had the clock not been changed.
func (s *Schedule) Next(after time.Time) time.Time {
	if s.spec.Hour&everyHour != 0 {
		return s.spec.Next(after.In(s.zone)).UTC()
	}
	const mostSkipped = 3 * time.Hour // by a change of clocks
	for wall := wallOf(after.In(s.zone)).Add(-mostSkipped); ; {
		if wall = s.spec.Next(wall); wall.IsZero() {
			return wall
		}
		if at := s.at(wall); at.After(after) {
			return s.first(wall, at, after).UTC()
		}
	}
}

// first returns the first time after another one, where at is the time of what a clock shows. If the clock never shows that, at is in the
// minutes after the change, between other times that the clock shows in them.
func (s *Schedule) first(wall, at, after time.Time) time.Time {
	for shown := wallOf(at.In(s.zone)); !wall.IsZero() && wall.Before(shown); wall = s.spec.Next(wall) {
		if other := s.at(wall); other.After(after) && other.Before(at) {
			at = other
		}
	}
	return at
}

// wallOf is what a clock shows, as a time in UTC.
func wallOf(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// at is when a clock in the zone shows a time.
func (s *Schedule) at(wall time.Time) time.Time {
	is := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, s.zone)
	_, offset := is.Add(-24 * time.Hour).Zone()
	before := wall.Add(-time.Duration(offset) * time.Second).In(s.zone) // had the clock not been changed
	if wallOf(is).Equal(wall) && !wallOf(before).Equal(wall) {
		return is
	}
	return before
}

// Between returns the last times after one time and up to another one, in order, at most as many as most.
func (s *Schedule) Between(after, until time.Time, most int) []time.Time {
	for back := time.Minute; ; back *= 2 {
		from := until.Add(-back)
		if from.Before(after) {
			from = after
		}
		var out []time.Time
		for t := s.Next(from); !t.IsZero() && !t.After(until); t = s.Next(t) {
			out = append(out, t)
		}
		if n := len(out); n >= most || !from.After(after) {
			return out[max(n-most, 0):]
		}
	}
}
