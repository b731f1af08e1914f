package settle

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Effect is one thing to do in the outside world, exactly once per Key.
type Effect struct {
	Key     string // as schemas.Run.Key: also the path of the record
	Owner   schemas.Ref
	Node    string
	NodeKey string
	Seq     int
	Session string // the session that the work belongs to
	Agent   string // the agent that works, if any
	// Instead is set if that is not the agent that the work names.
	Instead *schemas.Instead `json:",omitempty"`
	// Task is what to do; nil for an effect that is claimed already: the process that claimed it has the task.
	Task Task
	// Touches are the folders and files, as slash paths, that no other effect may touch at the same time.
	Touches []string `json:",omitempty"`
	// Holds are folders and files that no effect may begin to touch while this one is wanted: work on them is done, and not landed.
	Holds []string `json:",omitempty"`
	// Allowances are the budgets that the effect runs against; nil for none. Reserved is what its claim reserves of them.
	Allowances []Allowance     `json:",omitempty"`
	Reserved   *schemas.Budget `json:",omitempty"`
	// Exclusive is a concurrency group of which no other DAG may work while the effect runs; "" for none.
	Exclusive string `json:",omitempty"`
	// Seen says with which reservations of other reconcilers the effect was admitted.
	Seen int `json:"-"`
	// Groups are the limits that the effect counts against.
	Groups []Group
	// Tell are texts of people for a turn that runs.
	Tell []Message `json:",omitempty"`
	// Tools are the versions of the tools that the node declares.
	Tools map[string]string `json:",omitempty"`
	// Rank is the lane in which the effect waits for a place, 0 for critical to 4 for background. It has waited since QueuedAt, and
	// moves to a higher lane each time that Ageing has passed; 0: never.
	Rank     int
	QueuedAt schemas.Time  `json:",omitzero"`
	Ageing   time.Duration `json:",omitempty"`
	// Weight is that of the session. VirtualStart is the place of a claim in the fair order of sessions; see package admission.
	Weight       int   `json:",omitempty"`
	VirtualStart int64 `json:",omitempty"`
}

// Group is a limit on how many effects run at once; effects with the same Name share it.
type Group struct {
	Name  string // "dag/checks", "session/health", "agent/engineer", "engineers", …
	Limit int
	// Exact says that no process claims more than Limit, even if no other has claims.
	Exact bool `json:",omitempty"`
	// Load is the load of the machine for each processor above which no other effect of the group starts while one runs; 0: none.
	Load float64 `json:",omitempty"`
}

// Allowance is a budget that an effect runs against.
type Allowance struct {
	Scope string // under which package budgets counts
	Limit schemas.Budget
	// Of names whose budget it is; Field is where it stands, in the file Path.
	Of, Field, Path string
	// Turns is among how many turns it is divided; 0: others share it.
	Turns int
	// Node says that it is the budget of the effect's own node.
	Node bool
}

// Task is what an effect does. It is a [Command], an [AgentTurn], an [HTTPTurn], a [Webhook], a [Verify] or a [Land]. A performer that does
// not know the type of a task reports the effect as [Broken].
type Task interface {
	// OutputPaths are the files, as slash paths below the root, that a success leaves.
	OutputPaths() []string
	// MissingOutputs are declared outputs for which the effect is performed again although it succeeded before.
	MissingOutputs() []string
}

// Command returns the program that the task runs: a command, or that of an agent's turn; nil for no task.
func (e *Effect) Command() *Command {
	switch t := e.Task.(type) {
	case *Command:
		return t
	case *AgentTurn:
		return &t.Command
	case *HTTPTurn:
		return &t.Command
	case *Webhook:
		return &t.Command
	}
	return nil
}

// Turn returns the task if it is an agent's turn, else nil.
func (e *Effect) Turn() *AgentTurn {
	t, _ := e.Task.(*AgentTurn)
	return t
}

