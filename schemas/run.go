package schemas

import "encoding/json"

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
	// NodeKey is the digest that the run is about; Seq counts the recorded runs under it from 1.
	NodeKey string `json:"nodeKey"`
	Seq     int    `json:"seq"`
	// Outcome is one of the Outcome constants; empty while the run is claimed or under way.
	Outcome    string          `json:"outcome,omitempty"`
	Message    string          `json:"message,omitempty"`
	StartedAt  Time            `json:"startedAt,omitzero"`
	FinishedAt Time            `json:"finishedAt,omitzero"`
	ExitCode   *int            `json:"exitCode,omitempty"`
	Result     json.RawMessage `json:"result,omitempty"`
	Output     string          `json:"output,omitempty"` // bounded end of stdout and stderr
	Log        string          `json:"log,omitempty"`    // path below the root
	// Asks is what the agent wants to know before it can go on; set when the outcome is Asked.
	Asks *Ask `json:"asks,omitempty"`
	// Resolution is what the agent says of the answers that it was given, where it says so.
	Resolution string `json:"resolution,omitempty"`
	// Learned is what is to be remembered of what the agent said: 1 to 50 entries, without secrets.
	Learned []ObservationEntry `json:"learned,omitempty"`
	// SourceTokens is the length of the text that Learned was made of, in tokens.
	SourceTokens int `json:"sourceTokens,omitempty"`
	// Issue is the issue that the work is about, in records of hooks.
	Issue int `json:"issue,omitempty"`
	// For is the item of work that a hook's record is about, as dag/checks/implement.
	For string `json:"for,omitempty"`
}

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
	// Records of hooks: work outside of reconcile that began and ended.
	OutcomeStarted = "Started"
	OutcomeDone    = "Done"
)

// Done reports whether the run has a recorded outcome.
func (r *Run) Done() bool { return r.Outcome != "" }
