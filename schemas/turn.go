package schemas

// Turn is what an agent's turn used and what the agent reported about it. A missing field means that the value is not
// known, never that it is zero.
type Turn struct {
	// Profile is the name of the agent's profile; Runner is one of the Runner constants.
	Profile string `json:"profile,omitempty"`
	Runner  string `json:"runner,omitempty"`
	// Model is the model that answered, SessionID the conversation as the agent calls it, StopReason the agent's word for
	// the end of the turn.
	Model      string `json:"model,omitempty"`
	SessionID  string `json:"sessionId,omitempty"`
	StopReason string `json:"stopReason,omitempty"`
	// Usage is that of this turn; UsageFrom says who counted it: UsageFromAgent or UsageFromProxy.
	Usage     *Usage `json:"usage,omitempty"`
	UsageFrom string `json:"usageFrom,omitempty"`
	// SessionUsage is the usage of the agent's whole session so far, for agents that report only that.
	SessionUsage *Usage `json:"sessionUsage,omitempty"`
	// CostUSD is what the turn cost; CostFrom says by whom: CostFromAgent or CostFromPrices.
	CostUSD  *float64 `json:"costUSD,omitempty"`
	CostFrom string   `json:"costFrom,omitempty"`
	// Transcript is the path of the redacted transcript below the root; it is local.
	Transcript string `json:"transcript,omitempty"`
	// ToolCalls is the number of tool calls that the agent reported.
	ToolCalls int `json:"toolCalls,omitempty"`
	// Permissions are the permissions that the agent asked for, in order.
	Permissions []Permission `json:"permissions,omitempty"`
	// Failure is why the turn failed; nil unless it did.
	Failure *TurnFailure `json:"failure,omitempty"`
	// Marks are the shares of the context that were reached, in order.
	Marks []ContextMark `json:"marks,omitempty"`
	// Steered are the texts of people that arrived while the turn ran.
	Steered []Delivery `json:"steered,omitempty"`
}

// LimitedUntil is when the rate limit ends that a run failed of; zero if it did not, or if that is not known.
func (r *Run) LimitedUntil() Time {
	failed := r.Outcome == OutcomeFailed || r.Outcome == OutcomeTimedOut
	if !failed || r.Turn == nil || r.Turn.Failure == nil || r.Turn.Failure.Class != FailureLimit {
		return Time{}
	}
	return r.Turn.Failure.Until
}

// StoppedByBudget reports whether the run was ended because it had used what its budget gave it.
func (r *Run) StoppedByBudget() bool {
	failed := r.Outcome == OutcomeFailed || r.Outcome == OutcomeTimedOut
	return failed && r.Turn != nil && r.Turn.Failure != nil && r.Turn.Failure.Class == FailureBudget
}

// Runners of a turn.
const (
	RunnerCommand = "command"
	RunnerACP     = "acp"
	RunnerHTTP    = "http"
)

// Sources of a turn's usage.
const (
	UsageFromAgent = "agent"
	UsageFromProxy = "proxy"
)

// Sources of a turn's cost: the agent's own figure, or the tokens that the metering proxy counted and the table of prices.
const (
	CostFromAgent  = "agent"
	CostFromPrices = "prices"
)

// Usage counts requests and tokens. InputTokens includes CachedInputTokens and CacheWriteTokens.
type Usage struct {
	Requests          int64 `json:"requests,omitempty"`
	InputTokens       int64 `json:"inputTokens,omitempty"`
	OutputTokens      int64 `json:"outputTokens,omitempty"`
	CachedInputTokens int64 `json:"cachedInputTokens,omitempty"`
	CacheWriteTokens  int64 `json:"cacheWriteTokens,omitempty"`
	// Uncounted is the number of requests that the model worked on and whose tokens are not known: the connection ended before, or the
	// service did not say. The numbers of tokens are without them.
	Uncounted int64 `json:"uncounted,omitempty"`
	// ContextUsed is the size of the last request in tokens, ContextWindow that of the model's window.
	ContextUsed   int64 `json:"contextUsed,omitempty"`
	ContextWindow int64 `json:"contextWindow,omitempty"`
}

// Permission is a permission that an agent asked for, and the decision.
type Permission struct {
	Title string   `json:"title"`
	Argv  []string `json:"argv,omitempty"`  // the command that it asked to run, if it said so
	Shell bool     `json:"shell,omitempty"` // Argv is one text for a shell
	Dir   string   `json:"dir,omitempty"`   // in which the command is to run, if the agent said so
	Why   string   `json:"why,omitempty"`   // the agent's reason, in its own words
	// Decision is the kind of the option that was chosen, as allow_once, or one of the Permission constants.
	Decision string `json:"decision"`
	By       string `json:"by,omitempty"` // who decided: a rule or a person
}

// Decisions about a permission that are no option of the agent.
const (
	PermissionWaiting    = "waiting"    // for a person
	PermissionUnanswered = "unanswered" // no person answered in time
	PermissionDenied     = "denied"     // by the rules of the agent's program
	PermissionCancelled  = "cancelled"
)

// Open reports whether a person can still answer.
func (p *Permission) Open() bool {
	return p.Decision == PermissionWaiting || p.Decision == PermissionUnanswered || p.Decision == PermissionDenied
}

// Classes of failures of a turn.
const (
	FailureLimit      = "limit"      // a rate limit or a quota; see TurnFailure.Until
	FailureService    = "service"    // the model's service failed
	FailureAccess     = "access"     // the key or login was refused; a person has to act
	FailureConnection = "connection" // the agent or the service fell silent or away
	FailureRequest    = "request"    // the request itself was refused
	FailureBudget     = "budget"     // it had used up its budget
	FailureUnknown    = "unknown"
)

// TurnFailure is why a turn failed.
type TurnFailure struct {
	Class   string `json:"class"` // one of the Failure constants
	Message string `json:"message,omitempty"`
	// Status is the HTTP status of the model's service, if it is known.
	Status int `json:"status,omitempty"`
	// Until is when a limit ends, if it is known.
	Until Time `json:"until,omitzero"`
}
