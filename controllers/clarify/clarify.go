// Package clarify decides about questions that agents ask each other: the protocol of agentx-spec, as pure functions.
//
// An [Input] is one clarification with everything that its decision depends on. [Input.Decide] folds it into its
// current status, and into the next action: run the agent that is asked, or decide again later. Status and thread are a
// function of records (the request, replies, runs, entries of other programs in the ledger) and of the times at which
// limits were exceeded, not of the number of decisions: two deciders with the same records and clock agree.
//
//	pending ──answer──▶ answered ──resolution──▶ resolved
//	   ▲ │  ▲               │ └─question, after the last round─▶ escalated ──resolution──▶ resolved
//	   │ │  └───question────┘
//	   │ ├──time over──▶ stale ──answer──▶ (pending, answered)   └─second time over, stuck─▶ escalated
//	   │ ├──failed twice, stuck, deadlock, asked for──▶ escalated
//	   │ └──asker went on──▶ abandoned
//
// An apparent jump is a sequence: an answer to a stale question passes through pending (decision 13); [Decision.Moves]
// lists every step.
//
// Events have a time: a run's end, a ledger entry's timestamp, the moment at which a limit was exceeded. They are
// applied in that order. Replies have none: a reply counts from the decision that sees it first, after everything that
// has a time, and replies that are seen together are applied by name. A status is never reverted, whatever the clock
// says.
package clarify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// Limits bound a matter.
type Limits struct {
	Rounds     int           // the last round before an escalation; never above the hard cap
	SLA        time.Duration // time for the answer to a round, 0: at once
	RetryAfter time.Duration // between a failed run and the second try
}

// Target is the agent that is asked.
type Target struct {
	// Human says that a person answers: nothing is run.
	Human bool
	// Gone reports that the agent no longer exists: the question is escalated.
	Gone bool
	// Key is a digest of the inputs of an answer other than the question: the runner.
	Key string
}

// Reply is one Reply object.
type Reply struct {
	Name, Digest string
	Spec         *schemas.ReplySpec
	// Agent says that From is an agent of the tree; anybody else is a person.
	Agent bool
}

// Order is an escalation that other questions cause.
type Order struct {
	Reason  string // one of the Escalated constants
	Message string // why, in a sentence
}

// Decision is the decision about a question.
type Decision struct {
	// Status has everything but the conditions and the history. It is never nil. Unchanged parts are shared with Old.
	Status *schemas.ClarificationRequestStatus
	// Moves are the transitions from Old to Status, in order; each is an edge of the picture.
	Moves []Move
	// Ask is the run of the target that is wanted, or continues; nil: none. Other runs are no longer wanted.
	Ask *Ask
	// Again is the time of the next decision if nothing changes; zero: never. Await tells a one-shot run to wait for
	// it: a retry is due, rather than a time limit.
	Again time.Time
	Await bool
	// Message says in a sentence how things stand.
	Message string
}

// Ask is one run of the agent that is asked.
type Ask struct {
	Round   int
	Node    string // "round_<n>", or "round_<n>_again" after the time was over
	NodeKey string // digest of the question and its target
	Seq     int    // from 1
	// After is the run whose failure it makes up for; nil for none. It is not set for a run that goes on.
	After *schemas.Run
}

func roundsUsed(n int) string { return schemas.Count(n, "round") + " did not settle it" }

// summary summarizes the outcome of a question in one or two sentences; prompts contain it instead of the thread.
func summary(spec *schemas.ClarificationRequestSpec, thread []schemas.ThreadEntry, wasEscalated bool) string {
	said := func(typ string) string {
		return strings.TrimRight(cut(oneLine(lastBody(thread, typ)), saidChars), ".!")
	}
	topic := strings.TrimRight(cut(oneLine(spec.Topic), topicChars), ".!?")
	answer, outcome := said(schemas.TurnAnswer), said(schemas.TurnResolution)
	if answer == "" {
		return fmt.Sprintf("On %q %s got no answer of %s. Decided: %s.", topic, spec.From, spec.To,
			cmp.Or(outcome, "nothing"))
	}
	how := "Resolved"
	if wasEscalated {
		how = "Decided after an escalation"
	}
	first := fmt.Sprintf("On %q %s told %s: %s.", topic, spec.To, spec.From, answer)
	if outcome == "" {
		return first
	}
	return fmt.Sprintf("%s %s: %s.", first, how, outcome)
}

