package checks

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Override is what a person decided to accept.
type Override struct {
	Action  string    `json:"action"` // the object that says so
	By      string    `json:"by,omitempty"`
	Proof   string    `json:"proof,omitempty"`
	Reason  string    `json:"reason"`
	At      time.Time `json:"at"`
	Finding string    `json:"finding,omitempty"`
	Test    string    `json:"test,omitempty"`
	Suite   string    `json:"suite,omitempty"`
	NoTests bool      `json:"noTests,omitempty"`
	Tool    string    `json:"tool,omitempty"`
	Rule    string    `json:"rule,omitempty"`
	Message string    `json:"message,omitempty"`
	Covers  []string  `json:"covers,omitempty"`
	Digest  string    `json:"-"`
	// Void says why it does not hold; "" if it does.
	Void string `json:"void,omitempty"`
}

// accepts reports whether an override is about a finding.
func (o *Override) accepts(f Finding) bool { return o.Finding != "" && o.Finding == f.ID }

// acceptsTest reports whether an override is about a failed test.
func (o *Override) acceptsTest(c Check, t Test) bool {
	return o.Test != "" && o.Test == t.Name && o.Suite == t.Suite && (o.Tool == "" || o.Tool == c.Tool)
}

// Apply removes overridden findings from checks, and decides these again: a failed check passes if all its remaining
// findings are less severe than failOn. It returns the overrides that are about something here, with those that do not hold
// any more. digest is that of the files that an override covers, as they are.
func Apply(all []Check, overrides []Override, failOn Severity, digest func(covers []string) (string, error)) ([]Override, error) {
	var used []Override
	for i := range overrides {
		o := overrides[i]
		about := false
		for k := range all {
			c := &all[k]
			about = about || slices.ContainsFunc(c.Findings, o.accepts) ||
				slices.ContainsFunc(c.Tests, func(t Test) bool { return t.Outcome == TestFailed && o.acceptsTest(*c, t) })
		}
		if !about {
			continue
		}
		now, err := digest(o.Covers)
		if err != nil {
			return nil, err
		}
		if now != o.Digest {
			o.Void = "what it covers has changed since"
		}
		used = append(used, o)
		if o.Void == "" {
			for k := range all {
				all[k].drop(o, failOn)
			}
		}
	}
	return used, nil
}

// drop takes what an override accepts out of a check.
func (c *Check) drop(o Override, failOn Severity) {
	n := len(c.Findings)
	c.Findings = slices.DeleteFunc(c.Findings, o.accepts)
	n -= len(c.Findings)
	for i := range c.Tests {
		if t := &c.Tests[i]; t.Outcome == TestFailed && o.acceptsTest(*c, *t) {
			t.Outcome, t.Message = TestSkipped, "accepted by "+o.Action+": "+o.Reason
			n++
		}
	}
	if n == 0 || c.Outcome != Failed || c.Reason != "" {
		return
	}
	bad := slices.ContainsFunc(c.Findings, func(f Finding) bool { return f.Severity.AtLeast(cmp.Or(failOn, Low)) })
	if counts := Count(c.Tests); !bad && counts.Failed == 0 && (c.Category != TestFramework || counts.Run > 0) {
		c.Outcome, c.Reason = Passed, fmt.Sprintf("but for %d that people accepted", n)
	}
}
