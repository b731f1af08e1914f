package ops

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/controllers/observations"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state"
)

// CaptureRequest is a text from which observations are captured: a conversation, or a summary.
type CaptureRequest struct {
	Agent      string // "": of the run, or from the environment
	Issue      *int   // nil: from the environment
	Session    string // "": from the environment
	Form       string // memory.FormAuto, memory.FormConversation or memory.FormSummary; "": auto
	Category   string // of what is in no section of the text and has no label
	Supersedes []string
	Anchors    []string // files of the tree that it is about
	Text       Text
}

// CaptureResult is the result of a capture.
type CaptureResult struct {
	memstore.Captured
	// Found counts the observations in the text, Dropped those that were not among the 50 best or had no content.
	Found   int `json:"found"`
	Dropped int `json:"dropped"`
	// SourceTokens is the length of the text.
	SourceTokens int `json:"sourceTokens"`
}

// captureSource describes a text: its agent, session, issue and form.
type captureSource struct {
	agent, session string
	issue          int
	form, name     string
}

// Capture captures what an agent learned from the text of a CaptureRequest, and stores it as observations in the
// memory.
func Capture(ctx context.Context, env Env, q CaptureRequest) (r CaptureResult, err error) {
	env.Tree.Collector.Aim(process.GCLatency)
	from, err := q.check(env)
	if err != nil {
		return r, typed(err)
	}
	err = env.withMemory(ctx, func(s *state.Store, m *memstore.Files) error {
		if !*s.Settings().Memory.Enabled {
			env.note("%v; nothing was captured", memstore.ErrDisabled)
			return nil
		}
		text, err := io.ReadAll(q.Text)
		if err != nil {
			return err
		}
		learned, err := env.learn(m, from, q.Category, text)
		if err != nil {
			return err
		}
		r = CaptureResult{Found: learned.Found, Dropped: learned.Dropped, SourceTokens: learned.SourceTokens}
		if len(learned.Entries) == 0 {
			env.logMemory(nothingLearned, slog.String("agent", from.agent), slog.Int("issueNumber", from.issue))
			return nil
		}
		if err := q.attach(ctx, m, learned.Entries); err != nil {
			return err
		}
		for _, p := range q.Anchors {
			if m.Digest(p) == schemas.AnchorAbsent {
				env.note("warning: there is no %s in the tree; what was learned may be stale once there is", p)
			}
		}
		env.noteUnknownAgent(ctx, s, from.agent)
		r.Captured, err = env.store(ctx, s, m, from, learned)
		return err
	})
	return r, err
}

// check completes a request from the environment, and returns an error for an invalid one.
func (q *CaptureRequest) check(e Env) (l captureSource, err error) {
	if l.agent, err = e.Caller.Worker(q.Agent); err != nil {
		return l, err
	}
	l.session = cmp.Or(q.Session, e.Tree.Getenv("RECONCILE_SESSION"))
	l.form = cmp.Or(q.Form, memory.FormAuto)
	if l.agent, l.issue, err = e.work("capture", l.agent, q.Issue); err != nil {
		return l, err
	}
	if err := checkSession(l.session); err != nil {
		return l, err
	}
	if err := checkCategory(q.Category); err != nil {
		return l, err
	}
	if err := checkIDs(q.Supersedes); err != nil {
		return l, fmt.Errorf("--supersedes: %w", err)
	}
	for _, p := range q.Anchors {
		if err := specs.CheckSecret("--anchor", p); err != nil {
			return l, err
		}
		if treepath.Of(p) != treepath.User || p == "." {
			return l, badField("anchor", " %q: name a file of the tree by its path below the root, with slashes, as src/db/adapter.go", p)
		}
	}
	return l, nil
}

func checkSession(name string) error {
	if err := specs.CheckSecret("--session", name); err != nil {
		return err
	}
	if err := schemas.CheckName(name); name != "" && err != nil {
		return badField("session", " %q: %v", name, err)
	}
	return nil
}

const nothingLearned = "No observations extracted from session (empty summary)"

