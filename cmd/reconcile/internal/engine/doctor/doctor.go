// Package doctor diagnoses a tree and its surroundings: files that do not parse, leftover locks and temporary files of
// killed processes, wrong caches, a damaged repository, and unsuitable file systems and limits. It makes the repairs
// that are safe.
//
// A check changes nothing, except for a test file under .reconcile/. A repair does what the next run would do anyway,
// by the same code and under the same locks, so it may be killed at any point and repeated, concurrently with any
// number of other processes. Findings that need a judgement are reported and left to people.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/sandbox"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// Level is the severity of a finding.
type Level string

const (
	OK    Level = "ok"
	Warn  Level = "warn"  // works, but impaired or unreliable
	Error Level = "error" // does not work
)

// Finding is one result of a check; a check may return several.
type Finding struct {
	// Name is the stable name of the check, such as "locks".
	Name   string `json:"name"`
	Level  Level  `json:"level"`
	Detail string `json:"detail"`
	// Fix says what to do; empty if no action is needed.
	Fix string `json:"fix,omitempty"`
	// Fixable means that doctor --fix repairs it.
	Fixable bool `json:"fixable"`
	// Invalid means that the specs are at fault, and not their surroundings.
	Invalid bool `json:"-"`

	repair func(context.Context) error
}

// Patient is the subject of an examination, with the functions that repairs need. Dir, Open, Now and Git must be set.
type Patient struct {
	// Dir is the root of the tree.
	Dir string
	// Open opens a store on the tree, with or without its caches.
	Open func(noCache bool) (*state.Store, error)
	Now  func() time.Time
	// Program describes this build for people.
	Program string
	// Environ is the environment, as returned by os.Environ.
	Environ []string
	// Git returns a git command for dir and the environment, which runs no program of the repository's configuration.
	Git func(ctx context.Context, dir string, environ []string, args ...string) *exec.Cmd
	// Hold is the command line of a program that calls [Hold]; empty: locks are not tested.
	Hold []string
	// Reap ends the remaining processes of killed runs; nil: they are only reported.
	Reap func(context.Context, []state.Orphan) error
	// Remember rebuilds the memory from the captured observations; the tree is locked. nil: damage is only reported.
	Remember func(context.Context, *state.Store, *state.Tree) error
	// Index describes the search index; the error says why it is unusable. nil: it is not examined.
	Index func(context.Context, *state.Store, *state.Tree) (string, error)
	// Reindex rebuilds the index; nil: damage is only reported.
	Reindex func(context.Context, *state.Store, *state.Tree) error
	// Sandbox confines the programs of agents; nil: it cannot.
	Sandbox *sandbox.Host
	// Settle completes an interrupted commit in the repository; nil: it is only reported.
	Settle func(context.Context) error

	root  *os.Root
	store *state.Store
	tree  *state.Tree // nil if it could not be loaded
}

// checks are all checks, in the order of the report.
var checks = []struct {
	name string
	look func(context.Context, *Patient) []Finding
}{
	{"program", checkProgram},
	{"tree", checkTree},
	{"state", checkState},
	{"ledgers", checkLedgers},
	{"memory", checkMemory},
	{"mirror", checkMirror},
	{"locks", checkLocks},
	{"journals", checkJournals},
	{"litter", checkLitter},
	{"damaged", checkDamaged},
	{"cache", checkCache},
	{"outputs", checkOutputs},
	{"index", checkIndex},
	{"git", checkGit},
	{"filesystem", checkFileSystem},
	{"writing", checkWriting},
	{"flock", checkFlock},
	{"watches", checkWatches},
	{"clock", checkClock},
	{"environment", checkEnvironment},
	{"agents", checkAgents},
	{"sandbox", checkSandbox},
	{"limits", checkLimits},
}

// Check examines everything and returns at least one finding per check, in a fixed order. It never fails as a whole: if
// something cannot be examined, that is a finding.
func Check(ctx context.Context, env Patient) []Finding {
	findings, done := examine(ctx, &env)
	done()
	return findings
}

// examine is Check, except that it leaves the resources for repairs open; done closes them.
func examine(ctx context.Context, env *Patient) (findings []Finding, done func()) {
	closers := env.open(ctx)
	for _, c := range checks {
		for _, f := range c.look(ctx, env) {
			f.Name = c.name
			f.Fixable = f.repair != nil
			findings = append(findings, f)
		}
	}
	return findings, closers
}

// open opens the resources that the checks share. Resources that cannot be opened stay nil, which the check "tree"
// reports.
func (e *Patient) open(ctx context.Context) (done func()) {
	e.root, _ = regular.Root(e.Dir)
	e.store, _ = e.Open(false)
	if e.store != nil {
		e.tree, _ = e.store.Load(ctx)
	}
	return func() {
		if e.store != nil {
			_ = e.store.Close() // this only saves a cache
		}
		if e.root != nil {
			_ = e.root.Close()
		}
	}
}

