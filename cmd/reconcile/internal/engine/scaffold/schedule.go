package scaffold

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/cron"
)

// words are the expressions that GitHub does not know by name.
var words = map[string]string{"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *"}

// hourly is the line of the workflow that schedules follow.
const hourly = `    - cron: "17 * * * *"`

// Scheduled adds the times of the schedules of a tree, by DAG, to the workflow that reconciles. GitHub's times are UTC. A schedule in
// another time zone has all times of day in UTC that it gets in the year from now on, on every day: the program runs only due DAGs.
func Scheduled(files []File, schedules map[string]schemas.Schedules, now time.Time) {
	var lines []string
	for dag, all := range schedules {
		for _, s := range all {
			for _, expression := range inUTC(s, now) {
				lines = append(lines, fmt.Sprintf("    - cron: %q # dag/%s", expression, dag))
			}
		}
	}
	if len(lines) == 0 {
		return
	}
	slices.Sort(lines)
	for i := range files {
		before, after, ok := bytes.Cut(files[i].Data, []byte(hourly))
		if !ok {
			continue
		}
		rest, tail, _ := bytes.Cut(after, []byte("\n"))
		files[i].Data = slices.Concat(before, []byte(hourly), rest, []byte("\n"),
			[]byte("    # The schedules of DAGs, in UTC. Those in other time zones are here with all times that they have in a year, on\n"+
				"    # every day: a run does only what is due. GitHub may start late, and not more often than every five minutes.\n"),
			[]byte(strings.Join(lines, "\n")+"\n"), tail)
	}
}

// inUTC are expressions in UTC that have all times of a schedule in the year from now on.
func inUTC(s schemas.Schedule, now time.Time) []string {
	if s.TimeZone == "" || s.TimeZone == "UTC" {
		if is := words[s.Cron]; is != "" {
			return []string{is}
		}
		return []string{strings.ReplaceAll(cron.Standard(s.Cron), "?", "*")}
	}
	times, err := cron.Parse(s.Cron, s.TimeZone)
	if err != nil {
		return nil // validate says why
	}
	const year = 366 * 24 * time.Hour
	var minutes [24][60]bool
	until := now.Add(year)
	for at := times.Next(now); !at.IsZero() && at.Before(until); at = times.Next(at) {
		minutes[at.Hour()][at.Minute()] = true
	}
	hours := map[[60]bool][]string{} // with the same minutes
	for h := range minutes {
		if minutes[h] != ([60]bool{}) {
			hours[minutes[h]] = append(hours[minutes[h]], strconv.Itoa(h))
		}
	}
	var out []string
	for at, h := range hours {
		var m []string
		for minute, is := range at {
			if is {
				m = append(m, strconv.Itoa(minute))
			}
		}
		out = append(out, strings.Join(m, ",")+" "+strings.Join(h, ",")+" * * *")
	}
	slices.Sort(out)
	return out
}
