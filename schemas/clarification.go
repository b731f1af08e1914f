package schemas

import (
	"strings"
)

// ClarificationRequestKind is the kind ClarificationRequest.
var ClarificationRequestKind = Kind{
	Name: "ClarificationRequest", Plural: "clarificationrequests", Aliases: []string{"clr", "request", "requests"},
	Short:     "A question of one agent to another about an issue.",
	New:       func() Spec { return new(ClarificationRequestSpec) },
	NewStatus: func() Status { return new(ClarificationRequestStatus) },

	Accepted: func(s Status) bool {
		st, ok := s.(*ClarificationRequestStatus)
		return ok && st.ID != ""
	},
}

// ClarificationRequestSpec is a question. It is immutable once accepted.
type ClarificationRequestSpec struct {
	// Issue is the number of the issue that the question is about; 0 or absent means none.
	Issue int `json:"issue,omitempty" jsonschema:"minimum=0,maximum=2147483647"`
	// From is the asking agent.
	From string `json:"from" jsonschema:"minLength=1,maxLength=63"`
	// Proof says how it is known who asks: the token of a run, or not at all (claimed). Without it an agent's output asked.
	Proof string `json:"proof,omitempty" jsonschema:"enum=run,enum=claimed"`
	// To is the agent that is asked.
	To string `json:"to" jsonschema:"minLength=1,maxLength=63"`
	// Topic is the subject in a line, 1 to 200 characters.
	Topic string `json:"topic" jsonschema:"minLength=1,maxLength=200"`
	// Question is the text of the question, 1 to 2000 characters.
	Question string `json:"question" jsonschema:"minLength=1,maxLength=2000"`
	// Blocking says that the asking agent cannot go on without the answer. Default false.
	Blocking bool `json:"blocking,omitempty"`
	// Artifacts are paths that the answering agent should see.
	Artifacts []string `json:"artifacts,omitempty" jsonschema:"maxItems=100"`
	// MaxRounds bounds the rounds, within the workflow's limit.
	MaxRounds int `json:"maxRounds,omitempty" jsonschema:"minimum=1,maximum=100"`
	// SLAMinutes is the time for an answer; 0 means at once.
	SLAMinutes *int `json:"slaMinutes,omitempty" jsonschema:"minimum=0,maximum=525600"`
	// Run is the key of the run that asks, as dags/checks/implement-0123456789abcdef-1, where a node of a DAG asks: the
	// node waits for the answer.
	Run string `json:"run,omitempty" jsonschema:"maxLength=250"`
	// Imported is the id under which another program wrote the question into the ledger of the issue.
	Imported string `json:"imported,omitempty" jsonschema:"maxLength=63"`
}

// ClarificationRequestStatus is the observed state of a request. Its phase is one of the Clarification constants, or empty
// for a request that was refused. It is enough to rebuild the ledger of the issue (decision 9).
type ClarificationRequestStatus struct {
	Common
	// ID is the request's number in the ledger of its issue, as CLR-42-001.
	ID string `json:"id,omitempty"`
	// Created is when the request was accepted.
	Created Time `json:"created,omitzero"`
	// StaleAfter is when the time for an answer to the present round is over.
	StaleAfter Time `json:"staleAfter,omitzero"`
	// StaleSince is when it was found stale in the present round; zero while it is not.
	StaleSince Time `json:"staleSince,omitzero"`
	// ResolvedAt is when it was resolved.
	ResolvedAt Time `json:"resolvedAt,omitzero"`
	// Round counts from 1; MaxRounds is the last one before an escalation.
	Round     int `json:"round,omitempty"`
	MaxRounds int `json:"maxRounds,omitempty"`
	// Thread is the conversation, in order.
	Thread []ThreadEntry `json:"thread,omitempty"`
	// Refused are replies that could not be taken when they came, sorted by name.
	Refused []RefusedReply `json:"refused,omitempty"`
	// Escalation says what a human has to decide; nil unless it was escalated.
	Escalation *Escalation `json:"escalation,omitempty"`
	// Summary is the matter in one or two sentences, once it is resolved: prompts hold it instead of the thread.
	Summary string `json:"summary,omitempty"`
}

// ThreadEntry is a turn of the thread with where it came from.
type ThreadEntry struct {
	ClarificationTurn
	// Source is where it came from: "request", "reply/<name>", "run/<effect key>", "ledger" or "monitor".
	Source string `json:"source"`
	// Digest is that of the reply's spec, to notice an edit.
	Digest string `json:"digest,omitempty"`
}

// RefusedReply is a reply that could not be taken when it came.
type RefusedReply struct {
	Name    string `json:"name"`
	Digest  string `json:"digest"`
	Message string `json:"message"`
}

// Escalation is what a human needs to decide what agents could not.
type Escalation struct {
	// Reason is one of the Escalated constants.
	Reason string `json:"reason"`
	Topic  string `json:"topic"`
	// Positions are what each side said last; the asking side first.
	Positions []Position `json:"positions"`
	// Options are the recommendations, best first.
	Options []string `json:"options"`
	// Action is what a human has to do, as a sentence with a command.
	Action string `json:"action"`
}

