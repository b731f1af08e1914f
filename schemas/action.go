package schemas

import (
	"fmt"
	"slices"
	"strings"
)

// ActionKind is the kind Action.
var ActionKind = Kind{
	Name: "Action", Plural: "actions",
	Short:     "A verb applied once to something that runs: cancel, retry, pause, resume, skip, approve, deny, hold, prompt, interrupt, handoff, or start of a workflow; or the override of a check.",
	New:       func() Spec { return new(ActionSpec) },
	NewStatus: func() Status { return new(ActionStatus) },

	CheckAgainst: checkActionNode,
	FinalPhase:   ActionApplied,
}

// Modes of cancel.
const (
	CancelGraceful  = "graceful"
	CancelImmediate = "immediate"
	CancelWait      = "wait"
)

// Verbs of an action.
const (
	VerbCancel  = "cancel"
	VerbRetry   = "retry"
	VerbPause   = "pause"
	VerbResume  = "resume"
	VerbSkip    = "skip"
	VerbApprove = "approve"
	VerbDeny    = "deny"
	VerbHold    = "hold"
	// VerbPrompt tells the agent of a node something; VerbInterrupt also ends its running turn.
	VerbPrompt    = "prompt"
	VerbInterrupt = "interrupt"
	// VerbIgnoreInspector takes a change whatever its inspector says, VerbIgnoreTester whatever its tester does.
	VerbIgnoreInspector = "ignore-inspector"
	VerbIgnoreTester    = "ignore-tester"
	// VerbHandoff ends the running turn as interrupt does, and hands the work over to a new conversation; VerbStopHandoff stops hand-offs.
	VerbHandoff     = "handoff"
	VerbStopHandoff = "stop-handoff"
	// VerbStart starts a run of a workflow.
	VerbStart = "start"
	// VerbOverride accepts what a check found.
	VerbOverride = "override"
)

// IsMessage reports whether a verb brings a text to the agent of a node.
func IsMessage(verb string) bool { return verb == VerbPrompt || EndsTurn(verb) }

// EndsTurn reports whether a verb ends the running turn of the node's agent.
func EndsTurn(verb string) bool { return verb == VerbInterrupt || verb == VerbHandoff }

// IgnoredStep is the step of a pipeline whose verdict a verb takes no notice of; "" for any other verb.
func IgnoredStep(verb string) string {
	switch verb {
	case VerbIgnoreInspector:
		return StepInspect
	case VerbIgnoreTester:
		return StepTest
	}
	return ""
}

// isOfTask reports whether a verb is about the work of a node's agent.
func isOfTask(verb string) bool {
	return IsMessage(verb) || IgnoredStep(verb) != "" || verb == VerbStopHandoff
}

