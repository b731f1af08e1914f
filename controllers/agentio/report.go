package agentio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
)

// structured is an object of this contract.
type structured struct {
	Reconcile     int             `json:"reconcile"`
	Result        json.RawMessage `json:"result"`
	Answer        string          `json:"answer"`
	Resolution    string          `json:"resolution"`
	Clarification *struct {
		To        string   `json:"to"`
		Topic     string   `json:"topic"`
		Question  string   `json:"question"`
		Blocking  *bool    `json:"blocking"` // default true
		Artifacts []string `json:"artifacts"`
	} `json:"clarification"`
	PlanChange   json.RawMessage            `json:"planChange"`
	Escalation   *escalation                `json:"escalation"`
	Status       string                     `json:"status"`
	Summary      string                     `json:"summary"`
	FilesChanged []string                   `json:"filesChanged"`
	Remaining    []string                   `json:"remaining"`
	Observations []schemas.ObservationEntry `json:"observations"`
	Progress     *float64                   `json:"progress"`
}

// failedError is the error of an agent that reports that it failed.
type failedError struct{ Summary string }

func (e *failedError) Error() string {
	if e.Summary == "" {
		return "the agent reports that it failed, without a summary"
	}
	return "the agent reports that it failed: " + e.Summary
}

// maxReported bounds the items of a list in a report, and maxObserved its observations.
const (
	maxReported = 1000
	maxObserved = 50
)

// readStructured reads an object of this contract (decision 26). Unknown fields are kept; a near miss of a known name is an
// error. A report of failure is a [*FailedError], in addition to the report.
func readStructured(value []byte) (Said, error) {
	unknown, err := unknownFields(value)
	if err != nil {
		return Said{}, err
	}
	var s structured
	if err := json.Unmarshal(value, &s); err != nil {
		return Said{}, fmt.Errorf("the structured output is not of version %d: %w; docs/agents.md lists the fields", version, schemas.PlainJSON(err))
	}
	said := Said{Result: s.Result, Answer: s.Answer, Resolution: shorten.Text(strings.TrimSpace(s.Resolution), AnswerLimit),
		Observed: s.Observations}
	if said.Report, err = s.report(unknown); err != nil {
		return Said{}, err
	}
	if err := checkObserved(s.Observations); err != nil {
		return Said{}, err
	}
	if said.PlanChange, err = proposal(s.Escalation, s.PlanChange, s.Clarification != nil); err != nil {
		return Said{}, err
	}
	said.Escalates = s.Escalation != nil
	c := s.Clarification
	switch {
	case c != nil:
		said.Ask = &schemas.Ask{To: c.To, Topic: c.Topic, Question: c.Question, Artifacts: c.Artifacts,
			Blocking: c.Blocking == nil || *c.Blocking}
		return said, checkAsk(said.Ask)
	case said.Escalates:
	case s.Status == schemas.ReportAsks:
		return said, errors.New(`status is needs_clarification, and there is no question: add "clarification": {"to", "topic", "question"}`)
	case s.Status == schemas.ReportFailed:
		return said, &failedError{Summary: said.Report.Summary}
	}
	return said, nil
}

// report returns the report in the output; nil for none.
func (s *structured) report(unknown json.RawMessage) (*schemas.AgentReport, error) {
	states := []string{schemas.ReportDone, schemas.ReportFailed, schemas.ReportAsks, schemas.ReportHandoff}
	switch {
	case s.Status != "" && !slices.Contains(states, s.Status):
		return nil, fmt.Errorf("status %q is unknown: it is one of %s", shorten.Text(s.Status, 100), strings.Join(states, ", "))
	case len(s.FilesChanged) > maxReported || len(s.Remaining) > maxReported:
		return nil, fmt.Errorf("filesChanged and remaining have at most %d items", maxReported)
	case s.Progress != nil && (*s.Progress < 0 || *s.Progress > 100):
		return nil, fmt.Errorf("progress %v is no share in percent, 0 to 100", *s.Progress)
	}
	r := schemas.AgentReport{Status: s.Status, Summary: shorten.Text(strings.TrimSpace(s.Summary), AnswerLimit),
		FilesChanged: s.FilesChanged, Remaining: shortItems(s.Remaining), Progress: s.Progress, Unknown: unknown}
	if reflect.ValueOf(r).IsZero() {
		return nil, nil
	}
	return &r, nil
}

// shortItems shortens each item to one that fits into a prompt.
func shortItems(items []string) []string {
	out := slices.Clone(items)
	for i := range out {
		out[i] = shorten.Text(oneLine(out[i]), AnswerLimit)
	}
	return out
}

// checkObserved checks the observations by the rules of an Observation's entries.
func checkObserved(entries []schemas.ObservationEntry) error {
	if len(entries) > maxObserved {
		return fmt.Errorf("there are %d observations, at most %d are taken", len(entries), maxObserved)
	}
	if len(entries) == 0 {
		return nil
	}
	spec := schemas.ObservationSpec{Agent: "agent", Entries: entries}
	var r schemas.Report
	spec.Check(&r)
	for _, f := range r.Findings() {
		if f.Severity == schemas.Error {
			return fmt.Errorf("an observation is not taken: %v: %s", f.Field, f.Message)
		}
	}
	for i, e := range entries {
		if !slices.Contains(schemas.Categories(), e.Category) {
			return fmt.Errorf("observations[%d]: category %q is unknown: it is one of %s", i, shorten.Text(e.Category, 100),
				strings.Join(schemas.Categories(), ", "))
		}
		if strings.TrimSpace(e.Content) == "" {
			return fmt.Errorf("observations[%d] has no content", i)
		}
		if err := checkLength("the content of an observation", e.Content, AnswerLimit); err != nil {
			return err
		}
	}
	return nil
}

// unknownFields returns the fields of an object that this version does not know, as an object; nil for none. It is an error
// if one is nearly a known name.
func unknownFields(value []byte) (json.RawMessage, error) {
	known := fieldNames(reflect.TypeFor[structured]())
	var fields map[string]json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(value)).Decode(&fields); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if slices.Contains(known, name) {
			delete(fields, name)
		} else if near := schemas.GuessWord(name, known); near != "" {
			return nil, fmt.Errorf("the structured output has an unknown field %q: did you mean %q?", shorten.Text(name, 100), near)
		}
	}
	if len(fields) == 0 {
		return nil, nil
	}
	return schemas.Marshal(fields)
}

func fieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return names
}
