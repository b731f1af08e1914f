package schemas

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Run is one effect of the outside world on record: a command or an agent that was run once. Finished runs are files,
// state/runs/<kinds>/<name>/<node>-<key>-<seq>.json; until they are checkpointed, and while they are under way, they
// are lines of a journal under .reconcile/.
type Run struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"` // "Run"
	Metadata   RunMetadata `json:"metadata"`
	// Key names the effect, deterministically: "dags/checks/build-<16 hex of the node's key>-<seq>". It is also the
	// path of the record below state/runs/, without .json.
	Key   string `json:"key"`
	Owner string `json:"owner"` // "dag/checks"
	Node  string `json:"node"`
	Agent string `json:"agent,omitempty"`
	// Instead is set if the agent does the work of another one.
	Instead *Instead `json:"instead,omitempty"`
	// NodeKey is the digest that the run is about; Seq counts the recorded runs under it from 1.
	NodeKey string `json:"nodeKey"`
	Seq     int    `json:"seq"`
	// Outcome is one of the Outcome constants; empty while the run is claimed or under way.
	Outcome string `json:"outcome,omitempty"`
	Message string `json:"message,omitempty"`
	// Final says that another attempt would fail in the same way, so that there is none.
	Final bool `json:"final,omitempty"`
	// Tools are the versions of the tools that the node declares; nil where it declares none.
	Tools map[string]string `json:"tools,omitempty"`
	// QueuedAt is when the work could have run, had there been a place; zero if it did not wait. VirtualStart is its place in the fair
	// order of sessions, which package admission explains; records of earlier versions have none.
	QueuedAt     Time            `json:"queuedAt,omitzero"`
	VirtualStart int64           `json:"virtualStart,omitempty"`
	StartedAt    Time            `json:"startedAt,omitzero"`
	FinishedAt   Time            `json:"finishedAt,omitzero"`
	ExitCode     *int            `json:"exitCode,omitempty"`
	Result       json.RawMessage `json:"result,omitempty"`
	Output       string          `json:"output,omitempty"` // bounded end of stdout and stderr
	Log          string          `json:"log,omitempty"`    // path below the root
	// Outputs are the declared outputs as they were when the run succeeded. Records of earlier versions have none; then
	// only the existence of the files is known.
	Outputs []Output `json:"outputs,omitempty"`
	// Again are the missing outputs for which a node runs again. Only claims have it: an attempt that is killed leaves half of
	// them.
	Again []string `json:"again,omitempty"`
	// Asks is what the agent wants to know before it can go on; set when the outcome is Asked.
	Asks *Ask `json:"asks,omitempty"`
	// PlanChange is the PlanChangeSpec that the agent asks for, without its target. With the outcome Asked it is the blocker of the node.
	PlanChange json.RawMessage `json:"planChange,omitempty"`
	// Resolution is the agent's conclusion from the answers in its input, if it gives one.
	Resolution string `json:"resolution,omitempty"`
	// Reported is what the agent says about the task, if it says something.
	Reported *AgentReport `json:"reported,omitempty"`
	// Learned are the entries to remember from the agent's output: 1 to 50, without secrets.
	Learned []ObservationEntry `json:"learned,omitempty"`
	// SourceTokens is the length of the text from which Learned was made, in tokens.
	SourceTokens int `json:"sourceTokens,omitempty"`
	// Turn is what an agent's turn used and reported; nil where nothing is known.
	Turn *Turn `json:"turn,omitempty"`
	// Messages are the names of the Actions whose text was part of the prompt.
	Messages []string `json:"messages,omitempty"`
	// Workspace is the folder of its own in which the run worked, and what it changed there; nil for a run in the tree itself.
	Workspace *RunWorkspace `json:"workspace,omitempty"`
	// Sandbox is the level at which the run's programs were confined, one of the Sandbox constants; empty in records of commands without
	// one, and of earlier versions. Network is what they could connect to, one of the Network constants; empty without a sandbox.
	Sandbox string `json:"sandbox,omitempty"`
	Network string `json:"network,omitempty"`
	// Limits says what bounded the run; nil for a node without limits.
	Limits *RunLimits `json:"limits,omitempty"`
	// Changes are the first of the files that differ in the workspace after a turn that was ended, or handed the rest of the task off.
	Changes []FileChange `json:"changes,omitempty"`
	// Lands is the key of the run whose commit this one lands; empty for the run of a command or an agent.
	Lands string `json:"lands,omitempty"`
	// Verifies is the key of the run whose commit this one verifies, and Step how: one of the Step constants. Its result is what was found.
	Verifies string `json:"verifies,omitempty"`
	Step     string `json:"step,omitempty"`
	// Budget is what the turn of an agent could use at most, which its claim reserved; nil where no budget bounded it.
	Budget *Budget `json:"budget,omitempty"`
	// Issue is the issue that the work is about, in records of hooks.
	Issue int `json:"issue,omitempty"`
	// For is the item of work that a hook's record is about, as dag/checks/implement.
	For string `json:"for,omitempty"`
	// Unknown has the fields of the record that this version does not know, as a JSON object; nil without any. A newer
	// version wrote them. Whoever writes the record again writes them too.
	Unknown json.RawMessage `json:"-"`
}