// settings are the settings of the tree, or the defaults.
func (e *Patient) settings() *schemas.SettingsSpec {
	if e.tree != nil {
		return e.tree.Settings()
	}
	s := new(schemas.SettingsSpec)
	s.Default()
	return s
}

// Fix examines the environment, runs the repair of each finding, and checks everything again. Successful repairs are
// findings of level ok; a failed repair is described in Detail.
func Fix(ctx context.Context, env Patient) []Finding {
	first := env
	before, done := examine(ctx, &first)
	var repaired []Finding
	failures := map[string]string{}
	for _, f := range before {
		if f.repair == nil || ctx.Err() != nil {
			continue
		}
		if err := f.repair(ctx); err != nil {
			failures[f.Name] = err.Error()
			continue
		}
		repaired = append(repaired, Finding{Name: f.Name, Level: OK, Detail: "repaired: " + f.Detail})
	}
	done()
	after := Check(ctx, env)
	for i, f := range after {
		if why := failures[f.Name]; why != "" && f.Level != OK {
			after[i].Detail += "; the repair failed: " + why
		}
	}
	return append(repaired, after...)
}

// Worst returns the worst level of the findings, by rank, and whether only invalid specs are the cause of it.
func Worst(findings []Finding) (worst Level, invalid bool) {
	worst, invalid = OK, true
	rank := map[Level]int{OK: 0, Warn: 1, Error: 2}
	for _, f := range findings {
		if rank[f.Level] > rank[worst] {
			worst, invalid = f.Level, true
		}
		if f.Level == worst && !f.Invalid {
			invalid = false
		}
	}
	return worst, invalid
}

func ok(detail string) []Finding       { return []Finding{{Level: OK, Detail: detail}} }
func warn(detail, fix string) Finding  { return Finding{Level: Warn, Detail: detail, Fix: fix} }
func bad(detail, fix string) Finding   { return Finding{Level: Error, Detail: detail, Fix: fix} }
func skipped(because string) []Finding { return ok("not examined: " + because) }
func (f Finding) by(repair func(context.Context) error) Finding {
	f.repair = repair
	return f
}

// New returns the doctor's Env for a tree, with the options and the functions that open, repair and rebuild.
func New(o Options) Patient {
	b := process.ReadBuild()
	env := Patient{
		Dir: o.Tree.Dir, Now: o.Tree.Now, Environ: os.Environ(), Git: gitrepo.Inspect,
		Program: fmt.Sprintf("reconcile %s, %s, %s", b.Version, b.Go, b.Platform),
		Open: func(noCache bool) (*state.Store, error) {
			so := o.Tree.StoreOptions()
			so.NoCache = noCache
			return state.Open(o.Tree.Dir, so)
		},
		Sandbox: o.Sandbox, Reap: o.reap, Remember: o.rebuildMemory, Index: o.examineIndex, Reindex: o.rebuildIndex,
	}
	if self, err := os.Executable(); err == nil {
		env.Hold = []string{self, "doctor", "--hold-lock"}
	}
	if repo, err := gitrepo.Open(o.Tree.Dir); err == nil {
		env.Settle = repo.Settle
	}
	return env
}

// isTree reports whether the folder is, or is about to become, a tree: nothing is written into other folders.
func (e *Patient) isTree() bool {
	if e.root == nil {
		return false
	}
	for _, name := range []string{".reconcile", "reconcile.yaml", e.settings().Folders.Specs} {
		if _, err := e.root.Lstat(name); err == nil {
			return true
		}
	}
	return false
}

// makeScratch creates .reconcile, which ignores itself.
func (e *Patient) makeScratch() error {
	if _, err := e.root.Lstat(".reconcile/.gitignore"); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return durable.WriteFile(e.root, tempFolder, ".reconcile/.gitignore", []byte("*\n"))
}

// writeScratch writes an empty file of a test. If that fails, [checkWriting] reports why.
func (e *Patient) writeScratch(name string) error {
	if err := errors.Join(e.makeScratch(), e.root.MkdirAll(tempFolder, 0o755)); err != nil {
		return err
	}
	return regular.Write(e.root, name, nil, 0o644)
}

// counted returns a number with a noun: "1 error" or "2 errors".
func counted(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return fmt.Sprintf("%d %s", n, word)
}

func (e *Patient) withLock(ctx context.Context, do func() error) error {
	l, err := e.store.Lock(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(), l.Release())
}

// some lists up to five names, and the number of the others.
func some(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
