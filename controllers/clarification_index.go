package controllers

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// requests is what decisions about clarifications share over one tree in one round. Each part is made when it is first asked
// for.
type requests struct {
	world        *World
	tree         *state.Tree
	now          time.Time
	index        *clarificationIndex
	provisionals map[string]*provisional   // by name of the request
	numbers      map[string]string         // assigned in this round, by name of the request
	scopes       map[string]clarify.Scope  // by asking agent
	ordered      map[string]*clarify.Order // by name of the request
}

func requestsOf(w *World) *requests {
	return Shared(&w.OfRound, func() *requests {
		return &requests{world: w, tree: w.Tree, now: w.Now, index: indexOf(w.OfTree, w.Tree)}
	})
}

// indexOf returns the index of a tree.
func indexOf(ofTree *Values, t *state.Tree) *clarificationIndex {
	return Shared(ofTree, func() *clarificationIndex { return &clarificationIndex{tree: t} })
}

// clarificationIndex is what decisions about clarifications look up in a tree. Each part is made when it is first asked for.
type clarificationIndex struct {
	tree *state.Tree
	// byID are the requests with a number. If two share a number, the first by name owns it.
	byID map[string]*state.Entry
	// last is the highest number that a status has, and resolved are the resolved requests, by issue.
	last     map[int]int
	resolved map[int][]*state.Entry
	// replies are those that call the clarification by its number.
	replies map[string][]*state.Entry
	// outcomes are those of replies, by name; lookups counts the requests for them.
	outcomes map[string]replyOutcome
	lookups  int
	// asking are the requests that nodes made, by DAG.
	asking map[string][]*dagQuestion
}

func requestRef(name string) schemas.Ref {
	return schemas.Ref{Kind: schemas.ClarificationRequestKind.Name, Name: name}
}

// requestStatusOf returns the status in the tree; never nil. Callers must not change it.
func requestStatusOf(e *state.Entry) *schemas.ClarificationRequestStatus {
	if e != nil {
		if st, ok := e.Status().(*schemas.ClarificationRequestStatus); ok {
			return st
		}
	}
	return new(schemas.ClarificationRequestStatus)
}

func requestSpec(e *state.Entry) *schemas.ClarificationRequestSpec {
	if e == nil {
		return nil
	}
	return schemas.SpecAs[*schemas.ClarificationRequestSpec](e.Object)
}

func replySpec(e *state.Entry) *schemas.ReplySpec {
	if e == nil {
		return nil
	}
	return schemas.SpecAs[*schemas.ReplySpec](e.Object)
}

// number fills in byID, last and resolved.
func (x *clarificationIndex) number() {
	if x.byID != nil {
		return
	}
	x.byID, x.last, x.resolved = map[string]*state.Entry{}, map[int]int{}, map[int][]*state.Entry{}
	for _, e := range x.tree.Entries(schemas.ClarificationRequestKind.Name) {
		st := requestStatusOf(e)
		issue, seq, ok := clarify.ParseID(st.ID)
		if !ok {
			continue
		}
		x.last[issue] = max(x.last[issue], seq)
		if x.byID[st.ID] == nil {
			x.byID[st.ID] = e
		}
		if st.Phase == schemas.ClarificationResolved {
			x.resolved[issue] = append(x.resolved[issue], e)
		}
	}
}

// withID returns the request that has the number, or nil.
func (x *clarificationIndex) withID(id string) *state.Entry {
	x.number()
	return x.byID[id]
}

// request returns the request that a reply calls by name or number, or nil.
func (x *clarificationIndex) request(clarification string) *state.Entry {
	if schemas.IsClarificationID(clarification) {
		return x.withID(clarification)
	}
	if e := x.tree.Entry(requestRef(clarification)); e != nil && !e.Gone() {
		return e
	}
	return nil
}

