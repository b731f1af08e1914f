package schemas

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas/condition"
	"reconcile.dev/reconcile/schemas/validator"
)

// The six forms of JSON values.
const (
	null form = iota
	boolean
	number
	text
	list
	object
)

// field is one key and its value.
type field struct {
	name      string
	line, col int // of the key
	value     *value
}

// Node is one task. Exactly one of Run, Script, DAG, or Agent with Prompt is set.
type Node struct {
	// Name is unique within the DAG: ^[a-z][a-z0-9_-]{0,62}$. Names may not differ in - and _ only.
	Name string `json:"name" jsonschema:"minLength=1,maxLength=63"`
	// Description says what the node does.
	Description string `json:"description,omitempty" jsonschema:"maxLength=2000"`
	// Run is a program and its arguments; no shell reads them.
	Run []string `json:"run,omitempty" jsonschema:"minItems=1,maxItems=1000"`
	// Script is text for sh -c.
	Script string `json:"script,omitempty" jsonschema:"minLength=1,maxLength=100000"`
	// Agent names the agent that does the task; prompt tells it what to do.
	Agent string `json:"agent,omitempty" jsonschema:"minLength=1,maxLength=63"`
	// Prompt is the task text for the agent.
	Prompt string `json:"prompt,omitempty" jsonschema:"minLength=1,maxLength=100000"`
	// DAG names a DAG whose nodes are done in place of this one, with as the values of its parameters.
	DAG string `json:"dag,omitempty" jsonschema:"minLength=1,maxLength=63"`
	// With are the values of the called DAG's parameters.
	With map[string]any `json:"with,omitempty"`
	// Matrix makes several nodes of this one.
	Matrix *Matrix `json:"matrix,omitempty"`
	// Acceptance are the criteria by which the agent's task is done, as sentences; the agent is told them.
	Acceptance []string `json:"acceptance,omitempty" jsonschema:"maxItems=100"`
	// Needs names the nodes that must have succeeded before this one starts.
	Needs []string `json:"needs,omitempty"`
	// Inputs are globs (** allowed) of files below the root: the node runs again when their content changes. Files
	// under state/, .reconcile/, .git/ and snapshots never count.
	Inputs []string `json:"inputs,omitempty"`
	// Tools are names of programs that the node uses, such as go or node: the node runs again when the version of one changes.
	Tools []string `json:"tools,omitempty" jsonschema:"maxItems=20"`
	// Outputs are what the node leaves behind.
	Outputs Outputs `json:"outputs,omitzero"`
	// Env is added to the environment; it wins over the session's.
	Env Env `json:"env,omitempty"`
	// WorkingDir is a folder below the root. Default: the root.
	WorkingDir string `json:"workingDir,omitempty" jsonschema:"maxLength=1000"`
	// Timeout ends an attempt. Default: none for commands except the DAG's, the runner's for agents.
	Timeout *Duration `json:"timeout,omitempty"`
	// Limits bound the memory, the processors and the number of processes of each run. Default: no bounds.
	Limits *NodeLimits `json:"limits,omitempty"`
	// Retry replaces the policy's.
	Retry *Retry `json:"retry,omitempty"`
	// Priority orders ready nodes. Default: the session's.
	Priority Priority `json:"priority,omitempty" jsonschema:"enum=critical,enum=high,enum=normal,enum=low,enum=background"`
	// When is an expression over the results of needs; where it is false the node is Skipped and its dependents go on. One
	// that reads a state is evaluated when the needs have ended, in whatever state.
	When string `json:"when,omitempty" jsonschema:"maxLength=2000"`
	// Optional says that a failure of the node does not fail the DAG: its dependents go on, and see its state.
	Optional bool `json:"optional,omitempty"`
	// Clarify says whom the node's agent may ask in addition to its canClarify, and under which limits.
	Clarify *Clarify `json:"clarify,omitempty"`
	// IssueStatus is the status of the issue that the node sets.
	IssueStatus *IssueStatus `json:"issueStatus,omitempty"`
	// Repeat has the node run again, with those on the ways to it from an earlier one, until its result is good.
	Repeat *Repeat `json:"repeat,omitempty"`
	// OnEscalation says what becomes of an agent's node whose question was escalated: wait for a human's resolution, or fail
	// with the escalation's summary. Default wait.
	OnEscalation string `json:"onEscalation,omitempty" jsonschema:"enum=wait,enum=fail,default=wait"`
	// Land says what is checked before the commit of the node's workspace becomes part of the branch. Default: as the
	// session says.
	Land *Land `json:"land,omitempty"`
	// Pipeline has the change of the node's agent inspected and tested before it lands. Default: as the session says, for agents with the
	// role engineer.
	Pipeline *Pipeline `json:"pipeline,omitempty"`
	// Touches are globs of the files that the node changes. Nodes whose files may be the same do not run at once.
	Touches []string `json:"touches,omitempty" jsonschema:"maxItems=100"`
	// Approve is a gate: the node starts only when people have approved it. Of a person's task it says what the answer has to be, and
	// who may give it. Default: no gate.
	Approve *Approve `json:"approve,omitempty"`
	// Budget bounds what all attempts of an agent's node together use. Default: no bound.
	Budget *Budget `json:"budget,omitempty"`
	// Metadata is free: it is kept, and no controller reads it.
	Metadata map[string]any `json:"metadata,omitempty"`
	// Made is what the expansion of the DAG says of a node that it made; nil for a node of the file.
	Made *Made `json:"-"`
}