// HasSession reports whether the effect is the turn of an agent whose session can be continued.
func (e *Effect) HasSession() bool {
	c := e.Command()
	return e.Turn() != nil || c != nil && c.Continue != nil
}

// Step is how the effect verifies, or schemas.StepLand; "" for work.
func (e *Effect) Step() string {
	switch t := e.Task.(type) {
	case *Verify:
		return t.Step
	case *Land:
		return schemas.StepLand
	}
	if c := e.Command(); c != nil && c.Review != nil {
		return c.Review.Step
	}
	return ""
}

// OutputPaths are those of the task; nil without a task.
func (e *Effect) OutputPaths() []string {
	if e.Task == nil {
		return nil
	}
	return e.Task.OutputPaths()
}

// Reserve makes b the budget of the effect and of its task; nil changes nothing.
func (e *Effect) Reserve(b *schemas.Budget) {
	if b == nil {
		return
	}
	e.Reserved = b
	switch t := e.Task.(type) {
	case *Command:
		c := *t
		c.Budget = b
		e.Task = &c
	case *AgentTurn:
		turn := *t
		if turn.Budget = b; turn.Otherwise != nil {
			c := *turn.Otherwise
			c.Budget, turn.Otherwise = b, &c
		}
		e.Task = &turn
	case *HTTPTurn:
		turn := *t
		turn.Budget = b
		e.Task = &turn
	}
}

// Reserves reports whether a claim of the effect keeps claims of other reconcilers from being made.
func (e *Effect) Reserves() bool { return e.Reserved != nil || e.Exclusive != "" }

// Claim is the intent to perform the effect, as it is recorded.
func (e *Effect) Claim() schemas.Run {
	r := schemas.Run{
		APIVersion: schemas.APIVersion, Kind: "Run", Metadata: schemas.RunMetadata{Name: e.Key},
		Key: e.Key, Owner: e.Owner.String(), Node: e.Node, Agent: e.Agent, Instead: e.Instead, NodeKey: e.NodeKey, Seq: e.Seq, Budget: e.Reserved,
		VirtualStart: e.VirtualStart, Tools: e.Tools,
	}
	if e.Task != nil {
		r.Again = e.Task.MissingOutputs()
	}
	if c := e.Command(); c != nil {
		r.Messages = c.Messages
	}
	if c := e.Command(); c != nil && c.Review != nil {
		r.Verifies, r.Step = c.Review.Run, c.Review.Step
	}
	if l, ok := e.Task.(*Land); ok {
		r.Lands = l.Run
	}
	if v, ok := e.Task.(*Verify); ok {
		r.Verifies, r.Step = v.Run, v.Step
	}
	return r
}

