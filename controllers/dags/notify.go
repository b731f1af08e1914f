package dags

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/spans"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// A DAG that ends has its end reported: to each program and address of onFailure or onSuccess once. A notice of the status is made
// when the end is seen, and stands until the next one. Each attempt is an effect, whose node key is a digest of the end and
// of the notification, so that all processes and clones make the same one. Its result never changes the phase of the DAG.

// notify brings the notices of the DAG into its new status, and returns the attempts that are wanted.
func (f *fold) notify(st *schemas.DAGStatus) (effects []settle.Effect, again time.Time) {
	spec := f.p.Spec
	if spec.OnFailure == nil && spec.OnSuccess == nil || !over(st) {
		return nil, again
	}
	on, all := spec.Notifies(st.Phase)
	was := f.old.Notices
	same := over(f.old) && f.old.Phase == st.Phase && f.old.FinishedAt == st.FinishedAt
	if same {
		all = all[:min(len(all), len(was))] // one that is added now is for the next end
	}
	for i := range all {
		n := schemas.Notice{On: on, To: all[i].To(), Key: f.noticeKey(on, &all[i]), State: schemas.NodePending}
		if same && (was[i].State == schemas.NodeSucceeded || was[i].Key == n.Key) {
			n = was[i]
		}
		if n.State == schemas.NodePending {
			due := f.tryNotice(&n, &all[i])
			again = spans.Sooner(again, due)
			if n.State == schemas.NodePending && due.IsZero() {
				effects = append(effects, f.noticeEffect(st, &n, &all[i], i))
			}
		}
		st.Notices = append(st.Notices, n)
	}
	f.warnOfNotices(st)
	return effects, again
}

// noticeKey is the node key of the attempts to report the present end.
func (f *fold) noticeKey(on string, n *schemas.Notification) string {
	definition, _ := json.Marshal(struct {
		Command []string
		Env     schemas.Env
		Webhook *schemas.Webhook
	}{n.Command, n.Env, n.Webhook}) // it was read from JSON
	o := keys.Begin(nil)
	o.Raw("definition", definition)
	if at := f.lastEnd(); at.IsZero() {
		o.List("keys", f.b.Keys) // nothing ran: another end has other keys
	} else {
		o.Text("end", at.Format(time.RFC3339Nano))
	}
	o.Text("on", on)
	return keys.Digest(o.End())
}

// tryNotice brings a notice up to date with its records, and returns when the next attempt is due; zero: now, or never.
func (f *fold) tryNotice(n *schemas.Notice, of *schemas.Notification) time.Time {
	limits, failures := of.Retries(), 0
	var last *schemas.Run
	for _, r := range f.nodeRuns(n.On) {
		if r.NodeKey != n.Key {
			continue
		}
		if last == nil || r.Seq > last.Seq {
			last = r
		}
		switch r.Outcome {
		case schemas.OutcomeSucceeded:
			n.State = schemas.NodeSucceeded
		case schemas.OutcomeFailed, schemas.OutcomeTimedOut:
			failures++
		}
	}
	if last == nil {
		return time.Time{}
	}
	n.Run, n.At, n.Message, n.Output, n.Attempts = last.Key, last.FinishedAt, last.Message, last.Output, failures
	n.RetryAt = schemas.Time{}
	if n.State == schemas.NodeSucceeded {
		n.Attempts, n.Message, n.Output = failures+1, "", ""
		return time.Time{}
	}
	if failures > limits.Limit || last.Final {
		n.State = schemas.NodeFailed
		return time.Time{}
	}
	due := last.FinishedAt.Add(limits.Wait(max(failures, 1)))
	if failures == 0 || !f.Now.Before(due) || f.Now.Before(last.FinishedAt.Time) {
		return time.Time{}
	}
	n.RetryAt = schemas.NewTime(due)
	return due
}

