package ops

import (
	"fmt"
	"slices"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/checks/formats"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/schemas"
)

// ReportText is the output of a program that the caller ran, such as a language server: a text in one of the formats of checks.
type ReportText struct {
	Format string
	Name   string // of the file, for messages
	Text   []byte
}

// readReports makes checks of a category of reports. The exit codes of their programs are unknown, so that one without
// findings, whose format does not show its end, is unknown.
func (p *project) readReports(all []ReportText, of checks.Category, failOn checks.Severity) (out []checks.Check, err error) {
	for _, r := range all {
		if !slices.Contains(formats.Names(), r.Format) {
			return nil, badRequest("there is no format %q%s", r.Format, schemas.DidYouMean(r.Format, formats.Names()))
		}
		var e checks.Ended
		if e.Report, err = formats.Read(r.Format, r.Text, formats.Options{Root: p.root, Tool: r.Format, Category: of}); err != nil {
			e.Unreadable = err.Error()
		}
		tests := of == checks.TestFramework
		switch has := len(e.Report.Tests)+len(e.Report.Broken) > 0; {
		case has && !tests, e.Report.Coverage != nil:
			return nil, badRequest("%s has tests or coverage, and no findings", r.Name)
		case tests && len(e.Report.Findings) > 0:
			return nil, badRequest("%s has findings, and no tests", r.Name)
		}
		j := tools.Job{Narrowed: p.narrow, Asked: p.files}
		if !p.narrow && len(p.scope) > 0 {
			j.Narrowed = true
			for _, f := range e.Report.Findings {
				if p.inScope(f.File) {
					j.Asked = append(j.Asked, f.File)
				}
			}
		}
		in, elsewhere := j.Scope(e.Report.Findings)
		e.Report.Findings = in
		checks.Identify(in)
		c := checks.Check{Tool: r.Format, Category: of, Findings: in, Tests: e.Report.Tests, Command: []string{"read", r.Name}}
		c.Outcome, c.Reason = checks.Judge(checks.Expected{Format: r.Format, Tests: tests, FailOn: failOn}, e)
		switch {
		case c.Outcome == checks.Passed && !tests && len(in)+len(elsewhere) == 0 && !formats.Ends(r.Format):
			c.Outcome, c.Reason = checks.Unknown, "this format does not show that the program came to its end"
		case c.Outcome == checks.Passed && len(elsewhere) > 0:
			c.Reason = fmt.Sprintf("%d findings in other files", len(elsewhere))
		}
		out = append(out, c)
	}
	return out, nil
}
