package ops

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/checking"
	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/vectors/graph"
)

// TestRequest requests a run of a project's tests.
type TestRequest struct {
	CheckRequest
	NoRun    bool     // run no test, since a person decided so
	Related  []string // only the tests that are related to these files, relative to Dir
	Coverage bool     // measure which lines the tests run
	Diagnose bool     // find out what each failed test is a sign of
}

// Testing is the result of a run of tests.
type Testing struct {
	Checked
	Counts    checks.Counts      `json:"counts"`
	Diagnoses []checks.Diagnosis `json:"diagnoses,omitempty"`
	// Undiagnosed is the number of failed tests beyond those that were diagnosed.
	Undiagnosed int              `json:"undiagnosed,omitempty"`
	Chosen      *checks.Selected `json:"chosen,omitempty"` // the related tests; nil: all
}

// Test runs the tests of a project: it discovers its test frameworks, runs them, and reads their reports. A run without a test is unknown.
func Test(ctx context.Context, env Env, q TestRequest) (r *Testing, err error) {
	defer func() { err = typed(err) }()
	if q.Session != "" && len(q.Related) > 0 {
		return nil, badRequest("for a session everything is checked; leave out --related")
	}
	p, err := env.openProject(ctx, &q.CheckRequest)
	if err != nil {
		return nil, err
	}
	r = &Testing{Checked: Checked{Root: p.root, Session: p.session, At: env.Tree.Now().UTC(), Checks: []checks.Check{}}}
	if q.Last {
		return r, p.lastResult("test", r)
	}
	if q.NoRun {
		return r, p.skipTests(ctx, r)
	}
	r.ChangedLines = p.lines
	start := time.Now()
	if len(q.Reports) > 0 {
		if err := p.accept(ctx); err != nil {
			return nil, err
		}
		if r.Checks, err = p.readReports(q.Reports, checks.TestFramework, ""); err != nil {
			return nil, err
		}
		r.count()
	} else if err := p.test(ctx, q, r); err != nil {
		return nil, err
	}
	r.Seconds = time.Since(start).Seconds()
	if err := p.override(&r.Checked, ""); err != nil {
		return nil, err
	}
	p.sum(&r.Checked, &q.CheckRequest)
	p.keepResult("test", r)
	return r, nil
}

// count counts the tests of the checks.
func (r *Testing) count() {
	for _, check := range r.Checks {
		r.Counts = r.Counts.Plus(checks.Count(check.Tests))
	}
}

// test runs the tests of the project.
func (p *project) test(ctx context.Context, q TestRequest, r *Testing) error {
	if err := p.relate(q.Related); err != nil {
		return err
	}
	p.files, p.gone = append(p.files, p.gone...), nil // what used them has tests, too
	changed := p.files
	jobs, selected, err := p.testJobs(ctx, &q.CheckRequest)
	if err != nil {
		return err
	}
	if r.Undecided, err = p.undecided(checks.TestFramework); err != nil {
		return err
	}
	var against checking.Diagnosing
	if q.Diagnose {
		if against, err = p.diagnosing(ctx, &q, changed); err != nil {
			return err
		}
	}
	if err := p.accept(ctx); err != nil {
		return err
	}
	c := p.checker(&q.CheckRequest, "")
	c.Coverage = q.Coverage
	if c.Files, err = p.projectFiles(); err != nil {
		return err
	}
	if r.Checks, err = c.Run(ctx, jobs); err != nil {
		return err
	}
	r.Chosen = selected
	r.count()
	if q.Diagnose && r.Counts.Failed > 0 {
		return p.diagnose(ctx, c, against, jobs, r)
	}
	return nil
}

// skipTests makes a result without tests. It is unknown, unless a person decided for the files as they are that no test runs.
func (p *project) skipTests(ctx context.Context, r *Testing) error {
	all, err := p.overrides(ctx)
	if err != nil {
		return err
	}
	r.Outcome = checks.Unknown
	for _, o := range all {
		if !o.NoTests {
			continue
		}
		now, err := p.digest(o.Covers)
		if err != nil {
			return err
		}
		if now != o.Digest {
			o.Void = "the files have changed since"
		} else {
			r.Outcome = checks.Passed
		}
		r.Overridden = append(r.Overridden, o)
	}
	p.keepResult("test", r)
	return nil
}

// relate makes files the ones whose tests are asked for.
func (p *project) relate(files []string) error {
	for _, given := range files {
		rel, err := p.below(given)
		if err != nil {
			return err
		}
		p.files, p.narrow = append(p.files, rel), true
	}
	return nil
}