// noticeEffect is the next attempt of a notice; i is its place in the field.
func (f *fold) noticeEffect(st *schemas.DAGStatus, n *schemas.Notice, of *schemas.Notification, i int) settle.Effect {
	e := settle.Effect{Owner: f.Ref, Session: f.p.Spec.Session, Node: n.On, NodeKey: n.Key, Seq: 1, Weight: f.b.SessionSpec().Weight,
		Groups: []settle.Group{{Name: settle.NoticesGroup, Limit: mostNotices}}, Rank: schemas.Priority(schemas.High).Rank(),
		QueuedAt: st.FinishedAt}
	for _, r := range f.nodeRuns(n.On) {
		if r.NodeKey == n.Key {
			e.Seq = max(e.Seq, r.Seq+1)
		}
	}
	for c := range f.Claims {
		if claim := &f.Claims[c]; claim.Node == n.On && claim.NodeKey == n.Key {
			e.Seq = claim.Seq
		}
	}
	e.Key = effectKey(f.p.Name, n.On, n.Key, e.Seq)
	delivery := keys.OfRuns(f.p.Name, n.On, n.Key)
	delivery = strings.TrimSuffix(delivery, "-")
	c := settle.Command{Argv: of.Command, Stdin: f.noticeText(st, delivery), Timeout: of.Limit()}
	if w := of.Webhook; w != nil {
		task := &settle.Webhook{Command: c, URL: w.URL, Secret: w.Secret, Delivery: delivery, To: n.To}
		if to, ok := w.Destination(f.Ref, fmt.Sprintf("%s[%d]", n.On, i)); ok {
			task.Destination = &to
		}
		e.Task = task
		return e
	}
	env := maps.Clone(f.b.SessionSpec().Env)
	if env == nil {
		env = schemas.Env{}
	}
	maps.Copy(env, of.Env)
	for name, value := range map[string]string{"SESSION": f.p.Spec.Session, "DAG": f.p.Name, "PHASE": st.Phase} {
		env["RECONCILE_"+name] = schemas.EnvValue{Text: value}
	}
	c.Env, c.EnvFrom = settle.Variables(env)
	e.Task = &c
	return e
}

// mostNotices bounds how many notifications are under way at once.
const mostNotices = 8

// Bounds of the text about failed nodes in a notification.
const (
	mostToldNodes = 20
	mostToldLines = 20
)

// notice is what a notification says, as JSON.
type notice struct {
	Text       string       `json:"text"` // for chats
	Delivery   string       `json:"delivery"`
	DAG        string       `json:"dag"`
	Session    string       `json:"session"`
	Issue      int          `json:"issue,omitempty"`
	Phase      string       `json:"phase"`
	Reason     string       `json:"reason"`
	Message    string       `json:"message"`
	StartedAt  schemas.Time `json:"startedAt,omitzero"`
	FinishedAt schemas.Time `json:"finishedAt,omitzero"`
	Done       int          `json:"done"`
	Total      int          `json:"total"`
	Failed     []noticeNode `json:"failed"` // the first of them
}

type noticeNode struct {
	Node       string       `json:"node"`
	Run        string       `json:"run,omitempty"`
	Reason     string       `json:"reason"`
	Message    string       `json:"message,omitempty"`
	ExitCode   *int         `json:"exitCode,omitempty"`
	Attempts   int          `json:"attempts,omitempty"`
	StartedAt  schemas.Time `json:"startedAt,omitzero"`
	FinishedAt schemas.Time `json:"finishedAt,omitzero"`
	Output     string       `json:"output,omitempty"` // its last lines
}

