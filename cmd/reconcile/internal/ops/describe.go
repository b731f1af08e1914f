package ops

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/outputs"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/dags"
	"reconcile.dev/reconcile/controllers/nodes"
	"reconcile.dev/reconcile/controllers/progress"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/sessions"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/turns"
	"reconcile.dev/reconcile/controllers/workflows"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// DescribeRequest requests all information about one object.
type DescribeRequest struct {
	Object string // kind/name, or the id of a clarification
	At     string // a revision of git; "": the present tree
}

// Description is an object with all information about it.
type Description struct {
	Object
	Path      string   `json:"path,omitempty"`
	Why       []string `json:"why"`       // why it is not ready, and when it is decided again
	Referrers []string `json:"referrers"` // objects that reference it
	// OutputsChanged are the declared outputs that have changed since their runs, by node.
	OutputsChanged map[string][]string `json:"outputsChanged,omitempty"`

	// Turns are the latest recorded turns of agents, by node; Usage is the sum over the turns of an agent.
	Turns map[string]*schemas.Turn `json:"turns,omitempty"`
	Usage *turns.Total             `json:"usage,omitempty"`

	// Gates are the nodes that wait for an approval, with the content to approve.
	Gates []dags.Gate `json:"gates,omitempty"`
	// Held says of nodes which wait for others that touch the same files which ones these are, by node.
	Held map[string]string `json:"held,omitempty"`
	// Pipelines are those of a session that work or wait, by task.
	Pipelines map[string]*schemas.PipelineStatus `json:"pipelines,omitempty"`
	// Estimate says how far a DAG with work is, and how long the rest may take.
	Estimate *progress.Estimate `json:"estimate,omitempty"`

	// Origins name the runs whose results nodes reused, and why other nodes ran again.
	Origins []dags.Origin `json:"origins,omitempty"`

	Entry          *state.Entry        `json:"-"`
	Details        []settle.Column     `json:"-"` // specific to the kind
	OutputsMissing map[string][]string `json:"-"` // declared outputs that do not exist, by node
	Interrupted    []string            `json:"-"` // see GetResult
}

// Describe returns the Description of an object: its spec and status, details, referrers, and why it has its state.
// Outputs are compared with the files only for the present tree.
func Describe(ctx context.Context, env Env, q DescribeRequest) (Description, error) {
	s, t, done, err := env.loadAt(ctx, q.At)
	if err != nil {
		return Description{}, typed(err)
	}
	defer done()
	e, err := find(t, q.Object)
	if err != nil {
		return Description{}, typed(err)
	}
	details := slices.Concat(settle.TableOf(t).Details(e), workflows.Details(t, e), agents.UsageDetails(t, e, env.Tree.Now()))
	d := Description{Object: NewObject(e), Entry: e, Details: details, Turns: agents.NodeTurns(e), Why: readiness.Why(e, t), Referrers: []string{}}
	for _, r := range t.Referrers(e.Ref) {
		d.Referrers = append(d.Referrers, r.String())
	}
	if e.Kind == schemas.AgentKind.Name {
		d.Usage = agents.UsageTotals(t)[e.Name]
	}
	if e.Object != nil {
		d.Path = e.Object.Path
	} else if e.Broken() {
		d.Path = e.Problems[0].Path
	}
	d.Origins, d.Pipelines = dags.Origins(e), sessions.ActivePipelines(t, e)
	if q.At == "" {
		if e.Kind == schemas.DAGKind.Name {
			d.Held = dags.HeldNodes(e, dags.TouchingIn(t))
			d.Estimate = progress.EstimateOf(t, e, runtime.NumCPU(), env.Tree.Now())
		}
		d.Gates = gatesOf(t, e, env.Tree.Now())
		d.Interrupted = nodes.Interrupted(e, s.Attended())
		d.OutputsMissing, d.OutputsChanged, err = outputs.Compare(ctx, env.Tree.Dir, e)
	}
	return d, typed(err)
}

// gatesOf are the closed gates of a DAG.
func gatesOf(t *state.Tree, e *state.Entry, now time.Time) []dags.Gate {
	if e.Kind != schemas.DAGKind.Name {
		return nil
	}
	return dags.Gates(settle.In{Entry: e, Tree: t, World: settle.NewWorld(t, now, nil), Now: now})
}

// loadAt reads the tree of a commit; "" is the present tree, which alone has a store. done releases it.
func (e Env) loadAt(ctx context.Context, rev string) (s *state.Store, t *state.Tree, done func(), err error) {
	if rev == "" {
		s, t, err := e.load(ctx)
		if err != nil {
			return nil, nil, nil, err
		}
		return s, t, func() { _ = s.Close() }, nil // this only saves a cache
	}
	repo, commit, err := e.Tree.Revision(ctx, rev)
	if err != nil {
		return nil, nil, nil, err
	}
	dir, err := os.MkdirTemp("", "reconcile-at-")
	if err != nil {
		return nil, nil, nil, fmt.Errorf("make a folder for the tree of %s: %w", rev, err)
	}
	remove := func() { _ = os.RemoveAll(dir) } // the system removes the rest
	t, err = e.Tree.LoadAt(ctx, repo, commit, dir)
	if err != nil {
		remove()
		return nil, nil, nil, fmt.Errorf("read the tree of %s: %w", rev, err)
	}
	return nil, t, remove, nil
}