// learn extracts observations from a text.
func (e Env) learn(m *memstore.Files, from captureSource, category string, text []byte) (memory.Learned, error) {
	source := memory.Source{
		Agent: from.agent, Issue: from.issue, Session: from.session, Category: category, At: e.Tree.Now(),
		Exists: m.Exists, Digest: m.Digest, Known: m.Known, StateFolder: m.StateFolder(),
	}
	skipped, err := source.Read(from.form, from.name, text)
	if err != nil {
		return memory.Learned{}, err
	}
	if skipped > 0 {
		e.note("warning: %s of the conversation could not be read: broken, or of no known form", schemas.Count(skipped, "line"))
	}
	learned := memory.Learn(source)
	if len(learned.Entries) == 0 {
		e.note(nothingLearned)
	}
	return learned, nil
}

// attach adds the anchors and the superseded observations of the request to the entries. The digest of
// each anchor is taken from its present content.
func (q *CaptureRequest) attach(ctx context.Context, m *memstore.Files, entries []schemas.ObservationEntry) error {
	for i := range entries {
		e := &entries[i]
		for _, p := range q.Anchors {
			memory.AddAnchor(e, p, m.Digest(p))
		}
	}
	for _, id := range q.Supersedes {
		if err := supersede(ctx, m, entries, id); err != nil {
			return err
		}
	}
	return nil
}

// supersede marks an older observation as replaced by the best matching entry.
func supersede(ctx context.Context, m *memstore.Files, entries []schemas.ObservationEntry, id string) error {
	older, err := m.ByID(ctx, id)
	if errors.Is(err, memstore.ErrUnknown) {
		return fmt.Errorf("--supersedes: %w", unknownID(ctx, m, id))
	}
	if err != nil {
		return err
	}
	at := memory.BestReplacement(entries, &older)
	if at < 0 {
		return badField("supersedes", " %s: the text says only what that observation says itself", id)
	}
	if e := &entries[at]; !slices.Contains(e.Supersedes, id) {
		e.Supersedes = append(e.Supersedes, id)
	}
	return nil
}

// noteUnknownAgent warns of an agent that the tree does not have; its observations are stored in any case. The tree,
// which may have 50,000 objects, is read only if no file has the agent's name.
func (e Env) noteUnknownAgent(ctx context.Context, s *state.Store, name string) {
	for _, ext := range []string{".yaml", ".yml", ".json"} {
		if _, err := s.Root().Stat(path.Join(s.Settings().Folders.Specs, schemas.AgentKind.Plural, name+ext)); err == nil {
			return
		}
	}
	t, err := s.Load(ctx)
	if err != nil {
		return // the next run reports it
	}
	if found := t.Entry(agentRef(name)); found == nil || found.Gone() {
		e.note("warning: %v; what it learned is kept under its name", notFound(t, agentRef(name)))
	}
}

// store writes a capture, and records the event. If a lock holds the capture back, this is a warning, and the run that
// adds it to the memory records its event.
func (e Env) store(ctx context.Context, s *state.Store, m *memstore.Files, from captureSource, l memory.Learned) (memstore.Captured, error) {
	c, err := m.Capture(ctx, &schemas.ObservationSpec{
		Agent: from.agent, Issue: from.issue, Session: from.session, Timestamp: schemas.NewTime(e.Tree.Now()),
		Entries: l.Entries, SourceTokens: l.SourceTokens, Run: e.Caller.RunKey(),
	})
	if err != nil {
		return c, err
	}
	if c.Held {
		e.recordEvent(ctx, s, observations.NewWarning(c.Why, e.Tree.Now()))
	}
	if len(c.Observations) > 0 {
		e.recordEvent(ctx, s, observations.NewEvent(settle.MemoryStored, from.agent, from.issue, observationIDs(c), c.Tokens,
			e.Tree.Now()))
	}
	return c, nil
}

// Learned is the capture at the end of an agent's work.
type Learned struct {
	// Name is the name of the Observation, Path its file; empty if the conversation contained no observation.
	Name string `json:"name,omitempty"`
	Path string `json:"path,omitempty"`
	// ObservationIDs are the new observations, Repeats the ids of known ones.
	ObservationIDs []string `json:"observationIds"`
	Repeats        []string `json:"repeats,omitempty"`
	// Held says that the memory was locked: the next run adds the Observation to the memory.
	Held bool `json:"held,omitempty"`

	added int // number of new observations in the Observation, also while it is held
}

