package clarifications

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Requests is what decisions about clarifications share over one tree in one round. Each part is made when it is first asked
// for.
type Requests struct {
	world        *settle.World
	Tree         *state.Tree
	now          time.Time
	Index        *RequestIndex
	provisionals map[string]*provisional   // by name of the request
	numbers      map[string]string         // assigned in this round, by name of the request
	ordered      map[string]*clarify.Order // by name of the request
}

// RequestsOf returns what decisions over a world share about clarifications.
func RequestsOf(w *settle.World) *Requests {
	return settle.Shared(&w.OfRound, func() *Requests {
		return &Requests{world: w, Tree: w.Tree, now: w.Now, Index: indexOf(w.OfTree, w.Tree)}
	})
}

// indexOf returns the index of a tree.
func indexOf(ofTree *settle.Values, t *state.Tree) *RequestIndex {
	return settle.Shared(ofTree, func() *RequestIndex { return NewIndex(t) })
}

// NewIndex returns the index of a tree, which is not shared.
func NewIndex(t *state.Tree) *RequestIndex { return &RequestIndex{tree: t} }

// RequestIndex is what decisions about clarifications look up in a tree. Each part is made when it is first asked for.
type RequestIndex struct {
	tree *state.Tree
	// byID are the requests with a number. If two share a number, the first by name owns it.
	byID map[string]schemas.Ref
	// last is the highest number that a status has, and resolved are the resolved requests, by issue.
	last     map[int]int
	resolved map[int][]schemas.Ref
	// replies are those that call the clarification by its number.
	replies map[string][]*state.Entry
	// outcomes are those of replies, by name; lookups counts the requests for them.
	outcomes map[string]replyOutcome
	lookups  int
	// asking are the requests that nodes made, by DAG.
	asking map[string][]*Question
}

// Status returns the status in the tree; never nil. Callers must not change it.
func Status(e *state.Entry) *schemas.ClarificationRequestStatus {
	return state.StatusOf[schemas.ClarificationRequestStatus](e)
}

// Spec returns the usable spec of a request, or nil.
func Spec(e *state.Entry) *schemas.ClarificationRequestSpec {
	return state.SpecOf[*schemas.ClarificationRequestSpec](e)
}

// number fills in byID, last and resolved.
func (x *RequestIndex) number() {
	if x.byID != nil {
		return
	}
	x.byID, x.last, x.resolved = map[string]schemas.Ref{}, map[int]int{}, map[int][]schemas.Ref{}
	add := func(ref schemas.Ref, b *schemas.Brief) {
		issue, seq, ok := clarify.ParseID(b.ID)
		if !ok {
			return
		}
		x.last[issue] = max(x.last[issue], seq)
		if first, ok := x.byID[b.ID]; !ok || ref.Name < first.Name {
			x.byID[b.ID] = ref
		}
		if b.Phase == schemas.ClarificationResolved {
			x.resolved[issue] = append(x.resolved[issue], ref)
		}
	}
	for _, e := range x.tree.Active(schemas.ClarificationRequestKind.Name) {
		add(e.Ref, e.Brief())
	}
	for o := range x.tree.Dormant(schemas.ClarificationRequestKind.Name) {
		add(o.Ref, &o.Brief)
	}
}

// WithID returns the request that has the number, or nil.
func (x *RequestIndex) WithID(id string) *state.Entry {
	x.number()
	if ref, ok := x.byID[id]; ok {
		return x.tree.Entry(ref)
	}
	return nil
}

// request returns the request that a reply calls by name or number, or nil.
func (x *RequestIndex) request(clarification string) *state.Entry {
	if schemas.IsClarificationID(clarification) {
		return x.WithID(clarification)
	}
	if e := x.tree.Entry(schemas.ClarificationRequestKind.Ref(clarification)); e != nil && !e.Gone() {
		return e
	}
	return nil
}

