package ops

import (
	"context"
	"errors"
	"fmt"
	"os"

	"reconcile.dev/reconcile/cmd/reconcile/internal/edit"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// SwitchRequest requests that a session becomes its owner's only active one.
type SwitchRequest struct {
	Session string // its name, or session/NAME
	NoRun   bool   // only edit the specs; the next run applies them
}

// SwitchResult is the outcome of a switch.
type SwitchResult struct {
	Session schemas.Ref
	Edits   []PhaseEdit // the changed specs; none if the session was the only active one already
	Run     *RunResult  // the run that applied them; nil: none
}

// PhaseEdit is one spec that Switch changes.
type PhaseEdit struct {
	Ref   schemas.Ref
	Path  string
	Phase string // the new phase in the spec

	data []byte
}

// Switch switches to a session, so that it is the only active one of its owner. It sets the phase in its spec to
// Active, and in the owner's other active sessions to Paused. Then it runs the tree once. The result is valid even with
// an error, for the edits that were made.
func Switch(ctx context.Context, env Env, q SwitchRequest) (r SwitchResult, err error) {
	if err := env.authorize("Switch"); err != nil {
		return r, typed(err)
	}
	s, err := env.Tree.Open()
	if err != nil {
		return r, typed(err)
	}
	defer s.Close()
	env.Tree.Collector.Aim(process.GCLatency)
	t, e, err := loadSession(ctx, s, q.Session)
	if err != nil {
		return r, typed(err)
	}
	edits, err := planSwitch(s.Root(), t, e)
	if err != nil {
		return r, typed(err)
	}
	var changes []durable.Op
	for _, ed := range edits {
		changes = append(changes, durable.Op{Path: ed.Path, Data: ed.data})
	}
	if err := durable.Apply(s.Root(), specs.Scratch, changes); err != nil {
		return r, typed(err)
	}
	r.Session, r.Edits = e.Ref, edits
	r.Run, err = env.applyByRun(ctx, t, q.NoRun)
	return r, typed(err)
}

// loadSession reads the specs of the sessions, and finds a session. An object without a spec is looked for in the whole tree, which knows more about it.
func loadSession(ctx context.Context, s *state.Store, word string) (*state.Tree, *state.Entry, error) {
	t, err := s.LoadSpecsAndClaims(ctx, schemas.SessionKind.Name)
	if err != nil {
		return nil, nil, fmt.Errorf("read the specs in %s: %w", s.Dir(), err)
	}
	e, err := findSession(t, word)
	if err == nil {
		return t, e, nil
	}
	if t, err = s.Load(ctx); err != nil {
		return nil, nil, fmt.Errorf("read the tree in %s: %w", s.Dir(), err)
	}
	e, err = findSession(t, word)
	return t, e, err
}

// findSession accepts health as well as session/health.
func findSession(t *state.Tree, word string) (*state.Entry, error) {
	ref := schemas.Ref{Kind: schemas.SessionKind.Name, Name: word}
	if schemas.CheckName(word) != nil {
		var err error
		if ref, err = parseRef(settle.TableOf(t), word); err != nil {
			return nil, err
		}
	}
	if ref.Kind != schemas.SessionKind.Name {
		return nil, badRequest("%s is no session", ref)
	}
	e := t.Entry(ref)
	switch {
	case e == nil || e.Gone():
		return nil, notFound(t, ref)
	case e.Broken():
		return nil, fmt.Errorf("%s cannot be used: %s", ref, e.Problems[0].Error())
	}
	return e, nil
}

// planSwitch computes the new text of every spec that must change. Specs to pause come first, so that an interrupted
// switch leaves no two sessions active.
func planSwitch(root *os.Root, t *state.Tree, to *state.Entry) ([]PhaseEdit, error) {
	var edits []PhaseEdit
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

// editPhase changes the phase in a spec's text, and verifies with the decoder that nothing else changed.
func editPhase(root *os.Root, t *state.Tree, e *state.Entry, phase string) (PhaseEdit, error) {
	path := e.Object.Path
	byHand := func(err error) error {
		return fmt.Errorf("%s: %w; set spec.phase to %s by hand", path, err, phase)
	}
	src, err := regular.Read(root, path)
	if err != nil {
		return PhaseEdit{}, byHand(regular.Cause(err))
	}
	data, err := edit.Spec(src, "phase", phase)
	if err != nil {
		return PhaseEdit{}, byHand(err)
	}
	d := schemas.DecoderFor(settle.TableOf(t).Schemas(), t.Settings()).Decode(path, data)
	if d.Object == nil || d.Object.Ref != e.Ref {
		return PhaseEdit{}, byHand(errors.New("the text cannot be changed safely"))
	}
	want := *sessionSpec(e)
	want.Phase = phase
	if !sameSpec(&want, schemas.SpecAs[*schemas.SessionSpec](d.Object)) {
		return PhaseEdit{}, byHand(errors.New("the text cannot be changed safely"))
	}
	return PhaseEdit{e.Ref, path, phase, data}, nil
}