// OutputsAt returns the recorded outputs for files, in their order; ok is false unless all of them are recorded.
func (r *Run) OutputsAt(files []string) (found []Output, ok bool) {
	for _, p := range files {
		i := slices.IndexFunc(r.Outputs, func(o Output) bool { return o.Path == p })
		if i < 0 {
			return nil, false
		}
		found = append(found, r.Outputs[i])
	}
	return found, true
}

// IsWork reports whether the run is that of a command or an agent, and neither verifies nor lands the commit of one.
func (r *Run) IsWork() bool { return r.Lands == "" && r.Verifies == "" }

// Part is the step that the run performs, StepLand for a landing; "" for work.
func (r *Run) Part() string {
	if r.Lands != "" {
		return StepLand
	}
	return r.Step
}

// Output is a file that a run left behind.
type Output struct {
	Path   string `json:"path"`   // slash path below the root
	Digest string `json:"digest"` // "sha256:" and 64 hexadecimal digits, of the content
	Size   int64  `json:"size"`
	Mode   string `json:"mode,omitempty"` // OutputExecutable, or empty for an ordinary file
}

// OutputExecutable is the mode of an output that its owner may execute.
const OutputExecutable = "0755"

// RunWorkspace is the workspace of a run, and what the run changed in it.
type RunWorkspace struct {
	Kind string `json:"kind"` // one of the Workspace constants
	// Why says why the run worked in the tree itself although an agent like this has a workspace; only with kind inPlace.
	Why    string `json:"why,omitempty"`
	Name   string `json:"name,omitempty"`   // of the workspace, as reconcile workspace lists it
	Base   string `json:"base,omitempty"`   // the commit that it was made from
	Commit string `json:"commit,omitempty"` // with the changes; empty if the run changed nothing
	// Tree is the digest of all files of the commit, as git has it, where the change is verified.
	Tree   string `json:"tree,omitempty"`
	Branch string `json:"branch,omitempty"` // that holds the commit
	// Files are the paths that the commit changes, below the root of the repository: the first of them. Changed is the
	// number of all.
	Files   []string `json:"files,omitempty"`
	Changed int      `json:"changed,omitempty"`
	// Change is the size of the commit, where that was asked for.
	Change *Change `json:"change,omitempty"`
	// Doubts say why the change may pass since less is checked, where it is verified: the first of them, as verb phrases.
	Doubts []string `json:"doubts,omitempty"`
	// Reason says how a landing ended, as in Landed, or is RunWroteOutside.
	Reason string `json:"reason,omitempty"`
	// Note says how what the agent reported differs from what changed, and what is no part of the commit.
	Note string `json:"note,omitempty"`
}

// Change is the size of a change of files.
type Change struct {
	Lines int `json:"lines"` // that are added and removed
	// Sensitive are the first of the paths whose change matters beyond their lines, and of binary files.
	Sensitive []string `json:"sensitive,omitempty"`
}

// RunWroteOutside is the reason of a run that failed because it changed files outside of its workspace.
const RunWroteOutside = "WroteOutside"

// Ask is a question in an agent's output.
type Ask struct {
	To        string   `json:"to"`
	Topic     string   `json:"topic"`
	Question  string   `json:"question"`
	Blocking  bool     `json:"blocking"`
	Artifacts []string `json:"artifacts,omitempty"`
}

// RunMetadata is the envelope's metadata of a Run.
type RunMetadata struct {
	Name string `json:"name"`
}

