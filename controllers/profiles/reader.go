package profiles

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"reconcile.dev/reconcile/controllers/turns"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/extract"
)

// maxValue bounds a JSON value of the output, in bytes; longer ones are not read.
const maxValue = 8 << 20

// Reader reads the standard output of a turn as it arrives. Its memory is bounded for any output.
type Reader struct {
	events []event
	whole  bool // the output is one value
	carry  []byte
	skip   bool // the present value is too long
	tools  map[string]bool
	open   atomic.Int32 // len(tools)
	found  Reading
}

// Reading is what the output of a turn says.
type Reading struct {
	Text      string
	HasText   bool
	Succeeded bool // the last event that ends a turn is one of success
	// Failure is the failure that the turn ended with; Retry is an error that the program was still busy with.
	Failure, Retry *turns.Error
	// Turn has the reported facts: model, session, stop reason, usage, cost, tool calls.
	Turn schemas.Turn
	// TooLong counts the values that were too long to be read.
	TooLong int
}

type event struct {
	schemas.ProfileEvent
	when  []condition
	paths map[string]extract.Expr // by the path's text
}

type condition struct {
	at   extract.Expr
	want string
}

// NewReader returns a reader for a profile whose paths are valid.
func NewReader(p *schemas.Profile) *Reader {
	r := &Reader{whole: p.Output == schemas.ProfileOutputJSON, tools: map[string]bool{}}
	for i := range p.Events {
		r.events = append(r.events, compile(p.Events[i]))
	}
	return r
}

func compile(e schemas.ProfileEvent) event {
	c := event{ProfileEvent: e, paths: map[string]extract.Expr{}}
	for _, path := range slices.Sorted(maps.Keys(e.When)) {
		x, _ := extract.Parse(path) // settings and built-in profiles are checked
		c.when = append(c.when, condition{x, e.When[path]})
	}
	for _, path := range []string{e.Denied.Items, e.Denied.Tool, e.Denied.Command, e.Denied.Why, e.Text, e.Session, e.Model, e.StopReason, e.Cost, e.ToolStarts, e.ToolEnds,
		e.Usage.Requests, e.Usage.Input, e.Usage.Output, e.Usage.Cached, e.Usage.CacheWrite, e.Usage.ContextUsed, e.Usage.ContextWindow,
		e.Error.Message, e.Error.Kind, e.Error.Status, e.Error.RetryAfter} {
		c.paths[path], _ = extract.Parse(path)
	}
	return c
}

// ToolRuns reports whether a tool call has started and not ended. It may be called while Write is.
func (r *Reader) ToolRuns() bool { return r.open.Load() > 0 }

// Session returns the id of the session that the output has named so far; "" for none. It is called between calls of Write.
func (r *Reader) Session() string { return r.found.Turn.SessionID }

// Write reads the next part of the output. It never fails.
func (r *Reader) Write(p []byte) (int, error) {
	n := len(p)
	for !r.whole {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			break
		}
		r.keep(p[:end])
		r.flush()
		p = p[end+1:]
	}
	r.keep(p)
	return n, nil
}

func (r *Reader) keep(p []byte) {
	if r.skip = r.skip || len(r.carry)+len(p) > maxValue; r.skip {
		r.carry = r.carry[:0]
		return
	}
	r.carry = append(r.carry, p...)
}

// flush reads the value that was kept. Other values are ignored: programs print notices.
func (r *Reader) flush() {
	if r.skip {
		r.found.TooLong++
	}
	text := r.carry
	if start := bytes.IndexByte(text, '{'); start >= 0 && (r.whole || len(bytes.TrimSpace(text[:start])) == 0) {
		d := json.NewDecoder(bytes.NewReader(text[start:]))
		d.UseNumber()
		var doc map[string]any
		if d.Decode(&doc) == nil {
			r.take(doc)
		}
	}
	r.carry, r.skip = r.carry[:0], false
}

// Reading returns the result; the output has ended.
func (r *Reader) Reading() Reading {
	r.flush()
	return r.found
}

// Turn returns a copy of the state of the turn. It must not be called while Write is.
func (r *Reader) Turn() schemas.Turn { return r.found.Turn }

// LastText returns the last text that was read so far. It must not be called while Write is.
func (r *Reader) LastText() string { return r.found.Text }

func (r *Reader) take(doc map[string]any) {
	for i := range r.events {
		if e := &r.events[i]; e.matches(doc) {
			r.apply(e, doc)
		}
	}
}

func (e *event) matches(doc any) bool {
	for _, c := range e.when {
		texts := c.at.Texts(doc)
		if c.want == "*" && len(texts) > 0 || c.want == "" && len(texts) == 0 {
			continue
		}
		if len(texts) != 1 || texts[0] != c.want {
			return false
		}
	}
	return true
}

// mostDenied bounds the refused calls of a turn.
const mostDenied = 100

// deny takes the calls that the program refused. An event with a list replaces an earlier one.
func (r *Reader) deny(e *event, doc any) {
	if e.Denied.Items == "" {
		return
	}
	var all []schemas.Permission
	for _, item := range e.paths[e.Denied.Items].Items(doc) {
		text := func(path string) string { return e.paths[path].Text(item) }
		p := schemas.Permission{Title: text(e.Denied.Tool), Why: text(e.Denied.Why), Decision: schemas.PermissionDenied}
		if c := text(e.Denied.Command); c != "" {
			p.Argv, p.Shell = []string{c}, true
		}
		if len(all) < mostDenied && p.Title != "" {
			all = append(all, p)
		}
	}
	r.found.Turn.Permissions = all
}

