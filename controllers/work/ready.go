// Package work lists the tasks of agents and people, and what questions block.
package work

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/dags"
	"reconcile.dev/reconcile/controllers/ledgers"
	"reconcile.dev/reconcile/controllers/permits"
	"reconcile.dev/reconcile/controllers/planchanges"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/sessions"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/threads"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/template"
	"reconcile.dev/reconcile/state"
)

// Item is one thing that can be worked on, or could be but for a question that is open.
type Item struct {
	// Name is that of the item: dag/checks/implement, CLR-42-001, or agent/engineer for what an agent does outside of a
	// DAG. With Issue it is unique.
	Name     string           `json:"name"`
	Kind     string           `json:"kind"`              // one of the Item kinds
	State    string           `json:"state"`             // one of the Item constants
	Blocked  string           `json:"blocked,omitempty"` // BLOCKED: and what it waits for
	Priority schemas.Priority `json:"priority"`
	Session  string           `json:"session,omitempty"`
	Issue    int              `json:"issue,omitempty"`
	// Agent is who can do it; empty for what any person can, or what reconcile runs.
	Agent string `json:"agent,omitempty"`
	// Task describes the work in a line.
	Task string `json:"task"`
	// Clarification is the id of the question that needs an answer, or that blocks.
	Clarification string `json:"clarification,omitempty"`
	// Reason is a word that says why it stands as it does, Message a sentence.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// Permission is what the agent of a node asks for, in items of kind permission.
	Permission *schemas.Permission `json:"permission,omitempty"`
	// Again is when it is looked at again although nothing changed; zero: never.
	Again schemas.Time `json:"again,omitzero"`
	// Claim tells who took it; nil while it is free.
	Claim *ItemClaim `json:"claim,omitempty"`
}

// ItemClaim tells who took an item with "ready --claim", and when.
type ItemClaim struct {
	By    string       `json:"by"`
	Since schemas.Time `json:"since"`
}

// Kinds of items.
const (
	ItemNode     = "node"     // a node of a DAG
	ItemQuestion = "question" // one that a person has to answer, or to decide
	// ItemPermission is a permission that the agent of a node asks for, while its run waits and after it.
	ItemPermission = "permission"
	// ItemApproval is a node that starts when people approve it.
	ItemApproval = "approval"
	// ItemPlanChange is a plan change that a person has to decide.
	ItemPlanChange = "plan-change"
	// ItemSession is a session whose work does not pass as a whole.
	ItemSession = "session"
	ItemWork    = "work" // what an agent does outside of DAGs, as far as a question keeps it from it
)

// States of an item.
const (
	ItemReady   = "ready"   // somebody can work on it now
	ItemQueued  = "queued"  // reconcile runs it as soon as there is a place, or its back-off is over
	ItemBlocked = "blocked" // a question must be answered first
)

// Free reports whether agent can take the item: it is ready, unclaimed, and assigned to the agent or to any person.
// human is set if the agent is a person.
func (i *Item) Free(agent string, human bool) bool {
	return i.State == ItemReady && i.Claim == nil && (i.Agent == agent || i.Agent == "" && human)
}

// Ready lists what can be worked on at the time now, and what a question blocks: by priority, session, issue and name.
// The tree is taken as a run would leave it that starts nothing. dirty are the objects to decide, as [settle.Doubtful] lists them; nil: all.
// A dormant DAG has nothing to work on.
func Ready(t *state.Tree, now time.Time, dirty []schemas.Ref) []Item {
	d := settle.Tree(t, now, dirty)
	b := &workBoard{tree: d.Tree, outs: d.Outs, now: now, questions: openQuestions(d.Tree, (*schemas.Clarification).Open), asking: map[nodeName]*openQuestion{}}
	for i := range b.questions {
		q := &b.questions[i]
		b.question(q)
		if q.blocks() && b.asking[q.node] == nil {
			b.asking[q.node] = q
		}
	}
	for _, e := range b.tree.Active(schemas.DAGKind.Name) {
		b.nodes(e)
	}
	for _, e := range b.tree.Entries(schemas.PlanChangeKind.Name) {
		b.planChange(e)
	}
	for _, e := range b.tree.Active(schemas.SessionKind.Name) {
		b.session(e)
	}
	b.block()
	b.claims()
	slices.SortFunc(b.items, compareItems)
	return b.items
}