// ActionSpec asks to apply a verb once. It is immutable once applied.
type ActionSpec struct {
	// Target is the DAG or the session that is meant, as kind/name: dag/checks; all, for all sessions; the workflow to start; the plan
	// change that is answered; or tree, for an override.
	Target string `json:"target" jsonschema:"minLength=1,maxLength=130"`
	// Node is a node of the target DAG; without it the verb is about the whole target.
	Node string `json:"node,omitempty" jsonschema:"maxLength=63"`
	// Verb is the verb to apply.
	Verb string `json:"verb" jsonschema:"enum=cancel,enum=retry,enum=pause,enum=resume,enum=skip,enum=approve,enum=deny,enum=hold,enum=prompt,enum=interrupt,enum=ignore-inspector,enum=ignore-tester,enum=handoff,enum=stop-handoff,enum=start,enum=override"`
	// Text is what prompt, interrupt or handoff tells the agent of the node, or the issue that a workflow is started for, in Markdown: its first
	// heading is the title.
	Text string `json:"text,omitempty" jsonschema:"maxLength=70000"`
	// Issue is the number of the issue that a workflow is started for. A second start for the same issue joins the run that has not ended.
	Issue int `json:"issue,omitempty" jsonschema:"minimum=1,maximum=2147483647"`
	// Params are the values of the workflow's parameters.
	Params map[string]any `json:"params,omitempty"`
	// Comments are those of the issue, oldest first.
	Comments []IssueComment `json:"comments,omitempty" jsonschema:"maxItems=1000"`
	// Skip names optional steps of the workflow that are left out.
	Skip []string `json:"skip,omitempty" jsonschema:"maxItems=1000"`
	// All says that retry is about every node of the DAG, also those that succeeded.
	All bool `json:"all,omitempty"`
	// Mode says how cancel treats what runs: graceful asks it to end and kills it after the time of grace, immediate kills it, wait
	// lets it end on its own. Default graceful.
	Mode string `json:"mode,omitempty" jsonschema:"enum=graceful,enum=immediate,enum=wait"`
	// Alone says that retry of a node that succeeded leaves what depends on it as it is.
	Alone bool `json:"alone,omitempty"`
	// Digest is that of what approve was shown, as ready and describe print it: a gate opens only for what it shows now. Of
	// ignore-inspector and ignore-tester it is that of the change.
	Digest string `json:"digest,omitempty" jsonschema:"maxLength=32"`
	// Answer is what approve answers, as JSON or as text: the result of a person's task, or of a plan change the edit and instructions.
	Answer string `json:"answer,omitempty" jsonschema:"maxLength=65536"`
	// Permission is the request of the node's agent that approve allows, or deny refuses.
	Permission *PermissionAnswer `json:"permission,omitempty"`
	// Override is what an override accepts.
	Override *CheckOverride `json:"override,omitempty"`
	// By is the name of the requester.
	By string `json:"by,omitempty" jsonschema:"maxLength=100"`
	// Proof says how it is known who that is: the token of a run, the account of the process, GitHub, a signature, or not at all (claimed).
	Proof string `json:"proof,omitempty" jsonschema:"enum=run,enum=account,enum=github,enum=signature,enum=claimed"`
	// Reason says why.
	Reason string `json:"reason,omitempty" jsonschema:"maxLength=2000"`
	// At is when it was asked; actions that are new at the same time are applied in the order of at, then name.
	At Time `json:"at,omitzero"`
}

// CheckOverride names what a person accepts: a finding of an inspection, a failing test, or that no test runs. It holds until a file that it
// covers changes.
type CheckOverride struct {
	// Finding is the id of a finding.
	Finding string `json:"finding,omitempty" jsonschema:"maxLength=64"`
	// Test is the name of a test.
	Test string `json:"test,omitempty" jsonschema:"maxLength=1000"`
	// NoTests says that no test needs to run.
	NoTests bool `json:"noTests,omitempty"`
	// Suite is the suite of the test, as the framework names it.
	Suite string `json:"suite,omitempty" jsonschema:"maxLength=1000"`
	// Tool is the tool that found it.
	Tool string `json:"tool,omitempty" jsonschema:"maxLength=100"`
	// Rule is the rule of the finding.
	Rule string `json:"rule,omitempty" jsonschema:"maxLength=200"`
	// Message is what the tool said.
	Message string `json:"message,omitempty" jsonschema:"maxLength=4000"`
	// Covers are the files that it is about, below the top of the repository; none: all.
	Covers []string `json:"covers,omitempty" jsonschema:"maxItems=1000"`
	// Digest is that of these files when it was written.
	Digest string `json:"digest" jsonschema:"minLength=1,maxLength=64"`
}

// PermissionAnswer names a request of an agent: a command, or another tool.
type PermissionAnswer struct {
	// Command is the command that the agent asked to run, as it is on record.
	Command string `json:"command,omitempty" jsonschema:"maxLength=20000"`
	// Tool is the title of a request that names no command.
	Tool string `json:"tool,omitempty" jsonschema:"maxLength=20000"`
	// For says how long the answer is remembered: once is for this request, session for all like it of agents in the same session. Default once.
	For string `json:"for,omitempty" jsonschema:"enum=once,enum=session,default=once"`
}

// How long an answer to a request of an agent is remembered.
const (
	PermitOnce    = "once"
	PermitSession = "session"
)

// Phases of an action.
const (
	ActionPending = "Pending"
	ActionApplied = "Applied"
)

