package ops

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/allowlist"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/checking"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/cmd/reconcile/internal/toolscan"
	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
	"reconcile.dev/reconcile/state/worktree"
)

// CheckRequest names the files and tools of a check. Inspect and Test share it.
type CheckRequest struct {
	Dir     string   // a folder of the project; its repository is the project, or else the folder itself
	Paths   []string // files and folders, relative to Dir; none: Dir
	Changed bool     // only files that changed since the last commit, or since Base
	Base    string   // a revision: only files that changed since the branch left it
	Tools   []string // only these
	Timeout time.Duration
	// AllowUnknown lists the tools whose checks may be unknown.
	AllowUnknown []string
	Sandbox      string       // the level that confines the tools; "": none
	Trust        bool         // the caller has seen the commands, and lets them run from now on
	Refresh      bool         // discover the tools again
	Verify       bool         // for who verifies a commit: also find out which lines changed, and end what the tools leave running
	Last         bool         // only return the last result
	Reports      []ReportText // are read in place of running tools; none: the tools run
	Session      string       // a session, whose branch is checked as a whole: what is in files that its nodes changed comes first; "": none
}

// UntrustedError says that no one has allowed the checks of a folder to run, and which commands they are.
type UntrustedError struct {
	Root     string
	Commands []string
}

func (e *UntrustedError) Error() string {
	return fmt.Sprintf("the checks of %s have never been allowed; they would run these commands, which can do anything that you can:\n  %s\n"+
		"if you trust the project, run \"reconcile allow\" there", e.Root, strings.Join(e.Commands, "\n  "))
}

// BadRequest marks an error of the request.
func (*UntrustedError) BadRequest() {}

// project is a folder whose code is checked.
type project struct {
	root  string   // absolute, without symbolic links
	dir   string   // the folder of the request, in the same way
	scope []string // below root, with slashes; none: everything
	git   bool
	env   Env
	list  func() (listing, error) // lists the files of the project once
	tools []tools.Discovered
	chose []tools.Choice // by people and agents, once the tools were discovered
	// discovery discovers the tools of the project once.
	discovery func() (toolscan.Discovery, error)
	files     []string // that were asked for; nil: all
	gone      []string // that were asked for, and removed
	unjudged  []string // those of gone of which no tool can tell whether they are still used
	narrow    bool
	session   *OfSession // that was asked for; nil: none
	base      string     // the commit that files differ from; "": the last one
	lines     map[string][]checks.LineRange
	accepted  []checks.Override // by people, before any tool ran
	digests   map[string]string // of what these cover
}

// listing are the files of a project.
type listing struct{ all, untracked []string }

// openProject finds the project of a request, and the files that it is about.
func (e Env) openProject(ctx context.Context, q *CheckRequest) (*project, error) {
	e.Tree.Collector.Aim(process.GCLatency)
	dir, err := absoluteFolder(q.Dir)
	if err != nil {
		return nil, badRequest("%s: %v; name a folder", q.Dir, regular.Cause(err))
	}
	p := &project{root: dir, dir: dir, env: e}
	if l, err := worktree.Find(dir); err == nil {
		p.root, p.git = l.Top, true
	}
	p.list = sync.OnceValues(func() (l listing, err error) {
		if p.git {
			l.all, l.untracked, err = checking.List(ctx, p.root)
		} else {
			l.all, err = checking.Walk(ctx, p.root)
		}
		return l, err
	})
	p.discovery = sync.OnceValues(func() (toolscan.Discovery, error) { return p.findTools(ctx, q) })
	paths := q.Paths
	if len(paths) == 0 {
		paths = []string{"."}
	}
	for _, given := range paths {
		rel, err := p.below(given)
		if err != nil {
			return nil, err
		}
		if rel == "." {
			p.scope = nil
			break
		}
		p.scope = append(p.scope, rel)
	}
	if q.Session != "" {
		return p, p.openSession(ctx, q)
	}
	if q.Changed || q.Base != "" {
		if !p.git {
			return nil, badRequest("%s is in no git repository, so that nobody knows what changed; run git init, or leave out --changed", p.root)
		}
		var ahead sync.WaitGroup // while git compares
		ahead.Go(func() { _, _ = p.discovery() })
		all, gone, err := p.changes(ctx, q)
		ahead.Wait()
		if err != nil {
			return nil, badRequest("%v", err)
		}
		outside := func(f string) bool { return !p.inScope(f) }
		p.files, p.narrow = append([]string{}, slices.DeleteFunc(all, outside)...), true
		p.gone = slices.DeleteFunc(gone, outside)
	}
	return p, nil
}

