package schemas

import (
	"bytes"
	"encoding/json"

	"reconcile.dev/reconcile/schemas/cron"
)

// Schedule says when a DAG runs.
type Schedule struct {
	// Cron has five fields, minute, hour, day of month, month and day of week, or is a word as @daily.
	Cron string `json:"cron" jsonschema:"minLength=1,maxLength=200,example=30 2 * * 1-5"`
	// TimeZone is the time zone of cron, by its name in the IANA database. Default UTC.
	TimeZone string `json:"timeZone,omitempty" jsonschema:"maxLength=100,example=Europe/Berlin"`
	// Missed says what becomes of times at which nothing could start the DAG: skip them, make up for them by one run, or run for all of
	// them, one after the other, at most the last 100. Default one.
	Missed string `json:"missed,omitempty" jsonschema:"enum=skip,enum=one,enum=all,default=one"`
}

// Values of Schedule.Missed.
const (
	MissedSkip = "skip"
	MissedOne  = "one"
	MissedAll  = "all"
)

// MostMissed bounds the missed times that are made up for.
const MostMissed = 100

// Schedules are one schedule or several. One may be written without a list.
type Schedules []Schedule

// UnmarshalJSON decodes a list of schedules, or one.
func (s *Schedules) UnmarshalJSON(b []byte) error {
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '{' {
		*s = make(Schedules, 1)
		return json.Unmarshal(b, &(*s)[0])
	}
	return json.Unmarshal(b, (*[]Schedule)(s))
}

// ScheduleStatus is how far the schedule of a DAG is.
type ScheduleStatus struct {
	// Of is a digest of the schedule. Another schedule begins with the time at which it is seen first.
	Of string `json:"of"`
	// Since is the latest time of the schedule that a run is for; before the first, when the schedule was seen first.
	Since Time `json:"since"`
	// Due is the time of the schedule that has come and has no run yet, Next the one that will come next.
	Due  Time `json:"due,omitzero"`
	Next Time `json:"next,omitzero"`
	// Waits says that the nodes wait for the next time: no run is under way.
	Waits bool `json:"waits,omitempty"`
}

func (s Schedules) check(r *Report) {
	for i := range s {
		if _, err := cron.Parse(s[i].Cron, s[i].TimeZone); err != nil {
			field := "cron"
			if _, zone := cron.Zone(s[i].TimeZone); zone != nil {
				field = "timeZone"
			}
			r.At("schedule", i, field).Errorf("bad-schedule", "%v", err)
		}
	}
}
