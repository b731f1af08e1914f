// Package checking runs the tools that check a project's code, parses their output, and judges how they end.
package checking

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/sandbox"
	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/checks/formats"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/regular"
)

const (
	outputLimit = 64 << 20 // of a stream, in bytes
	shownLimit  = 2000     // of the output that a check keeps, in characters
)

// Checker runs jobs. It is safe for concurrent use once its fields are set.
type Checker struct {
	Root     string // absolute, without symbolic links: what the paths of jobs and findings are relative to
	Environ  []string
	Secrets  *runner.Secrets // removed from what is kept of output
	Timeout  time.Duration   // of each job
	FailOn   checks.Severity // what is less severe does not fail a check; "": low
	Coverage bool            // measure what tests run, where the tool can
	Base     string          // the revision with which what changed is compared; "" is the last commit
	// Sandbox is the level that confines tools; "" or none: they are not confined.
	Sandbox string
	Host    *sandbox.Host
	// Cache is the folder of the caches that confined tools share, in place of those of the home folder, which they can only read; see
	// [Checker.caches]. It is needed where tools are confined.
	Cache string
	// Alone ends whatever the tools left running, where the system can; it is for a process in which nothing else runs.
	Alone bool
	// Files are those of the project that tools have to leave as they are, below Root, with slashes. If one changes while they run, none of the
	// checks passes.
	Files []string
	// Started is called with each job that begins, and the numbers of ended jobs and of all; nil: no one asks.
	Started func(j tools.Job, done, total int)
	// project is the root of the project where Root is that of a positive control; "": Root.
	project  string
	team     bool // the commands are those of the team
	compiles bool // the commands compile tests, and run none
	// Proofs knows which tools found the faults of their positive controls; the others run them, if they find nothing else.
	Proofs *Proofs
}

// CacheVar names the folder of Checker.Cache, for the process that verifies what an agent wrote.
const CacheVar = "RECONCILE_CHECKS_CACHE"

// passed are the variables that tools see besides those of every command: where toolchains are and keep their caches.
var passed = []string{"CARGO_HOME", "CI", "COMPOSER_HOME", "DOTNET_ROOT", "GEM_HOME", "GEM_PATH", "GOCACHE", "GOEXPERIMENT", "GOFLAGS", "GOMODCACHE",
	"GONOSUMDB", "GOPATH", "GOPRIVATE", "GOPROXY", "GOROOT", "GOSUMDB", "GOTOOLCHAIN", "GOWORK", "GRADLE_USER_HOME", "JAVA_HOME", "LC_ALL", "LC_CTYPE",
	"MAVEN_OPTS", "NODE_OPTIONS", "NODE_PATH", "PYENV_ROOT", "PYTHONPATH", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "npm_config_cache"}

// quiet are variables that keep tools from colours, prompts and news.
var quiet = []string{"NO_COLOR=1", "FORCE_COLOR=0", "PY_COLORS=0", "CARGO_TERM_COLOR=never", "NPM_CONFIG_UPDATE_NOTIFIER=false", "DOTNET_NOLOGO=1",
	"DOTNET_CLI_TELEMETRY_OPTOUT=1", "NEXT_TELEMETRY_DISABLED=1", "NODE_DISABLE_COLORS=1", "TERM=dumb", "PYTHONUNBUFFERED=1"}

// Run runs the jobs, and returns their checks in the same order. An error says that ctx ended.
func (c *Checker) Run(ctx context.Context, jobs []tools.Job) ([]checks.Check, error) {
	if c.Alone {
		if err := runner.AdoptOrphans(); err != nil {
			return nil, err
		}
	}
	before, err := remember(c.Root, c.Files)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	out := make([]checks.Check, len(jobs))
	ran := make([]checks.Span, len(jobs))
	err = c.run(ctx, jobs, out, ran)
	if c.Alone {
		err = errors.Join(err, runner.EndOrphans())
	}
	if err != nil {
		return out, err
	}
	altered, err := before.altered(began)
	checks.Disturb(out, ran, altered)
	return out, err
}