// changes lists the files that changed, and apart those that were removed. Nothing asks git what changed after the tools have run: they could change
// what it does.
func (p *project) changes(ctx context.Context, q *CheckRequest) (files, gone []string, err error) {
	if q.Base == "" {
		if repo, err := gitrepo.Open(p.root); err == nil {
			head, _ := repo.Head(ctx) // one that is unreadable is asked for again
			p.base = head.Hash
		}
		if q.Verify {
			if p.lines, err = checking.ChangedLines(ctx, p.root); err != nil {
				return nil, nil, err
			}
		}
		return checking.Changed(ctx, p.root)
	}
	if p.base, err = checking.MergeBase(ctx, p.root, q.Base); err != nil {
		return nil, nil, err
	}
	listed, err := p.list()
	if err != nil {
		return nil, nil, err
	}
	c, err := checking.Since(ctx, p.root, p.base, listed.untracked)
	if q.Verify {
		p.lines = c.Lines
	}
	return c.Files, c.Removed, err
}

// below returns the path of a file or folder below the root, with slashes. given is relative to the folder of the request.
func (p *project) below(given string) (string, error) {
	at := given
	if !filepath.IsAbs(at) {
		at = filepath.Join(p.dir, at)
	}
	at, err := filepath.EvalSymlinks(at)
	if err != nil {
		return "", badRequest("%s: %v", given, regular.Cause(err))
	}
	rel, ok := worktree.Within(p.root, at)
	if !ok {
		return "", badRequest("%s is outside of the project %s; use -C to name another project", given, p.root)
	}
	return rel, nil
}

// inScope reports whether a file is one of those that were asked for.
func (p *project) inScope(file string) bool {
	return len(p.scope) == 0 || slices.ContainsFunc(p.scope, func(s string) bool { return treepath.Below(file, s) })
}

func absoluteFolder(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return "", err
	}
	if fi, err := os.Stat(abs); err != nil || !fi.IsDir() {
		return "", errors.Join(err, errors.New("not a folder"))
	}
	return abs, nil
}

// trust returns an UntrustedError unless the checks of the project may run: inside a run, where the run's own limits hold; where a person
// allowed them; or where the caller does now.
func (p *project) trust(jobs []tools.Job, now bool) error {
	var commands []string
	places := map[string]string{"report": "REPORT", "coverage": "COVERAGE", "folder": "."}
	for _, j := range jobs {
		if build := j.Build(places); len(build) > 0 {
			commands = append(commands, commandLine(j.Tool.Folder, build))
		}
		commands = append(commands, commandLine(j.Tool.Folder, j.Command(places)))
	}
	return p.trustCommands(commands, now)
}

// trustCommands is trust for commands.
func (p *project) trustCommands(commands []string, now bool) error {
	allowed, list, err := p.allowed()
	if allowed || err != nil || len(commands) == 0 {
		return err
	}
	if now {
		return list.AddChecks(p.root)
	}
	return &UntrustedError{Root: p.root, Commands: commands}
}

// commandLine is a command for people, with the folder where it runs.
func commandLine(folder string, argv []string) string {
	line := strings.Join(argv, " ")
	if folder != "" {
		line = "(in " + folder + ") " + line
	}
	return line
}

// allowed reports whether the checks of the project may run, and returns the allowlist, nil inside a run.
func (p *project) allowed() (bool, *allowlist.List, error) {
	if p.env.Caller.AnyRun() != nil {
		return true, nil, nil
	}
	list, err := egress.Policy{Getenv: p.env.Tree.Getenv}.Allowed()
	return err == nil && list.AllowsChecks(p.root), list, err
}

