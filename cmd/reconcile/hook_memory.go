package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// learned is what a hook tells programs of what it captured.
type learned struct {
	// Name is that of the Observation, Path its file; empty if the conversation held nothing to remember.
	Name string `json:"name,omitempty"`
	Path string `json:"path,omitempty"`
	// ObservationIDs are what is new, Repeats the ids of what was known already.
	ObservationIDs []string `json:"observationIds"`
	Repeats        []string `json:"repeats,omitempty"`
	// Held says that the memory's locks could not be had: the next run takes the Observation into the memory.
	Held bool `json:"held,omitempty"`

	new int // how many observations the Observation adds, also while it is held
}

// exit is the exit code of an end whose lesson is kept and not yet in the memory: that of a capture.
func (l *learned) exit() error {
	if l != nil && l.Held {
		return exitWith(exitBusy)
	}
	return nil
}

// takenIn notes that the run after a capture took in what a lock had held.
func (a *app) takenIn(ctx context.Context, s *state.Store, issue int, l *learned) {
	m := a.memoryOf(s)
	all, err := m.ByIssue(ctx, issue)
	if err = errors.Join(err, m.Close()); err != nil {
		a.warnMemory(err.Error())
		return
	}
	l.Held, l.ObservationIDs = false, []string{}
	for i := range all {
		if all[i].Source == l.Name {
			l.ObservationIDs = append(l.ObservationIDs, all[i].ID)
		}
	}
}

// line is what people are told of it.
func (l *learned) line() string {
	if l.Held {
		return fmt.Sprintf("learned %s, %d known already: kept in %s; the next run takes it into the memory",
			render.Plural(l.new, "observation"), len(l.Repeats), l.Path)
	}
	return fmt.Sprintf("learned %s, %d known already: %s", render.Plural(len(l.ObservationIDs), "observation"), len(l.Repeats), l.Path)
}

// remind is what an agent is told of earlier work when it takes up an issue. One that cannot be reminded works without.
func (a *app) remind(ctx context.Context, s *state.Store, t *state.Tree, o hookOptions) string {
	m := a.memoryOf(s)
	defer m.Close() //nolint:errcheck // it was only read
	found, err := m.Recall(ctx, memstore.Request{Agent: o.agent, Issue: o.issue.number,
		Context: aboutIssue(t, o.issue.number)})
	switch {
	case errors.Is(err, memstore.ErrDisabled):
		return ""
	case err != nil:
		a.warnMemory("Memory recall skipped: " + err.Error())
		return ""
	}
	a.tellRecalled(ctx, s, recallOptions{agent: o.agent, issue: o.issue}, found)
	return found.Text
}

// aboutIssue is what the tree says of an issue: the titles of its sessions.
func aboutIssue(t *state.Tree, issue int) string {
	var titles []string
	for _, e := range t.Entries(schemas.SessionKind.Name) {
		if s := schemas.SpecAs[*schemas.SessionSpec](e.Object); s != nil && s.Issue == issue && issue > 0 {
			titles = append(titles, s.Title, s.Description)
		}
	}
	return strings.TrimSpace(strings.Join(titles, "\n"))
}

// transcript is the conversation of a session.
type transcript struct {
	text    []byte
	session string
	// named is the file that a program named; "" if a person did, or there is none.
	named string
}

// readTranscript reads the conversation that --transcript names: a file, or standard input. What a program's own hook
// says on standard input names the file and the session. nil: none is named.
func (a *app) readTranscript(o hookOptions) (*transcript, error) {
	if o.transcript == "" {
		return nil, nil
	}
	text, err := a.readInput(o.transcript)
	if err != nil {
		return nil, err
	}
	t := &transcript{text: text, session: o.session}
	var call struct {
		Session    string `json:"session_id"`
		Transcript string `json:"transcript_path"`
	}
	if json.Unmarshal(text, &call) != nil || call.Transcript == "" {
		return t, nil
	}
	if t.session == "" && schemas.CheckName(call.Session) == nil &&
		specs.CheckSecret("", call.Session) == nil {
		t.session = call.Session
	}
	t.named = expandHome(call.Transcript)
	t.text, err = a.readInput(t.named)
	return t, err
}

// expandHome resolves the ~/ with which some programs tell paths.
func expandHome(p string) string {
	rest, ok := strings.CutPrefix(p, "~/")
	home, err := os.UserHomeDir()
	if !ok || err != nil {
		return p
	}
	return filepath.Join(home, rest)
}

// captureSession keeps what an agent learned in a session that ends. nil: nothing was asked to be kept, or there is no
// memory.
func (a *app) captureSession(ctx context.Context, s *state.Store, t *state.Tree, o hookOptions, said *transcript,
) (*learned, error) {
	if _, err := ops.FindAgent(t, o.agent); err != nil {
		return nil, err
	}
	switch on := *s.Settings().Memory.Enabled; {
	case said == nil && on:
		a.note("nothing is remembered of this session; to keep what was learned, give its conversation with " +
			"--transcript FILE")
		return nil, nil
	case said == nil:
		return nil, nil
	case !on:
		a.note("%v; nothing was captured", memstore.ErrDisabled)
		return nil, nil
	}
	m := a.memoryOf(s)
	who := &captureOptions{agent: o.agent, issue: o.issue, session: said.session}
	if said.named != "" { // whatever file a program names: only a conversation is read as one
		who.format, who.from = formConversation, said.named
	}
	got, err := a.captureTranscript(ctx, s, m, who, said.text)
	return got, errors.Join(refused(err), m.Close())
}

func (a *app) captureTranscript(ctx context.Context, s *state.Store, m *memstore.Files, o *captureOptions, text []byte,
) (*learned, error) {
	l, err := a.learn(m, o, text)
	if err != nil {
		return nil, err
	}
	if len(l.Entries) == 0 {
		a.note("No observations extracted from session (empty summary)")
		a.logMemory("memory-empty", slog.String("agent", o.agent), slog.Int("issueNumber", o.issue.number))
		return &learned{ObservationIDs: []string{}}, nil
	}
	c, err := m.Capture(ctx, a.observation(o, l))
	if err != nil {
		return nil, err
	}
	a.tellStored(ctx, s, o.agent, o.issue.number, c)
	out := &learned{new: len(l.Entries) - len(c.Repeats),
		Name: c.Name, Path: c.Path, Repeats: c.Repeats, Held: c.Held, ObservationIDs: []string{}}
	for i := range c.Observations {
		out.ObservationIDs = append(out.ObservationIDs, c.Observations[i].ID)
	}
	return out, nil
}