// Position is the side of one agent.
type Position struct {
	Agent string `json:"agent"`
	Body  string `json:"body"`
}

// Reasons of escalations.
const (
	EscalatedMaxRounds = "MaxRounds"   // the round after the last was asked for
	EscalatedAgent     = "AgentFailed" // the agent failed twice
	EscalatedStale     = "Stale"       // no answer after the retry
	EscalatedStuck     = "Stuck"       // the last two rounds circle
	EscalatedDeadlock  = "Deadlock"    // blocking questions wait for each other
	EscalatedByReply   = "Requested"   // requested by an agent or a person
	EscalatedTarget    = "TargetGone"  // the agent that was asked is not there any more
)

// ReplyKind is the kind Reply.
var ReplyKind = Kind{
	Name: "Reply", Plural: "replies",
	Short:     "An answer, further question, resolution, escalation or abandonment in a clarification.",
	New:       func() Spec { return new(ReplySpec) },
	NewStatus: func() Status { return new(ReplyStatus) },

	StatusOptional: true,
}

// ReplySpec is one entry of a clarification's thread. It is immutable once accepted.
type ReplySpec struct {
	// Clarification is a CLR id (CLR-42-001) or the name of a ClarificationRequest.
	Clarification string `json:"clarification" jsonschema:"minLength=1,maxLength=63"`
	// Type is what the reply does to the clarification.
	Type string `json:"type" jsonschema:"enum=answer,enum=question,enum=resolution,enum=escalation,enum=abandonment"`
	// From is the agent or person that writes.
	From string `json:"from" jsonschema:"minLength=1,maxLength=100"`
	// Proof says how it is known who that is: the token of a run, the account of the process, GitHub, or not at all (claimed).
	Proof string `json:"proof,omitempty" jsonschema:"enum=run,enum=account,enum=github,enum=claimed"`
	// Body is the text, 1 to 2000 characters.
	Body string `json:"body" jsonschema:"minLength=1,maxLength=2000"`
	// Run is the key of the run that asks on, in a question of a node that has an answer: the node waits again.
	Run string `json:"run,omitempty" jsonschema:"maxLength=250"`
}

// ReplyStatus exists only while something is wrong with the reply.
type ReplyStatus struct{ Common }

// Default takes secrets out of the request's topic and question, and private text. Statuses, threads and prompts must not
// repeat them, should a person have committed them. It fills nothing in: the limits that a request leaves out are the
// workflow's.
func (s *ClarificationRequestSpec) Default() { s.redact() }

func (s *ClarificationRequestSpec) redact() bool { return withoutSecrets(&s.Topic, &s.Question) }

// Check reports the problems of a clarification request: bad names and paths, a blank topic or question, an agent that asks
// itself, and more rounds than have an effect.
func (s *ClarificationRequestSpec) Check(r *Report) {
	checkRef(r.At("from"), s.From)
	checkRef(r.At("to"), s.To)
	if s.From == s.To && s.From != "" {
		r.At("to").Errorf("self-reference", "agent %q cannot ask itself", s.To).also("it asks here", "from")
	}
	checkFilled(r.At("topic"), s.Topic)
	checkLine(r.At("topic"), s.Topic)
	checkFilled(r.At("question"), s.Question)
	checkPaths(r, s.Artifacts, "artifacts")
	if most := s.roundsCap(); s.MaxRounds > most {
		r.At("maxRounds").warnf("no-effect", "this question ends after %d rounds: more has no effect", most)
	}
	checkRunKey(r.At("run"), s.Run)
	if s.Imported != "" && !IsClarificationID(s.Imported) {
		r.At("imported").Errorf("bad-name", "%q is not the id of a clarification, as CLR-42-001", s.Imported)
	}
}

// roundsCap is the most rounds that the question can have.
func (s *ClarificationRequestSpec) roundsCap() int {
	if s.Blocking {
		return ClarifyRoundsBlocking
	}
	return ClarifyRoundsOpen
}

// References returns hard references to the two agents of the request, from and to, and a soft one to the DAG of the run
// that asks. Both agents must exist.
func (s *ClarificationRequestSpec) References() []Reference {
	refs := []Reference{
		{Field: []any{"from"}, To: Ref{Kind: AgentKind.Name, Name: s.From}, Hard: true},
		{Field: []any{"to"}, To: Ref{Kind: AgentKind.Name, Name: s.To}, Hard: true},
	}
	if dag, _, ok := SplitRunKey(s.Run); ok {
		refs = append(refs, Reference{Field: []any{"run"}, To: Ref{Kind: DAGKind.Name, Name: dag}})
	}
	return refs
}

// Default fills nothing in. It takes out secrets and private text, as that of a request does.
func (s *ReplySpec) Default() { s.redact() }

func (s *ReplySpec) redact() bool { return withoutSecrets(&s.From, &s.Body) }

