package dags

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/actions"
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// A node with approve is a gate: it starts only when people have approved its present content. A person's task with approve
// is not a gate; there approve says who may answer, and in which form. Approvals are part of the node's status under its key.

// shown is the digest of what a gate shows: the task with all that it is made from, its texts with their values, the results of its needs
// with their outputs, and the commits that they landed.
func (f *fold) shown(i int32) string {
	if f.heldBack(i) != "" {
		return f.shownLanding(i)
	}
	n := &f.p.Spec.Nodes[i]
	o := keys.Begin(nil)
	if definition, err := json.Marshal(n); err == nil {
		o.Raw("definition", definition)
	}
	o.Text("key", f.b.Keys[i])
	o.Open("needs")
	for _, to := range f.p.Needs[i] {
		s := f.next[to]
		o.Open(f.p.Spec.Nodes[to].Name)
		o.Text("commit", f.landedCommit(to))
		if s.ExitCode != nil {
			o.Int("exitCode", *s.ExitCode)
		}
		if last := f.recs[to].last; last != nil {
			for _, out := range last.Outputs {
				o.Text("output "+out.Path, out.Digest)
			}
		}
		o.Raw("result", compact(s.Result))
		o.Text("state", s.State)
		o.Close()
	}
	o.Close()
	session := f.b.SessionSpec()
	if n.Agent != "" {
		o.Text("text", session.Description)
	}
	o.List("texts", f.filled(i))
	if n.Agent != "" {
		o.Text("title", session.Title)
	}
	return strings.TrimPrefix(keys.Digest(o.End()), "sha256:")[:shownDigits]
}

// compact is JSON without blanks: files hold results indented, records do not.
func compact(value json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return nil
	}
	return b.Bytes()
}

// landedCommit is the commit on the branch that a node's latest success landed; "" for none.
func (f *fold) landedCommit(i int32) string {
	if l := f.landed(i); l != nil {
		return l.Commit
	}
	return ""
}

// counting are the approvals of node i that count now, at most one of each person, and until when all of them do; zero: for
// ever. For a gate those count that are about its present content.
func (f *fold) counting(i int32, digest string) (found []schemas.Approval, until time.Time) {
	a, started := f.approveOf(i), f.recs[i].last != nil && f.heldBack(i) == ""
	for _, given := range f.approvals(i) {
		if given.Ignores != "" || given.Digest != digest && f.isGate(i) {
			continue
		}
		if a.Expires != nil && !started {
			end := given.At.Add(a.Expires.Std())
			if !f.Now.Before(end) {
				continue
			}
			if until.IsZero() || end.Before(until) {
				until = end
			}
		}
		found = append(found, given)
	}
	return found, until
}

// people counts the different people behind approvals. Those who only claim to be someone may all be one person.
func (f *fold) people(approvals []schemas.Approval) int {
	proved := map[string]bool{}
	for _, a := range approvals {
		if a.Proof != schemas.ProofClaimed {
			proved[f.personName(a.By)] = true
		}
	}
	return max(len(proved), min(len(approvals), 1))
}

// waitsForApproval reports whether node i is a gate that is closed; if so, it has set the state.
func (f *fold) waitsForApproval(i int32) bool {
	if !f.isGate(i) {
		return false
	}
	digest := f.shown(i)
	given, until := f.counting(i, digest)
	have, want := f.people(given), f.approveOf(i).Quorum()
	if have >= want {
		if !until.IsZero() {
			f.wakeLater(until)
		}
		return false
	}
	answer := ""
	if f.asksForAnswer(i) {
		answer = " --answer TEXT"
	}
	why := ""
	if held := f.heldBack(i); held != "" {
		why = " of its commit, since " + held
	}
	f.set(i, schemas.NodeBlocked, settle.ReasonWaitsForApproval, fmt.Sprintf("waits for approval%s%s; reconcile approve dag/%s %s --digest %s%s",
		f.whoApproves(f.approveOf(i), given), why, f.p.Name, f.p.Spec.Nodes[i].Name, digest, answer))
	return true
}

// whoApproves says whose approval is missing, where some are given.
func (f *fold) whoApproves(a *schemas.Approve, given []schemas.Approval) string {
	out := ""
	if len(a.By) > 0 {
		out = " by " + schemas.Shorten(a.By, 3)
	}
	return out + f.howMany(a, given)
}

// howMany says how many of several people have approved; a may be nil.
func (f *fold) howMany(a *schemas.Approve, given []schemas.Approval) string {
	have, claimed := f.people(given), ""
	switch {
	case a == nil || a.Quorum() == 1:
		return ""
	case have < len(given):
		claimed = "; names that are only claimed count as one"
	}
	return fmt.Sprintf(" (%d of %d people have approved%s)", have, a.Quorum(), claimed)
}

