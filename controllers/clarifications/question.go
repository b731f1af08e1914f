package clarifications

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/breaker"
	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
	"reconcile.dev/reconcile/state"
)

// askEffect is the run of the agent that is asked. It counts against the agent's own limit and that of the tree, and
// belongs to no session: who waits for the answer may belong to any.
func (w *Requests) askEffect(e *state.Entry, m *clarify.Input, st *schemas.ClarificationRequestStatus, ask *clarify.Ask) settle.Effect {
	agent := schemas.SpecAs[*schemas.AgentSpec](w.Tree.Entry(schemas.AgentKind.Ref(m.Spec.To)).Object)
	out := settle.Effect{Owner: e.Ref, Node: ask.Node, NodeKey: ask.NodeKey, Seq: ask.Seq, Agent: m.Spec.To,
		Key: keys.OfEffect(schemas.ClarificationRequestKind, e.Name, ask.Node, ask.NodeKey, ask.Seq), Rank: schemas.Normal.Rank(), Ageing: w.Tree.Settings().Limits.Ageing.Std(), QueuedAt: st.Created,
		Groups: []settle.Group{{Name: settle.TasksGroup, Limit: w.Tree.Settings().Limits.ConcurrentTasks},
			{Name: settle.AgentGroup + m.Spec.To, Limit: agent.Concurrency}}}
	if m.Spec.Blocking {
		out.Rank = schemas.High.Rank() // somebody waits
	}
	if settle.ClaimOf(e, out.Key) != nil {
		return out
	}
	out.Allowances = w.allowances(m.Spec.To)
	task, env := agents.Command(w.Tree.Settings(), m.Spec.To, agent)
	task.Answer, task.Artifacts = true, m.Spec.Artifacts
	task.Env, task.EnvFrom = askEnv(env, e.Name, m, agent)
	task.Stdin = w.question(e, m, st, ask.After).Stdin(task.StdinFormat)
	if w.Tree.Settings().Memory.On() {
		task.Recall = &settle.Recall{Agent: m.Spec.To, Issue: m.Spec.Issue, Context: m.Spec.Topic + "\n" + m.Spec.Question}
	}
	out.Task = agents.Task(agent, &task, nil)
	return out
}

// allowances are the budgets that an agent's answers run against.
func (w *Requests) allowances(agent string) []settle.Allowance {
	return budgets.Agent(w.Tree.Settings(), w.Tree.Entry(schemas.AgentKind.Ref(agent)).Object)
}

// withoutBudget keeps an answer from starting for which a budget is used up, and says so in the judgement.
func (w *Requests) withoutBudget(in settle.In, out *settle.Out, j *settle.Judgement) {
	if len(out.Effects) == 0 || len(out.Effects[0].Allowances) == 0 {
		return
	}
	why, until := budgets.SumsOf(in.World.OfRun, in.Tree, in.Now).Exceeded(out.Effects[0].Allowances, in.Ref, "")
	if why == "" {
		return
	}
	out.Effects = nil
	j.Message += "; " + why
	if !until.IsZero() && (out.Again.IsZero() || until.Before(out.Again)) {
		out.Again, out.Await = until, false
	}
}

// withoutAgent keeps an answer from starting whose agent cannot work, and says so in the judgement. No one answers in its place: the
// question is for that agent.
func withoutAgent(in settle.In, out *settle.Out, j *settle.Judgement) {
	e := &out.Effects[0]
	if settle.ClaimOf(in.Entry, e.Key) != nil {
		return
	}
	why, _ := in.World.Ailing(e.Agent)
	b := breaker.BreakersOf(in.World.OfRun, in.Tree, in.Now).Ask(e.Agent, in.Ref, "")
	switch {
	case why != "":
	case b.State == breaker.HalfOpen && !b.Trying:
		e.Groups = append(e.Groups, breaker.ProbeGroup(e.Agent))
		return
	case b.State == breaker.Closed:
		return
	default:
		if why = b.Describe(); b.State == breaker.Open && (out.Again.IsZero() || b.Until.Before(out.Again)) {
			out.Again, out.Await = b.Until.Time, false
		}
	}
	out.Effects = nil
	j.Message += "; agent/" + e.Agent + breaker.CannotWork + why
}