func (f *fold) noticeText(st *schemas.DAGStatus, delivery string) string {
	ready := st.Condition(schemas.Ready)
	t := notice{Delivery: delivery, DAG: f.p.Name, Session: f.p.Spec.Session, Issue: f.p.Issue(f.b.SessionSpec()), Phase: st.Phase,
		Reason: ready.Reason, Message: ready.Message, StartedAt: st.StartedAt, FinishedAt: st.FinishedAt, Done: st.Progress.Done,
		Total: st.Progress.Total, Failed: []noticeNode{}}
	t.Text = fmt.Sprintf("%s %s: %s", f.Ref, strings.ToLower(st.Phase), ready.Message)
	for _, i := range f.p.Order {
		s := f.next[i]
		if s.State != schemas.NodeFailed || s.Reason == settle.ReasonNeedFailed || f.tolerated(i) || len(t.Failed) == mostToldNodes {
			continue
		}
		n := noticeNode{Node: f.p.Spec.Nodes[i].Name, Reason: s.Reason, Message: s.Message, ExitCode: s.ExitCode, Attempts: s.Attempts,
			StartedAt: s.StartedAt, FinishedAt: s.FinishedAt, Output: lastLines(s.Output, mostToldLines)}
		if last := f.recs[i].last; last != nil {
			n.Run = last.Key
		}
		t.Failed = append(t.Failed, n)
	}
	b, err := schemas.Marshal(t)
	if err != nil {
		return fmt.Sprintf(`{"text":%q}`, f.Ref.String()) // it has only texts, numbers and times
	}
	return string(b) + "\n"
}

// lastLines are the last n lines of a text.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// warnOfNotices adds the condition of a DAG whose end could not be reported.
func (f *fold) warnOfNotices(st *schemas.DAGStatus) {
	failed, message := 0, ""
	for i := range st.Notices {
		n := &st.Notices[i]
		if n.State != schemas.NodeFailed {
			continue
		}
		if failed++; message == "" {
			message = fmt.Sprintf("%s to %s failed after %s: %s; only the next end of the DAG is reported again", n.On, n.To, schemas.Count(n.Attempts, "attempt"), cmp.Or(n.Message, "it failed"))
			if n.Output != "" {
				message += "\n" + lastLines(n.Output, mostToldLines)
			}
		}
	}
	if failed > 0 {
		settle.Unnotified(&st.Common, &f.old.Common, message+schemas.AndOthers(failed-1), f.Now)
	}
}

// noticed says how far the notifications of the latest end are; "" without any.
func noticed(s *schemas.DAGStatus) string {
	lines := make([]string, len(s.Notices))
	for i := range s.Notices {
		n := &s.Notices[i]
		switch {
		case n.State == schemas.NodeSucceeded:
			lines[i] = fmt.Sprintf("%s to %s: sent %s", n.On, n.To, n.At.Format(time.RFC3339))
		case n.State == schemas.NodeFailed:
			lines[i] = fmt.Sprintf("%s to %s: failed after %s", n.On, n.To, schemas.Count(n.Attempts, "attempt"))
		case !n.RetryAt.IsZero():
			lines[i] = fmt.Sprintf("%s to %s: attempt %d failed (%s); the next one is due %s", n.On, n.To, n.Attempts, n.Message,
				n.RetryAt.Format(time.RFC3339))
		default:
			lines[i] = fmt.Sprintf("%s to %s: to be sent", n.On, n.To)
		}
	}
	return strings.Join(lines, "; ")
}

// notifying reports whether notifications of the end of a DAG have yet to be sent.
func notifying(e *state.Entry) bool {
	spec := state.SpecOf[*schemas.DAGSpec](e)
	if spec == nil || spec.OnFailure == nil && spec.OnSuccess == nil {
		return false
	}
	st, ok := e.Status().(*schemas.DAGStatus)
	return !ok || slices.ContainsFunc(st.Notices, func(n schemas.Notice) bool { return cmp.Or(n.State, schemas.NodePending) == schemas.NodePending })
}

// Destinations are the addresses that DAGs of a tree have their outcomes sent to.
func Destinations(t *state.Tree) (out []schemas.Destination) {
	for _, e := range t.Entries(schemas.DAGKind.Name) {
		spec := schemas.SpecAs[*schemas.DAGSpec](e.Object)
		if spec == nil {
			continue
		}
		for _, field := range []struct {
			name string
			all  schemas.Notifications
		}{{schemas.OnFailure, spec.OnFailure}, {schemas.OnSuccess, spec.OnSuccess}} {
			for i := range field.all {
				if d, ok := field.all[i].Webhook.Destination(e.Ref, fmt.Sprintf("%s[%d]", field.name, i)); ok {
					out = append(out, d)
				}
			}
		}
	}
	return out
}
