package ops

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/checking"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// OverrideRequest requests that something which the last inspection or run of tests found is accepted.
type OverrideRequest struct {
	Dir     string // as in CheckRequest
	Finding string // the id of a finding, or its beginning
	Test    string // the name of a failed test
	NoTests bool   // that no test runs
	Reason  string
	By      string // the acting person; "": the caller
}

// OverrideResult is an override that was written.
type OverrideResult struct {
	Path    string   // the file of the Action
	What    string   // what is accepted
	Covers  []string // the files that it is about; none: all
	Applied bool
}

// OverrideCheck accepts what a check found: it writes an Action, which holds until a file that it covers changes. Only people may do that.
func OverrideCheck(ctx context.Context, env Env, q OverrideRequest) (r OverrideResult, err error) {
	defer func() { err = typed(err) }()
	if err := env.authorize("OverrideCheck"); err != nil {
		return r, err
	}
	if strings.TrimSpace(q.Reason) == "" {
		return r, badField("reason", ": say why; the reason is on record")
	}
	p, err := env.openProject(ctx, &CheckRequest{Dir: q.Dir})
	if err != nil {
		return r, err
	}
	o, what, err := p.overridden(ctx, q)
	if err != nil {
		return r, err
	}
	if o.Digest, err = p.digest(o.Covers); err != nil {
		return r, err
	}
	a, err := env.beginAction(ctx, schemas.VerbOverride, q.By, q.Reason)
	if err != nil {
		return r, err
	}
	defer a.store.Close()
	a.spec.Target, a.spec.Override = schemas.TargetTree, o
	r = OverrideResult{What: what, Covers: o.Covers}
	var run *RunResult
	r.Path, run, err = a.write(ctx, actionName(a.spec), false)
	r.Applied = run != nil
	return r, err
}