func compareItems(a, b Item) int {
	return cmp.Or(cmp.Compare(a.Priority.Rank(), b.Priority.Rank()), strings.Compare(a.Session, b.Session),
		cmp.Compare(a.Issue, b.Issue), strings.Compare(a.Name, b.Name))
}

// workBoard is where items are gathered.
type workBoard struct {
	tree      *state.Tree
	now       time.Time
	outs      map[schemas.Ref]settle.Out
	questions []openQuestion
	asking    map[nodeName]*openQuestion // the first blocking question of each node
	items     []Item
	touched   *dags.Touching       // nil until asked for
	behind    map[int]bool         // the issues whose ledgers are not up to date; nil until asked for
	served    map[int]*state.Entry // the most urgent session of each issue; nil until asked for
}

// nodes adds the nodes of a DAG that wait for a person, a slot or an answer.
func (b *workBoard) nodes(e *state.Entry) {
	st, ok := e.Status().(*schemas.DAGStatus)
	if !ok || !anyNodeWaits(st) {
		return
	}
	spec := schemas.SpecAs[*schemas.DAGSpec](e.Object)
	if spec == nil {
		return
	}
	session, task := b.tree.Entry(schemas.SessionKind.Ref(spec.Session)), tasksOf(b.tree, e, b.now)
	for i := range spec.Nodes {
		n := &spec.Nodes[i]
		s := st.Nodes.Of(n.Name)
		if itemState(&s) == "" {
			continue
		}
		it := Item{
			Name: e.Ref.String() + "/" + n.Name, Kind: ItemNode, State: itemState(&s), Priority: priorityOf(n, session),
			Session: spec.Session, Issue: sessions.IssueOf(b.tree, e), Agent: n.Agent, Task: task(n), Reason: s.Reason,
			Message: s.Message, Again: b.nodeAgain(e, s),
		}
		switch s.Reason {
		case settle.ReasonWaitsForPlace:
			it.Message = cmp.Or(b.touching().Why(n, s), b.ledger(e.Ref, n.Name), it.Message)
		case settle.ReasonWaitsForPermission:
			b.askPermission(&it, e, n)
		case settle.ReasonWaitsForApproval:
			it.Kind, it.Agent, it.Task = ItemApproval, "", toApprove(&s, it.Task)
		}
		if it.State == ItemBlocked {
			b.blockNode(&it, nodeName{e.Name, n.Name})
		}
		b.items = append(b.items, it)
	}
}

// touching says which work holds what nodes touch.
func (b *workBoard) touching() *dags.Touching {
	if b.touched == nil {
		b.touched = dags.TouchingIn(b.tree)
	}
	return b.touched
}

// ledger says which ledger a node that asked waits for; "" for none.
func (b *workBoard) ledger(dag schemas.Ref, node string) string {
	for _, issue := range ledgers.Under(b.tree, dag, node) {
		if b.behind == nil { // for a node that asked: all requests are read
			b.behind = ledgers.Behind(b.tree)
		}
		if b.behind[issue] {
			return fmt.Sprintf("waits for the ledger of issue %d, which another program has locked, or no run has written yet", issue)
		}
	}
	return ""
}

// askPermission makes an item of what the agent of a node asks for. Any person may answer.
func (b *workBoard) askPermission(it *Item, e *state.Entry, n *schemas.Node) {
	it.Kind, it.Agent = ItemPermission, ""
	if open := permits.Waiting(b.tree, e, n.Name); len(open) > 0 {
		it.Permission = &open[0]
		it.Task = "allow " + n.Agent + " to " + permits.Describe(&open[0])
	}
}

func anyNodeWaits(st *schemas.DAGStatus) bool {
	for _, s := range st.Nodes.All() {
		if itemState(s) != "" {
			return true
		}
	}
	return false
}

// itemState is "" for a node that is not an item: it is done, runs and asks for nothing, or waits for other nodes or for an
// approval.
func itemState(s *schemas.NodeStatus) string {
	switch {
	case s.State == schemas.NodeQueued:
		return ItemQueued
	case s.Reason == settle.ReasonWaitsForPermission, s.State == schemas.NodeBlocked && s.Reason == settle.ReasonWaitsForPerson,
		s.State == schemas.NodeBlocked && s.Reason == settle.ReasonWaitsForApproval:
		return ItemReady
	case s.State == schemas.NodeBlocked && s.Reason != settle.ReasonHeld:
		return ItemBlocked
	}
	return ""
}