// repliesTo lists the replies to a request with that name and number, by name. Broken ones are not among them.
func (x *clarificationIndex) repliesTo(name, id string) []*state.Entry {
	var out []*state.Entry
	for _, r := range x.tree.ReferrersOf(requestRef(name), schemas.ReplyKind.Name) {
		out = append(out, x.tree.Entry(r))
	}
	if id != "" {
		x.file()
		out = append(out, x.replies[id]...)
	}
	slices.SortFunc(out, func(a, b *state.Entry) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// file fills in replies. Only what refers to no object calls its clarification by a number.
func (x *clarificationIndex) file() {
	if x.replies != nil {
		return
	}
	x.replies = map[string][]*state.Entry{}
	for _, e := range x.tree.Entries(schemas.ReplyKind.Name) {
		if e.Object != nil && len(e.Object.Refs) == 0 {
			if id := textIn(e.Object.Canonical(), "clarification"); id != "" {
				x.replies[id] = append(x.replies[id], e)
			}
		}
	}
}

// textIn finds a field in the canonical JSON of a spec, without decoding it: the last one of that name whose value is a text
// without escapes. Within a text, no quotation mark stands without a backslash before it.
func textIn(canonical []byte, field string) string {
	key := []byte(`"` + field + `":"`)
	i := bytes.LastIndex(canonical, key)
	if i < 0 {
		return ""
	}
	rest := canonical[i+len(key):]
	return string(rest[:max(0, bytes.IndexByte(rest, '"'))])
}

// takerOf is the name of the request that took the reply of that name; "" if none did yet.
func (x *clarificationIndex) takerOf(reply string) string { return x.outcomeOf(reply).took }

// replyOutcome has the names of the requests that accepted and refused a reply.
type replyOutcome struct{ took, refused string }

// fewLookups is up to how many replies are looked for in every thread, before all threads are indexed.
const fewLookups = 4

func (x *clarificationIndex) outcomeOf(reply string) replyOutcome {
	x.lookups++
	if x.outcomes == nil && x.lookups > fewLookups {
		x.outcomes = map[string]replyOutcome{}
		x.eachOutcome(func(name string, in replyOutcome) { x.outcomes[name] = x.outcomes[name].and(in) })
	}
	if x.outcomes != nil {
		return x.outcomes[reply]
	}
	var h replyOutcome
	x.eachOutcome(func(name string, in replyOutcome) {
		if name == reply {
			h = h.and(in)
		}
	})
	return h
}

func (h replyOutcome) and(o replyOutcome) replyOutcome {
	return replyOutcome{cmp.Or(o.took, h.took), cmp.Or(o.refused, h.refused)}
}

// eachOutcome goes through all replies that requests took or refused.
func (x *clarificationIndex) eachOutcome(yield func(reply string, in replyOutcome)) {
	for _, e := range x.tree.Entries(schemas.ClarificationRequestKind.Name) {
		st := requestStatusOf(e)
		for i := range st.Thread {
			if name, ok := strings.CutPrefix(st.Thread[i].Source, fromReply); ok {
				yield(name, replyOutcome{took: e.Name})
			}
		}
		for i := range st.Refused {
			yield(st.Refused[i].Name, replyOutcome{refused: e.Name})
		}
	}
}

const fromReply = "reply/" // begins the source of what a reply said

// dagQuestion is a request that a node of a DAG made.
type dagQuestion struct {
	entry *state.Entry
	spec  *schemas.ClarificationRequestSpec
	node  string
	half  string // the key of the asking run up to its number: dags/<dag>/<node>-<16 hex digits>-
	seq   int    // that number
}

// questionsOf lists the requests that nodes of the DAG made, by the number of the asking run and name. Broken requests
// are not among them.
func (x *clarificationIndex) questionsOf(dag string) []*dagQuestion {
	if out, ok := x.asking[dag]; ok {
		return out
	}
	var out []*dagQuestion
	for _, r := range x.tree.ReferrersOf(dagRef(dag), schemas.ClarificationRequestKind.Name) {
		e := x.tree.Entry(r)
		if q := newDAGQuestion(e, requestSpec(e), dag); q != nil {
			out = append(out, q)
		}
	}
	slices.SortStableFunc(out, func(a, b *dagQuestion) int { return cmp.Compare(a.seq, b.seq) })
	if x.asking == nil {
		x.asking = map[string][]*dagQuestion{}
	}
	x.asking[dag] = out
	return out
}

func newDAGQuestion(e *state.Entry, spec *schemas.ClarificationRequestSpec, dag string) *dagQuestion {
	if spec == nil {
		return nil
	}
	of, node, ok := schemas.SplitRunKey(spec.Run)
	half, seq := splitSeq(spec.Run)
	if !ok || of != dag {
		return nil
	}
	return &dagQuestion{entry: e, spec: spec, node: node, half: half, seq: seq}
}

// splitSeq cuts the number off the key of a run.
func splitSeq(key string) (half string, seq int) {
	i := strings.LastIndexByte(key, '-') + 1
	seq, err := strconv.Atoi(key[i:])
	if err != nil {
		return key, 0
	}
	return key[:i], seq
}