// file fills in replies. Only what refers to no object calls its clarification by a number, and is not dormant.
func (x *RequestIndex) file() {
	if x.replies != nil {
		return
	}
	x.replies = map[string][]*state.Entry{}
	for _, e := range x.tree.Active(schemas.ReplyKind.Name) {
		if e.Object != nil && len(e.Object.Refs) == 0 {
			if id := schemas.TextIn(e.Object.Canonical(), "clarification"); id != "" {
				x.replies[id] = append(x.replies[id], e)
			}
		}
	}
}

// fewLookups is up to how many replies are looked for in every thread, before all threads are indexed.
const fewLookups = 4

const fromReply = "reply/" // begins the source of what a reply said

// SplitSeq cuts the number off the key of a run.
func SplitSeq(key string) (half string, seq int) {
	i := strings.LastIndexByte(key, '-') + 1
	seq, err := strconv.Atoi(key[i:])
	if err != nil {
		return key, 0
	}
	return key[:i], seq
}

// provisional is the outcome of a decision about a request before other requests, a deadlock say, are considered.
type provisional struct {
	// undecided is why the request cannot be decided; its former status stays. nil if it can be decided.
	undecided *settle.Judgement
	// digest is what the status is about.
	digest  string
	input   clarify.Input
	verdict clarify.Decision
}

// Question is a request that a node of a DAG made.
type Question struct {
	Entry  *state.Entry
	Spec   *schemas.ClarificationRequestSpec
	Node   string
	Prefix string // the key of the asking run up to its number: dags/<dag>/<node>-<16 hex digits>-
	Seq    int    // that number
}

// replyOutcome has the names of the requests that accepted and refused a reply.
type replyOutcome struct{ took, refused string }

// ScopeOf returns the scope of the questions of an agent: those of a run of a node, by its key, else those outside of a run.
func (w *Requests) ScopeOf(from, run string) clarify.Scope { return ScopeOf(w.Tree, from, run) }

// ScopeOf is [Requests.ScopeOf] for a tree.
func ScopeOf(t *state.Tree, from, run string) clarify.Scope {
	agent := state.SpecOf[*schemas.AgentSpec](t.Entry(schemas.AgentKind.Ref(from)))
	var asks *schemas.Clarify
	if dag, node, ok := schemas.SplitRunKey(run); ok {
		if spec := state.SpecOf[*schemas.DAGSpec](t.Entry(schemas.DAGKind.Ref(dag))); spec != nil {
			if n := spec.Node(node); n != nil {
				asks = n.Clarify
			}
		}
	}
	return clarify.NewScope(from, agent, asks)
}

// refusal says why a request gets no number, or waits with the one that it has: its agent may not ask that, or the file
// of an agent is broken.
func (w *Requests) refusal(spec *schemas.ClarificationRequestSpec, st *schemas.ClarificationRequestStatus) (settle.Judgement, bool) {
	if st.ID == "" {
		if err := w.ScopeOf(spec.From, spec.Run).Check(spec); err != nil {
			j := settle.Judgement{Class: settle.ClassFailed, Reason: settle.ReasonScopeViolation, Message: err.Error()}
			if spec.Imported != "" {
				j.Class = settle.ClassWaiting // nobody here asked it
			}
			return j, true
		}
	}
	for _, name := range []string{spec.From, spec.To} {
		a := w.Tree.Entry(schemas.AgentKind.Ref(name))
		if schemas.ClarificationOpen(st.Phase) && a != nil && a.Broken() {
			return settle.Judgement{Phase: st.Phase, Class: settle.ClassWaiting, Reason: settle.ReasonAgentInvalid,
				Message: fmt.Sprintf("waits until %s is put right", a.Ref)}, true
		}
	}
	return settle.Judgement{}, false
}

// Precedence is larger for the more downstream agent.
func (w *Requests) Precedence(agent string) int {
	if e := w.Tree.Entry(schemas.AgentKind.Ref(agent)); e != nil {
		if spec := schemas.SpecAs[*schemas.AgentSpec](e.Object); spec != nil && spec.Precedence != nil {
			return *spec.Precedence
		}
	}
	return schemas.DefaultPrecedence(agent)
}