// nodeAgain is when the node is looked at again: for its next attempt, or whenever its DAG is.
func (b *workBoard) nodeAgain(e *state.Entry, s schemas.NodeStatus) schemas.Time {
	if !s.RetryAt.IsZero() {
		return s.RetryAt
	}
	return b.again(e.Ref)
}

func (b *workBoard) again(ref schemas.Ref) schemas.Time { return schemas.NewTime(b.outs[ref].Again) }

func priorityOf(n *schemas.Node, session *state.Entry) schemas.Priority {
	if n.Priority != "" {
		return n.Priority
	}
	if s := state.SpecOf[*schemas.SessionSpec](session); s != nil {
		return s.Priority
	}
	return schemas.Normal
}

// tasksOf returns what says in a line what a node of a DAG is to do, with the values of its expressions. These are computed once, when the
// first node asks for some.
func tasksOf(t *state.Tree, e *state.Entry, now time.Time) func(*schemas.Node) string {
	filled := sync.OnceValue(func() map[string]string {
		return dags.Tasks(settle.In{Entry: e, Tree: t, World: settle.NewWorld(t, now, nil), Now: now})
	})
	return func(n *schemas.Node) string {
		text := cmp.Or(n.Description, n.Prompt, n.Script, strings.Join(n.Run, " "))
		if n.Description == "" && template.Has(text) {
			text = cmp.Or(filled()[n.Name], text)
		}
		line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
		return line
	}
}

// blockNode says which question keeps a node waiting. The status itself tells where that question cannot be found.
func (b *workBoard) blockNode(it *Item, node nodeName) {
	it.Blocked = "BLOCKED: " + it.Message
	if q := b.asking[node]; q != nil {
		it.block(q, b.questionAgain(q))
	}
}

func (it *Item) block(q *openQuestion, again schemas.Time) {
	it.State, it.Blocked, it.Clarification = ItemBlocked, threads.BlockedLine(&q.Clarification), q.ID
	if !again.IsZero() {
		it.Again = again
	}
}

func (b *workBoard) questionAgain(q *openQuestion) schemas.Time {
	if q.entry == nil {
		return schemas.Time{}
	}
	return b.again(q.entry.Ref)
}

// question adds a question that waits for a person: for the one who was asked, or, once it was escalated, for anybody
// who decides.
func (b *workBoard) question(q *openQuestion) {
	it := Item{
		Name: q.ID, Kind: ItemQuestion, State: ItemReady, Issue: q.issue, Agent: q.To, Clarification: q.ID,
		Again: b.questionAgain(q),
	}
	switch {
	case q.wrong != "":
		it.State, it.Blocked, it.Task = ItemBlocked, "BLOCKED: "+q.wrong, "answer: "+q.Topic
		it.Reason, it.Message = settle.ReasonUnroutable, q.wrong
	case q.Status == schemas.ClarificationEscalated:
		it.Agent = ""
		it.Task = "decide: " + q.Topic
		it.Reason, it.Message = settle.ReasonEscalated, fmt.Sprintf("%s asked %s, and agents could not settle it", q.From, q.To)
	case q.Waiting() && agents.IsPerson(b.tree, q.To):
		it.Task = "answer: " + q.Topic
		it.Reason, it.Message = settle.ReasonPending, fmt.Sprintf("%s asks, round %d of %d", q.From, q.Round, q.MaxRounds)
	default:
		return
	}
	if c := q.condition(); c != nil {
		it.Reason, it.Message = c.Reason, c.Message
	}
	it.Session, it.Priority = b.sessionFor(q)
	b.items = append(b.items, it)
}

// sessionFor is the session that a question belongs to, with the priority of its work: that of the node that asks, else
// the most urgent one that serves the question's issue.
func (b *workBoard) sessionFor(q *openQuestion) (string, schemas.Priority) {
	e := b.serving(q.issue)
	if dag := b.tree.Entry(schemas.Ref{Kind: schemas.DAGKind.Name, Name: q.node.dag}); dag != nil {
		if spec := schemas.SpecAs[*schemas.DAGSpec](dag.Object); spec != nil {
			e = b.tree.Entry(schemas.SessionKind.Ref(spec.Session))
		}
	}
	if s := state.SpecOf[*schemas.SessionSpec](e); s != nil {
		return e.Name, s.Priority
	}
	return "", schemas.Normal
}

