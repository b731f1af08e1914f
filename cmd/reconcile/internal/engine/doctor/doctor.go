// Package doctor finds what is wrong with a tree and its surroundings: files that do not parse, locks and temporary
// files that killed processes left, caches that lie, a damaged repository, file systems and limits that reconcile cannot
// rely on. What is safe to repair, it repairs.
//
// Every check looks and changes nothing, but for a test file of its own under .reconcile/. A repair does what the next
// run would do anyway, by the same code and under the same locks, so it may be killed at any point and run again, beside
// any number of other processes. What needs a judgement is left to people, and said.
package doctor

import (
	"context"
	"os"
	"os/exec"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// Level says how bad a finding is.
type Level string

const (
	OK    Level = "ok"
	Warn  Level = "warn"  // works, but not as it should, or not for sure
	Error Level = "error" // does not work
)

// Finding is the result of one check; a check that finds several things returns several.
type Finding struct {
	// Name is the stable name of the check: "locks".
	Name   string `json:"name"`
	Level  Level  `json:"level"`
	Detail string `json:"detail"`
	// Fix says what to do; empty when nothing is to be done.
	Fix string `json:"fix,omitempty"`
	// Fixable means that doctor --fix does it.
	Fixable bool `json:"fixable"`
	// Invalid means that the specs are at fault, and not their surroundings.
	Invalid bool `json:"-"`

	repair func(context.Context) error
}

// Env is what is examined, and the hands that repairs need. Dir, Open, Now and Git must be set.
type Env struct {
	// Dir is the root of the tree.
	Dir string
	// Open opens a store on the tree; without its caches if so told.
	Open func(noCache bool) (*state.Store, error)
	Now  func() time.Time
	// Program says which build this is, for people.
	Program string
	// Environ is the environment, as os.Environ has it.
	Environ []string
	// Git makes a git command that runs in dir with the environment, and runs no program of the repository's configuration.
	Git func(ctx context.Context, dir string, environ []string, args ...string) *exec.Cmd
	// Hold is the command line of a program that calls [Hold]; empty: locks are not tested.
	Hold []string
	// Reap ends what killed runs left running; nil: such runs are only reported.
	Reap func(context.Context, []state.Orphan) error
	// Remember makes the memory anew from what was captured; the tree is locked. nil: it is only reported.
	Remember func(context.Context, *state.Store, *state.Tree) error
	// Index says what is in the index of search; the error says why it cannot be used. nil: it is not examined.
	Index func(context.Context, *state.Store, *state.Tree) (string, error)
	// Reindex builds the index anew; nil: it is only reported.
	Reindex func(context.Context, *state.Store, *state.Tree) error
	// Settle finishes what a killed commit left undone in the repository; nil: it is only reported.
	Settle func(context.Context) error

	root  *os.Root
	store *state.Store
	tree  *state.Tree // nil when it could not be loaded
}

// checks are all checks, in the order of the report.
var checks = []struct {
	name string
	look func(context.Context, *Env) []Finding
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
}

// Check examines everything and returns at least one finding per check. It never fails as a whole: what cannot be
// examined is a finding, too. The order is fixed.
func Check(ctx context.Context, env Env) []Finding {
	findings, done := examine(ctx, &env)
	done()
	return findings
}

// examine is Check with what it needs left open, for repairs; done closes it.
func examine(ctx context.Context, env *Env) (findings []Finding, done func()) {
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

// open opens what the checks share. What cannot be opened stays nil, which the check "tree" reports.
func (e *Env) open(ctx context.Context) (done func()) {
	e.root, _ = regular.Root(e.Dir)
	e.store, _ = e.Open(false)
	if e.store != nil {
		e.tree, _ = e.store.Load(ctx)
	}
	return func() {
		if e.store != nil {
			_ = e.store.Close() // it saves a cache, no more
		}
		if e.root != nil {
			_ = e.root.Close()
		}
	}
}

// settings are those of the tree, or the defaults.
func (e *Env) settings() *schemas.SettingsSpec {
	if e.tree != nil {
		return e.tree.Settings()
	}
	s := new(schemas.SettingsSpec)
	s.Default()
	return s
}

// Fix repairs what can be repaired, and examines everything again. What was repaired is among the findings, as ok; a
// repair that failed says so in Detail.
func Fix(ctx context.Context, env Env) []Finding {
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

// Worst returns the highest level among findings, and whether specs alone are to blame for it.
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