// Command says how a command is run, also that of an agent. Paths are slash paths below the root.
type Command struct {
	Argv []string // program and arguments; never empty
	// Env is added to the clean environment, sorted "K=V".
	Env     []string
	EnvFrom []Variable `json:",omitempty"` // further variables, by name, whose values are read at the start
	Session string     `json:",omitempty"` // what the session is about, as JSON; "": nothing
	Dir     string
	Stdin   string
	Timeout time.Duration // 0: none
	// Deadline ends the run at a fixed time (a DAG's timeout); zero: none.
	Deadline time.Time
	// Needs are the results of the nodes that this one needs, by name; the runner writes them to the file that
	// RECONCILE_NEEDS names.
	Needs map[string]Need
	// OutputFiles must exist after a success; OutputJSON is read as the result, which has to keep the JSON Schema OutputSchema.
	OutputFiles  []string
	OutputJSON   string
	OutputSchema json.RawMessage `json:",omitempty"`
	// Again are declared outputs that are missing and for which the node runs again: one that does not succeed leaves none
	// of them, so that half of a file does not count as an output.
	Again []string `json:",omitempty"`
	// Expects are outputs of other nodes that must exist at the start; else the effect is released, not failed.
	Expects []string `json:",omitempty"`
	// Brings are those of Expects whose content is on record. A workspace gets them with that content.
	Brings []schemas.Output `json:",omitempty"`
	// Output says how stdout is read: "" (only kept), "text" or "json", which may also ask a question; see package agentio.
	Output string
	// Profile says how the output of an agent's program is read; nil: as Output says. ProfileName is its name.
	Profile     *schemas.Profile `json:",omitempty"`
	ProfileName string           `json:",omitempty"`
	// PromptArg is the index of the argument that Stdin replaces; 0: Stdin is the standard input.
	PromptArg int `json:",omitempty"`
	// Resumes is the turn whose session the command continues; nil: none.
	Resumes *schemas.Turn `json:",omitempty"`
	// Continue is the program that continues a session: that of Resumes, or of a run of this effect that was interrupted; nil: none can be.
	Continue *Continuation `json:",omitempty"`
	// PassEnv names variables that the command gets from the environment of reconcile.
	PassEnv []string `json:",omitempty"`
	// Silence ends a run that has printed nothing for that long, while no tool runs; 0: none.
	Silence time.Duration `json:",omitempty"`
	// Budget is what the run may still use: the smallest of all budgets that apply to it, and of what other runs reserve. Its
	// fields are above 0 where they bound something. nil: nothing bounds it.
	Budget *schemas.Budget `json:",omitempty"`
	// Metering says how the agent's requests to its model are metered; nil: they are not.
	Metering *Metering `json:",omitempty"`
	// Answer says that the run answers a question: its result is the answer, as a JSON string.
	Answer bool `json:",omitempty"`
	// InstructionsFile is the file whose text is put in front of Stdin at the start; "": none.
	InstructionsFile string `json:",omitempty"`
	// Artifacts are files whose text is appended to Stdin at the start, as StdinFormat says: "json", "none", else a prompt.
	Artifacts   []string `json:",omitempty"`
	StdinFormat string   `json:",omitempty"`
	// Context says which use of an agent's context is noted; nil: none.
	Context *Context `json:",omitempty"`
	// Messages are the names of the Actions whose texts are part of Stdin.
	Messages []string `json:",omitempty"`
	// Continues says that a session before this one has worked on the task: its changes are appended to Stdin.
	Continues bool `json:",omitempty"`
	// Workspace is the folder of its own that the command works in; nil: the tree.
	Workspace *Workspace `json:",omitempty"`
	// Sandbox confines the command; nil: nothing does.
	Sandbox *Sandbox `json:",omitempty"`
	// Limits bound its use of resources; nil: unbounded.
	Limits *schemas.NodeLimits `json:",omitempty"`
	// Recall is the subject for which an agent gets memories at the start and records some at the end; nil without a memory.
	// Its results are not part of any key.
	Recall *Recall `json:",omitempty"`
	// Review says that the run is about the commit of another one, which it cannot change; nil: it is work of its own.
	Review *Review `json:",omitempty"`
}

// Review is the part of an agent's turn that verifies the commit of another run, in a checkout of which nothing but new tests is kept.
type Review struct {
	Run    string // the key of the run
	Step   string // schemas.StepReview or schemas.StepWrite
	Commit string // of the run
	Base   string // the commit that it was made from; the difference is appended to Stdin
	FailOn string // the severity from which on a finding counts; "" for the default
	// Tests are those that the agent wrote before, of this or an earlier commit: the checkout has them. nil: none.
	Tests *Tests `json:",omitempty"`
}

// Tests are tests that an agent wrote of the commit of another run: the files in which Commit, which is made onto Base, differs from it.
type Tests struct {
	Run    string // the key of the agent's run
	Agent  string
	Base   string
	Commit string
}

// Continuation is a program that continues a session. schemas.ArgValue in its arguments represents the session's id.
type Continuation struct {
	Argv      []string
	PromptArg int // as that of a Command
}

