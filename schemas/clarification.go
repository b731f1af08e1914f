package schemas

import "strings"

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
	// Question is what is asked, 1 to 2000 characters.
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
	// Type is what the reply does to the clarification.
	Type string `json:"type" jsonschema:"enum=answer,enum=question,enum=resolution,enum=escalation,enum=abandonment"`
	// From is the agent or person that writes.
	From string `json:"from" jsonschema:"minLength=1,maxLength=100"`
	// Body is the text, 1 to 2000 characters.
	Body string `json:"body" jsonschema:"minLength=1,maxLength=2000"`
}

// ReplyStatus exists only while something is wrong with the reply.
type ReplyStatus struct{ Common }

// Default has nothing to fill in: the limits that a request leaves out are the workflow's.
func (s *ClarificationRequestSpec) Default() {}

// Check reports bad names and paths, blank text, and an agent that asks itself.
func (s *ClarificationRequestSpec) Check(r *Report) {
	checkRef(r.At("from"), s.From)
	checkRef(r.At("to"), s.To)
	if s.From == s.To && s.From != "" {
		r.At("to").Errorf("self-reference", "agent %q cannot ask itself", s.To).Also("it asks here", "from")
	}
	checkFilled(r.At("topic"), s.Topic)
	checkLine(r.At("topic"), s.Topic)
	checkFilled(r.At("question"), s.Question)
	checkPaths(r, s.Artifacts, reads, "artifacts")
}

// References are the two agents; both must exist.
func (s *ClarificationRequestSpec) References() []Reference {
	return []Reference{
		{Field: []any{"from"}, To: Ref{Kind: AgentKind.Name, Name: s.From}, Hard: true},
		{Field: []any{"to"}, To: Ref{Kind: AgentKind.Name, Name: s.To}, Hard: true},
	}
}

// Default has nothing to fill in.
func (s *ReplySpec) Default() {}

// Check reports blank text and what names neither a clarification nor a request.
func (s *ReplySpec) Check(r *Report) {
	if !IsClarificationID(s.Clarification) {
		if err := CheckName(s.Clarification); err != nil {
			r.At("clarification").Errorf("bad-name", "%q is neither a clarification's id, as CLR-42-001, nor the name of a "+
				"request", s.Clarification).Near(s.Clarification, upperIDs(s.Clarification))
		}
	}
	checkFilled(r.At("from"), s.From)
	checkLine(r.At("from"), s.From)
	checkFilled(r.At("body"), s.Body)
}

// upperIDs returns s in upper case if that makes it an id.
func upperIDs(s string) []string {
	if up := strings.ToUpper(s); IsClarificationID(up) {
		return []string{up}
	}
	return nil
}

// References is the request that is answered, where it is called by its name.
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

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
