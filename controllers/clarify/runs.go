package clarify

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"reconcile.dev/reconcile/schemas"
)

// maxBody is the length of a turn in characters (agentx-spec 6.3).
const maxBody = 2000

// failuresAllowed is the number of failed runs after which a question is escalated: the first is retried (PRD 6, 6b).
const failuresAllowed = 2

// node names the runs for the present round, againNode those after its time was over.
func (d *clarifyDecider) node() string      { return "round_" + strconv.Itoa(d.st.Round) }
func (d *clarifyDecider) againNode() string { return d.node() + "_again" }

// nodeKey digests what the target is asked in the present round, and how it is run.
func (d *clarifyDecider) nodeKey() string {
	b, _ := json.Marshal([]any{d.input.Digest, d.st.Round, lastBody(d.st.Thread, schemas.TurnQuestion), d.input.Target.Key})
	sum := sha256.Sum256(b) // text and a number always marshal
	return "sha256:" + hex.EncodeToString(sum[:])
}

// roundRuns are the finished runs for the present round, in the order of their ends.
func (d *clarifyDecider) roundRuns() []*schemas.Run {
	var out []*schemas.Run
	for _, r := range d.input.Runs {
		if r.Node == d.node() || r.Node == d.againNode() {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b *schemas.Run) int {
		return cmp.Or(a.FinishedAt.Compare(b.FinishedAt.Time), strings.Compare(a.Key, b.Key))
	})
	return out
}

// fromRuns returns the first run that ends the present round: by an answer, the second failure, or the failure of the
// run after its time was over.
func (d *clarifyDecider) fromRuns() *event {
	if !d.waiting() {
		return nil
	}
	failures, long, key := 0, 0, d.nodeKey()
	for _, r := range d.roundRuns() {
		text, ok := d.answerOfRun(r)
		if ok {
			return &event{r.FinishedAt, func() { d.answer(d.runEntry(r, schemas.TurnAnswer, d.input.Spec.To, text)) }}
		}
		if !runFailed(r) || r.NodeKey != key {
			continue
		}
		if TooLong(r) {
			if long++; long == 1 {
				continue // a shorter one is asked for
			}
		}
		if r.Node == d.node() {
			failures++
		}
		if c := d.failureCause(r, failures, long); c != nil {
			return &event{r.FinishedAt, func() { d.escalate(*c) }}
		}
	}
	return nil
}

// TooLong reports whether a run failed because the text of its result is too long for the body of an answer. The run's
// record has the beginning of it.
func TooLong(r *schemas.Run) bool {
	return r.Outcome == schemas.OutcomeFailed && utf8.RuneCountInString(ResultText(r)) > maxBody
}

// failureCause decides whether a failed run is the last one. long counts the answers up to it that were too long.
func (d *clarifyDecider) failureCause(r *schemas.Run, failures, long int) *cause {
	switch {
	case long > 1 && TooLong(r):
		return &cause{schemas.EscalatedAgent, r.FinishedAt,
			fmt.Sprintf("%s answered at too great a length, also when it was asked for a shorter answer: %s", d.input.Spec.To,
				Failure(r))}
	case r.Node == d.againNode() && d.in(schemas.ClarificationStale):
		return &cause{schemas.EscalatedStale, r.FinishedAt,
			fmt.Sprintf("%s did not answer in time, nor when it was asked again: %s", d.input.Spec.To, Failure(r))}
	case r.Node == d.node() && failures == failuresAllowed:
		return &cause{schemas.EscalatedAgent, r.FinishedAt,
			fmt.Sprintf("%s failed twice; the last time: %s", d.input.Spec.To, Failure(r))}
	}
	return nil
}

// runFailed reports whether a run without an answer counts as an attempt. One that was cancelled or interrupted does not.
func runFailed(r *schemas.Run) bool {
	switch r.Outcome {
	case schemas.OutcomeSucceeded, schemas.OutcomeFailed, schemas.OutcomeTimedOut, schemas.OutcomeAsked:
		return true
	}
	return false
}

// Failure explains in a clause, by the outcome of a run, why it has no answer to the question.
func Failure(r *schemas.Run) string {
	switch {
	case r.Outcome == schemas.OutcomeSucceeded:
		if strings.TrimSpace(ResultText(r)) == "" {
			return "the answer was empty"
		}
		return "the answer only restated the question"
	case r.Outcome == schemas.OutcomeAsked:
		return "it asked something itself instead of answering"
	}
	return cut(cmp.Or(oneLine(r.Message), "the run ended "+r.Outcome), 300)
}

// answerOfRun returns the answer of a run. Another outcome, an empty and an evasive text do not count as answers.
func (d *clarifyDecider) answerOfRun(r *schemas.Run) (string, bool) {
	if r.Outcome != schemas.OutcomeSucceeded {
		return "", false
	}
	text := strings.TrimSpace(ResultText(r))
	return text, !evasiveAnswer(lastBody(d.st.Thread, schemas.TurnQuestion), text)
}

// ResultText is the result of a run as text: that of a JSON string, or another value as it is written.
func ResultText(r *schemas.Run) string {
	var s string
	if len(r.Result) == 0 || string(r.Result) == "null" {
		return ""
	}
	if json.Unmarshal(r.Result, &s) == nil {
		return s
	}
	return string(r.Result)
}