// HistoryRequest requests the changes of an object.
type HistoryRequest struct {
	Object string // kind/name, or the id of a clarification; it need not exist any more
	At     string // the commit to start from, going back
	Limit  int    // maximum number of changes; at least 1
}

// HistoryResult has the changes of an object, newest first.
type HistoryResult struct {
	Ref     schemas.Ref
	Paths   []string // the files of the object
	Changes []Change
	Shallow bool // a shallow clone lacks older commits
}

// Change is one commit that changed an object.
type Change struct {
	Commit string    `json:"commit"`
	When   time.Time `json:"when"`
	Author string    `json:"author"`
	// Input is the input commit of the run whose result this commit records.
	Input   string `json:"input,omitempty"`
	Subject string `json:"subject"`
	// Phase and Ready are set if they changed.
	Phase *BeforeAfter `json:"phase,omitempty"`
	Ready *BeforeAfter `json:"ready,omitempty"`
	// Spec are the changed fields of the spec, the labels and annotations, sorted.
	Spec []FieldChange `json:"spec,omitempty"`
	// Note describes a change of a whole file: created, removed, or unreadable.
	Note string `json:"note,omitempty"`
}

// BeforeAfter is a value before and after a commit.
type BeforeAfter struct {
	Was string `json:"was"`
	Now string `json:"now"`
}

// String returns "was → now", with "-" for an empty value, or "" for nil.
func (c *BeforeAfter) String() string {
	if c == nil {
		return ""
	}
	return cmp.Or(c.Was, "-") + " → " + cmp.Or(c.Now, "-")
}

// FieldChange is a field as JSON before and after; one of them is missing if it was added or removed.
type FieldChange struct {
	Field string          `json:"field"`
	Was   json.RawMessage `json:"was,omitempty"`
	Now   json.RawMessage `json:"now,omitempty"`
}

// History lists the changes of an object: the commits of the repository's history that changed its spec or status.
func History(ctx context.Context, env Env, q HistoryRequest) (r HistoryResult, err error) {
	if q.Limit < 1 {
		return r, badRequest("-n %d: at least 1", q.Limit)
	}
	if r.Ref, err = env.findRef(ctx, q.Object); err != nil {
		return r, typed(err)
	}
	repo, commit, err := env.Tree.Revision(ctx, q.At)
	if err != nil {
		return r, typed(err)
	}
	status := ""
	if status, r.Paths, err = env.pathsOf(ctx, r.Ref); err != nil {
		return r, typed(err)
	}
	r.Changes = []Change{}
	r.Shallow, err = repo.History(ctx, commit, r.Paths, func(rev gitrepo.Revision) bool {
		if c, of := changeOf(env.kinds(), r.Ref, status, r.Paths, rev); of {
			r.Changes = append(r.Changes, c)
		}
		return len(r.Changes) < q.Limit
	})
	if err != nil {
		err = fmt.Errorf("read the history of %s: %w", r.Ref, err)
	}
	return r, typed(err)
}

// pathsOf returns the files of an object: the status, "" if its kind has none, and with it the spec at its current
// path. For a deleted object the paths are derived from its name.
func (env Env) pathsOf(ctx context.Context, ref schemas.Ref) (status string, all []string, err error) {
	s, t, err := env.load(ctx)
	if err != nil {
		return "", nil, err
	}
	defer s.Close()
	if status = s.StatusPath(ref); status != "" {
		all = append(all, status)
	}
	e := t.Entry(ref)
	switch {
	case ref.Kind == schemas.SettingsKind.Name:
		return "", []string{schemas.SettingsPath}, nil
	case e != nil && e.Object != nil:
		return status, append(all, e.Object.Path), nil
	case e != nil && len(e.Problems) > 0 && e.Problems[0].Path != "":
		return status, append(all, e.Problems[0].Path), nil
	}
	k, _ := settle.TableOf(t).Schemas().Find(ref.Kind)
	base := t.Settings().Folders.Specs + "/" + k.Plural + "/" + ref.Name
	return status, append(all, base+".yaml", base+".yml", base+".json", base+".toml"), nil
}

// changeOf describes how a commit changed an object; of is false if it did not: the file may have held another object
// before.
func changeOf(kinds schemas.Kinds, ref schemas.Ref, statusPath string, paths []string, r gitrepo.Revision) (c Change, of bool) {
	c = Change{Commit: r.Hash, When: r.When, Author: r.Author, Input: r.Input, Subject: r.Subject}
	var notes []string
	for i, p := range paths {
		was, now := r.Was[i], r.Now[i]
		if p != statusPath {
			was, now = ownSpec(kinds, ref, p, was), ownSpec(kinds, ref, p, now)
		}
		if string(was) == string(now) && (was == nil) == (now == nil) {
			continue
		}
		of = true
		if p == statusPath {
			notes = append(notes, c.status(kinds, was, now))
		} else {
			notes = append(notes, c.spec(kinds, ref, p, was, now))
		}
	}
	c.Note = strings.Join(slices.DeleteFunc(notes, func(s string) bool { return s == "" }), "; ")
	return c, of
}