// overridden finds in the last results the finding or test to accept.
func (p *project) overridden(ctx context.Context, q OverrideRequest) (*schemas.CheckOverride, string, error) {
	switch {
	case q.NoTests:
		return &schemas.CheckOverride{NoTests: true}, "no test runs", nil
	case q.Finding != "":
		var last Inspection
		if err := p.lastResult("inspect", &last); err != nil {
			return nil, "", err
		}
		var found []checks.Finding
		for _, c := range last.Checks {
			for _, f := range c.Findings {
				if strings.HasPrefix(f.ID, q.Finding) {
					found = append(found, f)
				}
			}
		}
		if len(found) != 1 {
			return nil, "", badRequest("%d findings of the last inspection have the id %q; \"reconcile inspect --last\" shows them with their ids", len(found), q.Finding)
		}
		f := found[0]
		o := &schemas.CheckOverride{Finding: f.ID, Tool: f.Tool, Rule: f.Rule, Message: f.Message}
		if filepath.IsLocal(filepath.FromSlash(f.File)) { // else it is about a file outside, which no digest covers
			o.Covers = []string{f.File}
		}
		return o, fmt.Sprintf("%s: %s", f.File, f.Message), nil
	}
	var last Testing
	if err := p.lastResult("test", &last); err != nil {
		return nil, "", err
	}
	var found []*schemas.CheckOverride
	for _, c := range last.Checks {
		for _, t := range c.Tests {
			if t.Name != q.Test || t.Outcome != checks.TestFailed {
				continue
			}
			o := &schemas.CheckOverride{Test: t.Name, Suite: t.Suite, Tool: c.Tool, Message: t.Message}
			var err error
			if o.Covers, err = p.filesOfTest(c, t); err != nil {
				return nil, "", err
			}
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		return nil, "", badRequest("%d tests that failed in the last run are called %q; \"reconcile test --last\" shows them", len(found), q.Test)
	}
	return found[0], "the test " + q.Test, nil
}

// filesOfTest are the files that an override of a test covers: all in the folder of the test, if it is known.
func (p *project) filesOfTest(c checks.Check, t checks.Test) ([]string, error) {
	if t.File == "" {
		return nil, nil
	}
	all, err := p.allFiles()
	return slices.DeleteFunc(all, func(f string) bool { return checks.Folder(f) != checks.Folder(t.File) }), err
}

// digest is a digest of files; with none, of all files of the project. A file that is missing counts, too.
func (p *project) digest(files []string) (_ string, err error) {
	if len(files) == 0 {
		if files, err = p.projectFiles(); err != nil {
			return "", err
		}
	}
	h := sha256.New()
	for _, f := range files {
		data, err := regular.ReadPath(filepath.Join(p.root, filepath.FromSlash(f)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		fmt.Fprintf(h, "%q %v %x\n", f, err == nil, sha256.Sum256(data))
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// projectFiles lists the files of the project that are neither reconcile's own, such as an override, nor in caches of its tools.
func (p *project) projectFiles() ([]string, error) {
	l, err := p.list()
	if !p.git {
		l.untracked = l.all
	}
	all := checking.WithoutCaches(p.root, slices.Clone(l.all), l.untracked)
	rel, relErr := filepath.Rel(p.root, p.treeDir())
	if relErr != nil {
		return all, err
	}
	wanted, observed := path.Join(filepath.ToSlash(rel), "specs")+"/", path.Join(filepath.ToSlash(rel), "state")+"/"
	return slices.DeleteFunc(all, func(f string) bool { return strings.HasPrefix(f, wanted) || strings.HasPrefix(f, observed) }), err
}

func (p *project) treeDir() string {
	dir, err := absoluteFolder(p.env.Tree.Dir)
	if err != nil {
		return p.env.Tree.Dir
	}
	return dir
}

// treeWith loads the tree of the project if it has specs of a kind, for which only the specs are read. Without them t is nil, with nothing to close.
func (p *project) treeWith(ctx context.Context, kind schemas.Kind) (s *state.Store, t *state.Tree, err error) {
	if _, err := state.Find(p.treeDir(), p.env.kinds()); err != nil {
		return nil, nil, nil
	}
	if s, err = p.env.Tree.Open(); err != nil {
		return nil, nil, err
	}
	some, err := s.LoadSpecs(ctx, kind.Name)
	if err == nil && len(some.Entries(kind.Name)) > 0 {
		r := tree.Reader{Now: p.env.Tree.Now}
		if t, err = r.Load(ctx, s); err == nil {
			return s, t, nil
		}
	}
	return nil, nil, errors.Join(err, s.Close())
}

// accept reads what people accepted, and what these decisions cover. It comes before the tools: a test could write a decision, or bring files back to
// what one is about.
func (p *project) accept(ctx context.Context) (err error) {
	if p.accepted, err = p.overrides(ctx); err != nil {
		return err
	}
	p.digests = map[string]string{}
	for _, o := range p.accepted {
		if o.NoTests { // is about no finding and no test
			continue
		}
		if p.digests[strings.Join(o.Covers, "\x00")], err = p.digest(o.Covers); err != nil {
			return err
		}
	}
	return nil
}

// override applies what people accepted to the checks of a result.
func (p *project) override(r *Checked, failOn checks.Severity) (err error) {
	r.Overridden, err = checks.Apply(r.Checks, p.accepted, failOn, func(covers []string) (string, error) { return p.digests[strings.Join(covers, "\x00")], nil })
	return err
}

// overrides lists what people accepted, by the Actions of the tree; none without a tree.
func (p *project) overrides(ctx context.Context) ([]checks.Override, error) {
	s, t, err := p.treeWith(ctx, schemas.ActionKind)
	if t == nil {
		return nil, err
	}
	defer s.Close()
	var out []checks.Override
	for _, e := range t.Entries(schemas.ActionKind.Name) {
		spec := state.SpecOf[*schemas.ActionSpec](e)
		if spec == nil || spec.Verb != schemas.VerbOverride || spec.Override == nil {
			continue
		}
		o := spec.Override
		one := checks.Override{Action: e.Ref.String(), By: spec.By, Proof: spec.Proof, Reason: spec.Reason, At: spec.At.Time, Finding: o.Finding, Test: o.Test,
			Suite: o.Suite, NoTests: o.NoTests, Tool: o.Tool, Rule: o.Rule, Message: o.Message, Covers: o.Covers, Digest: o.Digest}
		if st, ok := e.Status().(*schemas.ActionStatus); ok {
			if why := st.Distrusted(e.Object.Digest); why != "" {
				p.env.warn(fmt.Sprintf("%s does not count: %s", e.Ref, why))
				continue
			}
		}
		out = append(out, one)
	}
	return out, nil
}