// runEntry is the turn that a run brought.
func (d *clarifyDecider) runEntry(r *schemas.Run, typ, from, body string) schemas.ThreadEntry {
	round := d.st.Round
	if typ != schemas.TurnAnswer {
		round++
	}
	return schemas.ThreadEntry{Source: runSource(r.Key), ClarificationTurn: schemas.ClarificationTurn{
		Round: round, From: from, Type: typ, Body: cut(body, maxBody), Timestamp: r.FinishedAt}}
}

func runSource(key string) string { return "run/" + key }

// wanted returns the run of the target that is wanted; or the time when the next one is due, if not now.
func (d *clarifyDecider) wanted() (*Ask, time.Time) {
	if !d.waiting() || d.input.Target.Human || d.input.Target.Gone {
		return nil, time.Time{}
	}
	for _, r := range d.input.Running {
		if r.Node == d.node() || r.Node == d.againNode() {
			return &Ask{Round: d.st.Round, Node: r.Node, NodeKey: r.NodeKey, Seq: r.Seq}, time.Time{}
		}
	}
	if due := d.due(); d.input.Now.Before(due) {
		return nil, due
	}
	node, key := d.node(), d.nodeKey()
	if d.in(schemas.ClarificationStale) {
		node = d.againNode()
	}
	return &Ask{d.st.Round, node, key, d.nextSeq(node, key), d.lastFailed()}, time.Time{}
}

// lastFailed returns the latest failed run for the present round and question; nil if none failed.
func (d *clarifyDecider) lastFailed() (last *schemas.Run) {
	key := d.nodeKey()
	for _, r := range d.roundRuns() {
		if runFailed(r) && r.NodeKey == key {
			last = r
		}
	}
	return last
}

// due is when the next run may start: a while after the last failure, and at once after an answer that was too long. A
// failure in the future, after the clock was set back, is not waited for.
func (d *clarifyDecider) due() time.Time {
	last := d.lastFailed()
	if last == nil || TooLong(last) || last.FinishedAt.After(d.input.Now) {
		return time.Time{}
	}
	return last.FinishedAt.Add(d.input.Limits.RetryAfter)
}

func (d *clarifyDecider) retryMessage() string {
	if d.input.Target.Human {
		return "it is escalated if the time passes once more"
	}
	return "it is asked once more"
}

func retryAfter(set schemas.ClarificationSettings) time.Duration {
	if set.RetryAfter == nil {
		return defaultRetryAfter
	}
	return set.RetryAfter.Std()
}

// laterRun returns the node's runs after the last one that asked.
func (d *clarifyDecider) laterRun() []*schemas.Run {
	asked := d.input.Task.Key
	for _, e := range d.st.Thread {
		if key, ok := strings.CutPrefix(e.Source, runSource("")); ok && e.Type == schemas.TurnQuestion {
			asked = key
		}
	}
	for i, r := range d.input.Task.Runs {
		if r.Key == asked {
			return d.input.Task.Runs[i+1:]
		}
	}
	return d.sinceQuestion()
}

// sinceQuestion returns the runs that ended after the last question, if the run that asked it has no record (yet).
func (d *clarifyDecider) sinceQuestion() []*schemas.Run {
	q := lastEntry(d.st.Thread, schemas.TurnQuestion)
	for i, r := range d.input.Task.Runs {
		if q == nil || r.FinishedAt.After(q.Timestamp.Time) {
			return d.input.Task.Runs[i:]
		}
	}
	return nil
}

// SucceededWith is the resolution of a question whose asker succeeded with the answer and returned no resolution.
const SucceededWith = "The task succeeded with this answer."

// fromTask returns the asking node's reaction to an answer: it asked again, or succeeded with it.
func (d *clarifyDecider) fromTask() *event {
	if d.input.Task == nil || !d.in(schemas.ClarificationAnswered) {
		return nil
	}
	for _, r := range d.laterRun() {
		switch {
		case r.Outcome == schemas.OutcomeAsked && r.Asks != nil && r.Asks.To == d.input.Spec.To:
			e := d.runEntry(r, schemas.TurnQuestion, d.input.Spec.From, r.Asks.Question)
			return &event{r.FinishedAt, func() { d.askAgain(e) }}
		case r.Outcome == schemas.OutcomeSucceeded && d.sawAnswer(r):
			body := cmp.Or(strings.TrimSpace(r.Resolution), SucceededWith)
			e := d.runEntry(r, schemas.TurnResolution, d.input.Spec.From, body)
			return &event{r.FinishedAt, func() { d.resolve(e) }}
		}
	}
	return nil
}

// Task is the node of a DAG that asks.
type Task struct {
	// Runs are the finished runs of that node, of all keys, in the order of their ends. Runs whose question became a
	// request of its own, or the next round of another one, are left out.
	Runs []*schemas.Run
	// Key is the effect key of the run that asked first.
	Key string
}

// sawAnswer reports whether a run began after the answer: a success without it resolves nothing.
func (d *clarifyDecider) sawAnswer(r *schemas.Run) bool {
	a := lastEntry(d.st.Thread, schemas.TurnAnswer)
	return a != nil && !r.StartedAt.Before(a.Timestamp.Time)
}