// ownSpec returns a spec, or nil if it belongs to another object.
func ownSpec(kinds schemas.Kinds, ref schemas.Ref, path string, data []byte) []byte {
	if o := schemas.NewDecoder(kinds, 0).Decode(path, data).Object; o != nil && o.Ref != ref {
		return nil
	}
	return data
}

func (c *Change) status(kinds schemas.Kinds, was, now []byte) (note string) {
	phaseWas, readyWas := phaseAndReady(kinds, was)
	phaseNow, readyNow := phaseAndReady(kinds, now)
	if phaseWas != phaseNow {
		c.Phase = &BeforeAfter{phaseWas, phaseNow}
	}
	if readyWas != readyNow {
		c.Ready = &BeforeAfter{readyWas, readyNow}
	}
	switch {
	case now == nil:
		return "status removed"
	case !isStatus(kinds, now):
		return "status cannot be read"
	case c.Phase == nil && c.Ready == nil:
		return "status updated"
	}
	return ""
}

func isStatus(kinds schemas.Kinds, data []byte) bool {
	_, _, err := state.DecodeStatus(kinds, data)
	return err == nil
}

// phaseAndReady returns the phase and the Ready condition of a status; both are empty if it cannot be decoded.
func phaseAndReady(kinds schemas.Kinds, data []byte) (phase, ready string) {
	_, st, err := state.DecodeStatus(kinds, data)
	if err != nil {
		return "", ""
	}
	if cond := st.Base().Condition(schemas.Ready); cond != nil {
		ready = string(cond.Status)
	}
	return st.Base().Phase, ready
}

// spec records the difference between two versions of a spec file.
func (c *Change) spec(kinds schemas.Kinds, ref schemas.Ref, path string, was, now []byte) (note string) {
	fieldsWas, okWas := specFields(kinds, ref, path, was)
	fieldsNow, okNow := specFields(kinds, ref, path, now)
	switch {
	case was == nil && okNow:
		return "spec created"
	case now == nil:
		return "spec removed"
	case !okNow:
		return "spec is not valid"
	case !okWas:
		return "spec is valid again"
	}
	for _, field := range slices.Sorted(maps.Keys(fieldsWas)) {
		if string(fieldsWas[field]) != string(fieldsNow[field]) {
			c.Spec = append(c.Spec, FieldChange{field, fieldsWas[field], fieldsNow[field]})
		}
	}
	for _, field := range slices.Sorted(maps.Keys(fieldsNow)) {
		if fieldsWas[field] == nil {
			c.Spec = append(c.Spec, FieldChange{Field: field, Now: fieldsNow[field]})
		}
	}
	slices.SortFunc(c.Spec, func(a, b FieldChange) int { return strings.Compare(a.Field, b.Field) })
	if len(c.Spec) == 0 {
		return "spec rewritten, and says the same"
	}
	return ""
}

// specFields returns the fields of a spec by their dotted paths, each as JSON; ok is false if the file does not declare
// ref.
func specFields(kinds schemas.Kinds, ref schemas.Ref, path string, data []byte) (fields map[string]json.RawMessage, ok bool) {
	o := schemas.NewDecoder(kinds, 0).Decode(path, data).Object
	if o == nil || o.Ref != ref {
		return nil, false
	}
	fields = map[string]json.RawMessage{}
	flatten(fields, "spec", o.Canonical())
	for name, value := range map[string]any{"metadata.labels": o.Metadata.Labels, "metadata.annotations": o.Metadata.Annotations} {
		raw, _ := json.Marshal(value) // a map of strings
		if string(raw) != "null" {
			flatten(fields, name, raw)
		}
	}
	return fields, true
}

// flatten adds the fields below a field. Elements of a list with a name or an id, such as nodes and steps, are
// identified by it instead of the index: a moved node counts as unchanged.
func flatten(into map[string]json.RawMessage, field string, raw json.RawMessage) {
	var object map[string]json.RawMessage
	var list []json.RawMessage
	switch {
	case json.Unmarshal(raw, &object) == nil && len(object) > 0:
		for name, value := range object {
			flatten(into, field+"."+name, value)
		}
	case json.Unmarshal(raw, &list) == nil && len(list) > 0 && list[0][0] == '{':
		for i, value := range list {
			flatten(into, field+"["+elementName(value, i)+"]", value)
		}
	default:
		into[field] = raw
	}
}

func elementName(raw json.RawMessage, i int) string {
	var named struct{ Name, ID string }
	if json.Unmarshal(raw, &named) == nil && named.Name+named.ID != "" {
		return named.Name + named.ID
	}
	return strconv.Itoa(i)
}

func specFile(folder string, k schemas.Kind, name string) string {
	return path.Join(folder, k.Plural, name+".yaml")
}