// Workspace says in which folder of its own a command works. Its task's paths are below the same folder there as below the
// root of the tree.
type Workspace struct {
	Kind string // schemas.WorkspaceClone, schemas.WorkspaceWorktree or CheckWorkspace
	// Declared says that the spec asks for it: then the command never works in the tree itself.
	Declared bool
	// Target is the branch whose last commit it is made from; "" is the checked-out one.
	Target string
	// Branch gets the commit with the changes.
	Branch string
	// Spec and Inputs are the files, and the patterns of files, that must be as in that commit. Spec is "" for a spec that reconcile made.
	Spec   string
	Inputs []string `json:",omitempty"`
	// Commit is the commit to check out instead of the last one, for checks, which leave nothing.
	Commit string
	// Setup confines the programs that prepare it where the command itself is not confined; nil: as the command is.
	Setup *Sandbox `json:",omitempty"`
	// Measure asks for the size of the commit, Verified for the digest of its files.
	Measure  bool `json:",omitempty"`
	Verified bool `json:",omitempty"`
	// Continues is the key of a run whose changes in it are committed, and whose work goes on; "" for none.
	Continues string `json:",omitempty"`
	// From has the commit of the changes with which the work goes on, should there be no workspace any more that has them.
	From *Commit `json:",omitempty"`
	// Tests are those that an agent wrote of commits before this one, the present ones last. They are there, and no part of the commit.
	Tests []Tests `json:",omitempty"`
	// Attempts begins the keys of the effects that work in it, one after the other: an attempt continues from the
	// files of the one before it. Before begins those of the attempts before a retry, which continues from their files; "" for none.
	Attempts string
	Before   string `json:",omitempty"`
}

// Commit is a commit of changes, and the commit that they are to.
type Commit struct{ Base, Commit string }

// CheckWorkspace is the kind of a workspace in which a commit is looked at. Nothing of it is kept.
const CheckWorkspace = "check"

// Sandbox says how a command is confined.
type Sandbox struct {
	schemas.Sandbox
	// Folders are where the program keeps its configuration and sessions, and FolderVars variables that name such folders. It may
	// write there.
	Folders, FolderVars []string `json:",omitempty"`
	// Confined says how the program does without a sandbox of its own, if this one confines it.
	Confined schemas.ProfileConfined
	// Default says that the agent's spec does not ask for it. A level that would keep the agent from work in the tree is then not used.
	Default bool
}

// Message is a text of a person for an agent that works.
type Message struct {
	Action string // the name of the Action that brings it
	Text   string // as the agent is told it
}

// Context says which shares of an agent's context are noted, in percent, ascending. Window is its size for agents that report
// none.
type Context struct {
	Marks  []int
	Window int
}

// AgentTurn is one turn of an agent that speaks the Agent Client Protocol over its standard streams. Its Command's Stdin is the
// prompt.
type AgentTurn struct {
	Command
	// Otherwise is performed instead where the program is not found; nil: then the run fails.
	Otherwise *Command
	Model     string // to choose, where the agent offers a choice
	Mode      string // to set; the agent must offer it
	// Resume is the session to continue if the agent still knows it; "" for a new one.
	Resume string
	// Servers are those of the Model Context Protocol that the agent starts, by name.
	Servers []Server `json:",omitempty"`
}

// Server is a server that an agent starts.
type Server struct {
	Name    string
	Argv    []string
	Env     []string   // sorted "K=V"
	EnvFrom []Variable // read at the start of the agent
}

// HTTPTurn is one turn with a model at an HTTP endpoint, in this process. Its Command has no Argv, and a Stdin that is the prompt.
type HTTPTurn struct {
	Command
	Wire        string // one of schemas.WireOpenAI and schemas.WireAnthropic
	Model       string
	Tools       string // one of schemas.ToolsNone, ToolsRead and ToolsWrite
	MaxRequests int
	MaxTokens   int // of each answer
}

