package formats

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/controllers/checks"
)

// The part of SARIF 2.1.0 that is read and written (docs.oasis-open.org/sarif/sarif/v2.1.0).
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		ColumnKind         string                   `json:"columnKind,omitempty"`
		OriginalURIBaseIDs map[string]sarifArtifact `json:"originalUriBaseIds,omitempty"`
		Artifacts          []struct {
			Location sarifArtifact `json:"location"`
		} `json:"artifacts,omitempty"`
		Invocations []struct {
			ExecutionSuccessful *bool `json:"executionSuccessful"`
		} `json:"invocations,omitempty"`
		Results []sarifResult `json:"results"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID                   string `json:"id"`
		HelpURI              string `json:"helpUri,omitempty"`
		DefaultConfiguration struct {
			Level string `json:"level"`
		} `json:"defaultConfiguration,omitzero"`
		ShortDescription sarifText `json:"shortDescription,omitzero"`
		Properties       struct {
			SecuritySeverity string `json:"security-severity"`
		} `json:"properties,omitzero"`
	}
	sarifResult struct {
		RuleID    string `json:"ruleId"`
		RuleIndex *int   `json:"ruleIndex,omitempty"`
		Rule      struct {
			ID string `json:"id"`
		} `json:"rule,omitzero"`
		Level      string          `json:"level"`
		Kind       string          `json:"kind,omitempty"`
		Message    sarifText       `json:"message"`
		Locations  []sarifLocation `json:"locations,omitempty"`
		Related    []sarifLocation `json:"relatedLocations,omitempty"`
		Fixes      []sarifFix      `json:"fixes,omitempty"`
		Properties struct {        // other tools put what they like there
			ID       any `json:"id,omitempty"`
			Severity any `json:"severity,omitempty"`
		} `json:"properties,omitzero"`
		Suppressions []struct {
			Status string `json:"status"`
		} `json:"suppressions,omitempty"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		ID       int `json:"id,omitempty"`
		Physical struct {
			Artifact sarifArtifact `json:"artifactLocation"`
			Region   sarifRegion   `json:"region,omitzero"`
		} `json:"physicalLocation"`
		Message sarifText `json:"message,omitzero"`
	}
	sarifArtifact struct {
		URI       string `json:"uri"`
		URIBaseID string `json:"uriBaseId,omitempty"`
		Index     *int   `json:"index,omitempty"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
		EndLine     int `json:"endLine,omitempty"`
		EndColumn   int `json:"endColumn,omitempty"`
	}
	sarifFix struct {
		Description sarifText     `json:"description,omitzero"`
		Changes     []sarifChange `json:"artifactChanges"`
	}
	sarifChange struct {
		Artifact     sarifArtifact      `json:"artifactLocation"`
		Replacements []sarifReplacement `json:"replacements"`
	}
	sarifReplacement struct {
		Deleted  sarifRegion `json:"deletedRegion"`
		Inserted sarifText   `json:"insertedContent"`
	}
)

func (r sarifRegion) rangeOf() checks.Range {
	end := r.EndLine
	if end == 0 && r.EndColumn > 0 {
		end = r.StartLine // the standard's default
	}
	return checks.Range{Line: r.StartLine, Column: r.StartColumn, EndLine: end, EndColumn: r.EndColumn}
}

// readSARIF reads the results of all runs, but for suppressed ones and those that are no problem (kind pass, notApplicable, open or informational
// are Info). It is complete when each run was a scan, which has results even if it found none, and succeeded.
func readSARIF(data []byte, o Options) (checks.Report, error) {
	var in sarifLog
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

func (run *sarifRun) finding(in sarifResult, o Options) (f checks.Finding, ok bool) {
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
	own, _ := in.Properties.Severity.(string)
	if s := checks.Severity(own); slices.Contains(checks.Severities(), s) { // as WriteSARIF writes it
		f.Severity = s
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

func (run *sarifRun) rule(in sarifResult) sarifRule {
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
	return sarifRule{ID: id}
}

// uri resolves the place of an artifact by the bases of the run.
func (run *sarifRun) uri(p sarifArtifact) string {
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
	if p, err := url.PathUnescape(uri); err == nil && !strings.Contains(uri, "://") {
		return p
	}
	return uri
}
