package settle

import (
	"slices"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// Class says how far an object is from its desired state. The conditions follow from it.
type Class int

const (
	ClassReady   Class = iota // as wanted
	ClassWorking              // not yet, and reconcile is at it
	ClassWaiting              // not yet, and it is somebody else's turn, as it should be
	ClassFailed               // not, and nothing will change by itself
	ClassInvalid              // the spec can never work as it is
)

// conditionTable says which conditions a class has: Ready always, the others only while true.
var conditionTable = map[Class][]struct {
	typ    string
	status schemas.ConditionStatus
}{
	ClassReady:   {{schemas.Ready, schemas.True}},
	ClassWorking: {{schemas.Ready, schemas.False}, {schemas.Reconciling, schemas.True}},
	ClassWaiting: {{schemas.Ready, schemas.False}},
	ClassFailed:  {{schemas.Ready, schemas.False}, {schemas.Stalled, schemas.True}},
	ClassInvalid: {{schemas.Ready, schemas.False}, {schemas.Stalled, schemas.True}},
}

// Reasons of conditions, nodes and history entries. They are words that scripts may rely on.
const (
	ReasonInvalidSpec       = "InvalidSpec"       // the object's file has problems; what it said before stands
	ReasonInvalidTransition = "InvalidTransition" // a completed session was asked for something else than Active
	ReasonImmutable         = "Immutable"         // the object was edited after it had been accepted
	ReasonTargetNotFound    = "TargetNotFound"    // an action waits for its target
	ReasonCannotStart       = "CannotStart"       // a workflow cannot start as it, its agents and the start are
	ReasonWaitsForIssue     = "WaitsForIssue"     // a start waits for the text of its issue, which is on GitHub
	ReasonApplied           = "Applied"           // an action was applied
	ReasonValid             = "Valid"             // a workflow can be taken
	ReasonPending           = "Pending"           // a request waits for an answer; a DAG has not started

	ReasonScopeViolation = "ScopeViolation" // the agent may not ask that one, or not so that it blocks
	ReasonRefused        = "Refused"        // a reply came when it could not be taken
	ReasonUnroutable     = "Unroutable"     // nobody can answer the question of another program
	ReasonStale          = "Stale"          // no answer in time; asked once more
	ReasonAnswered       = "Answered"
	ReasonResolved       = "Resolved"
	ReasonEscalated      = "Escalated" // a human has to decide
	ReasonAbandoned      = "Abandoned" // the asking agent went on

	ReasonIdle       = "Idle"
	ReasonWorking    = "Working"
	ReasonClarifying = "Clarifying" // an agent answers a question
	ReasonStuck      = "Stuck"      // an agent's last task failed for good
	ReasonDone       = "Done"       // an agent said that its work is done

	ReasonActive               = "Active"
	ReasonPaused               = "Paused"
	ReasonSuspended            = "Suspended"
	ReasonCompleted            = "Completed"
	ReasonCompletionPending    = "CompletionPending"    // Completed is wanted, and DAGs are not done
	ReasonSessionLimit         = "SessionLimit"         // limits.sessions are taken
	ReasonAnotherSessionActive = "AnotherSessionActive" // the owner's other session ranks higher
	ReasonPausedByAction       = "PausedByAction"
	ReasonSuspendedByAction    = "SuspendedByAction"
	ReasonDAGFailed            = "DAGFailed"
	ReasonSessionMissing       = "SessionMissing"
	ReasonSessionInvalid       = "SessionInvalid"
	ReasonAgentInvalid         = "AgentInvalid"
	ReasonAgentUnhealthy       = "AgentUnhealthy" // a check, or its last runs, say that it cannot work; or it waits for one that cannot
	ReasonRunsFail             = "RunsFail"       // the last runs of an agent failed in a row, for a reason that is not the work
	ReasonHealthy              = "Healthy"        // a check found that it can work

	ReasonHandingOff     = "HandingOff"     // an architect is asked to agree that the work is handed over
	ReasonHandoffStopped = "HandoffStopped" // its agent wants to hand its work over, and a person stopped that
	ReasonTooLate        = "TooLate"        // the answer is not waited for any more

	ReasonContextFull = "ContextFull" // the turn is being ended since the agent's context is full
	ReasonInterrupted = "Interrupted" // the turn is being ended since a person interrupts it

	ReasonUnproved = "Unproved" // an approval waits for the proof of who wrote it

	ReasonDelivered = "Delivered" // a text of a person has reached the agent

	ReasonRunning     = "Running"
	ReasonSucceeded   = "Succeeded"
	ReasonFailed      = "Failed"
	ReasonTimedOut    = "TimedOut"
	ReasonOutOfMemory = "OutOfMemory" // a run had used the memory of its limits
	ReasonCancelled   = "Cancelled"

	ReasonScheduled          = "Scheduled"     // a time of the schedule has yet to come
	ReasonWaitsForGroup      = "WaitsForGroup" // another DAG of the concurrency group works
	ReasonWaitsForPlace      = "WaitsForPlace"
	ReasonWaitsForPerson     = "WaitsForPerson"
	ReasonWaitsForApproval   = "WaitsForApproval"   // it is a gate, and people have not approved what it shows
	ReasonWaitsForAnswer     = "WaitsForAnswer"     // a question is open
	ReasonWaitsForPermission = "WaitsForPermission" // the agent asked for what neither a rule nor a person has decided
	ReasonTooManyQuestions   = "TooManyQuestions"   // the agent only asks
	ReasonTooManyPermissions = "TooManyPermissions" // the agent only asks for permissions
	ReasonTooManyHandoffs    = "TooManyHandoffs"    // the agent only hands its task off
	ReasonTemplate           = "Template"           // a DAG that only others call
	ReasonRoundsUsedUp       = "RoundsUsedUp"       // the result of a loop is not good after its last round
	ReasonQuestionRefused    = "QuestionRefused"    // the agent asks again what may not be asked
	ReasonBackOff            = "BackOff"
	ReasonRateLimited        = "RateLimited"      // until a time that is known
	ReasonBudgetLow          = "BudgetNearlyUsed" // at least 80 % of a budget are used
	ReasonBudgetExceeded     = "BudgetExceeded"   // a budget is used up
	ReasonOutputsMissing     = "OutputsMissing"   // outputs of a success are needed and are not here
	ReasonFormerDefinition   = "FormerDefinition" // its run goes on by a former definition
	ReasonReplacing          = "Replacing"        // the run of a former definition is being ended first
	ReasonEnding             = "Ending"           // a run that is no longer wanted is being ended
	ReasonKilling            = "Killing"          // a run that is no longer wanted is killed without a time of grace
	ReasonHeld               = "Held"
	ReasonInspecting         = "Inspecting"     // its change is being inspected
	ReasonTesting            = "Testing"        // its change is being tested
	ReasonFixing             = "Fixing"         // a DAG mends what the verification of its session found
	ReasonVerified           = "Verified"       // the work of a session passed as a whole
	ReasonTaken              = "Taken"          // a person took it although it did not pass
	ReasonNotVerifiable      = "NotVerifiable"  // it has a pipeline, and its agent leaves no commit to verify
	ReasonLanding            = "Landing"        // its commit is being made part of the branch
	ReasonTreeDirty          = "TreeDirty"      // a file that the user has changed is in the way of its commit
	ReasonLandingRefused     = "LandingRefused" // its commit has what only people may decide
	ReasonNotLanded          = "NotLanded"      // its commit cannot become part of the branch
	ReasonWroteOutside       = "WroteOutside"   // an agent that nothing confined wrote outside of its workspace
	ReasonNotCommitted       = "NotCommitted"   // its workspace would lack what it is made of
	ReasonToolUnknown        = "ToolUnknown"    // a program that it declares is missing, or does not tell its version
	ReasonFailFast           = "FailFast"
	ReasonNeedFailed         = "NeedFailed"
	ReasonNeedCancelled      = "NeedCancelled"
	ReasonWhenFalse          = "WhenFalse"
	ReasonWhenFailed         = "WhenFailed" // the expression cannot be evaluated over these results
	ReasonSkippedByAction    = "SkippedByAction"
	ReasonCancelledByAction  = "CancelledByAction"
	ReasonApproved           = "Approved"
	ReasonDAGTimeout         = "DAGTimeout"
	ReasonCallTimeout        = "CallTimeout"
	ReasonNotificationFailed = "NotificationFailed" // the end of the DAG could not be reported
)

// Judgement is the result of a decision about an object as a whole.
type Judgement struct {
	Phase   string
	Class   Class
	Reason  string
	Message string
	// Since is when it became so, where a record tells; zero: now.
	Since time.Time
}

// Settle writes the judgement into c, which starts as the object's former Common, or empty. Times move only where a
// condition's status changes.
func (j Judgement) Settle(c *schemas.Common, digest string, now time.Time) {
	c.ObservedDigest = digest
	c.Phase = j.Phase
	if !j.Since.IsZero() {
		now = j.Since
	}
	freeSlots := conditionTable[j.Class]
	next := make([]schemas.Condition, 0, len(freeSlots))
	for _, row := range freeSlots {
		at := schemas.NewTime(now)
		if old := c.Condition(row.typ); old != nil && old.Status == row.status {
			at = old.LastTransitionTime
		}
		next = append(next, schemas.Condition{
			Type: row.typ, Status: row.status, Reason: j.Reason, Message: j.Message, LastTransitionTime: at,
		})
	}
	sortConditions(next)
	c.Conditions = next
	if c.History == nil {
		c.History = []schemas.HistoryEntry{}
	}
}

// budgetLow is the condition of an object of whose budget at least 80 % are used. It is there only while true.
const budgetLow = "BudgetLow"

// Warn adds the condition BudgetLow to c, which starts as the new Common of an object whose former one was old; "" adds nothing.
func Warn(c *schemas.Common, old *schemas.Common, message string, now time.Time) {
	if message == "" {
		return
	}
	at := schemas.NewTime(now)
	if was := old.Condition(budgetLow); was != nil {
		at = was.LastTransitionTime
	}
	c.Conditions = slices.Insert(c.Conditions, 0, schemas.Condition{Type: budgetLow, Status: schemas.True, Reason: ReasonBudgetLow,
		Message: message, LastTransitionTime: at})
}

// Healthy is the condition of an agent that was checked, or whose runs failed in a row.
const Healthy = "Healthy"

// Health adds the condition Healthy to c, which starts as the new Common of an object whose former one was old.
func Health(c *schemas.Common, old *schemas.Common, is schemas.ConditionStatus, reason, message string, now time.Time) {
	insert(c, old, schemas.Condition{Type: Healthy, Status: is, Reason: reason, Message: message, LastTransitionTime: schemas.NewTime(now)})
}

// Verified adds the condition schemas.Verified to c, which starts as the new Common of an object whose former one was old. at is when it
// became so, where a record tells; zero: now.
func Verified(c, old *schemas.Common, is schemas.ConditionStatus, reason, message string, at schemas.Time, now time.Time) {
	if at.IsZero() {
		at = schemas.NewTime(now)
	}
	insert(c, old, schemas.Condition{Type: schemas.Verified, Status: is, Reason: reason, Message: message, LastTransitionTime: at})
}

// Notified is the condition of an object whose end could not be reported to all that it names. It is there only while it is False.
const Notified = "Notified"

// Unnotified adds the condition Notified to c, which starts as the new Common of an object whose former one was old.
func Unnotified(c *schemas.Common, old *schemas.Common, message string, now time.Time) {
	insert(c, old, schemas.Condition{Type: Notified, Status: schemas.False, Reason: ReasonNotificationFailed, Message: message,
		LastTransitionTime: schemas.NewTime(now)})
}

// insert adds a condition in the order of types. Its time is that of the former one with the same status.
func insert(c, old *schemas.Common, add schemas.Condition) {
	if was := old.Condition(add.Type); was != nil && was.Status == add.Status {
		add.LastTransitionTime = was.LastTransitionTime
	}
	i := slices.IndexFunc(c.Conditions, func(c schemas.Condition) bool { return c.Type > add.Type })
	if i < 0 {
		i = len(c.Conditions)
	}
	c.Conditions = slices.Insert(c.Conditions, i, add)
}

// sortConditions orders the at most two conditions by type.
func sortConditions(cs []schemas.Condition) {
	if len(cs) == 2 && cs[0].Type > cs[1].Type {
		cs[0], cs[1] = cs[1], cs[0]
	}
}

// Common returns a copy of the former Common of an object, or an empty one.
func Common(s schemas.Status) schemas.Common {
	if s == nil {
		return schemas.Common{}
	}
	return *s.Base()
}

// JudgeBroken is the judgement over an object whose file has problems: the phase stands.
func JudgeBroken(in In, phase string) Judgement {
	p := in.Problems[0]
	return Judgement{Phase: phase, Class: ClassInvalid, Reason: ReasonInvalidSpec, Message: p.Error()}
}

// JudgeImmutable is the judgement over an object that was edited after it had been accepted.
func JudgeImmutable(phase, message string) Judgement {
	return Judgement{Phase: phase, Class: ClassInvalid, Reason: ReasonImmutable, Message: message}
}