// Outcomes of a run.
const (
	OutcomeSucceeded = "Succeeded"
	OutcomeFailed    = "Failed"    // uses up an attempt; so does TimedOut
	OutcomeTimedOut  = "TimedOut"  //
	OutcomeCancelled = "Cancelled" // ended because it was no longer wanted; uses up no attempt
	OutcomeAsked     = "Asked"     // the agent needs an answer first; uses up no attempt
	OutcomeHandedOff = "HandedOff" // the agent leaves the rest of the task to a new session; uses up no attempt
	// OutcomeNotPermitted: the agent waits for a permission, of those in Turn.Permissions; uses up no attempt.
	OutcomeNotPermitted = "NotPermitted"
	// OutcomeInterrupted: the turn of an agent ended with the process that ran it. Its record has a key of its own, and counts for what
	// the turn used until then; it uses up no attempt, and the turn begins again.
	OutcomeInterrupted = "Interrupted"
	// Records of hooks: work outside of reconcile that began and ended.
	OutcomeStarted = "Started"
	OutcomeDone    = "Done"
)

// Done reports whether the run has a recorded outcome.
func (r *Run) Done() bool { return r.Outcome != "" }

// checkRunKey reports a key that is neither empty nor the key of a node's run.
func checkRunKey(s Spot, key string) {
	if _, _, ok := SplitRunKey(key); !ok && key != "" {
		s.Errorf("bad-name", "%q is not the key of a run, as dags/checks/implement-0123456789abcdef-1", key)
	}
}

// cutLast cuts s around the last sep.
func cutLast(s string, sep byte) (before, after string, found bool) {
	i := strings.LastIndexByte(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// SplitRunKey takes the key of a DAG's effect apart: dags/<dag>/<node>-<16 hex digits>-<seq>.
func SplitRunKey(key string) (dag, node string, ok bool) {
	rest, ok := strings.CutPrefix(key, DAGKind.Plural+"/")
	dag, effect, ok2 := strings.Cut(rest, "/")
	head, seq, ok3 := cutLast(effect, '-')
	node, _, ok4 := cutLast(head, '-') // the name may have dashes, too
	return dag, node, ok && ok2 && ok3 && ok4 && CheckName(dag) == nil && node != "" && isDigits(seq)
}

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
	// Estimate has the tokens of the prompt and of the output, where those that were used are not known: a lower bound.
	Estimate *Usage `json:"estimate,omitempty"`
	// SessionUsage is the usage of the agent's whole session so far, for agents that report only that.
	SessionUsage *Usage `json:"sessionUsage,omitempty"`
	// CostUSD is what the turn cost; CostFrom says by whom: CostFromAgent or CostFromPrices.
	CostUSD  *float64 `json:"costUSD,omitempty"`
	CostFrom string   `json:"costFrom,omitempty"`
	// SessionCostUSD is what the agent's whole session cost so far, for agents that report only that.
	SessionCostUSD *float64 `json:"sessionCostUSD,omitempty"`
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

// MaxCostUSD bounds what counts as the cost of a session of an agent: sums of more are no numbers. What an agent says above it is not known.
const MaxCostUSD = 1e6

// maxSessionID bounds the id of a session of an agent, in bytes.
const maxSessionID = 1000

// IsSessionID reports whether a text that an agent prints may be the id of its session: an argument of its program that is no option.
func IsSessionID(id string) bool {
	return id != "" && len(id) <= maxSessionID && id[0] != '-' && utf8.ValidString(id) && !strings.ContainsFunc(id, unicode.IsControl)
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

// Tokens are those that the turn read and wrote; ok is false if they are not known.
func (t *Turn) Tokens() (n int64, ok bool) {
	if t == nil || t.Usage == nil {
		return 0, false
	}
	n = t.Usage.InputTokens + t.Usage.OutputTokens
	return n, n > 0
}

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

// AgentReport is what an agent says about its task, in structured output. It is a claim.
type AgentReport struct {
	// Status is one of the Report constants; empty for an agent that says nothing.
	Status       string   `json:"status,omitempty"`
	Summary      string   `json:"summary,omitempty"`
	FilesChanged []string `json:"filesChanged,omitempty"` // slash paths below the root
	Remaining    []string `json:"remaining,omitempty"`    // what is left to do
	Progress     *float64 `json:"progress,omitempty"`     // in percent
	// Unknown has the fields that this version does not know, as a JSON object.
	Unknown json.RawMessage `json:"unknown,omitempty"`
}

// Statuses of a report.
const (
	ReportDone    = "done"
	ReportFailed  = "failed"
	ReportAsks    = "needs_clarification"
	ReportHandoff = "needs_handoff"
)