// Land is the task that makes the commit of a run part of the branch that it is for.
type Land struct {
	Run       string // the key of the run
	Workspace string // its name
	Base      string // the commit that the run started from
	Commit    string // of the run
	Target    string // the branch; "" is the checked-out one
	// Files are the paths that the commit changes, below the top of the repository; the first of them, unless Whole.
	Files  []string
	Whole  bool
	Within []string   `json:",omitempty"` // globs of the files that it may change, apart from tests; nil: any
	Checks [][]string // that have to succeed on the result
	Env    []string   // of the checks, sorted "K=V"
	// EnvFrom are further variables of the checks, whose values are read at their start.
	EnvFrom []Variable `json:",omitempty"`
	// Sandbox confines the checks, which run what the agent wrote, as it confined the agent; nil: nothing does.
	Sandbox *Sandbox
	// Verify are the steps in which reconcile verifies what the branch would become, where that has other files than Tree, the digest of
	// those that were verified.
	Verify []Verification `json:",omitempty"`
	Tree   string         `json:",omitempty"`
	// Tests land with it, as a commit of their own; nil: none.
	Tests *Tests `json:",omitempty"`
	// Bounds are what holds for the specs that it changes; nil as the zero value.
	Bounds *schemas.Bounds `json:",omitempty"`
}

// Top is the last of the commits that land.
func (l *Land) Top() string {
	if l.Tests != nil {
		return l.Tests.Commit
	}
	return l.Commit
}

// Verification is a step of verifying a commit.
type Verification struct {
	Step string
	Args []string // as those of [Verify], without the commit that it is made onto
	// AllowNone accepts that the project has nothing with which to do the step.
	AllowNone bool `json:",omitempty"`
	// Taken are the objections of the step to the change that a person took, see [checks.Evidence.Objections].
	Taken []string `json:",omitempty"`
}

// Verify is the task that inspects or tests a commit, in a checkout of it.
type Verify struct {
	Run    string // the key of the run that left it, or the session whose branch has it
	Step   string // one of schemas.StepInspect and schemas.StepTest
	Commit string // "" is the last one of Branch, which must have all that is in the tree
	Branch string // "" is the checked-out one
	// Clean asks that all files of the tree are in the commit, but for those of reconcile.
	Clean   bool       `json:",omitempty"`
	Args    []string   // with which reconcile does it, and prints the evidence
	Env     []string   // sorted "K=V"
	EnvFrom []Variable `json:",omitempty"` // further variables, whose values are read at the start
	// Sandbox confines it, since it runs what the agent wrote, as it confined the agent; nil: nothing does.
	Sandbox *Sandbox
}

// OutputPaths are none.
func (v *Verify) OutputPaths() []string { return nil }

// MissingOutputs are none.
func (v *Verify) MissingOutputs() []string { return nil }

// OutputPaths is empty: the files of a commit are not outputs.
func (l *Land) OutputPaths() []string { return nil }

// MissingOutputs are none.
func (l *Land) MissingOutputs() []string { return nil }

// OutputPaths are all outputs that the command declares.
func (c *Command) OutputPaths() []string {
	return schemas.Outputs{Files: c.OutputFiles, JSON: c.OutputJSON}.Paths()
}

// MissingOutputs are those for which the command runs again.
func (c *Command) MissingOutputs() []string { return c.Again }

// Environ returns variables as a process gets them, sorted "K=V".
func Environ(env map[string]string) []string {
	out := make([]string, 0, len(env))
	for k, v := range env {
		out = append(out, k+"="+v)
	}
	slices.SortFunc(out, strings.Compare)
	return out
}

// Variable is a variable whose value is read at the start of a command. It wins over one of the environment.
type Variable struct {
	Variable string
	schemas.EnvSource
}