// checker returns the checker for a request.
func (p *project) checker(q *CheckRequest, failOn checks.Severity) *checking.Checker {
	environ := os.Environ()
	c := &checking.Checker{Root: p.root, Environ: environ, Secrets: runner.FindSecrets(environ, p.root), Timeout: q.Timeout, FailOn: failOn, Base: p.base,
		Sandbox: q.Sandbox, Host: p.env.Sandbox, Cache: p.env.Tree.Getenv(checking.CacheVar), Alone: q.Verify}
	if cache, err := os.UserCacheDir(); err == nil {
		if c.Cache == "" && q.Sandbox != "" && q.Sandbox != schemas.SandboxNone {
			sum := sha256.Sum256([]byte(p.root))
			c.Cache = filepath.Join(cache, "reconcile", "checks", hex.EncodeToString(sum[:8]))
			_ = os.MkdirAll(c.Cache, 0o700) // without it the tools say what they miss
		}
		c.Proofs = checking.OpenProofs(filepath.Join(cache, "reconcile"))
	}
	if sink := p.env.Sink; sink != nil {
		c.Started = func(j tools.Job, done, total int) { sink.Count(j.Tool.Tool, done, total) }
	}
	return c
}

// Checked is what Inspect and Test have in common.
type Checked struct {
	Root  string `json:"root"`
	Files *int   `json:"files,omitempty"` // number of files that were asked for, also removed ones; nil: all
	// Unjudged are removed files for which no tool that ran finds the remaining uses.
	Unjudged []string `json:"unjudged,omitempty"`
	// Unchecked are files in languages for which there are tools, and at which none that ran looks.
	Unchecked []string       `json:"unchecked,omitempty"`
	Outcome   checks.Outcome `json:"outcome"`
	Checks    []checks.Check `json:"checks"`
	At        time.Time      `json:"at"`
	Seconds   float64        `json:"seconds"`
	// Session is the session that the result is about; nil: none was asked for.
	Session *OfSession `json:"session,omitempty"`
	// Overridden are the findings and tests that people decided to accept.
	Overridden []checks.Override `json:"overridden,omitempty"`
	// Undecided are the questions that remained about which tools to use for the languages of these files.
	Undecided []schemas.ToolQuestion `json:"undecided,omitempty"`
	seen      checks.Outcome         // of what tools looked at; "" if that is all
	// ChangedLines are the lines that changed, by file, where they were asked for.
	ChangedLines map[string][]checks.LineRange `json:"-"`
}

// Evidence is the part of the result that is recorded.
func (c *Checked) Evidence() *checks.Evidence {
	e := checks.Evident(c.Checks, cmp.Or(c.seen, c.Outcome), c.Overridden, c.ChangedLines)
	e.Undecided = c.Undecided
	if c.seen == checks.Passed && c.Outcome == checks.Unknown {
		e.Unchecked = c.Unchecked[:min(len(c.Unchecked), 20)]
	}
	if len(c.Checks) == 0 && c.Files != nil && c.Outcome == checks.Unknown {
		e.Summary = fmt.Sprintf("no tool or test of the project is about the %s that changed", schemas.Count(*c.Files, "file"))
	}
	if said := c.missedText(); said != "" {
		e.Summary += "; " + said
	}
	if c.Files != nil && c.Seconds > checkTime.Seconds() {
		e.Summary += fmt.Sprintf("; it took %s, where a change should take at most %s", time.Duration(c.Seconds*float64(time.Second)).Round(time.Second), checkTime)
	}
	return e
}

// checkTime is how long the check of a change should take at most.
const checkTime = 5 * time.Second

// Summary says in a line what was found, with what was counted.
func (c *Checked) Summary(counted string) string {
	switch {
	case len(c.Checks) == 0 && c.Outcome == checks.Unknown:
		counted = "no tool of the project checks this; \"reconcile tools\" shows what it has"
	case len(c.Checks) == 0 && c.Outcome == checks.Passed:
		counted = "nothing to check"
	}
	if c.Files != nil {
		counted += fmt.Sprintf(" (%s changed)", schemas.Count(*c.Files, "file"))
	}
	if said := c.missedText(); said != "" {
		counted += "; " + said
	}
	if s := c.Session; s != nil {
		counted += fmt.Sprintf("; %d in the %s that session %s changed", s.Found, schemas.Count(len(s.Files), "file"), s.Name)
		if s.More > 0 {
			counted += fmt.Sprintf(", and %s of files that the records do not name", schemas.Count(s.More, "change"))
		}
	}
	return counted
}

