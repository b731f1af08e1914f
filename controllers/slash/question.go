package slash

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/util"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/derive"
	"reconcile.dev/reconcile/controllers/ledgers"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/work"
	"reconcile.dev/reconcile/schemas"
)

// question is a clarification of an issue.
type question struct {
	id      string
	request string // the name of its request; "" for a record of another program
	spec    *schemas.ClarificationRequestSpec
	status  *schemas.ClarificationRequestStatus
	wrong   string // why it cannot be answered; "" if it can
}

// questions lists those of the issue, by id: of requests, and those that only its ledger has.
func (d *commandDecider) questions() []question {
	var out []question
	known := map[string]bool{}
	for _, ref := range d.issue.Objects {
		e := d.tree.Entry(ref)
		if ref.Kind != schemas.ClarificationRequestKind.Name || e == nil {
			continue
		}
		spec := schemas.SpecAs[*schemas.ClarificationRequestSpec](e.Object)
		st, ok := e.Status().(*schemas.ClarificationRequestStatus)
		if spec != nil && ok && st.ID != "" {
			known[st.ID] = true
			out = append(out, question{st.ID, e.Name, spec, st, ""})
		}
	}
	for _, l := range d.tree.Ledgers() {
		if l.Issue != d.issue.File.Issue {
			continue
		}
		for _, c := range l.Records() {
			if !known[c.ID] && !ledgers.Orphaned(d.tree, &c) {
				out = append(out, d.recorded(&c))
			}
		}
	}
	slices.SortFunc(out, func(a, b question) int { return strings.Compare(a.id, b.id) })
	return out
}

// recorded returns a question that another program wrote into the ledger, with the fields that matter for a reply.
func (d *commandDecider) recorded(c *schemas.Clarification) question {
	st := &schemas.ClarificationRequestStatus{ID: c.ID, Round: c.Round, MaxRounds: c.MaxRounds}
	st.Phase = c.Status
	for _, t := range c.Thread {
		st.Thread = append(st.Thread, schemas.ThreadEntry{ClarificationTurn: t, Source: clarify.SourceLedger})
	}
	return question{c.ID, "", &schemas.ClarificationRequestSpec{From: c.From, To: c.To, Topic: c.Topic}, st,
		ledgers.Unroutable(d.tree, c)}
}

// takes are the states in which a question can be meant by a verb that names none. An answer to an escalated question
// is the decision of a person: it resolves the question.
var takes = map[string][]string{
	Answer:   {schemas.ClarificationPending, schemas.ClarificationStale, schemas.ClarificationEscalated},
	Resolve:  {schemas.ClarificationAnswered, schemas.ClarificationEscalated},
	Escalate: {schemas.ClarificationPending, schemas.ClarificationAnswered, schemas.ClarificationStale},
}

// find returns the question that a command means: the one that it names, else the only one that waits for a person, else
// the only one that the command can be about.
func (d *commandDecider) find(verb, word string) (question, error) {
	all := d.questions()
	if word != "" {
		return namedQuestion(all, word, d.issue.File.Issue)
	}
	all = slices.DeleteFunc(all, func(q question) bool { return !slices.Contains(takes[verb], q.status.Phase) })
	if verb == Answer && len(all) > 1 {
		waits := d.waiting()
		if one := slices.DeleteFunc(slices.Clone(all), func(q question) bool { return !slices.Contains(waits, q.id) }); len(one) == 1 {
			return one[0], nil
		}
	}
	switch len(all) {
	case 0:
		return question{}, fmt.Errorf("no question on this issue is %s", strings.Join(takes[verb], " or "))
	case 1:
		return all[0], nil
	}
	var words []string
	for _, q := range all {
		words = append(words, "/"+verb+" "+q.id)
	}
	return question{}, fmt.Errorf("say which question is meant: %s", questionChoices(words))
}

// namedQuestion is the question with an id, in any form that people type.
func namedQuestion(all []question, word string, issue int) (question, error) {
	id, of, ok := clarify.ReadID(word)
	if !ok {
		return question{}, fmt.Errorf("%s is not the id of a question, as CLR-42-001", codeText(word))
	}
	var ids []string
	for _, q := range all {
		if q.id == id {
			return q, nil
		}
		ids = append(ids, q.id)
	}
	if of != issue && of > 0 {
		return question{}, fmt.Errorf("%s is about another issue, %s; write there", codeText(id), codeText(fmt.Sprintf("#%d", of)))
	}
	return question{}, fmt.Errorf("there is no %s on this issue%s", codeText(id), nearestQuestion(id, ids))
}

