package schemas

// SessionKind is the kind Session.
var SessionKind = Kind{
	Name: "Session", Plural: "sessions", Aliases: []string{"s"},
	Short:     "A body of work with an owner, limits and a life cycle, to which DAGs belong.",
	New:       func() Spec { return new(SessionSpec) },
	NewStatus: func() Status { return new(SessionStatus) },
}

// Phases of a session. Active, Paused, Suspended and Completed can be asked for; all six can be observed.
const (
	SessionCreated   = "Created"
	SessionActive    = "Active"
	SessionPaused    = "Paused"
	SessionSuspended = "Suspended"
	SessionCompleted = "Completed"
	SessionFailed    = "Failed"
)

// What becomes of a session whose DAGs have all ended well.
const (
	WhenDoneStay     = "stay"
	WhenDoneComplete = "complete"
)

// The five priorities.
const (
	Critical   Priority = "critical"
	High       Priority = "high"
	Normal     Priority = "normal"
	Low        Priority = "low"
	Background Priority = "background"
)

// SessionSpec is the desired state of a session.
type SessionSpec struct {
	// Title says in a line what the session is about.
	Title string `json:"title,omitempty" jsonschema:"maxLength=200"`
	// Description says more. It is the text of the issue for a session that a workflow made.
	Description string `json:"description,omitempty" jsonschema:"maxLength=70000"`
	// Comments are those of the issue when a workflow was started for it, oldest first.
	Comments []IssueComment `json:"comments,omitempty" jsonschema:"maxItems=1000"`
	// Owner has at most one Active session; empty means no owner and no such limit.
	Owner string `json:"owner,omitempty" jsonschema:"maxLength=100"`
	// Issue is the number of the issue that the session serves.
	Issue int `json:"issue,omitempty" jsonschema:"minimum=1,maximum=2147483647"`
	// Branch is the git branch that workspaces begin with and that their commits land on, which makes a missing one; empty means
	// the current one. What runs in the tree itself runs on what is checked out.
	Branch string `json:"branch,omitempty" jsonschema:"maxLength=200"`
	// Land says what is checked before the commits of agents' workspaces become part of the branch, for nodes that do not say
	// it themselves.
	Land *Land `json:"land,omitempty"`
	// Pipeline has the changes of agents with the role engineer inspected and tested before they land, for nodes that do not say it
	// themselves. Default: none.
	Pipeline *Pipeline `json:"pipeline,omitempty"`
	// Quality has the work of the session verified as a whole when its DAGs have ended well. Default: it is not.
	Quality *Quality `json:"quality,omitempty"`
	// Params are values of parameters of the session's DAGs, for those that have a parameter of that name.
	Params map[string]any `json:"params,omitempty"`
	// Phase is the phase that is wanted. Default Active.
	Phase string `json:"phase,omitempty" jsonschema:"enum=Active,enum=Paused,enum=Suspended,enum=Completed,default=Active"`
	// WhenDone says what becomes of an active session whose DAGs have all ended well, and whose work is verified where Quality asks for
	// that: stay keeps it Active, complete makes it Completed until a DAG of it has to run. Default stay.
	WhenDone string `json:"whenDone,omitempty" jsonschema:"enum=stay,enum=complete,default=stay"`
	// Priority ranks sessions for places, and their work for processors. Default normal.
	Priority Priority `json:"priority,omitempty" jsonschema:"enum=critical,enum=high,enum=normal,enum=low,enum=background,default=normal"`
	// Weight is the session's share of the places, beside other sessions whose work has the same priority: one of weight 2 starts twice
	// as much as one of weight 1. Default 1.
	Weight int `json:"weight,omitempty" jsonschema:"minimum=1,maximum=1000,default=1"`
	// MaxConcurrentTasks bounds how many nodes of the session's DAGs run at once. Default 50.
	MaxConcurrentTasks int `json:"maxConcurrentTasks,omitempty" jsonschema:"minimum=1,maximum=10000,default=50"`
	// MaxEngineers bounds how many nodes of agents with the role engineer run at once. Default 20.
	MaxEngineers int `json:"maxEngineers,omitempty" jsonschema:"minimum=1,maximum=10000,default=20"`
	// Budget bounds what the agents of all DAGs of the session together use. Default: no bound.
	Budget *Budget `json:"budget,omitempty"`
	// Env is added to the environment of every command of the session.
	Env Env `json:"env,omitempty"`
	// Metadata is free: it is kept and shown, no controller reads it.
	Metadata map[string]any `json:"metadata,omitempty"`
}

// SessionStatus is the observed state of a session.
type SessionStatus struct {
	Common
	// Progress counts the nodes of all DAGs of the session.
	Progress Progress `json:"progress"`
	// ActiveDAGs names the DAGs that are not done, sorted.
	ActiveDAGs []string `json:"activeDAGs,omitempty"`
	// DAGs counts the session's DAGs by phase.
	DAGs map[string]int `json:"dags,omitempty"`
	// Running counts the nodes that run now.
	Running int `json:"running,omitempty"`
	// Hold is the verb of an action on the session that is in force: pause, cancel, or empty.
	Hold string `json:"hold,omitempty"`
	// Quality says how far the verification of the session's work is; nil where its spec asks for none.
	Quality *QualityStatus `json:"quality,omitempty"`
	// Actions are the Action objects applied to this session, in the order of application.
	Actions []AppliedAction `json:"actions,omitempty"`
}

// Default sets the defaults of missing fields, and takes secrets and private text out of comments.
func (s *SessionSpec) Default() {
	withoutSecretComments(s.Comments)
	orDefault(&s.Phase, SessionActive)
	orDefault(&s.WhenDone, WhenDoneStay)
	orDefault(&s.Priority, Normal)
	orDefault(&s.Weight, 1)
	orDefault(&s.MaxConcurrentTasks, 50)
	orDefault(&s.MaxEngineers, 20)
}

// IssueOr returns the number of the issue that a DAG of the session serves, whose own is given; 0 for none. s may be nil.
func (s *SessionSpec) IssueOr(own int) int {
	if own > 0 || s == nil {
		return own
	}
	return s.Issue
}

// Check reports the problems of a session's spec: a title or an owner that cannot be shown in a line, a branch that git
// refuses, and bad variables in env.
func (s *SessionSpec) Check(r *Report) {
	checkLine(r.At("title"), s.Title)
	checkLine(r.At("owner"), s.Owner)
	checkBranch(r.At("branch"), s.Branch)
	s.Land.check(r.At("land"))
	s.Pipeline.check(r.At("pipeline"), "")
	s.Quality.check(r.At("quality"))
	s.Budget.check(r.At("budget"))
	s.Env.check(r, "env")
}

// References returns hard references to the agents of the pipeline.
func (s *SessionSpec) References() []Reference { return s.Pipeline.references(nil, "pipeline") }

func (s *SessionStatus) appliedActions() []AppliedAction { return s.Actions }