// Variables separates variables: texts, as a process gets them, sorted "K=V", and those that are read at the start, by name.
func Variables(env schemas.Env) (texts []string, from []Variable) {
	texts = make([]string, 0, len(env))
	for name, v := range env {
		if v.From == "" {
			texts = append(texts, name+"="+v.Text)
		} else {
			from = append(from, Variable{name, v.EnvSource})
		}
	}
	slices.Sort(texts)
	slices.SortFunc(from, func(a, b Variable) int { return strings.Compare(a.Variable, b.Variable) })
	return texts, from
}

// TasksGroup is the group that every effect is in.
const TasksGroup = "tasks"

// AgentGroup begins the name of the group of all runs of one agent, RoleGroup of all agents with a role, SessionGroup of a session,
// DAGGroup of a DAG, and LandGroup of what lands on a branch.
const (
	AgentGroup   = "agent/"
	RoleGroup    = "role/"
	SessionGroup = "session/"
	DAGGroup     = "dag/"
	LandGroup    = "land/"
)

// EngineersGroup is the group of all engineers; in a session, it ends the name of the group of its engineers. NoticesGroup is that of
// notifications.
const (
	EngineersGroup = "engineers"
	NoticesGroup   = "notifications"
)

// ClaimOf finds a claim; claims are sorted by key.
func ClaimOf(e *state.Entry, key string) *state.Claim {
	if e == nil {
		return nil
	}
	byKey := func(c state.Claim, k string) int { return strings.Compare(c.Key, k) }
	i, ok := slices.BinarySearchFunc(e.Claims, key, byKey)
	if !ok {
		return nil
	}
	return &e.Claims[i]
}

// Recall describes the next work of an agent, as a query of the memory.
type Recall struct {
	Agent   string
	Issue   int    // 0: none
	Context string // the prompt, or the question
}

// Lesson is the output of an agent's run, from which observations are extracted.
type Lesson struct {
	Recall
	At   time.Time // when the run ended
	Text string    // without secrets
	// Failed says that the run failed.
	Failed bool
}

// Need is the result of a node in the form for one that needs it.
type Need = agentio.Need

// ReportKind says what happened to an effect.
type ReportKind int

// Kinds of reports. Each submitted effect ends in exactly one of Finished, Released, Held and Broken.
const (
	Started    ReportKind = iota + 1 // PID is its process group
	Finished                         // Run is the record
	Released                         // it was given up or interrupted; there is no record, and it may be wanted again
	Held                             // an earlier run of it could not be ended; there is no record
	Broken                           // reconcile itself could not do its part, for Err; there is no record
	Progressed                       // Turn is what is known of an agent's turn that runs
)

// Ends reports whether the effect ends with this report.
func (k ReportKind) Ends() bool { return k != Started && k != Progressed }

// Report is the notice of a performer about an effect.
type Report struct {
	Kind ReportKind
	Key  string
	At   time.Time
	PID  int
	Step string        // Started: that of the effect
	Run  *schemas.Run  // Finished; Released: what the turn used that was interrupted, nil for nothing
	Why  string        // Released, Held; of Finished what is worth a warning and not part of the record
	Err  error         // Broken
	Turn *schemas.Turn // Progressed
	// Waits says why a Released landing cannot be performed before a person has done something; "" for another reason.
	Waits string
	// Missing are files that Task.Expects named and that do not exist; then the effect is Released without having started.
	Missing []string
}

// Webhook is one POST request to an address, from this process. Its Command has no Argv, and a Stdin that is the body.
type Webhook struct {
	Command
	URL    schemas.EnvValue
	Secret *schemas.EnvSource `json:",omitempty"` // where the key of the signature is; nil: it is not signed
	// Delivery is the same for all attempts to deliver one notification.
	Delivery string
	// To is the address without its secret parts.
	To string
	// Destination is what the user has to allow; nil where the address is not from the tree.
	Destination *schemas.Destination `json:",omitempty"`
}

// NodeRef names a node of an object.
type NodeRef struct {
	Owner schemas.Ref
	Node  string
}
