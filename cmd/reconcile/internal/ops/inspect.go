package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/toolscan"
	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/schemas"
)

// InspectRequest requests an inspection of a project by its linters, formatters and type checkers.
type InspectRequest struct {
	CheckRequest
	Only   []checks.Category // categories; none: all but tests and deep analyses
	Deep   bool              // also deep analyses
	FailOn checks.Severity   // what is less severe does not fail; "": low
	Fix    bool              // run the commands that repair, before the checks
}

// Inspection is the result of an inspection.
type Inspection struct {
	Checked
	Findings   int                     `json:"findings"`
	BySeverity map[checks.Severity]int `json:"bySeverity"`
	Repairs    []checks.Repair         `json:"repairs,omitempty"` // how they ended, with Fix
}

// Inspect inspects a project: it discovers its tools, runs those that check files, and reads their findings. A check that did not run, or is
// not understood, is unknown.
func Inspect(ctx context.Context, env Env, q InspectRequest) (r *Inspection, err error) {
	defer func() { err = typed(err) }()
	p, err := env.openProject(ctx, &q.CheckRequest)
	if err != nil {
		return nil, err
	}
	r = &Inspection{Checked: Checked{Root: p.root, Session: p.session, At: env.Tree.Now().UTC(), Checks: []checks.Check{}}}
	if q.Last {
		return r, p.lastResult("inspect", r)
	}
	r.ChangedLines = p.lines
	start := time.Now()
	if len(q.Reports) > 0 {
		if err = p.accept(ctx); err == nil {
			r.Checks, err = p.readReports(q.Reports, checks.Linter, q.FailOn)
		}
	} else {
		err = p.inspect(ctx, q, r)
	}
	if err != nil {
		return nil, err
	}
	r.Seconds = time.Since(start).Seconds()
	if err := p.override(&r.Checked, q.FailOn); err != nil {
		return nil, err
	}
	p.sum(&r.Checked, &q.CheckRequest)
	r.BySeverity = map[checks.Severity]int{}
	for _, check := range r.Checks {
		for _, f := range check.Findings {
			r.Findings++
			r.BySeverity[f.Severity]++
		}
	}
	p.keepResult("inspect", r)
	return r, nil
}

// inspect runs the tools of the project.
func (p *project) inspect(ctx context.Context, q InspectRequest, r *Inspection) error {
	categories := q.Only
	if len(categories) == 0 {
		categories = []checks.Category{checks.Linter, checks.Formatter, checks.TypeChecker}
	}
	if q.Deep {
		categories = append(slices.Clone(categories), checks.Deep)
	}
	jobs, err := p.jobs(ctx, &q.CheckRequest, categories)
	if err != nil {
		return err
	}
	if r.Undecided, err = p.undecided(categories...); err != nil {
		return err
	}
	if len(q.Only)+len(q.Tools) == 0 {
		for _, f := range p.files {
			if p.checkable(f) && !slices.ContainsFunc(p.tools, func(t tools.Discovered) bool { return t.Concerns(f) }) {
				r.Unchecked = append(r.Unchecked, f)
			}
		}
	}
	c := p.checker(&q.CheckRequest, q.FailOn)
	if q.Fix {
		if r.Repairs, err = c.Fix(ctx, jobs); err != nil {
			return err
		}
	}
	if err := p.accept(ctx); err != nil {
		return err
	}
	if c.Files, err = p.projectFiles(); err != nil {
		return err
	}
	if r.Checks, err = c.Run(ctx, jobs); err != nil {
		return err
	}
	if err := c.Proofs.Save(); err != nil {
		p.env.warn(fmt.Sprintf("positive controls run again next time: %v", err))
	}
	return nil
}