// askEnv adds to env, the environment of the agent:
//
//	RECONCILE_AGENT, RECONCILE_MODEL         who is asked
//	RECONCILE_ISSUE                          the issue's number, if there is one
//	RECONCILE_CLARIFICATION                  the number of the question, as CLR-42-001
//	RECONCILE_REQUEST                        the name of the ClarificationRequest
func askEnv(env schemas.Env, name string, m *clarify.Input, agent *schemas.AgentSpec) (texts []string, from []settle.Variable) {
	env["RECONCILE_AGENT"] = schemas.EnvValue{Text: m.Spec.To}
	env["RECONCILE_CLARIFICATION"] = schemas.EnvValue{Text: m.ID}
	env["RECONCILE_REQUEST"] = schemas.EnvValue{Text: name}
	if agent.Model != "" {
		env["RECONCILE_MODEL"] = schemas.EnvValue{Text: agent.Model}
	}
	if m.Spec.Issue > 0 {
		env["RECONCILE_ISSUE"] = schemas.EnvValue{Text: strconv.Itoa(m.Spec.Issue)}
	}
	return settle.Variables(env)
}

// question is the question for the agent, with its context, and the reason why the run before failed, if it did.
func (w *Requests) question(e *state.Entry, m *clarify.Input, st *schemas.ClarificationRequestStatus, before *schemas.Run,
) *agentio.Question {
	agent := schemas.SpecAs[*schemas.AgentSpec](w.Tree.Entry(schemas.AgentKind.Ref(m.Spec.To)).Object)
	q := &agentio.Question{ID: m.ID, Issue: m.Spec.Issue, From: m.Spec.From, To: m.Spec.To, Role: agents.Role(m.Spec.To, agent), Topic: m.Spec.Topic,
		Text: m.Spec.Question, Round: st.Round, IssueContext: w.contextOf(m.Spec), Resolved: w.resolvedBeside(e, m.Spec.Issue)}
	if before != nil {
		q.Failure = &agentio.Failure{Reason: clarify.Failure(before), Output: before.Output, TooLong: clarify.TooLong(before)}
		if q.Failure.TooLong {
			q.Failure.Output = clarify.ResultText(before)
		}
	}
	for i := range st.Thread {
		t := &st.Thread[i]
		if t.Type == schemas.TurnQuestion && t.Round == st.Round {
			q.Text = t.Body
			break
		}
		q.Thread = append(q.Thread, t.ClarificationTurn)
	}
	return q
}

// contextOf says what the question came up in: the session of the node that asks and what the node is to do, else the
// sessions that are about the issue.
func (w *Requests) contextOf(spec *schemas.ClarificationRequestSpec) string {
	var b strings.Builder
	if dag, node, ok := schemas.SplitRunKey(spec.Run); ok {
		w.tellNode(&b, w.Tree.Entry(schemas.DAGKind.Ref(dag)), node)
	} else if spec.Issue > 0 {
		for _, e := range w.Tree.Entries(schemas.SessionKind.Name) {
			if s := state.SpecOf[*schemas.SessionSpec](e); s != nil && s.Issue == spec.Issue {
				b.WriteString(questionParagraph(s.Title) + questionParagraph(s.Description))
			}
		}
	}
	return strings.TrimSuffix(b.String(), "\n\n")
}

// tellNode describes the session, the DAG and the task of a node.
func (w *Requests) tellNode(b *strings.Builder, dag *state.Entry, node string) {
	spec := state.SpecOf[*schemas.DAGSpec](dag)
	if spec == nil {
		return
	}
	if s := state.SpecOf[*schemas.SessionSpec](w.Tree.Entry(schemas.SessionKind.Ref(spec.Session))); s != nil {
		b.WriteString(questionParagraph(s.Title) + questionParagraph(s.Description))
	}
	b.WriteString(questionParagraph(spec.Description))
	if n := spec.Node(node); n != nil {
		b.WriteString(questionParagraph(n.Prompt))
	}
}

func questionParagraph(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return text + "\n\n"
}

// besides bounds how many other resolved questions of the issue an agent sees.
const besides = 10

