package checks

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
)

// reviewed is the category of an agent's opinion about a change. No tool has this category.
const reviewed Category = "review"

// byAgent begins the names of agents among those of tools.
const byAgent = "agent/"

// OpinionSchema is the JSON Schema of an opinion.
const OpinionSchema = `{"type":"object","required":["findings"],"properties":{"summary":{"type":"string"},"findings":{"type":"array","items":` +
	`{"type":"object","required":["file","severity","message"],"properties":{"file":{"type":"string"},"line":{"type":"integer","minimum":0},` +
	`"severity":{"enum":["critical","high","medium","low","info"]},"category":{"type":"string"},"message":{"type":"string","minLength":1},` +
	`"suggestion":{"type":"string"}}}}}}`

// opinion is an agent's verdict about a change that it reviewed.
type opinion struct {
	Findings []concern `json:"findings"`
	Summary  string    `json:"summary"`
}

// concern is a finding of an agent.
type concern struct {
	File       string   `json:"file"` // with slashes, below the root; "" for the whole change
	Line       int      `json:"line"` // from 1; 0 for the whole file
	Severity   Severity `json:"severity"`
	Category   string   `json:"category"` // in words of the agent
	Message    string   `json:"message"`
	Suggestion string   `json:"suggestion"`
}

// readOpinion reads the result of an agent's run: an object that keeps the schema, or a text that is one, alone or between the marks of a
// block of code. The error says why the result is not an opinion.
func readOpinion(result json.RawMessage) (*opinion, error) {
	var o opinion
	if err := readAnswer(result, OpinionSchema, &o); err != nil {
		return nil, err
	}
	return &o, nil
}

// readAnswer reads what an agent answered into v; it has to keep a JSON Schema.
func readAnswer(result json.RawMessage, schema string, v any) error {
	raw, err := objectIn(result)
	if err != nil {
		return err
	}
	if err := schemas.CheckResult([]byte(schema), raw); err != nil {
		return errors.New(strings.Replace(err.Error(), "outputs.schema", "the form that was asked for", 1))
	}
	return json.Unmarshal(raw, v)
}

// objectIn is the JSON object that a result is, or that its text is.
func objectIn(result json.RawMessage) ([]byte, error) {
	var text string
	if json.Unmarshal(result, &text) != nil {
		return result, nil
	}
	text = strings.TrimSpace(text)
	if start, end := strings.Index(text, "```"), strings.LastIndex(text, "```"); start >= 0 && end > start && !strings.HasPrefix(text, "{") {
		text = strings.TrimSpace(strings.TrimPrefix(text[start+3:end], "json")) // models like to put it there
	}
	switch {
	case text == "":
		return nil, errors.New("the answer is empty")
	case json.Valid([]byte(text)):
		return []byte(text), nil
	}
	return nil, fmt.Errorf("the answer is no JSON object: %s", shorten.Text(text, 200))
}

// EvidenceOfReview is the evidence of the review by an agent, from the result of its run. A finding counts from failOn on. place returns
// the name of a file in the tree and how many lines it has, and false for one that is not there: findings about such places are left out,
// and where all are, or one that would count is, nothing is known that would let the change through.
func EvidenceOfReview(agent string, result json.RawMessage, failOn Severity, place func(file string) (name string, lines int, there bool)) *Evidence {
	c := Check{Tool: byAgent + agent, Category: reviewed, Outcome: Passed}
	o, err := readOpinion(result)
	if err != nil {
		c.Outcome, c.Reason = Unknown, err.Error()
		return Evident([]Check{c}, c.Outcome, nil, nil)
	}
	c.Output = o.Summary
	lost := false // a finding that would count
	for _, f := range o.Findings {
		counts := f.Severity.AtLeast(cmp.Or(failOn, Low))
		n, there := 0, true
		if f.File != "" {
			f.File, n, there = place(path.Clean(f.File))
		}
		if !there || f.Line > n {
			lost = lost || counts
			continue
		}
		c.Findings = append(c.Findings, Finding{File: f.File, Range: Range{Line: f.Line}, Category: reviewed, Severity: f.Severity,
			Message: f.Message, Suggestion: f.Suggestion, Tool: c.Tool, Rule: f.Category})
		if counts {
			c.Outcome = Failed
		}
	}
	if gone := len(o.Findings) - len(c.Findings); gone > 0 {
		c.Reason = schemas.Count(gone, "finding") + " left out: in no place that the commit has"
		if len(c.Findings) == 0 || lost && c.Outcome == Passed {
			c.Outcome = Unknown
		}
	}
	Identify(c.Findings)
	return Evident([]Check{c}, c.Outcome, nil, nil)
}

// Before lists the findings in an earlier version of a change, in lines, each with whether e still contains it. Only tools repeat a finding exactly.
func (e *Evidence) Before(earlier *Evidence) string {
	var b strings.Builder
	for _, f := range earlier.Findings {
		state := "mended"
		switch {
		case f.Category == reviewed:
			state = "look whether it is mended"
		case slices.ContainsFunc(e.Findings, func(is Finding) bool { return is.ID == f.ID }):
			state = "still there"
		}
		fmt.Fprintf(&b, "%s: %s: %s (%s; %s)\n", f.Place(), f.Severity, f.Message, f.Tool, state)
	}
	for _, t := range earlier.Failures {
		fmt.Fprintf(&b, "test %s failed: %s\n", t.Name, t.Message)
	}
	return b.String()
}

// AcceptedText is what people accepted, in lines.
func (e *Evidence) AcceptedText() string {
	var b strings.Builder
	for _, o := range e.Overridden {
		fmt.Fprintf(&b, "accepted by %s: %s (%s)\n", o.By, strings.TrimSpace(strings.Join([]string{o.Tool, o.Rule, o.Test, o.Message}, " ")), o.Reason)
	}
	return b.String()
}