// waiting are the ids of the questions on the issue that wait for a person.
func (d *commandDecider) waiting() []string {
	if d.ready == nil {
		d.ready = work.Ready(d.tree, d.Now, nil)
	}
	var out []string
	mine := d.questions()
	for _, it := range d.ready {
		if it.Kind == work.ItemQuestion && it.Reason != settle.ReasonUnroutable && slices.ContainsFunc(mine, func(q question) bool { return q.id == it.Clarification }) {
			out = append(out, it.Clarification)
		}
	}
	return out
}

// replyTypes are what the verbs write.
var replyTypes = map[string]string{
	Answer: schemas.TurnAnswer, Resolve: schemas.TurnResolution, Escalate: schemas.TurnEscalation,
}

// wordless is what an escalation says whose author says nothing.
const wordless = "A person is asked to decide."

// reply makes a Reply of a command.
func (d *commandDecider) reply(c *Comment, cmd Command, name string) (*derive.Spec, string, error) {
	word, text := "", cmd.Text
	if first := firstWord([]byte(cmd.Line)); strings.HasPrefix(strings.ToUpper(first), "CLR-") {
		word, text = strings.TrimRight(first, ":,.;"), strings.TrimSpace(cmd.Text[len(first):])
	}
	if text == "" && cmd.Verb == Escalate {
		text = wordless
	}
	if text == "" {
		return nil, "", errors.New("write the text behind it")
	}
	q, err := d.find(cmd.Verb, word)
	if err != nil {
		return nil, "", err
	}
	spec, err := d.say(c, &q, replyTypes[cmd.Verb], text, name)
	return spec, "", err
}

// say proposes a reply to a question. The error says why it cannot be taken.
func (d *commandDecider) say(c *Comment, q *question, typ, text, name string) (*derive.Spec, error) {
	if typ == schemas.TurnAnswer && q.status.Phase == schemas.ClarificationEscalated {
		typ = schemas.TurnResolution
	}
	spec := &schemas.ReplySpec{Clarification: q.request, Type: typ, From: writtenBy(c.Author), Proof: schemas.ProofGitHub, Body: redactedText(text)}
	if q.request == "" {
		spec.Clarification = q.id
		if q.wrong != "" {
			return nil, errors.New(codeText(q.id) + " takes nothing: " + codeText(q.wrong))
		}
		if why := clarify.Objection(q.spec, q.status, clarify.Reply{Name: name, Spec: spec}); why != "" {
			return nil, errors.New(codeText(why))
		}
	}
	out, o, err := d.propose(schemas.ReplyKind, name, spec)
	if err != nil || q.request == "" {
		return out, err
	}
	st, ok := d.tree.Entry(schemas.Ref{Kind: schemas.ClarificationRequestKind.Name, Name: q.request}).Status().(*schemas.ClarificationRequestStatus)
	if !ok {
		return nil, fmt.Errorf("%s has no status yet", codeText(q.id))
	}
	if standing, why := clarify.StandingOf(st, clarify.Reply{Name: name, Digest: o.Digest, Spec: spec}); standing == clarify.Refused {
		return nil, errors.New(codeText(why))
	}
	return out, nil
}

func without(parts []util.PrioritizedValue, priority int) []util.PrioritizedValue {
	return slices.DeleteFunc(parts, func(v util.PrioritizedValue) bool { return v.Priority == priority })
}

// issueNumber reads #42 or 42.
func issueNumber(word string) (int, bool) {
	n, err := strconv.ParseInt(strings.TrimPrefix(word, "#"), 10, 32)
	return int(n), err == nil && n >= 0
}

// questionChoices lists what could be written instead, at most ten.
func questionChoices(words []string) string {
	const most = 10
	rest := ""
	if n := len(words) - most; n > 0 {
		words, rest = words[:most], fmt.Sprintf(" and %d more", n)
	}
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = codeText(w)
	}
	return strings.Join(out, ", ") + rest
}

// nearestQuestion is a clause that names the word which was probably meant.
func nearestQuestion(word string, words []string) string {
	if near := schemas.GuessWord(word, words); near != "" {
		return "; did you mean " + codeText(near) + "?"
	}
	words = slices.Clone(words)
	slices.Sort(words)
	if len(words) == 0 {
		return ""
	}
	return "; there are " + questionChoices(words)
}