// testJobs plans the runs of tests: of all, or of those that are related to the files of the project.
func (p *project) testJobs(ctx context.Context, q *CheckRequest) ([]tools.Job, *checks.Selected, error) {
	if p.files == nil && len(p.scope) == 0 {
		jobs, err := p.jobs(ctx, q, []checks.Category{checks.TestFramework})
		return jobs, nil, err
	}
	found, err := p.discovery()
	if err != nil {
		return nil, nil, err
	}
	if p.tools, err = chosen(found.Found, []checks.Category{checks.TestFramework}, q.Tools); err != nil {
		return nil, nil, err
	}
	all, err := p.allFiles()
	if err != nil {
		return nil, nil, err
	}
	s := &checks.Selected{}
	if p.files == nil {
		for _, f := range all {
			if p.inScope(f) && slices.ContainsFunc(p.tools, func(t tools.Discovered) bool { return t.Role.IsTest(f) && t.Holds(f) }) {
				s.Files = append(s.Files, f)
			}
		}
	} else if s, err = p.selectTests(ctx, all); err != nil {
		return nil, nil, err
	}
	var jobs []tools.Job
	for _, j := range tools.Jobs(p.tools, s.Files, all) {
		j.Files = slices.DeleteFunc(j.Files, func(f string) bool { return !j.Tool.Role.IsTest(f) })
		if len(j.Files) > 0 || !j.Tool.Role.Named() {
			j.Narrowed = false
			jobs = append(jobs, j)
		}
	}
	return jobs, s, p.trust(jobs, q.Trust)
}

// allFiles lists the files of the project.
func (p *project) allFiles() ([]string, error) {
	l, err := p.list()
	return slices.Clone(l.all), err
}

// diagnosing is what failed tests are compared with. It comes before the tools, which could change what git does.
func (p *project) diagnosing(ctx context.Context, q *TestRequest, changed []string) (d checking.Diagnosing, err error) {
	d = checking.Diagnosing{Base: p.base, Changed: changed, Git: p.git}
	if p.git && (changed == nil || len(q.Related) > 0) {
		var gone []string
		if d.Changed, gone, err = p.changes(ctx, &q.CheckRequest); err != nil {
			return d, err
		}
		d.Base, d.Changed = p.base, append(d.Changed, gone...)
	}
	return d, nil
}

// diagnose finds out what the failed tests are signs of.
func (p *project) diagnose(ctx context.Context, c *checking.Checker, d checking.Diagnosing, jobs []tools.Job, r *Testing) (err error) {
	found := make([]tools.Discovered, len(jobs))
	for i, j := range jobs {
		found[i] = j.Tool
	}
	r.Diagnoses, r.Undiagnosed, err = c.Diagnose(ctx, found, r.Checks, d)
	return err
}

// selectTests chooses the files with tests that are related to the changed ones.
func (p *project) selectTests(ctx context.Context, all []string) (*checks.Selected, error) {
	out := &checks.Selected{Files: []string{}}
	for _, t := range p.tools {
		var own []string
		for _, f := range all {
			if t.Role.IsTest(f) && t.Holds(f) {
				own = append(own, f)
			}
		}
		var packages map[string]string
		if t.Role.ByPackage() {
			var err error
			if packages, err = p.users(ctx, p.files, 1); err != nil {
				return nil, err
			}
		}
		s := checks.RelatedTests(p.files, own, packages, p.source)
		for _, f := range s.Files {
			out.Add(f, s.Why[f])
		}
	}
	return out, nil
}

// source is the text of a file for those who look for what it mentions; of one that cannot be read, or is too large, the name still counts.
func (p *project) source(file string) []byte {
	data, _ := p.text(file, largestSource)
	return data
}

// users are the folders of the packages of files that changed, and of those that import one of them, in so many steps (0: any number), by the
// index; each with why.
func (p *project) users(ctx context.Context, changed []string, steps int) (map[string]string, error) {
	env := p.env
	env.Tree.Dir, env.Prefix = p.root, ""
	out, pending, err := withIndex(ctx, env, func(x *indexed) (map[string]string, error) {
		out := map[string]string{}
		var from []graph.Ref
		add := func(folder, why string) {
			if _, known := out[folder]; known {
				return
			}
			out[folder] = why
			if r, ok := x.Graph.Find(path.Clean(folder) + "/"); ok {
				from = append(from, r)
			}
		}
		for _, f := range changed {
			add(checks.Folder(f), "its package changed")
		}
		for n := 1; len(from) > 0 && (steps == 0 || n <= steps); n++ {
			visits, _ := x.Graph.Walk(from, graph.Reach{Depth: 1, Filter: graph.Filter{Direction: graph.In, Edges: []graph.EdgeType{graph.Imports}}})
			from = nil
			for _, v := range visits {
				n := x.Graph.Node(v.Node)
				folder := strings.TrimSuffix(n.ID, "/")
				if n.Type == graph.File {
					folder = checks.Folder(n.Path)
				}
				add(folder, "it imports "+x.Graph.ID(v.From))
			}
		}
		return out, nil
	})
	return out, errors.Join(err, pending.Finish(ctx))
}

// Counted is the number of tests by their results.
func (r *Testing) Counted() string {
	s := fmt.Sprintf("%d passed, %d failed, %d skipped", r.Counts.Passed, r.Counts.Failed, r.Counts.Skipped)
	if r.Chosen != nil {
		s += "; only the tests in " + schemas.Count(len(r.Chosen.Files), "file")
	}
	return s
}