// Check reports the problems of a reply: a blank from or body, and a clarification that is neither a clarification's ID nor
// the name of a request.
func (s *ReplySpec) Check(r *Report) {
	if !IsClarificationID(s.Clarification) {
		if err := CheckName(s.Clarification); err != nil {
			r.At("clarification").Errorf("bad-name", "%q is neither a clarification's id, as CLR-42-001, nor the name of a "+
				"request", s.Clarification).near(s.Clarification, upperClarificationIDs(s.Clarification))
		}
	}
	checkFilled(r.At("from"), s.From)
	checkLine(r.At("from"), s.From)
	checkFilled(r.At("body"), s.Body)
	checkRunKey(r.At("run"), s.Run)
}

// upperClarificationIDs returns s in upper case if that makes it an id.
func upperClarificationIDs(s string) []string {
	if up := strings.ToUpper(s); IsClarificationID(up) {
		return []string{up}
	}
	return nil
}

// References returns the reference to the clarification request that the reply answers, if it names the request and not an
// ID.
func (s *ReplySpec) References() []Reference {
	if IsClarificationID(s.Clarification) {
		return nil
	}
	to := Ref{Kind: ClarificationRequestKind.Name, Name: s.Clarification}
	return []Reference{{Field: []any{"clarification"}, To: to}}
}

// IsClarificationID reports whether s has the form CLR-<issue>-<seq>: agentx-spec 4.2. The sequence number has three
// digits, four after 999 (decision 9); issue 0 means none.
func IsClarificationID(s string) bool {
	rest, ok := strings.CutPrefix(s, "CLR-")
	issue, seq, cut := strings.Cut(rest, "-")
	if !ok || !cut || !isDigits(issue) || !isDigits(seq) {
		return false
	}
	plain := issue == "0" || issue[0] != '0'
	return plain && len(issue) <= 10 && (len(seq) == 3 || len(seq) <= 9 && len(seq) > 3 && seq[0] != '0')
}

// ClarificationOpen reports whether the status of a clarification is open, neither resolved nor abandoned.
func ClarificationOpen(status string) bool {
	return status != ClarificationResolved && status != ClarificationAbandoned
}

// Ledger is state/clarifications/issue-<N>.json: all questions about one issue (agentx-spec 4.2). Programs of other
// makes may write it too, under the AgentX lock protocol; fields that are not named here survive in the file, and are
// not seen here.
type Ledger struct {
	IssueNumber    int             `json:"issueNumber"` // 0: questions about no issue
	Clarifications []Clarification `json:"clarifications"`
}

// LedgerLastID is the field of a ledger that was damaged and salvaged: the highest id that it may have given. The format
// of the seeds does not have it; programs that do not know it keep it or lose it like any field.
const LedgerLastID = "lastId"

// Clarification is one record of a ledger.
type Clarification struct {
	ID         string              `json:"id"` // CLR-<issue>-<seq>, see IsClarificationID
	From       string              `json:"from"`
	To         string              `json:"to"`
	Topic      string              `json:"topic"`
	Blocking   bool                `json:"blocking"`
	Status     string              `json:"status"` // one of the Clarification constants
	Round      int                 `json:"round"`  // from 1
	MaxRounds  int                 `json:"maxRounds"`
	Created    Time                `json:"created"`
	StaleAfter Time                `json:"staleAfter"`
	ResolvedAt Time                `json:"resolvedAt"` // null until it is resolved
	Thread     []ClarificationTurn `json:"thread"`
	// Request is the name of the ClarificationRequest; the format of the seeds does not have it (decision 9). Records of
	// other programs have none.
	Request string `json:"request,omitempty"`
}

// ClarificationTurn is one entry of a thread.
type ClarificationTurn struct {
	Round     int    `json:"round"`
	From      string `json:"from"`
	Type      string `json:"type"` // one of the Turn constants
	Body      string `json:"body"`
	Timestamp Time   `json:"timestamp"`
}

// States of a clarification (agentx-architecture 6.1). They are the phases of a ClarificationRequest, too.
const (
	ClarificationPending   = "pending"
	ClarificationAnswered  = "answered"
	ClarificationResolved  = "resolved"
	ClarificationStale     = "stale"
	ClarificationEscalated = "escalated"
	ClarificationAbandoned = "abandoned"
)

// Types of turns. A Reply has one of them, or is an abandonment, which adds no turn.
const (
	TurnQuestion    = "question"
	TurnAnswer      = "answer"
	TurnResolution  = "resolution"
	TurnEscalation  = "escalation"
	TurnAbandonment = "abandonment"
)

// Open reports whether the clarification is open, by its status: neither resolved nor abandoned. Then something is still to
// happen.
func (c *Clarification) Open() bool { return ClarificationOpen(c.Status) }

// Waiting reports whether the clarification is pending or stale: the one who was asked has not answered yet.
func (c *Clarification) Waiting() bool {
	return c.Status == ClarificationPending || c.Status == ClarificationStale
}