// jobs discovers the tools of the project, and plans their checks.
func (p *project) jobs(ctx context.Context, q *CheckRequest, categories []checks.Category) ([]tools.Job, error) {
	found, err := p.discovery()
	if err != nil {
		return nil, err
	}
	if p.tools, err = chosen(found.Found, categories, q.Tools); err != nil {
		return nil, err
	}
	files, all := p.files, []string(nil)
	if files == nil {
		if all, err = p.allFiles(); err != nil {
			return nil, err
		}
		if len(p.scope) > 0 {
			files = slices.DeleteFunc(slices.Clone(all), func(f string) bool { return !p.inScope(f) })
		}
	}
	p.findScripts(slices.Concat(files, all))
	jobs := tools.Jobs(p.tools, files, all)
	if p.narrow {
		if jobs, err = p.uses(ctx, jobs); err != nil {
			return nil, err
		}
	}
	if err := p.trust(jobs, q.Trust); err != nil {
		return nil, err
	}
	return jobs, nil
}

// findScripts tells the tools which of some files are scripts that they check.
func (p *project) findScripts(files []string) {
	scripts := map[string][]string{}
	for _, f := range files {
		if l := toolscan.ScriptLanguage(p.root, f); l != "" {
			scripts[l] = append(scripts[l], f)
		}
	}
	for i := range p.tools {
		if t := &p.tools[i]; t.Role.Scripts {
			t.Scripts = scripts[t.Language]
		}
	}
}

// checkable reports whether there is a tool for the language of a file that changed.
func (p *project) checkable(file string) bool {
	return tools.Checkable(file) || toolscan.ScriptLanguage(p.root, file) != ""
}

// uses adds the checks that tell whether something that uses the files that changed, or are gone, still can.
func (p *project) uses(ctx context.Context, jobs []tools.Job) ([]tools.Job, error) {
	all, err := p.allFiles()
	if err != nil {
		return nil, err
	}
	c := tools.Change{Files: p.files, Removed: p.gone, All: all, Mention: func(of, among []string) []string {
		return checks.RelatedTests(of, among, nil, p.source).Files
	}}
	if changed := slices.Concat(p.files, p.gone); slices.ContainsFunc(p.tools, func(t tools.Discovered) bool {
		return t.Role.ByPackage() && slices.ContainsFunc(changed, t.Concerns)
	}) {
		if c.Folders, err = p.users(ctx, changed, 0); err != nil {
			return nil, err
		}
	}
	jobs, p.unjudged = tools.Uses(jobs, p.tools, c)
	return jobs, nil
}

// sum decides the outcome of all checks.
func (p *project) sum(r *Checked, q *CheckRequest) {
	r.Outcome = checks.Verdict(r.Checks, q.AllowUnknown)
	if p.narrow {
		n := len(p.files) + len(p.gone)
		r.Files, r.Unjudged = &n, p.unjudged
		if len(r.Checks) == 0 && !slices.ContainsFunc(p.files, p.checkable) && !slices.ContainsFunc(p.gone, p.unknown) {
			r.Outcome = checks.Passed // nothing changed that any tool checks
		}
		if r.seen = r.Outcome; r.seen == checks.Passed && len(r.Unchecked) > 0 && !slices.Contains(q.AllowUnknown, schemas.StepInspect) {
			r.Outcome = checks.Unknown
		}
	}
	r.sessionFirst()
	slices.SortStableFunc(r.Checks, func(a, b checks.Check) int { return outcomeOrder(a.Outcome) - outcomeOrder(b.Outcome) })
}

// unknown reports whether a removed file is in a language for which there are tools, and the project has none.
func (p *project) unknown(gone string) bool {
	return tools.Checkable(gone) && !slices.ContainsFunc(p.tools, func(t tools.Discovered) bool { return t.Concerns(gone) })
}

func outcomeOrder(o checks.Outcome) int {
	return slices.Index([]checks.Outcome{checks.Failed, checks.Unknown, checks.Passed}, o)
}

// Counted is the number of findings by their severity.
func (r *Inspection) Counted() string {
	var counts []string
	for _, s := range checks.Severities() {
		if n := r.BySeverity[s]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, s))
		}
	}
	if len(counts) == 0 {
		return "no findings"
	}
	return schemas.Count(r.Findings, "finding") + ": " + strings.Join(counts, ", ")
}