// Land says what is checked before a commit lands.
type Land struct {
	// Checks are programs with their arguments, one after the other. They run in a checkout of what the branch would become;
	// all of them have to end with exit code 0.
	Checks [][]string `json:"checks,omitempty" jsonschema:"maxItems=100"`
	// Preview holds back a commit whose change is large, or changes sensitive or binary files, until people who have seen it approve.
	// Default: none is held back.
	Preview *Preview `json:"preview,omitempty"`
}

// Preview says which commits wait for people before they land.
type Preview struct {
	// Lines is how many lines a commit may add and remove without an approval. Default 50.
	Lines int `json:"lines,omitempty" jsonschema:"minimum=1,maximum=1000000,default=50"`
	// Approve says who approves, as that of a node does. Default: any person.
	Approve *Approve `json:"approve,omitempty"`
}

// defaultPreviewLines is the bound of a Preview without one.
const defaultPreviewLines = 50

// Holds says why a change is held back, as a clause; "" if it is not. A change that no one has measured is. p may be nil.
func (p *Preview) Holds(c *Change) string {
	switch {
	case p == nil:
		return ""
	case c == nil:
		return "the size of its change is not known"
	case len(c.Sensitive) > 0:
		return "it changes " + Shorten(c.Sensitive, 3)
	case c.Lines > cmp.Or(p.Lines, defaultPreviewLines):
		return fmt.Sprintf("it changes %d lines", c.Lines)
	}
	return ""
}

// Approval is what Approve says, with its default. p may be nil.
func (p *Preview) Approval() *Approve {
	if p == nil || p.Approve == nil {
		return &Approve{}
	}
	return p.Approve
}

// PreviewOf returns which commits of the node wait for people: as the node says, else as its session does; nil for none. session may
// be nil.
func (n *Node) PreviewOf(session *SessionSpec) *Preview {
	switch {
	case n.Land != nil:
		return n.Land.Preview
	case session != nil && session.Land != nil:
		return session.Land.Preview
	}
	return nil
}

func (l *Land) check(at Spot) {
	if l == nil {
		return
	}
	if p := l.Preview; p != nil {
		p.Approve.check(at.At("preview", "approve"), map[string]*validator.Error{})
	}
	for i, argv := range l.Checks {
		if len(argv) == 0 {
			at.At("checks", i).Errorf("missing", "names no program").suggest("write the program and its arguments as a list")
			continue
		}
		checkArgv(at.At("checks", i), argv)
	}
}

// Outputs are what a node leaves behind.
type Outputs struct {
	// Files are paths below the root that exist after a success; a missing one fails the attempt.
	Files []string `json:"files,omitempty"`
	// JSON is a path below the root of a file that the node writes; its value is the node's result.
	JSON string `json:"json,omitempty" jsonschema:"maxLength=1000"`
	// Schema is a JSON Schema (draft 2020-12) for the node's result; a result that does not satisfy it fails the attempt.
	// The schema can refer only to its own $defs.
	Schema json.RawMessage `json:"schema,omitempty" jsonschema:"type=object"`
	// Keep has the outputs of each success in git, as refs/reconcile/outputs/<key of the run>, for as long as its record.
	Keep bool `json:"keep,omitempty"`
}

// Paths returns the paths of all declared outputs: the files, then the JSON file, unless it is one of them.
func (o Outputs) Paths() []string {
	if o.JSON == "" || slices.Contains(o.Files, o.JSON) {
		return o.Files
	}
	return append(slices.Clone(o.Files), o.JSON)
}

// RetryOr returns how the node is retried: as it says itself, else as the policy does, with every field set.
func (n *Node) RetryOr(p Policy) Retry {
	var r Retry
	switch {
	case n.Retry != nil:
		r = *n.Retry
	case p.Retry != nil:
		r = *p.Retry
	}
	r.fill()
	return r
}

