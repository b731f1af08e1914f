package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

func newHistoryCmd(a *app) *cobra.Command {
	limit := 0
	at := ""
	cmd := &cobra.Command{
		Use:   "history KIND/NAME",
		Short: "Tell what changed of an object, when, and by which input, newest first",
		Long: `Tell which commits changed the spec or the status of an object, newest first: what they changed of the spec,
from which phase to which it went, and whether it was ready. Of a branch that was merged, the merge counts. Commits of
reconcile name the commit that they had read, their input. A spec file that was renamed is followed as far as it has its
present name.`,
		Example: "  reconcile history dag/checks\n" +
			"  reconcile history dag/checks -n 5 -o json",
		Args: arguments(1, 2, "an object"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return badUsage("-n %d: at least 1", limit)
			}
			return a.history(cmd.Context(), strings.Join(args, "/"), at, limit)
		},
		ValidArgsFunction: a.completeObjects(false),
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 20, "tell of the latest `N` commits")
	cmd.Flags().StringVar(&at, "at", "HEAD", "go back from `COMMIT`: a hash, a branch, a tag, HEAD~3")
	return cmd
}

// pastChange is one commit as history -o json prints it.
type pastChange struct {
	Commit string    `json:"commit"`
	When   time.Time `json:"when"`
	Author string    `json:"author"`
	// Input is the commit that a run had read whose outcome this one records.
	Input   string `json:"input,omitempty"`
	Subject string `json:"subject"`
	// Phase and Ready are set where they changed.
	Phase *beforeAfter `json:"phase,omitempty"`
	Ready *beforeAfter `json:"ready,omitempty"`
	// Spec are the fields of the spec, the labels and annotations that changed, sorted.
	Spec []fieldChange `json:"spec,omitempty"`
	// Note is what befell a whole file: created, removed, or that it could not be read.
	Note string `json:"note,omitempty"`
}

type beforeAfter struct {
	Was string `json:"was"`
	Now string `json:"now"`
}

func (c *beforeAfter) String() string {
	if c == nil {
		return ""
	}
	return dashed(c.Was) + " → " + dashed(c.Now)
}