func sameTurnAndTime(a, b schemas.ClarificationTurn) bool {
	return sameTurn(a, b) && a.Timestamp.Equal(b.Timestamp.Time)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// roundBefore is the highest round of a thread without its last entry.
func roundBefore(thread []schemas.ThreadEntry) int {
	round := 1
	for _, e := range thread[:len(thread)-1] {
		round = max(round, e.Round)
	}
	return round
}

func earlier(a, b schemas.Time) schemas.Time {
	if b.Before(a.Time) {
		return b
	}
	return a
}

func talkOf(c *schemas.Clarification) talk {
	issue, _, _ := ParseID(c.ID)
	return talk{issue, min(c.From, c.To), max(c.From, c.To)}
}

func after(a, b *schemas.Clarification) bool {
	if n := a.Created.Compare(b.Created.Time); n != 0 {
		return n > 0
	}
	_, x, _ := ParseID(a.ID)
	_, y, _ := ParseID(b.ID)
	return x > y
}

// lastBody returns the body of the last entry of a type, "" if the thread has none.
func lastBody(thread []schemas.ThreadEntry, typ string) string {
	if e := lastEntry(thread, typ); e != nil {
		return e.Body
	}
	return ""
}

func begins(d *json.Decoder, with json.Delim) bool {
	token, err := d.Token()
	return err == nil && token == with
}

// The kinds of errors that the protocol knows (agentx-spec 3.3 and 3.5).
const (
	ScopeViolation    = "SCOPE_VIOLATION"
	LockTimeout       = "LOCK_TIMEOUT" // exit code 75
	AgentError        = "AGENT_ERROR"
	NotFound          = "NOT_FOUND"
	MaxRoundsExceeded = "MAX_ROUNDS_EXCEEDED"
)

// Error is an error of the protocol. Two are equal for errors.Is when their kinds are, if the second has no message.
type Error struct {
	Kind    string // one of the constants above
	Message string // what happened and what to do, without the kind
}

// Error returns the text of the error: its kind, a colon and its message.
func (e *Error) Error() string { return e.Kind + ": " + e.Message }

// Is reports whether target is an error of the same kind, so that errors.Is(err, &Error{Kind: NotFound}) finds the
// errors of a kind. A target with a message matches only this message.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind && (t.Message == "" || t.Message == e.Message)
}

// NewNotFound returns the not-found error for the id, or name, of a clarification that is not in the ledger.
func NewNotFound(id string) *Error {
	return &Error{NotFound, fmt.Sprintf("clarification %s not found in ledger", id)}
}

// NewMaxRounds returns the error that a question reached the last of its max rounds and is escalated.
func NewMaxRounds(id string, rounds int) *Error {
	return &Error{MaxRoundsExceeded,
		fmt.Sprintf("%s reached max rounds (%d); it is escalated. %s", id, rounds, action(id))}
}

// edges is the state machine (agentx-architecture 6.1): the successors of each state. Resolved and abandoned are
// final.
var edges = map[string][]string{
	"": {schemas.ClarificationPending},
	schemas.ClarificationPending: {schemas.ClarificationAnswered, schemas.ClarificationStale,
		schemas.ClarificationEscalated, schemas.ClarificationAbandoned},
	schemas.ClarificationAnswered: {schemas.ClarificationPending, schemas.ClarificationResolved,
		schemas.ClarificationEscalated},
	schemas.ClarificationStale: {schemas.ClarificationPending, schemas.ClarificationEscalated},

	schemas.ClarificationEscalated: {schemas.ClarificationResolved},
}

// Legal reports whether the edges of the state machine lead from one status of a question to another. "" is that of a
// question that does not exist yet.
func Legal(from, to string) bool { return slices.Contains(edges[from], to) }

// reachable reports whether one edge, or the two of an answer to a stale question, lead to a state.
func reachable(from, to string) bool {
	return Legal(from, to) ||
		from == schemas.ClarificationStale && to == schemas.ClarificationAnswered
}

// move follows an edge; without one it does nothing and returns false. Nothing else changes the phase.
func (d *clarifyDecider) move(to string, at schemas.Time, message string) bool {
	from := d.st.Phase
	if !Legal(from, to) {
		return false
	}
	d.st.Phase = to
	d.moves = append(d.moves, Move{From: from, To: to, At: at, Message: message})
	return true
}

// Move is one transition along an edge of the picture.
type Move struct {
	From, To string // Clarification constants; From is "" for a new matter
	At       schemas.Time
	Message  string // why, in a sentence
}
