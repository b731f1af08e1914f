package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/edit"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// switchOptions are the flags of switch.
type switchOptions struct {
	noRun bool
}

func newSwitchCmd(a *app) *cobra.Command {
	o := &switchOptions{}
	cmd := &cobra.Command{
		Use:   "switch SESSION",
		Short: "Make a session the active one of its owner",
		Long: `Make a session the active one of its owner: its spec asks for Active, and the owner's other sessions that ask
for Active then ask for Paused. Only the word behind "phase" changes in their files. Then the tree is run once.`,
		Example: "  reconcile switch health",
		Args:    arguments(1, 1, "a session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.switchTo(cmd.Context(), args[0], *o)
		},
		ValidArgsFunction: a.completeNamesOf(schemas.SessionKind),
	}
	cmd.Flags().BoolVar(&o.noRun, "no-run", false, "only edit the specs; the next run follows them")
	return cmd
}

// phaseEdit is one spec that switch changes.
type phaseEdit struct {
	entry *state.Entry
	phase string
	data  []byte
}

func (a *app) switchTo(ctx context.Context, name string, o switchOptions) error {
	s, t, err := a.load(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	e, err := findSession(t, name)
	if err != nil {
		return err
	}
	edits, err := planSwitch(s.Root(), t, e)
	if err != nil {
		return err
	}
	if len(edits) == 0 {
		a.note("%s is the active one already", e.Ref)
	}
	var ops []durable.Op
	for _, ed := range edits {
		ops = append(ops, durable.Op{Path: ed.entry.Object.Path, Data: ed.data})
	}
	if err := durable.Apply(s.Root(), specs.Scratch, ops); err != nil {
		return err
	}
	for _, ed := range edits {
		fmt.Fprintf(a.stdout, "%s: phase %s (%s)\n", ed.entry.Ref, ed.phase, ed.entry.Object.Path)
	}
	return a.follow(ctx, t, o.noRun)
}

// findSession takes health as well as session/health.
func findSession(t *state.Tree, word string) (*state.Entry, error) {
	ref := schemas.Ref{Kind: schemas.SessionKind.Name, Name: word}
	if schemas.CheckName(word) != nil {
		var err error
		if ref, err = ops.ParseRef(word); err != nil {
			return nil, err
		}
	}
	if ref.Kind != schemas.SessionKind.Name {
		return nil, badUsage("%s is no session", ref)
	}
	e := t.Entry(ref)
	switch {
	case e == nil || e.Gone():
		return nil, ops.NotFound(t, ref)
	case e.Broken():
		return nil, fmt.Errorf("%s cannot be switched to: %s", ref, e.Problems[0].Error())
	}
	return e, nil
}

// planSwitch works out the new text of every spec that must change; those that pause come first, so that a switch that
// is cut short leaves no two sessions active.
func planSwitch(root *os.Root, t *state.Tree, to *state.Entry) ([]phaseEdit, error) {
	var edits []phaseEdit
	var problems []error
	change := func(e *state.Entry, phase string) {
		ed, err := editPhase(root, t, e, phase)
		if err != nil {
			problems = append(problems, err)
			return
		}
		edits = append(edits, ed)
	}
	owner := sessionSpec(to).Owner
	for _, e := range t.Entries(schemas.SessionKind.Name) {
		if s := sessionSpec(e); s != nil && e != to && owner != "" && s.Owner == owner && s.Phase == schemas.SessionActive {
			change(e, schemas.SessionPaused)
		}
	}
	if sessionSpec(to).Phase != schemas.SessionActive {
		change(to, schemas.SessionActive)
	}
	return edits, errors.Join(problems...)
}

func sessionSpec(e *state.Entry) *schemas.SessionSpec {
	return schemas.SpecAs[*schemas.SessionSpec](e.Object)
}

// editPhase changes the phase in a spec's text, and makes sure that the decoder sees exactly that change.
func editPhase(root *os.Root, t *state.Tree, e *state.Entry, phase string) (phaseEdit, error) {
	path := e.Object.Path
	byHand := func(err error) error {
		return fmt.Errorf("%s: %w; set spec.phase to %s by hand", path, err, phase)
	}
	src, err := regular.Read(root, path)
	if err != nil {
		return phaseEdit{}, byHand(regular.Cause(err))
	}
	data, err := edit.Spec(src, "phase", phase)
	if err != nil {
		return phaseEdit{}, byHand(err)
	}
	d := schemas.DecoderFor(kinds(), t.Settings()).Decode(path, data)
	if d.Object == nil || d.Object.Ref != e.Ref {
		return phaseEdit{}, byHand(errors.New("the text cannot be changed safely"))
	}
	want := *sessionSpec(e)
	want.Phase = phase
	if !sameSpec(&want, schemas.SpecAs[*schemas.SessionSpec](d.Object)) {
		return phaseEdit{}, byHand(errors.New("the text cannot be changed safely"))
	}
	return phaseEdit{e, phase, data}, nil
}

// sameSpec compares two specs by their canonical JSON.
func sameSpec(a, b *schemas.SessionSpec) bool {
	x, err1 := state.Encode(a)
	y, err2 := state.Encode(b)
	return err1 == nil && err2 == nil && slices.Equal(x, y)
}