// ActionStatus tells whether the action was applied.
type ActionStatus struct {
	Common
	// Target is the object that the action was applied to, or waits for.
	Target string `json:"target,omitempty"`
	// Delivery says how the text of prompt, interrupt or handoff reached the agent; nil until it has.
	Delivery *MessageReceipt `json:"delivery,omitempty"`
	// During is the key of a run without a sandbox during which the file appeared; nothing shows that a person wrote it.
	During string `json:"during,omitempty"`
}

// Distrusted says why an action, as its file has the digest, is no decision of a person; "" if nothing is known against it.
func (s *ActionStatus) Distrusted(digest string) string {
	if s == nil || s.ObservedDigest != digest {
		return ""
	}
	return distrusted(s.During)
}

// distrusted says why a file that appeared during a run is not a decision of a person; "" without a run.
func distrusted(during string) string {
	if during == "" {
		return ""
	}
	return fmt.Sprintf("its file appeared while the run %s worked without a sandbox, and nothing shows that a person wrote it; "+
		"if you did, run the command for it in your terminal", during)
}

// MessageReceipt is the proof that a text reached an agent.
type MessageReceipt struct {
	How string `json:"how"` // DeliveredInTurn or DeliveredInPrompt
	At  Time   `json:"at"`
	Run string `json:"run"` // the key of the effect
	// NodeKey is the key of the node that the run is about.
	NodeKey string `json:"nodeKey"`
}

// Ways in which a text reaches an agent.
const (
	DeliveredInTurn   = "turn"   // while its turn ran
	DeliveredInPrompt = "prompt" // as a part of the prompt of a turn
)

// AppliedTo are the actions that were applied to an object, by its status; nil for kinds that actions are not applied to.
func AppliedTo(s Status) []AppliedAction {
	if t, ok := s.(interface{ appliedActions() []AppliedAction }); ok {
		return t.appliedActions()
	}
	return nil
}

// AppliedAction is the record, in the target's status, that an action was applied.
type AppliedAction struct {
	Name   string `json:"name"`
	Digest string `json:"digest"` // of the action's spec, to notice edits
	Verb   string `json:"verb"`
	Node   string `json:"node,omitempty"`
	By     string `json:"by,omitempty"`
	Proof  string `json:"proof,omitempty"` // as in the action's spec
	At     Time   `json:"at"`
	Moot   bool   `json:"moot,omitempty"` // there was nothing for the verb to do
	// Verifies says that it has the work of the session verified again.
	Verifies bool `json:"verifies,omitempty"`
	// Refused is why an approval was not accepted; empty for any other action.
	Refused string `json:"refused,omitempty"`
	// Delivery is set once the text of prompt, interrupt or handoff has reached the agent.
	Delivery *MessageReceipt `json:"delivery,omitempty"`
}

// Targets that are no objects.
const (
	// TargetAll is the target of an action on all sessions.
	TargetAll = "all"
	// TargetTree is the target of an override.
	TargetTree = "tree"
)

// AllRef is what an action on all sessions refers to: the tree, by its settings.
func AllRef() Ref { return Ref{Kind: SettingsKind.Name, Name: "settings"} }

// TargetRef returns the target of the action: a DAG, a session, a workflow, a plan change or AllRef, also for an override. The error names the expected form.
func (s *ActionSpec) TargetRef() (Ref, error) {
	if s.Target == TargetAll || s.Target == TargetTree {
		return AllRef(), nil
	}
	return Kinds{DAGKind, SessionKind, WorkflowKind, PlanChangeKind}.ParseRef(s.Target)
}

// Default fills nothing in. It takes out secrets and private text, which the target's status must not repeat.
func (s *ActionSpec) Default() {
	withoutSecrets(&s.By, &s.Reason, &s.Text, &s.Answer)
	withoutSecretComments(s.Comments)
	if o := s.Override; o != nil {
		withoutSecrets(&o.Message)
	}
	if p := s.Permission; p != nil {
		orDefault(&p.For, PermitOnce)
		withoutSecrets(&p.Command, &p.Tool)
	}
}

