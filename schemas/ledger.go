package schemas

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