// run runs the jobs: first those that write the caches of others, while nothing else can change what they read.
func (c *Checker) run(ctx context.Context, jobs []tools.Job, out []checks.Check, ran []checks.Span) error {
	var first, rest []int
	for i, j := range jobs {
		if c.confined() && j.Own == nil && c.shares(j.Tool, j.Command(nil)) {
			first = append(first, i)
		} else {
			rest = append(rest, i)
		}
	}
	done := 0
	if err := c.together(ctx, jobs, first, out, ran, &done); err != nil {
		return err
	}
	if c.confined() {
		if err := c.compile(ctx, jobs); err != nil {
			return err
		}
	}
	return c.together(ctx, jobs, rest, out, ran, &done)
}

// together runs some of the jobs at the same time.
func (c *Checker) together(ctx context.Context, jobs []tools.Job, some []int, out []checks.Check, ran []checks.Span, done *int) error {
	errs := make([]error, len(some))
	places := make(chan struct{}, runtime.NumCPU())
	var group sync.WaitGroup
	var mu sync.Mutex
	for n, i := range some {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		mu.Lock()
		if c.Started != nil {
			c.Started(jobs[i], *done, len(jobs))
		}
		mu.Unlock()
		group.Go(func() {
			defer func() { <-places }()
			ran[i].From = time.Now()
			out[i], errs[n] = c.one(ctx, jobs[i])
			ran[i].To = time.Now()
			mu.Lock()
			*done++
			mu.Unlock()
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// Fix runs the commands of the jobs that repair files, one after the other, and returns how they ended. The checks
// afterwards report the remaining findings.
func (c *Checker) Fix(ctx context.Context, jobs []tools.Job) (out []checks.Repair, err error) {
	scratch, err := os.MkdirTemp("", "reconcile-fix-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	for _, j := range jobs {
		t := j.Tool
		if len(t.Role.Fix) == 0 {
			continue
		}
		j.Tool.Role.Check, j.Own = t.Role.Fix, nil
		dir := filepath.Join(c.Root, filepath.FromSlash(t.Folder))
		ended, _, err := c.execute(ctx, t, j.Command(map[string]string{"folder": dir}), dir, scratch, "")
		if err != nil {
			return out, err
		}
		r := checks.Repair{Tool: t.Tool, Folder: t.Folder}
		r.Outcome, r.Reason = checks.JudgeRepair(c.expected(t.Role), ended, t.Category)
		out = append(out, r)
	}
	return out, nil
}

// one runs a job.
func (c *Checker) one(ctx context.Context, j tools.Job) (checks.Check, error) {
	t := j.Tool
	role := t.Role
	if c.Coverage && len(role.Coverage) > 0 {
		j.Tool.Role.Check, j.Own = role.Coverage, nil
	}
	scratch, err := os.MkdirTemp("", "reconcile-check-")
	if err != nil {
		return checks.Check{}, err
	}
	defer os.RemoveAll(scratch)
	check, ended, err := c.perform(ctx, j, scratch)
	if err != nil {
		return check, err
	}
	in, elsewhere := j.Scope(ended.Report.Findings)
	astray, elsewhere := c.astray(elsewhere)
	fresh, old, why, err := c.sinceChange(ctx, j, elsewhere)
	if err != nil {
		return check, err
	}
	ended.Report.Findings = slices.Concat(in, astray, fresh)
	c.settle(&check, j, ended, old)
	if why != "" && check.Outcome == checks.Passed {
		check.Outcome = checks.Unknown
		check.Reason += ", and nobody knows which of them come from the change: " + why
	}
	if j.Own != nil && check.Outcome == checks.Unknown && !ended.TimedOut {
		j.Own = nil // the tool itself may say more than the command of the team
		return c.one(ctx, j)
	}
	if c.Coverage && role.CoverageOutput != "" && check.Outcome != checks.Unknown {
		c.readCoverage(&check, t, filepath.Join(scratch, "coverage"))
	}
	if check.Outcome == checks.Passed && role.Control != nil {
		return c.prove(ctx, t, check)
	}
	return check, nil
}

// perform runs the command of a job, which writes its files into scratch, and reads its report.
func (c *Checker) perform(ctx context.Context, j tools.Job, scratch string) (check checks.Check, ended checks.Ended, err error) {
	t := j.Tool
	check = checks.Check{Tool: t.Tool, Category: t.Category, Language: t.Language, Folder: t.Folder, Version: t.Version, Files: len(j.Files), Sandbox: c.Sandbox}
	report := filepath.Join(scratch, "report")
	dir := filepath.Join(c.Root, filepath.FromSlash(t.Folder))
	places := map[string]string{"report": report, "coverage": filepath.Join(scratch, "coverage"), "scratch": scratch, "folder": dir}
	check.Command = j.Command(places)
	own := *c
	own.team = j.Own != nil
	if argv := j.Build(places); len(argv) > 0 && t.Program != "" {
		builder := t
		builder.Role = tools.Role{}
		if ended, _, err = own.execute(ctx, builder, argv, dir, scratch, ""); err != nil || ended.NotStarted != "" || ended.TimedOut || ended.Signal != "" {
			return check, ended, err
		}
		if ended.Exit != 0 {
			ended.Unreadable, ended.Report = "", checks.Report{Complete: true, Broken: []string{strings.Join(argv, " ")}}
			return check, ended, nil
		}
	}
	ended, took, err := own.execute(ctx, t, check.Command, dir, scratch, report)
	check.Seconds = took.Seconds()
	return check, ended, err
}

// settle judges the end of a job. elsewhere is the number of findings that were left out.
func (c *Checker) settle(check *checks.Check, j tools.Job, ended checks.Ended, elsewhere int) {
	if t := j.Tool; t.Category == checks.Formatter && t.Confidence == tools.Low && t.Config == "" {
		for i := range ended.Report.Findings { // nobody said that the project is formatted by it
			if f := &ended.Report.Findings[i]; f.Severity == checks.Low {
				f.Severity = checks.Info
			}
		}
	}
	expected := c.expected(j.Tool.Role)
	if _, found := expected.Means(ended.Exit); found && elsewhere > 0 && len(ended.Report.Findings) == 0 {
		ended.Exit = 0 // the exit code is about the others
		if clean := j.Tool.Role.Clean; len(clean) > 0 {
			ended.Exit = clean[0]
		}
	}
	check.Outcome, check.Reason = checks.Judge(expected, ended)
	check.NotInstalled = check.Outcome == checks.Unknown && j.Tool.Program == ""
	check.Findings, check.Tests = ended.Report.Findings, ended.Report.Tests
	if j.Tool.Category == checks.Deep {
		check.Findings, check.Tests = append(check.Findings, checks.OfTests(check.Tests)...), nil
	}
	for i := range check.Findings {
		f := &check.Findings[i]
		f.Tool, f.Category = j.Tool.Tool, j.Tool.Category
	}
	checks.Identify(check.Findings)
	if elsewhere > 0 && check.Outcome == checks.Passed {
		check.Reason = fmt.Sprintf("%d findings in other files", elsewhere)
	}
	if check.Outcome == checks.Unknown || check.Outcome == checks.Failed && len(check.Findings)+checks.Count(check.Tests).Failed == 0 {
		check.Output = ended.Output
	}
}

// confined reports whether a sandbox confines the tools.
func (c *Checker) confined() bool { return c.Sandbox != "" && c.Sandbox != schemas.SandboxNone }

func (c *Checker) expected(r tools.Role) checks.Expected {
	return checks.Expected{Clean: r.Clean, Found: r.Found, Tests: r.RunsTests(), Format: r.Output, FailOn: c.FailOn, Timeout: c.Timeout}
}

// execute runs a tool's command in a folder, and reads its report. An error says that ctx ended.
func (c *Checker) execute(ctx context.Context, t tools.Discovered, argv []string, dir, scratch, report string) (e checks.Ended, took time.Duration, err error) {
	if t.Program == "" {
		e.NotStarted = t.Tool + " is not installed"
		if len(t.Install) > 0 {
			e.NotStarted += "; to install it: " + strings.Join(t.Install, " ")
		}
		return e, 0, nil
	}
	p := runner.Program{Argv: argv, Dir: dir, Environ: c.Environ, Pass: passed, Set: quiet, Timeout: c.Timeout, Limit: outputLimit, Host: c.Host}
	if flags := variable(c.Environ, "GOFLAGS"); t.Language == "go" && !t.Role.RunsTests() && strings.Contains(flags, "-trimpath") {
		// With it, tools of Go repeat their findings in equal files of another folder, and name that one.
		p.Set = append(slices.Clone(p.Set), "GOFLAGS="+flags+" -trimpath=false")
	}
	if name := filepath.Base(t.Program); name == argv[0] || slices.Contains([]string{".exe", ".cmd", ".bat"}, filepath.Ext(name)) && strings.HasPrefix(name, argv[0]+".") {
		p.Path = t.Program
	}
	for _, v := range t.Role.Fresh {
		p.Set = append(slices.Clone(p.Set), v+"="+filepath.Join(scratch, "fresh", v))
	}
	if c.confined() {
		write := []string{c.Root, scratch}
		set, shared := c.caches(scratch, p.Path != "" && c.shares(t, argv))
		write = append(write, shared...)
		if p.Policy, err = runner.Confine(c.Host, c.Sandbox, write...); err != nil {
			e.NotStarted = err.Error()
			return e, 0, nil
		}
		p.Set = slices.Concat(p.Set, []string{"TMPDIR=" + scratch}, set)
	}
	if strings.HasSuffix(t.Role.Report, "/") {
		if err := os.MkdirAll(report, 0o700); err != nil {
			return e, 0, err
		}
	}
	before := writtenReports(t.Role, dir)
	end, err := p.Run(ctx)
	if err != nil {
		return e, end.Took, err
	}
	if end.NotStarted != nil {
		e.NotStarted = end.NotStarted.Error()
		return e, end.Took, nil
	}
	e = checks.Ended{TimedOut: end.TimedOut, Signal: end.Signal, Exit: end.Exit, Truncated: end.Truncated}
	data := end.Stdout
	switch t.Role.Stream {
	case "stderr":
		data = end.Stderr
	case "both":
		data = append(end.Stdout, end.Stderr...)
	}
	documents := [][]byte{data}
	if t.Role.Report != "" || len(t.Role.Reports) > 0 {
		if documents, err = readReports(t.Role, dir, report, before); err != nil {
			e.Unreadable = regular.Cause(err).Error()
		}
	}
	if e.Unreadable == "" {
		e.Report, err = formats.ReadAll(t.Role.Output, documents, c.options(t))
		if err != nil {
			e.Unreadable = err.Error()
		}
		e.Report.Silent = c.silent(t, e.Report.Tests)
	}
	said := bytes.TrimSpace(end.Stderr)
	if e.Unreadable != "" || len(data) == 0 || !json.Valid(firstLine(end.Stdout)) && !json.Valid(end.Stdout) { // else the output is for programs
		said = append(append(said, '\n'), bytes.TrimSpace(end.Stdout)...)
	}
	shown := c.clean(said)
	e.Output, e.LastLine = tail(shown), lastLine(shown)
	c.redact(&e.Report)
	return e, end.Took, nil
}

// options say where the output of a tool comes from.
func (c *Checker) options(t tools.Discovered) formats.Options {
	o := formats.Options{Root: c.Root, Folder: t.Folder, Tool: t.Tool, Category: t.Category}
	if t.Language == "go" {
		data, err := regular.ReadPath(filepath.Join(c.Root, filepath.FromSlash(t.Folder), "go.mod"))
		if m := moduleLine().FindSubmatch(data); err == nil && m != nil {
			o.Module = string(m[1])
		}
	}
	return o
}

// colours finds the sequences by which a terminal changes how it shows text, as Maven prints them at the end of each line.
var colours = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\x1b\[[0-9;]*[mK]`) })

// moduleLine is the line of a go.mod that names the module.
var moduleLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^module\s+"?([^\s"]+)"?`) })

func (c *Checker) readCoverage(check *checks.Check, t tools.Discovered, file string) {
	if fi, err := os.Stat(file); err == nil && fi.IsDir() {
		file = filepath.Join(file, "lcov.info")
	}
	data, err := regular.ReadPathUpTo(file, outputLimit)
	if err != nil {
		check.Reason = "no coverage: " + regular.Cause(err).Error()
		return
	}
	r, err := formats.Read(t.Role.CoverageOutput, data, c.options(t))
	if err != nil {
		check.Reason = "no coverage: " + err.Error()
		return
	}
	check.Coverage = r.Coverage
}

// Works proves that a program finds the planted fault of its positive control; the check is Proved, or unknown with the reason.
func (c *Checker) Works(ctx context.Context, t tools.Discovered) (checks.Check, error) {
	return c.prove(ctx, t, checks.Check{Tool: t.Tool, Category: t.Category, Version: t.Version})
}

// prove runs the tool on its positive control. A check whose tool does not find the planted fault is unknown.
func (c *Checker) prove(ctx context.Context, t tools.Discovered, check checks.Check) (checks.Check, error) {
	key := proofKey(t)
	if c.Proofs.known(key) {
		check.Proved = true
		return check, nil
	}
	scratch, err := os.MkdirTemp("", "reconcile-control-")
	if err != nil {
		return check, err
	}
	defer os.RemoveAll(scratch)
	folder := filepath.Join(scratch, "project") // not the folder of temporary files itself, in which go sees no module
	for name, text := range t.Role.Control.Files {
		if err := writeBelow(scratch, "project/"+name, []byte(text), 0o600); err != nil {
			return check, err
		}
	}
	control := *c
	control.Root, control.FailOn, control.project = folder, checks.Info, cmp.Or(c.project, c.Root)
	t.Folder = ""
	j := tools.Job{Tool: t}
	if t.Role.List || len(t.Role.Scoped) > 0 { // the configuration that names what is checked is not there
		j.Files = slices.Sorted(maps.Keys(t.Role.Control.Files))
	}
	report := filepath.Join(scratch, "report")
	ended, _, err := control.execute(ctx, t, j.Command(map[string]string{"report": report, "coverage": report, "scratch": scratch, "folder": folder}), folder, scratch, report)
	if err != nil {
		return check, err
	}
	outcome, why := checks.Judge(control.expected(t.Role), ended)
	if outcome == checks.Failed {
		check.Proved = true
		c.Proofs.add(key)
		return check, nil
	}
	check.Outcome = checks.Unknown
	check.Reason = "its positive control is " + string(outcome) + ": in a file with a planted fault it finds none"
	if why != "" {
		check.Reason += " (" + why + ")"
	}
	return check, nil
}

// writeBelow writes a file and the folders around it.
func writeBelow(dir, name string, data []byte, perm fs.FileMode) error {
	root, err := regular.Root(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	return regular.Write(root, name, data, perm)
}

// redact removes secrets from what a report quotes.
func (c *Checker) redact(r *checks.Report) {
	hide := func(text *string) {
		if *text != "" {
			*text = c.clean([]byte(*text))
		}
	}
	for i := range r.Findings {
		hide(&r.Findings[i].Message)
		hide(&r.Findings[i].Suggestion)
	}
	for i := range r.Tests {
		for _, text := range []*string{&r.Tests[i].Message, &r.Tests[i].Expected, &r.Tests[i].Actual, &r.Tests[i].Stack, &r.Tests[i].Output} {
			hide(text)
		}
	}
}

func (c *Checker) clean(b []byte) string {
	if c.Secrets != nil {
		b = c.Secrets.Remove(b)
	}
	return strings.ToValidUTF8(string(b), "?")
}

func variable(environ []string, name string) string {
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// tail returns the last lines that fit into shownLimit bytes, or the end of the last line.
func tail(text string) string {
	text = strings.TrimSpace(text)
	if len(text) <= shownLimit {
		return text
	}
	text = text[len(text)-shownLimit:]
	if i := strings.IndexByte(text, '\n'); i >= 0 && i < len(text)-1 {
		text = text[i+1:]
	}
	return strings.ToValidUTF8(text, "")
}

func firstLine(data []byte) []byte {
	line, _, _ := bytes.Cut(bytes.TrimSpace(data), []byte("\n"))
	return line
}

// lastLine is the last line of text that shows something, without colours; below the error of a program of Node.js or of Maven, that error.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(colours().ReplaceAllString(text, "")), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	if i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "[ERROR] ") }); i >= 0 && strings.HasPrefix(last, "[ERROR] ") {
		return strings.TrimSpace(lines[i])
	}
	if strings.HasPrefix(last, "Node.js v") {
		for _, line := range slices.Backward(lines) {
			if name, _, is := strings.Cut(line, ": "); is && strings.HasSuffix(name, "Error") {
				return strings.TrimSpace(line)
			}
		}
	}
	return last
}