// Check reports a target other than a DAG, a session, a workflow or all, and verbs that the target does not support.
func (s *ActionSpec) Check(r *Report) {
	checkLine(r.At("by"), s.By)
	if s.Node != "" && !isNodeName(s.Node) {
		f := r.At("node").Errorf("bad-name", "%q is not the name of a node", s.Node)
		if n := snake(s.Node); n != "" {
			f.suggest("did you mean %q?", n)
		}
	}
	to, err := s.TargetRef()
	switch {
	case err != nil:
		r.At("target").Errorf("bad-target", "%v", err)
	case s.checkOverride(r), s.checkStart(r, to):
	case to.Kind == PlanChangeKind.Name:
		s.checkPlanAnswer(r)
	case s.Node != "" && to.Kind != DAGKind.Name:
		r.At("node").Errorf("conflict", "only a DAG has nodes, and the target is %s", to).also("the target", "target")
	case to.Kind == SessionKind.Name && s.Verb == VerbApprove && s.Target != TargetAll:
		if s.Reason == "" {
			r.At("reason").Errorf("missing", "the work of %s is taken although it does not pass, so there must be a reason", to).suggest("write why")
		}
	case to.Kind != DAGKind.Name && s.Verb != VerbStart && !slices.Contains(sessionVerbs, s.Verb):
		who, also := "a session", "retry, skip and approve"
		if s.Target == TargetAll {
			who, also = TargetAll, "retry and skip"
		}
		r.At("verb").Errorf("conflict", "%s cannot %s", who, s.Verb).also("the target", "target").
			suggest("%s knows pause, resume, cancel, %s", who, also)
	case s.All && (s.Verb != VerbRetry || s.Node != ""):
		r.At("all").Errorf("conflict", "only retry of a whole DAG can be about all nodes").suggest("leave out all")
	case s.Mode != "" && s.Verb != VerbCancel:
		r.At("mode").Errorf("conflict", "%s has no mode; cancel has", s.Verb).suggest("leave out mode")
	case s.Alone && (s.Verb != VerbRetry || s.Node == ""):
		r.At("alone").Errorf("conflict", "only retry of a node can leave out its dependents").suggest("leave out alone")
	case s.Verb != VerbApprove && s.Answer != "":
		r.At("answer").Errorf("conflict", "%s brings no answer; approve does", s.Verb).suggest("leave out answer")
	case s.Digest != "" && (s.Verb != VerbApprove && IgnoredStep(s.Verb) == "" || s.Node == ""):
		r.At("digest").Errorf("conflict", "only approve of a node, ignore-inspector and ignore-tester are about a digest").suggest("leave out digest")
	case s.Digest != "" && (len(s.Digest) != 32 || strings.Trim(s.Digest, "0123456789abcdef") != ""):
		r.At("digest").Errorf("bad-digest", "%q is no digest of what is to be approved", s.Digest).
			suggest("copy it from reconcile ready --explain: 32 hexadecimal digits")
	case s.Answer != "" && s.Node == "":
		r.At("answer").Errorf("missing", "an answer is about a node").suggest("add node")
	case s.Permission != nil && s.Node == "", s.Permission != nil && s.Verb != VerbApprove && s.Verb != VerbDeny:
		r.At("permission").Errorf("conflict", "only approve and deny of a node are about a permission")
	case s.Permission != nil && (s.Permission.Command == "") == (s.Permission.Tool == ""):
		r.At("permission").Errorf("missing", "names either the command or the tool that the agent asked for")
	case s.Permission == nil && s.Verb == VerbDeny:
		r.At("verb").Errorf("missing", "deny is about a permission that an agent asks for").suggest("add permission, or write reconcile deny dag/NAME NODE")
	case s.Node == "" && isOfTask(s.Verb):
		r.At("verb").Errorf("missing", "%s is about a node", s.Verb).suggest("add node")
	case s.Verb == VerbPrompt && strings.TrimSpace(s.Text) == "":
		r.At("text").Errorf("missing", "prompt has nothing to tell").suggest("add text")
	case s.Text != "" && !IsMessage(s.Verb) && s.Verb != VerbStart:
		r.At("text").Errorf("conflict", "%s has no text", s.Verb).suggest("write reason, or the verb prompt")
	}
}