func dashed(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// fieldChange is a field as JSON before and after; without one of them it was added or removed.
type fieldChange struct {
	Field string          `json:"field"`
	Was   json.RawMessage `json:"was,omitempty"`
	Now   json.RawMessage `json:"now,omitempty"`
}

func (a *app) history(ctx context.Context, word, rev string, limit int) error {
	ref, err := a.refOf(ctx, word)
	if err != nil {
		return err
	}
	repo, commit, err := a.config().Revision(ctx, rev)
	if err != nil {
		return err
	}
	statusPath, paths, err := a.pathsOf(ctx, ref)
	if err != nil {
		return err
	}
	changes := []pastChange{}
	cut, err := repo.Past(ctx, commit, paths, func(r gitrepo.Revision) bool {
		if c, of := changeOf(ref, statusPath, paths, r); of {
			changes = append(changes, c)
		}
		return len(changes) < limit
	})
	if err != nil {
		return fmt.Errorf("read the history of %s: %w", ref, err)
	}
	if cut {
		a.note("the clone is shallow: what is older is not here; git fetch --unshallow brings it")
	}
	switch {
	case a.global.output != formatTable:
		return a.print(changes)
	case len(changes) == 0 && cut:
		return nil
	case len(changes) == 0:
		return fmt.Errorf("no commit up to %s has %s: neither %s", rev, ref, strings.Join(paths, " nor "))
	}
	return a.historyTable(changes)
}

// pathsOf are the files of an object: the status, "" if its kind has none, and with it the spec, where it is now. Of an
// object that is gone, it is looked for where it would be by its name.
func (a *app) pathsOf(ctx context.Context, ref schemas.Ref) (status string, all []string, err error) {
	s, t, err := a.load(ctx)
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
	k, _ := kinds().Find(ref.Kind)
	base := t.Settings().Folders.Specs + "/" + k.Plural + "/" + ref.Name
	return status, append(all, base+".yaml", base+".yml", base+".json", base+".toml"), nil
}

// changeOf tells what a commit changed of an object; of is false where it changed nothing of this one: a file may have held
// another before.
func changeOf(ref schemas.Ref, statusPath string, paths []string, r gitrepo.Revision) (c pastChange, of bool) {
	c = pastChange{Commit: r.Hash, When: r.When, Author: r.Author, Input: r.Input, Subject: r.Subject}
	var notes []string
	for i, p := range paths {
		was, now := r.Was[i], r.Now[i]
		if p != statusPath {
			was, now = ownSpec(ref, p, was), ownSpec(ref, p, now)
		}
		if string(was) == string(now) && (was == nil) == (now == nil) {
			continue
		}
		of = true
		if p == statusPath {
			notes = append(notes, c.status(was, now))
		} else {
			notes = append(notes, c.spec(ref, p, was, now))
		}
	}
	c.Note = strings.Join(slices.DeleteFunc(notes, func(s string) bool { return s == "" }), "; ")
	return c, of
}

// ownSpec is a spec, or nil where it is that of another object.
func ownSpec(ref schemas.Ref, path string, data []byte) []byte {
	if o := schemas.NewDecoder(kinds(), 0).Decode(path, data).Object; o != nil && o.Ref != ref {
		return nil
	}
	return data
}

func (c *pastChange) status(was, now []byte) (note string) {
	phaseWas, readyWas := standOf(was)
	phaseNow, readyNow := standOf(now)
	if phaseWas != phaseNow {
		c.Phase = &beforeAfter{phaseWas, phaseNow}
	}
	if readyWas != readyNow {
		c.Ready = &beforeAfter{readyWas, readyNow}
	}
	switch {
	case now == nil:
		return "status removed"
	case !isStatus(now):
		return "status cannot be read"
	case c.Phase == nil && c.Ready == nil:
		return "status updated"
	}
	return ""
}

func isStatus(data []byte) bool {
	_, _, err := state.DecodeStatus(kinds(), data)
	return err == nil
}

// standOf is the phase of a status, and whether it says that the object is ready; both empty for what is none.
func standOf(data []byte) (phase, ready string) {
	_, st, err := state.DecodeStatus(kinds(), data)
	if err != nil {
		return "", ""
	}
	if cond := st.Base().Condition(schemas.Ready); cond != nil {
		ready = string(cond.Status)
	}
	return st.Base().Phase, ready
}

// spec notes what changed between two versions of a spec file.
func (c *pastChange) spec(ref schemas.Ref, path string, was, now []byte) (note string) {
	fieldsWas, okWas := specFields(ref, path, was)
	fieldsNow, okNow := specFields(ref, path, now)
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
	for _, field := range sortedKeys(fieldsWas) {
		if string(fieldsWas[field]) != string(fieldsNow[field]) {
			c.Spec = append(c.Spec, fieldChange{field, fieldsWas[field], fieldsNow[field]})
		}
	}
	for _, field := range sortedKeys(fieldsNow) {
		if fieldsWas[field] == nil {
			c.Spec = append(c.Spec, fieldChange{Field: field, Now: fieldsNow[field]})
		}
	}
	slices.SortFunc(c.Spec, func(a, b fieldChange) int { return strings.Compare(a.Field, b.Field) })
	if len(c.Spec) == 0 {
		return "spec rewritten, and says the same"
	}
	return ""
}

// specFields are the fields of a spec by their dotted paths, each as JSON; ok is false where the file does not declare
// ref.
func specFields(ref schemas.Ref, path string, data []byte) (fields map[string]json.RawMessage, ok bool) {
	o := schemas.NewDecoder(kinds(), 0).Decode(path, data).Object
	if o == nil || o.Ref != ref {
		return nil, false
	}
	fields = map[string]json.RawMessage{}
	flatten(fields, "spec", o.Canonical())
	for name, value := range map[string]any{"metadata.labels": o.Metadata.Labels, "metadata.annotations": o.Metadata.Annotations} {
		raw, _ := json.Marshal(value) // a map of texts
		if string(raw) != "null" {
			flatten(fields, name, raw)
		}
	}
	return fields, true
}

// flatten adds what is below a field. Of lists of things with a name or an id, as nodes and steps, these stand for the
// number: a node that moves does not change.
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

func (a *app) historyTable(changes []pastChange) error {
	t := render.NewTable(a.palette(), "COMMIT", "WHEN", "BY", "PHASE", "READY", "CHANGED")
	for _, c := range changes {
		t.Cells(render.Cell{Text: short(c.Commit)}, render.Cell{Text: c.When.Format("2006-01-02 15:04:05Z")},
			render.Cell{Text: clean(c.by())}, orDash(c.Phase.String()), orDash(c.Ready.String()), orDash(clean(c.changed())))
	}
	return t.Write(a.stdout)
}

func short(hash string) string { return hash[:min(len(hash), 8)] }

// by is who made a commit; of one of reconcile, from what.
func (c *pastChange) by() string {
	if c.Input != "" {
		return "reconcile, from " + short(c.Input)
	}
	return c.Author
}

func (c *pastChange) changed() string {
	var parts []string
	for _, f := range c.Spec {
		parts = append(parts, f.Field)
	}
	out := shorten(parts, 5)
	if c.Note != "" {
		out = strings.TrimPrefix(out+"; "+c.Note, "; ")
	}
	return out
}