func (l *Learned) String() string {
	if l.Held {
		return fmt.Sprintf("learned %s, %d known already: kept in %s; the next run takes it into the memory",
			schemas.Count(l.added, "observation"), len(l.Repeats), l.Path)
	}
	return fmt.Sprintf("learned %s, %d known already: %s", schemas.Count(len(l.ObservationIDs), "observation"), len(l.Repeats), l.Path)
}

// conversation is the conversation of an agent's session.
type conversation struct {
	text    []byte
	session string
	file    string // named by a program; "" if a person gave the text
}

// readConversation reads the conversation of a session. The input of a program's own hook names the file and the
// session.
func readConversation(from Text, session string) (*conversation, error) {
	text, err := io.ReadAll(from)
	if err != nil {
		return nil, err
	}
	c := &conversation{text: text, session: session}
	var call struct {
		Session    string `json:"session_id"`
		Transcript string `json:"transcript_path"`
	}
	if json.Unmarshal(text, &call) != nil || call.Transcript == "" {
		return c, nil
	}
	if c.session == "" && schemas.CheckName(call.Session) == nil && specs.CheckSecret("", call.Session) == nil {
		c.session = call.Session
	}
	c.file = call.Transcript
	if rest, ok := strings.CutPrefix(c.file, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			c.file = filepath.Join(home, rest)
		}
	}
	c.text, err = io.ReadAll(FileText(c.file))
	return c, err
}

// learnSession captures observations from a finished session. nil: the conversation or the memory is missing.
func (e Env) learnSession(ctx context.Context, s *state.Store, agent string, issue int, said *conversation) (_ *Learned, err error) {
	defer func() { err = typed(err) }()
	switch on := *s.Settings().Memory.Enabled; {
	case said == nil && on:
		e.note("nothing is remembered of this session; to keep what was learned, give its conversation with --transcript FILE")
		return nil, nil
	case said == nil:
		return nil, nil
	case !on:
		e.note("%v; nothing was captured", memstore.ErrDisabled)
		return nil, nil
	}
	from := captureSource{agent: agent, issue: issue, session: said.session, form: memory.FormAuto}
	if said.file != "" { // a program may name any file: it must be a conversation
		from.form, from.name = memory.FormConversation, said.file
	}
	m := e.memory(s)
	got, err := e.captureSession(ctx, s, m, from, said.text)
	return got, errors.Join(err, m.Close())
}

func (e Env) captureSession(ctx context.Context, s *state.Store, m *memstore.Files, from captureSource, text []byte) (*Learned, error) {
	l, err := e.learn(m, from, "", text)
	if err != nil {
		return nil, err
	}
	if len(l.Entries) == 0 {
		e.logMemory("memory-empty", slog.String("agent", from.agent), slog.Int("issueNumber", from.issue))
		return &Learned{ObservationIDs: []string{}}, nil
	}
	c, err := e.store(ctx, s, m, from, l)
	if err != nil {
		return nil, err
	}
	return &Learned{Name: c.Name, Path: c.Path, ObservationIDs: observationIDs(c), Repeats: c.Repeats, Held: c.Held,
		added: len(l.Entries) - len(c.Repeats)}, nil
}

// noteSettled records that the run after a capture added held observations to the memory.
func (e Env) noteSettled(ctx context.Context, s *state.Store, issue int, l *Learned) {
	m := e.memory(s)
	all, err := m.ByIssue(ctx, issue)
	if err = errors.Join(err, m.Close()); err != nil {
		e.warnMemory(err.Error())
		return
	}
	l.Held, l.ObservationIDs = false, []string{}
	for i := range all {
		if all[i].Source == l.Name {
			l.ObservationIDs = append(l.ObservationIDs, all[i].ID)
		}
	}
}

// redact removes secrets and private text, and warns if there were any.
func (e Env) redact(what, text string) string {
	plain := secrets.Redact(text)
	if plain != text {
		e.warn(what + " held a secret or private text, which was taken out")
	}
	return plain
}