// checkExpression compiles a condition that may use the names of a scope.
func checkExpression(at Spot, text string, names condition.Scope, example string) {
	if text == "" {
		return
	}
	_, err := condition.CompileIn(text, names)
	if err == nil {
		return
	}
	hint := ""
	if wrong, ok := errors.AsType[*condition.Error](err); ok && wrong.Unneeded != "" {
		if near := GuessWord(wrong.Unneeded, names.Needs); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
	}
	at.Errorf("bad-condition", "%v%s", err, hint).suggest("for example: %s", example)
}

func (n *Node) check(r *Report, list string, i int) {
	at := r.At(list, i)
	if !isNodeName(n.Name) {
		f := at.At("name").Errorf("bad-name", "%q is no name of a node: a lower-case letter, then lower-case letters, "+
			"digits, _ and -, at most %d in all", n.Name, maxName)
		if s := snake(n.Name); s != "" {
			f.suggest("write %q", s)
		}
	}
	n.checkWork(at)
	checkArgv(at.At("run"), n.Run)
	checkGlobs(r, n.Inputs, list, i, "inputs")
	n.checkTools(at.At("tools"))
	for k, p := range n.Outputs.Files {
		checkOutput(at.At("outputs", "files", k), p)
	}
	if n.Outputs.JSON != "" {
		checkOutput(at.At("outputs", "json"), n.Outputs.JSON)
	}
	if n.WorkingDir != "" {
		checkPath(at.At("workingDir"), n.WorkingDir, reads)
	}
	n.Env.check(r, list, i, "env")
	if n.Timeout != nil {
		checkTimeout(at.At("timeout"), n.Timeout)
	}
	n.Budget.check(at.At("budget"))
	n.Retry.check(at.At("retry"))
	n.Limits.check(at.At("limits"))
	n.Land.check(at.At("land"))
	n.Pipeline.check(at.At("pipeline"), n.Agent)
	n.checkStep(at)
	checkGlobs(r, n.Touches, list, i, "touches")
}

// checkSchema reports an invalid schema, or one of a node without a result. compiled caches the result for each text.
func (n *Node) checkSchema(at Spot, compiled map[string]*validator.Error) {
	n.Approve.check(at.At("approve"), compiled)
	schema := n.Outputs.Schema
	if len(schema) == 0 {
		return
	}
	at = at.At("outputs", "schema")
	if n.Agent == "" && n.Outputs.JSON == "" {
		at.Errorf("missing", "a command has no result that could keep a schema").
			suggest("add outputs.json, with the path of the file that the node writes its result to")
	}
	checkJSONSchema(at, schema, compiled)
}

// checkWork reports a node that does not say exactly one thing to do.
func (n *Node) checkWork(at Spot) {
	var given []string
	if len(n.Run) > 0 {
		given = append(given, "run")
	}
	if n.Script != "" {
		given = append(given, "script")
	}
	if n.Agent != "" {
		given = append(given, "agent")
	}
	if n.DAG != "" {
		given = append(given, "dag")
	}
	switch {
	case len(given) > 1:
		at.At(given[1]).Errorf("conflict", "a node has either run, script, dag, or agent with prompt; this one has %s",
			strings.Join(given, " and ")).suggest("keep one of them").also("the other one", at.At(given[0]).field...)
	case len(given) == 0 && n.Prompt == "":
		at.Errorf("missing", "node %q does not say what to do", n.Name).suggest("add run, script, or agent with prompt")
	}
	switch {
	case n.Agent != "" && n.Prompt == "":
		at.At("agent").Errorf("missing", "an agent needs a prompt").suggest("add prompt, with what the agent is to do")
	case n.Agent == "" && n.Budget != nil:
		at.At("budget").Errorf("conflict", "only what an agent uses has a budget").suggest("name the agent, or remove budget")
	case n.Agent == "" && n.Pipeline != nil:
		at.At("pipeline").Errorf("conflict", "only the change of an agent is verified").suggest("name the agent, or remove pipeline")
	case n.Agent == "" && len(n.Acceptance) > 0:
		at.At("acceptance").Errorf("conflict", "only an agent is told when its task is done").suggest("name the agent, or remove acceptance")
	case n.Agent == "" && n.Prompt != "":
		at.At("prompt").Errorf("missing", "a prompt needs an agent").suggest("add agent, with the name of who is to do it")
	case n.Agent != "":
		checkRef(at.At("agent"), n.Agent)
	}
	if n.Prompt != "" {
		checkFilled(at.At("prompt"), n.Prompt)
	}
	if n.Script != "" {
		checkFilled(at.At("script"), n.Script)
	}
}