// checkOverride reports an override that is none, and whether the action is about one.
func (s *ActionSpec) checkOverride(r *Report) bool {
	o := s.Override
	if s.Verb != VerbOverride && s.Target != TargetTree && o == nil {
		return false
	}
	switch {
	case s.Verb != VerbOverride:
		r.At("verb").Errorf("conflict", "%s is about no check; the target tree and the field override are for the verb override", s.Verb)
	case s.Target != TargetTree:
		r.At("target").Errorf("conflict", "an override is about the code, and the target is %s", s.Target).suggest("write target: tree")
	case o == nil:
		r.At("verb").Errorf("missing", "override does not say what it accepts").suggest("run reconcile inspect override ID --reason TEXT, which writes it")
	case strings.TrimSpace(s.Reason) == "":
		r.At("verb").Errorf("missing", "an override has a reason").suggest("add reason")
	case s.Node != "" || s.Text != "" || s.Answer != "" || s.Digest != "" || s.Permission != nil || s.All || s.Alone || s.Mode != "":
		r.At("verb").Errorf("conflict", "an override has no node, text, answer, digest, permission, all, alone or mode").suggest("remove them")
	default:
		n := 0
		for _, set := range []bool{o.Finding != "", o.Test != "", o.NoTests} {
			if set {
				n++
			}
		}
		if n != 1 {
			r.At("override").Errorf("conflict", "accepts either a finding, a test, or that no test runs")
		}
	}
	return true
}

// checkPlanAnswer reports an action on a plan change that is no answer to it.
func (s *ActionSpec) checkPlanAnswer(r *Report) {
	switch {
	case s.Node != "":
		r.At("node").Errorf("conflict", "a plan change has no nodes").suggest("remove node")
	case s.Verb != VerbApprove && s.Verb != VerbDeny:
		r.At("verb").Errorf("conflict", "a plan change cannot %s", s.Verb).also("the target", "target").
			suggest("a plan change knows approve and deny")
	case s.Verb == VerbDeny && s.Answer != "":
		r.At("answer").Errorf("conflict", "deny brings no answer; approve does").suggest("write reason")
	case s.Permission != nil:
		r.At("permission").Errorf("conflict", "only approve and deny of a node are about a permission").suggest("remove permission")
	case s.All || s.Alone || s.Mode != "" || s.Digest != "":
		r.At("verb").Errorf("conflict", "an answer to a plan change has no all, alone, mode or digest").suggest("remove them")
	case s.Verb == VerbApprove && s.Answer != "":
		if _, err := ReadPlanAnswer(s.Answer); err != nil {
			r.At("answer").Errorf("bad-answer", "%v", err)
		}
	}
}

// sessionVerbs are the verbs that a session knows.
var sessionVerbs = []string{VerbPause, VerbResume, VerbCancel, VerbRetry, VerbSkip}

// checkActionNode reports a node that the target does not have.
func checkActionNode(o, to *Object, r *Report) {
	s, dag := SpecAs[*ActionSpec](o), SpecAs[*DAGSpec](to)
	if s.Node == "" || dag == nil {
		return
	}
	names := make([]string, len(dag.Nodes))
	for i, n := range dag.Nodes {
		names[i] = n.Name
		if n.Name == s.Node && n.Agent == "" && isOfTask(s.Verb) {
			r.At("node").Errorf("conflict", "no agent works on %s of %s", s.Node, to.Ref)
		}
	}
	if !slices.Contains(names, s.Node) && !dag.mayMake(s.Node) {
		r.At("node").Errorf("missing-node", "%s has no node %q", to.Ref, s.Node).near(s.Node, names)
	}
}

// References returns the reference to the action's target, if the target has a valid form. An action whose target does not
// exist waits for it.
func (s *ActionSpec) References() []Reference {
	to, err := s.TargetRef()
	if err != nil || s.Target == TargetTree {
		return nil
	}
	return []Reference{{Field: []any{"target"}, To: to}}
}