// serving returns the most urgent session of an issue, by priority and name, or nil.
func (b *workBoard) serving(issue int) *state.Entry {
	if b.served == nil {
		b.served = map[int]*state.Entry{}
		for _, e := range b.tree.Entries(schemas.SessionKind.Name) {
			s := state.SpecOf[*schemas.SessionSpec](e)
			if s == nil || s.Issue == 0 {
				continue
			}
			if old := state.SpecOf[*schemas.SessionSpec](b.served[s.Issue]); old == nil || s.Priority.Rank() < old.Priority.Rank() {
				b.served[s.Issue] = e
			}
		}
	}
	return b.served[issue]
}

// planChange adds a plan change that waits for a person.
func (b *workBoard) planChange(e *state.Entry) {
	spec := planchanges.Spec(e)
	if spec == nil || !forPerson(e) {
		return
	}
	it := Item{Name: e.Ref.String(), Kind: ItemPlanChange, State: ItemReady, Priority: spec.Urgency(), Agent: personFor(b.tree, e),
		Task: "decide: " + spec.Said(), Reason: settle.ReasonWaitsForPerson, Message: readiness.ConditionOf(e, schemas.Ready).Message}
	it.Session = planchanges.Session(b.tree, spec)
	if s := state.SpecOf[*schemas.SessionSpec](b.tree.Entry(schemas.SessionKind.Ref(it.Session))); s != nil {
		it.Issue = s.Issue
	}
	b.items = append(b.items, it)
}

// session adds a session whose work a person has to decide about.
func (b *workBoard) session(e *state.Entry) {
	spec := state.SpecOf[*schemas.SessionSpec](e)
	if spec == nil || !sessions.Approvable(e) {
		return
	}
	b.items = append(b.items, Item{Name: e.Ref.String(), Kind: ItemSession, State: ItemReady, Priority: spec.Priority, Session: e.Name, Issue: spec.Issue,
		Task: "decide about the work of the session", Reason: settle.ReasonWaitsForPerson, Message: e.Status().(*schemas.SessionStatus).Quality.Message})
}

// effort is what an agent does on an issue.
type effort struct {
	agent string
	issue int
}

// block marks the work that is blocked by questions of agents outside of DAGs: the tasks of the asking agent on that issue, or
// without tasks, the agent's work on it as an item of its own. Of several questions the first one is named.
func (b *workBoard) block() {
	tasks := map[effort][]int{}
	for i, it := range b.items {
		if it.Kind == ItemNode && it.State != ItemQueued {
			at := effort{it.Agent, it.Issue}
			tasks[at] = append(tasks[at], i)
		}
	}
	for i := range b.questions {
		q := &b.questions[i]
		if q.node != (nodeName{}) || !q.blocks() {
			continue
		}
		at := effort{q.From, q.issue}
		if len(tasks[at]) == 0 {
			tasks[at] = []int{len(b.items)}
			b.items = append(b.items, b.work(q))
		}
		for _, i := range tasks[at] {
			if it := &b.items[i]; it.State == ItemReady {
				it.Reason, it.Message = q.blockedReason(), q.Topic
				it.block(q, b.questionAgain(q))
			}
		}
	}
}

// work is what an agent does on an issue outside of DAGs, blocked by its question.
func (b *workBoard) work(q *openQuestion) Item {
	it := Item{
		Name: schemas.AgentKind.Ref(q.From).String(), Kind: ItemWork, Issue: q.issue, Agent: q.From, Task: "go on",
		Reason: q.blockedReason(), Message: q.Topic,
	}
	if q.issue > 0 {
		it.Task = fmt.Sprintf("go on with issue %d", q.issue)
	}
	it.Session, it.Priority = b.sessionFor(q)
	it.block(q, b.questionAgain(q))
	return it
}

// claims marks what agents have taken. Of two claims on one item, which only meddling by hand can make, the older
// counts, then the one whose agent's name comes first.
func (b *workBoard) claims() {
	taken := map[string]*ItemClaim{}
	for _, e := range b.tree.Entries(schemas.AgentKind.Name) {
		for _, r := range agents.HooksInForce(e) {
			old := taken[r.For]
			if r.For != "" && (old == nil || r.StartedAt.Before(old.Since.Time)) {
				taken[r.For] = &ItemClaim{By: e.Name, Since: r.StartedAt}
			}
		}
	}
	for i := range b.items {
		b.items[i].Claim = taken[b.items[i].Name]
	}
}
