package formats

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/controllers/checks"
)

// The part of SARIF 2.1.0 that is read (docs.oasis-open.org/sarif/sarif/v2.1.0).
type (
	sarifIn struct {
		Version string       `json:"version"`
		Runs    []sarifRunIn `json:"runs"`
	}
	sarifRunIn struct {
		Tool struct {
			Driver struct {
				Name  string        `json:"name"`
				Rules []sarifRuleIn `json:"rules"`
			} `json:"driver"`
		} `json:"tool"`
		OriginalURIBaseIDs map[string]struct {
			URI string `json:"uri"`
		} `json:"originalUriBaseIds"`
		Artifacts []struct {
			Location sarifPlaceIn `json:"location"`
		} `json:"artifacts"`
		Invocations []struct {
			ExecutionSuccessful *bool `json:"executionSuccessful"`
		} `json:"invocations"`
		Results []sarifResultIn `json:"results"`
	}
	sarifRuleIn struct {
		ID                   string `json:"id"`
		HelpURI              string `json:"helpUri"`
		DefaultConfiguration struct {
			Level string `json:"level"`
		} `json:"defaultConfiguration"`
		ShortDescription sarifTextIn `json:"shortDescription"`
		Properties       struct {
			SecuritySeverity string `json:"security-severity"`
		} `json:"properties"`
	}
	sarifTextIn   struct{ Text string }
	sarifResultIn struct {
		RuleID    string              `json:"ruleId"`
		RuleIndex *int                `json:"ruleIndex"`
		Rule      struct{ ID string } `json:"rule"`
		Level     string              `json:"level"`
		Kind      string              `json:"kind"`
		Message   sarifTextIn         `json:"message"`
		Locations []struct {
			Physical struct {
				Artifact sarifPlaceIn  `json:"artifactLocation"`
				Region   sarifRegionIn `json:"region"`
			} `json:"physicalLocation"`
		} `json:"locations"`
		Properties struct {
			Severity checks.Severity `json:"severity"`
		} `json:"properties"`
		Suppressions []struct {
			Status string `json:"status"`
		} `json:"suppressions"`
		Fixes []struct {
			Description sarifTextIn `json:"description"`
			Changes     []struct {
				Artifact     sarifPlaceIn `json:"artifactLocation"`
				Replacements []struct {
					Deleted  sarifRegionIn `json:"deletedRegion"`
					Inserted sarifTextIn   `json:"insertedContent"`
				} `json:"replacements"`
			} `json:"artifactChanges"`
		} `json:"fixes"`
	}
	sarifPlaceIn struct {
		URI       string `json:"uri"`
		URIBaseID string `json:"uriBaseId"`
		Index     *int   `json:"index"`
	}
	sarifRegionIn struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn"`
		EndLine     int `json:"endLine"`
		EndColumn   int `json:"endColumn"`
	}
)

func (r sarifRegionIn) rangeOf() checks.Range {
	end := r.EndLine
	if end == 0 && r.EndColumn > 0 {
		end = r.StartLine // the standard's default
	}
	return checks.Range{Line: r.StartLine, Column: r.StartColumn, EndLine: end, EndColumn: r.EndColumn}
}

// readSARIF reads the results of all runs, but for suppressed ones and those that are no problem (kind pass, notApplicable, open or informational
// are Info). It is complete when each run was a scan, which has results even if it found none, and succeeded.
func readSARIF(data []byte, o Options) (checks.Report, error) {
	var in sarifIn
	if err := oneDocument(data, &in); err != nil {
		return checks.Report{}, err
	}
	switch {
	case len(in.Runs) == 0:
		return checks.Report{}, errors.New("it has no runs")
	case in.Version != "2.1.0":
		return checks.Report{}, fmt.Errorf("its version is %.20q, not 2.1.0", in.Version)
	}
	r := checks.Report{Files: -1, Complete: true}
	for _, run := range in.Runs {
		scanned := run.Results != nil
		for _, i := range run.Invocations {
			scanned = scanned || i.ExecutionSuccessful != nil && *i.ExecutionSuccessful // staticcheck has no results then
			if i.ExecutionSuccessful != nil && !*i.ExecutionSuccessful {
				if len(run.Results) == 0 {
					return checks.Report{}, errors.New("the tool says that it did not succeed")
				}
				r.Complete = false
			}
		}
		r.Complete = r.Complete && scanned
		for _, result := range run.Results {
			if f, ok := run.finding(result, o); ok {
				r.Findings = append(r.Findings, f)
			}
		}
	}
	return r, nil
}