func (r *Reader) apply(e *event, doc any) {
	t := &r.found.Turn
	text := func(path string) string { return e.paths[path].Text(doc) }
	set := func(to *string, path string) {
		if s := text(path); s != "" {
			*to = s
		}
	}
	if id := text(e.Session); schemas.IsSessionID(id) {
		t.SessionID = id
	}
	set(&t.Model, e.Model)
	set(&t.StopReason, e.StopReason)
	if s := text(e.Text); s != "" {
		r.found.Text, r.found.HasText, r.found.Retry = s, true, nil
	}
	r.countTools(e, doc)
	r.count(e, doc)
	r.deny(e, doc)
	if c, ok := e.paths[e.Cost].Number(doc); ok && c > 0 && c <= schemas.MaxCostUSD { // agents that do not know a price say 0
		if t.CostUSD != nil && e.Usage.Count == schemas.CountStep {
			c += *t.CostUSD
		}
		t.CostUSD = &c
	}
	switch e.End {
	case schemas.EventSuccess:
		r.found.Succeeded, r.found.Failure, r.found.Retry = true, nil, nil
	case schemas.EventFailure:
		r.found.Succeeded, r.found.Failure = false, e.failure(doc)
	case schemas.EventRetry:
		r.found.Retry = e.failure(doc)
	}
}

func (r *Reader) countTools(e *event, doc any) {
	for _, id := range e.paths[e.ToolStarts].Texts(doc) {
		if !r.tools[id] && len(r.tools) < 10000 {
			r.tools[id] = true
			r.found.Turn.ToolCalls++
			r.found.Retry = nil
		}
	}
	for _, id := range e.paths[e.ToolEnds].Texts(doc) {
		delete(r.tools, id)
	}
	r.open.Store(int32(len(r.tools)))
}

func (e *event) failure(doc any) *turns.Error {
	status, _ := strconv.Atoi(e.paths[e.Error.Status].Text(doc))
	return &turns.Error{Message: e.paths[e.Error.Message].Text(doc), Kind: e.paths[e.Error.Kind].Text(doc), Status: status,
		RetryAfter: e.paths[e.Error.RetryAfter].Text(doc)}
}

// count adds the usage of tokens in an event.
func (r *Reader) count(e *event, doc any) {
	var u schemas.Usage
	found := false
	for _, f := range []struct {
		path string
		to   *int64
	}{{e.Usage.Requests, &u.Requests}, {e.Usage.Input, &u.InputTokens}, {e.Usage.Output, &u.OutputTokens},
		{e.Usage.Cached, &u.CachedInputTokens}, {e.Usage.CacheWrite, &u.CacheWriteTokens},
		{e.Usage.ContextUsed, &u.ContextUsed}, {e.Usage.ContextWindow, &u.ContextWindow}} {
		if n, ok := e.paths[f.path].Number(doc); ok && n > 0 && n < 1e15 {
			*f.to, found = int64(n), true
		}
	}
	if !found {
		return
	}
	t := &r.found.Turn
	t.UsageFrom = schemas.UsageFromAgent
	if e.Usage.Count == schemas.CountSession {
		t.SessionUsage = &u
		return
	}
	if t.Usage == nil {
		t.Usage = new(schemas.Usage)
	}
	if e.Usage.Count == schemas.CountStep {
		*t.Usage = added(*t.Usage, u)
		return
	}
	*t.Usage = over(*t.Usage, u)
}

// over returns u with the numbers of v that are known.
func over(u, v schemas.Usage) schemas.Usage {
	pairs(&u, &v, func(a, b int64) int64 {
		if b != 0 {
			return b
		}
		return a
	})
	return u
}

// added returns the sum; the context is that of v.
func added(u, v schemas.Usage) schemas.Usage {
	sum := u
	pairs(&sum, &v, func(a, b int64) int64 { return a + b })
	sum.ContextUsed, sum.ContextWindow = v.ContextUsed, max(u.ContextWindow, v.ContextWindow)
	return sum
}

func pairs(u, v *schemas.Usage, f func(a, b int64) int64) {
	for _, p := range [][2]*int64{{&u.Requests, &v.Requests}, {&u.InputTokens, &v.InputTokens}, {&u.OutputTokens, &v.OutputTokens},
		{&u.CachedInputTokens, &v.CachedInputTokens}, {&u.CacheWriteTokens, &v.CacheWriteTokens},
		{&u.ContextUsed, &v.ContextUsed}, {&u.ContextWindow, &v.ContextWindow}} {
		*p[0] = f(*p[0], *p[1])
	}
}

// TurnUsage returns the usage of a turn from that of its session: what was added since before, the record of the turn that
// it resumed. Without one, the session is the turn.
func TurnUsage(session *schemas.Usage, before *schemas.Turn) *schemas.Usage {
	u := *session
	if before != nil && before.SessionUsage != nil {
		pairs(&u, before.SessionUsage, func(a, b int64) int64 { return max(a-b, 0) })
		u.ContextUsed, u.ContextWindow = session.ContextUsed, session.ContextWindow
	}
	return &u
}

// Missing says in words which sign of success the output lacks.
func (r Reading) Missing(p *schemas.Profile) []string {
	if r.Succeeded {
		return nil
	}
	for i := range p.Events {
		e := &p.Events[i]
		if e.End != schemas.EventSuccess {
			continue
		}
		var signs []string
		for _, path := range slices.Sorted(maps.Keys(e.When)) {
			signs = append(signs, fmt.Sprintf("%s=%s", path, e.When[path]))
		}
		return []string{"no event with " + strings.Join(signs, ", ")}
	}
	return []string{"the profile names no sign of success"}
}