// approveNode takes an approval of node i, or says in done why it is refused. It reports whether it changes anything.
func (f *fold) approveNode(i int32, a actions.Pending, done *schemas.AppliedAction) bool {
	asked, held := f.approveOf(i), f.verbs[i] == schemas.VerbHold
	if held {
		f.verbs[i] = ""
	}
	if f.next[i].Reason == settle.ReasonRoundsUsedUp {
		f.verbs[i] = schemas.VerbApprove
		return true
	}
	if !f.isGate(i) && (held || !f.b.Human[i]) || f.isGate(i) && held && a.Spec.Digest == "" || readiness.NodeEnded(f.next[i]) {
		return held
	}
	id := a.Identity(f.World)
	if asked != nil {
		done.By, done.Proof = id.Who, id.Proof
	}
	answer, err := schemas.AnswerValue(a.Spec.Answer, f.forms(i)...)
	switch why := f.refuses(i, a.Spec, id); {
	case why != "":
		done.Refused = why
	case err != nil:
		done.Refused = err.Error()
	}
	if done.Refused != "" {
		return held
	}
	if a.Spec.Answer == "" {
		answer = nil
	}
	if asked == nil {
		return f.answer(i, answer) || held
	}
	f.keepApproval(i, schemas.Approval{Action: a.Entry.Name, By: id.Who, Proof: id.Proof, At: done.At, Digest: a.Spec.Digest, Answer: answer, Reason: a.Spec.Reason})
	if f.b.Human[i] {
		if given, _ := f.counting(i, ""); f.people(given) >= asked.Quorum() {
			f.answer(i, answer)
		}
	}
	return true
}

// forms are the schemas that an answer about node i has to keep.
func (f *fold) forms(i int32) (out []json.RawMessage) {
	n := &f.p.Spec.Nodes[i]
	if a := f.approveOf(i); a != nil {
		out = append(out, a.Form)
	}
	if f.b.Human[i] {
		out = append(out, n.Outputs.Schema)
	}
	return out
}

// refuses says why an approval of node i by someone does not count; "" if it does.
func (f *fold) refuses(i int32, spec *schemas.ActionSpec, id settle.Identity) string {
	settings, a := f.Tree.Settings(), f.approveOf(i)
	switch {
	case spec.Digest != "" && spec.Digest != f.shown(i):
		return "what it approves has changed since; reconcile describe dag/" + f.p.Name + " shows what there is to approve now"
	case a == nil:
		return ""
	case agents.Acts(f.Tree, id):
		return "only people approve, and " + id.Who + " is an agent"
	case f.isGate(i) && spec.Digest == "":
		return "it names no digest of what it approves; reconcile ready shows it"
	case len(a.By) > 0:
		account := id.Proof == schemas.ProofGitHub && slices.ContainsFunc(a.By, func(n string) bool { return strings.EqualFold(n, id.Who) })
		switch p := settings.PersonOf(id.Who); {
		case account:
		case p == nil && slices.Contains(a.By, id.Who):
			return "settings.people does not declare " + id.Who + ", so that nothing can say who that is"
		case p == nil || !p.Among(a.By):
			return schemas.Acting(id.Who, id.Proof) + " is not among those who may approve: " + schemas.Shorten(a.By, 3)
		}
	}
	return ""
}

// proved reports whether a signature or a comment proves who wrote an action.
func (f *fold) proved(a actions.Pending) bool {
	id, known := f.World.Identity(a.Entry.Ref)
	return known && id.Proof != ""
}

// unproved reports whether an action waits for the proof of who wrote it: then it is not applied yet.
func (f *fold) unproved(a actions.Pending) bool {
	if a.Spec.Verb != schemas.VerbApprove || a.Spec.Node == "" || a.Spec.Permission != nil || a.Spent {
		return false
	}
	i, ok := f.p.Index[a.Spec.Node]
	if !ok || f.approveOf(i) == nil || len(f.approveOf(i).By) == 0 || f.approveOf(i).Local {
		return false
	}
	return !f.proved(a)
}

// answer ends the task of a person with a result, which may be missing.
func (f *fold) answer(i int32, result json.RawMessage) bool {
	if f.verbs[i] != "" && f.verbs[i] != verbCleanup {
		return false
	}
	f.verbs[i] = schemas.VerbApprove
	if len(result) > 0 {
		if f.given == nil {
			f.given = map[int32]json.RawMessage{}
		}
		f.given[i] = result
	}
	return true
}