func (run *sarifRunIn) finding(in sarifResultIn, o Options) (f checks.Finding, ok bool) {
	for _, s := range in.Suppressions {
		if s.Status == "" || s.Status == "accepted" {
			return f, false
		}
	}
	rule := run.rule(in)
	f = checks.Finding{Rule: rule.ID, URL: rule.HelpURI, Message: in.Message.Text}
	if f.Message == "" {
		f.Message = rule.ShortDescription.Text
	}
	level := in.Level
	if level == "" {
		level = rule.DefaultConfiguration.Level
	}
	switch {
	case in.Kind == "pass" || in.Kind == "notApplicable":
		return f, false
	case in.Kind == "informational" || in.Kind == "open":
		f.Severity = checks.Info
	case level == "none":
		f.Severity = checks.Info
	default:
		f.Severity = severityOf(level) // the default level is warning
	}
	if n, err := strconv.ParseFloat(rule.Properties.SecuritySeverity, 64); err == nil {
		f.Severity = bySecurity(n)
	}
	if own := in.Properties.Severity; slices.Contains(checks.Severities(), own) { // as WriteSARIF writes it
		f.Severity = own
	}
	if len(in.Locations) > 0 {
		at := in.Locations[0].Physical
		f.File, f.Range = o.file(run.uri(at.Artifact)), at.Region.rangeOf()
	}
	for _, fix := range in.Fixes {
		f.Suggestion = fix.Description.Text
		for _, c := range fix.Changes {
			if o.file(run.uri(c.Artifact)) != f.File {
				continue
			}
			for _, e := range c.Replacements {
				f.Fixes = append(f.Fixes, checks.Edit{Range: e.Deleted.rangeOf(), Text: e.Inserted.Text})
			}
		}
		break // the first one
	}
	return f, true
}

// bySecurity is the severity of a CVSS score, as GitHub reads the property security-severity.
func bySecurity(score float64) checks.Severity {
	switch {
	case score >= 9:
		return checks.Critical
	case score >= 7:
		return checks.High
	case score >= 4:
		return checks.Medium
	}
	return checks.Low
}

func (run *sarifRunIn) rule(in sarifResultIn) sarifRuleIn {
	id := in.RuleID
	if id == "" {
		id = in.Rule.ID
	}
	rules := run.Tool.Driver.Rules
	if i := in.RuleIndex; i != nil && *i >= 0 && *i < len(rules) {
		if r := rules[*i]; id == "" || id == r.ID || strings.HasPrefix(id, r.ID+"/") { // else it is a rule of an extension
			return r
		}
	}
	for _, r := range rules {
		if r.ID == id {
			return r
		}
	}
	return sarifRuleIn{ID: id}
}

// uri resolves the place of an artifact by the bases of the run.
func (run *sarifRunIn) uri(p sarifPlaceIn) string {
	if p.URI == "" && p.Index != nil && *p.Index >= 0 && *p.Index < len(run.Artifacts) {
		p = run.Artifacts[*p.Index].Location
	}
	base := run.OriginalURIBaseIDs[p.URIBaseID].URI
	if base == "" || strings.Contains(p.URI, "://") || path.IsAbs(p.URI) {
		return unescape(p.URI)
	}
	return unescape(strings.TrimSuffix(base, "/") + "/" + p.URI)
}

// unescape decodes the percent signs of a relative reference; one with a scheme is decoded with it.
func unescape(uri string) string {
	if strings.Contains(uri, "://") || !strings.Contains(uri, "%") {
		return uri
	}
	var b strings.Builder
	for i := 0; i < len(uri); i++ {
		if uri[i] == '%' && i+2 < len(uri) {
			var c byte
			if _, err := fmt.Sscanf(uri[i+1:i+3], "%02x", &c); err == nil {
				b.WriteByte(c)
				i += 2
				continue
			}
		}
		b.WriteByte(uri[i])
	}
	return b.String()
}