// resolvedBeside are the latest matters of the issue that were resolved, oldest first.
func (w *Requests) resolvedBeside(e *state.Entry, issue int) []agentio.Answered {
	w.Index.number()
	var list []*state.Entry
	for _, ref := range w.Index.resolved[issue] {
		if ref != e.Ref {
			list = append(list, w.Tree.Entry(ref))
		}
	}
	slices.SortFunc(list, func(a, b *state.Entry) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(list, func(a, b *state.Entry) int {
		return Status(a).ResolvedAt.Compare(Status(b).ResolvedAt.Time)
	})
	var out []agentio.Answered
	for _, other := range list[max(0, len(list)-besides):] {
		if spec := Spec(other); spec != nil {
			out = append(out, Answered(spec, Status(other)))
		}
	}
	return out
}

// Answered describes a question for agents that continue the work.
func Answered(spec *schemas.ClarificationRequestSpec, st *schemas.ClarificationRequestStatus) agentio.Answered {
	a := agentio.Answered{ID: cmp.Or(st.ID, "(no number)"), To: spec.To, Topic: spec.Topic, Status: st.Phase, Summary: st.Summary}
	for i := range st.Thread {
		a.Thread = append(a.Thread, st.Thread[i].ClarificationTurn)
	}
	return a
}

// QuestionsOf lists the requests that nodes of the DAG made, by the number of the asking run and name. Broken requests
// are not among them.
func (x *RequestIndex) QuestionsOf(dag string) []*Question {
	if out, ok := x.asking[dag]; ok {
		return out
	}
	var out []*Question
	for _, r := range x.tree.ReferrersOf(schemas.DAGKind.Ref(dag), schemas.ClarificationRequestKind.Name) {
		e := x.tree.Entry(r)
		if q := newDAGQuestion(e, Spec(e), dag); q != nil {
			out = append(out, q)
		}
	}
	slices.SortStableFunc(out, func(a, b *Question) int { return cmp.Compare(a.Seq, b.Seq) })
	if x.asking == nil {
		x.asking = map[string][]*Question{}
	}
	x.asking[dag] = out
	return out
}

func newDAGQuestion(e *state.Entry, spec *schemas.ClarificationRequestSpec, dag string) *Question {
	if spec == nil {
		return nil
	}
	of, node, ok := schemas.SplitRunKey(spec.Run)
	half, seq := SplitSeq(spec.Run)
	if !ok || of != dag {
		return nil
	}
	return &Question{Entry: e, Spec: spec, Node: node, Prefix: half, Seq: seq}
}

// sameQuestion reports whether a record is about what a request asks.
func sameQuestion(c *schemas.Clarification, spec *schemas.ClarificationRequestSpec) bool {
	i := slices.IndexFunc(c.Thread, func(t schemas.ClarificationTurn) bool { return t.Type == schemas.TurnQuestion })
	return c.From == spec.From && c.To == spec.To && c.Topic == spec.Topic && i >= 0 && c.Thread[i].Body == spec.Question
}

// SpecOfRun is the request that a run's question becomes.
func SpecOfRun(dag *state.Entry, run *schemas.Run, issue int) *schemas.ClarificationRequestSpec {
	a := run.Asks
	if a == nil {
		a = new(schemas.Ask)
	}
	return &schemas.ClarificationRequestSpec{Issue: issue, From: run.Agent, To: a.To, Topic: a.Topic, Question: a.Question,
		Blocking: a.Blocking, Artifacts: a.Artifacts, Run: run.Key}
}

// SpecName is the name of the spec that a run's record calls for: <owner>-<node>-<6 hex digits of the run's key>.
func SpecName(owner string, run *schemas.Run) string { return NameFor(owner+"-"+run.Node, run.Key) }

// NameFor is head, as much of it as fits, and six hex digits of the digest of key.
func NameFor(head, key string) string {
	const digits, most = 6, 63
	sum := sha256.Sum256([]byte(key))
	tail := "-" + hex.EncodeToString(sum[:])[:digits]
	return head[:min(len(head), most-len(tail))] + tail
}

// SpecOfRecord is the request for a question of another program: its first turn, else its topic. A text that is too long
// for a request is cut; the thread keeps all of it.
func SpecOfRecord(c *schemas.Clarification, issue int) *schemas.ClarificationRequestSpec {
	const topic, question = 200, 2000 // characters
	spec := &schemas.ClarificationRequestSpec{Issue: issue, From: c.From, To: c.To, Topic: shorten.Text(c.Topic, topic),
		Question: shorten.Text(c.Topic, question), Blocking: c.Blocking, Imported: c.ID}
	if len(c.Thread) > 0 && c.Thread[0].Type == schemas.TurnQuestion {
		spec.Question = shorten.Text(c.Thread[0].Body, question)
	}
	return spec
}