// missedText says at which files no tool looked, and which removed ones none judges; "" without any.
func (c *Checked) missedText() string {
	var said []string
	if len(c.Unchecked) > 0 && len(c.Checks) > 0 {
		said = append(said, "no tool that ran looks at "+schemas.Shorten(c.Unchecked, 3))
	}
	if len(c.Unjudged) > 0 {
		said = append(said, "no tool that ran can tell whether something still uses "+schemas.Shorten(c.Unjudged, 3))
	}
	return strings.Join(said, "; ")
}

// Verdict is NotReady if a check failed, and Unsure if the outcome is unknown.
func (c *Checked) Verdict() Code {
	switch c.Outcome {
	case checks.Passed:
		return OK
	case checks.Failed:
		return NotReady
	}
	return Unsure
}

// chosen returns the tools of the wanted categories and names.
func chosen(found []tools.Discovered, categories []checks.Category, names []string) ([]tools.Discovered, error) {
	var out []tools.Discovered
	for _, t := range found {
		if slices.Contains(categories, t.Category) && (len(names) == 0 || slices.Contains(names, t.Tool)) {
			out = append(out, t)
		}
	}
	for _, n := range names {
		if !slices.ContainsFunc(out, func(t tools.Discovered) bool { return t.Tool == n }) {
			if slices.ContainsFunc(found, func(t tools.Discovered) bool { return t.Tool == n && t.Category == checks.Deep }) {
				return nil, badRequest("%s is a deep analysis: run \"reconcile inspect --deep\"", n)
			}
			var all []string
			for _, t := range found {
				all = append(all, t.Tool)
			}
			return nil, badRequest("no check of the project uses %q%s; \"reconcile tools\" lists what it uses", n, schemas.DidYouMean(n, all))
		}
	}
	return out, nil
}

// resultsDir is where the last results are kept, in the local folder of the project.
const resultsDir = ".reconcile/checks"

// keepResult writes a result as the last one of its kind, and of its session. Only a folder that has a tree of ours has a place for it.
func (p *project) keepResult(verb string, v any) {
	root, err := regular.Root(p.root)
	if err != nil {
		return
	}
	defer root.Close()
	if _, err := root.Stat(".reconcile"); err != nil {
		return
	}
	data, err := json.MarshalIndent(v, "", " ")
	if err == nil {
		err = root.MkdirAll(resultsDir, 0o700)
	}
	for _, name := range slices.Compact([]string{verb, p.resultName(verb)}) {
		if err == nil {
			err = durable.Replace(root, ".reconcile/tmp", resultsDir+"/"+name+".json", append(data, '\n'))
		}
	}
	if err != nil {
		p.env.warn(fmt.Sprintf("the result is not kept: %v", err))
	}
}

// resultName names the last result of a kind, or that of the session that was asked for.
func (p *project) resultName(verb string) string {
	if p.session == nil {
		return verb
	}
	return "session-" + p.session.Name + "-" + verb
}

func (p *project) resultOf(verb string) string {
	if p.session == nil {
		return verb
	}
	return verb + " for session " + p.session.Name
}

// lastResult reads the last result of a kind, or that of the session that was asked for.
func (p *project) lastResult(verb string, v any) error {
	name := p.resultName(verb)
	root, err := regular.Root(p.root)
	if err != nil {
		return err
	}
	defer root.Close()
	data, err := regular.Read(root, resultsDir+"/"+name+".json")
	if errors.Is(err, fs.ErrNotExist) {
		return badRequest("there is no earlier result of %s here; results are kept in trees of reconcile (\"reconcile init\" makes one)", p.resultOf(verb))
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s/%s.json: %w; remove it", resultsDir, name, err)
	}
	return nil
}
