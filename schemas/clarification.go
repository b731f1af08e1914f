package schemas

// ClarificationRequestKind is the kind ClarificationRequest.
var ClarificationRequestKind = Kind{
	Name: "ClarificationRequest", Plural: "clarificationrequests", Aliases: []string{"clr", "request", "requests"},
	Short:     "A question of one agent to another about an issue.",
	New:       func() Spec { return new(ClarificationRequestSpec) },
	NewStatus: func() Status { return new(ClarificationRequestStatus) },
}

// ClarificationRequestSpec is a question. It is immutable once accepted.
type ClarificationRequestSpec struct {
	// Issue is the number of the issue that the question is about; 0 or absent means none.
	Issue int `json:"issue,omitempty" jsonschema:"minimum=0,maximum=2147483647"`
	// From is the asking agent.
	From string `json:"from" jsonschema:"minLength=1,maxLength=63"`
	// To is the agent that is asked.
	To string `json:"to" jsonschema:"minLength=1,maxLength=63"`
	// Topic is the subject in a line, 1 to 200 characters.
	Topic string `json:"topic" jsonschema:"minLength=1,maxLength=200"`
	// Question is 1 to 2000 characters.
	Question string `json:"question" jsonschema:"minLength=1,maxLength=2000"`
	// Blocking says that the asking agent cannot go on without the answer. Default false.
	Blocking bool `json:"blocking,omitempty"`
	// Artifacts are paths that the answering agent should see.
	Artifacts []string `json:"artifacts,omitempty" jsonschema:"maxItems=100"`
	// MaxRounds bounds the rounds, within the workflow's limit.
	MaxRounds int `json:"maxRounds,omitempty" jsonschema:"minimum=1,maximum=100"`
	// SLAMinutes is the time for an answer; 0 means at once.
	SLAMinutes *int `json:"slaMinutes,omitempty" jsonschema:"minimum=0,maximum=525600"`
}

// ClarificationRequestStatus is the observed state of a request.
type ClarificationRequestStatus struct {
	Common
}

// ReplyKind is the kind Reply.
var ReplyKind = Kind{
	Name: "Reply", Plural: "replies",
	Short:     "An answer, further question, resolution, escalation or abandonment in a clarification.",
	New:       func() Spec { return new(ReplySpec) },
	NewStatus: func() Status { return new(ReplyStatus) },
}

// ReplySpec is one entry of a clarification's thread. It is immutable once accepted.
type ReplySpec struct {
	// Clarification is a CLR id (CLR-42-001) or the name of a ClarificationRequest.
	Clarification string `json:"clarification" jsonschema:"minLength=1,maxLength=63"`
	// Type is answer, question, resolution, escalation or abandonment.
	Type string `json:"type" jsonschema:"enum=answer,enum=question,enum=resolution,enum=escalation,enum=abandonment"`
	// From is the agent or person that writes.
	From string `json:"from" jsonschema:"minLength=1,maxLength=100"`
	// Body is 1 to 2000 characters.
	Body string `json:"body" jsonschema:"minLength=1,maxLength=2000"`
}

// ReplyStatus exists only while something is wrong with the reply.
type ReplyStatus struct{ Common }
