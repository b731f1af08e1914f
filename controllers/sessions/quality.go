package sessions

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/controllers/preferences"
	"reconcile.dev/reconcile/controllers/research"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
	"reconcile.dev/reconcile/state"
)

// A session with a quality is verified when all its DAGs have ended well: its branch is inspected, and then tested, by effects of its own.
// A verdict is about the DAGs as they ended, so a DAG that ends later calls for another one. Findings become a DAG that
// fixes them, or wait for a person.

// verification is the decision about the quality of a session.
type verification struct {
	settle.In
	spec    *schemas.SessionSpec
	gate    Gate
	st      *schemas.QualityStatus
	waits   bool // what mends it waits
	effects []settle.Effect
}

// verify decides how far the verification of a session is. sum says how far its DAGs are. It returns nil where the spec asks for none.
func verify(in settle.In, s *slot, sum *dagSum, old *schemas.QualityStatus) *verification {
	spec := state.SpecOf[*schemas.SessionSpec](in.Entry)
	if spec.Quality == nil {
		return nil
	}
	v := &verification{In: in, spec: spec, gate: s.Gate, st: new(schemas.QualityStatus)}
	if old != nil {
		*v.st = *old
	}
	v.st.Message = ""
	if v.st.Base == "" {
		v.st.Base = baseOf(in.Tree, in.Name)
	}
	if !sum.endedWell() {
		v.st.State, v.st.Message = schemas.QualityPending, "it is verified when its DAGs have ended well"
		if ref, dag := v.fixing(); dag != nil {
			v.st.State, v.st.Message = schemas.QualityFixing, "mended by "+ref.String()
			if ref.String() != v.st.Fix {
				v.st.Message = "planned by " + ref.String()
			}
			if ready := dag.Condition(schemas.Ready); dag.Phase == schemas.DAGPaused && ready != nil {
				v.waits = true
				v.st.Message += fmt.Sprintf(", which waits: %s: %s", ready.Reason, shorten.Text(ready.Message, mostWaiting))
			}
		}
		return v
	}
	if of := endedAs(in.Tree, in.Entry, in.World.Brief); v.st.Of != of {
		*v.st = schemas.QualityStatus{Of: of, Base: v.st.Base, Found: v.st.Found, Fix: v.st.Fix, Rounds: v.st.Rounds, From: v.st.From}
	}
	for _, a := range s.Acts {
		if !a.Spent && a.Distrusted() == "" {
			v.act(a.Spec)
		}
	}
	v.run()
	return v
}

// mostWaiting is how much of what a DAG waits for is in the message of its session, in characters.
const mostWaiting = 300

// fixing is the DAG that fixes the findings, or plans that; the status is nil where it has ended.
func (v *verification) fixing() (schemas.Ref, *schemas.DAGStatus) {
	for _, name := range []string{v.st.Fix, planOf(v.st.Fix)} {
		ref, err := schemas.Kinds{schemas.DAGKind}.ParseRef(name)
		if e := v.Tree.Entry(ref); err == nil && mends(v.Name, e) {
			if p := partOf(v.Name, v.World.Brief(e)); p.live() {
				return ref, settle.StatusAs[schemas.DAGStatus](v.World, e)
			}
			break
		}
	}
	return schemas.Ref{}, nil
}

// act applies the decision of a person.
func (v *verification) act(a *schemas.ActionSpec) {
	switch {
	case a.Verb == schemas.VerbApprove && v.st.State == schemas.QualityWaiting:
		v.st.TakenAs = v.asked()
		v.st.TakenBy = cmp.Or(schemas.Acting(a.By, a.Proof), "a person")
		if a.Reason != "" {
			v.st.TakenBy += ": " + a.Reason
		}
	case VerifiesAgain(v.Entry, "", a):
		v.st.Again, v.st.From, v.st.Found, v.st.TakenBy = v.st.Again+1, v.st.Rounds, "", ""
		v.st.Inspected, v.st.Tested, v.st.Corrections = "", "", nil
	}
}

// run takes the verdicts that are on record, and wants the next one.
func (v *verification) run() {
	p := v.spec.Quality.Steps()
	if v.st.TakenBy != "" && v.st.TakenAs == v.asked() {
		v.pass()
		return
	}
	v.st.TakenBy, v.st.TakenAs, v.st.Undecided = "", "", nil
	commit := ""
	var accepted []string
	for _, step := range []string{schemas.StepInspect, schemas.StepTest} {
		record := v.record(step)
		if record == nil || commit != "" && (record.Workspace == nil || record.Workspace.Commit != commit) {
			v.want(step, commit)
			return
		}
		e := checks.EvidenceOf(record)
		if v.openQuestions(step, commit, e) {
			return
		}
		verdict := strings.TrimSpace(string(e.Outcome) + ": " + e.Summary)
		v.st.At = record.FinishedAt
		if record.Workspace != nil {
			commit = record.Workspace.Commit
			v.st.Commit = commit
		}
		if step == schemas.StepInspect {
			v.st.Inspected, v.st.Tested, v.st.Accepted = verdict, "", 0
		} else {
			v.st.Tested = verdict
		}
		v.st.Accepted += len(e.Overridden)
		for _, o := range e.Overridden {
			if o.Void == "" {
				accepted = append(accepted, overrode(cmp.Or(o.Message, o.Test, "that no test runs"), o.By, o.Proof, o.Reason))
			}
		}
		if !e.Lets(p.AllowsNone(step)) {
			v.refuse(step, e)
			return
		}
	}
	if v.st.State != schemas.QualityVerified {
		v.st.Overridden = v.overridden(accepted)
	}
	v.pass()
}

// mostOverridden bounds what a session says that people overrode.
const mostOverridden = 20

// overridden adds what people took of the changes of the session's tasks, whatever their pipelines said, to what they accepted of the whole.
func (v *verification) overridden(all []string) []string {
	for _, e := range dagsOf(v.Tree, v.Ref) {
		for name, s := range settle.StatusAs[schemas.DAGStatus](v.World, e).Nodes.All() {
			for _, a := range s.Approvals {
				what := "the change"
				if a.Ignores != "" {
					what = a.Ignores
				}
				if s.Pipeline != nil {
					all = append(all, overrode(fmt.Sprintf("%s of %s:%s", what, e.Ref, name), a.By, a.Proof, a.Reason))
				}
			}
		}
	}
	return all[:min(len(all), mostOverridden)]
}

// overrode says what a person overrode, and why.
func overrode(what, by, proof, why string) string {
	text := what + " by " + cmp.Or(schemas.Acting(by, proof), "a person")
	if why != "" {
		text += ": " + why
	}
	return shorten.Text(strings.Join(strings.Fields(text), " "), 200)
}

// openQuestions reports whether the questions about tools that a step left open come before its verdict.
func (v *verification) openQuestions(step, commit string, e *checks.Evidence) bool {
	if len(e.Undecided) == 0 || v.spec.Quality.Steps().AllowsNone(step) {
		return false
	}
	asked := research.Of(v.Tree, v.Name, e.Undecided)
	switch {
	case asked.Asks != "":
		v.st.State, v.st.Message = schemas.QualityInspecting, "it waits for "+asked.Asks
	case asked.Answered:
		v.want(step, commit)
	case step == schemas.StepInspect && len(e.Tools) == 0:
		v.wait(research.Choice(e.Undecided))
	default:
		return false
	}
	v.st.Undecided = e.Undecided
	return true
}

// pass makes the session verified.
func (v *verification) pass() {
	v.st.State, v.st.From, v.st.Found, v.st.Fix = schemas.QualityVerified, v.st.Rounds, "", ""
	if v.st.TakenBy == "" {
		v.st.Corrections = nil
	}
}

// key is the digest that the verdict of a step is about.
func (v *verification) key(step string) string {
	return keys.Digest([]byte(strings.Join(append([]string{"verify", v.st.Of, strconv.Itoa(v.st.Again), v.spec.Branch, v.spec.Quality.Scope, fmt.Sprint(v.spec.Env)},
		settle.VerifyArgs(v.spec.Quality.Steps(), step)...), "\n")))
}

// asked is the digest of the findings that a person accepts with the work.
func (v *verification) asked() string { return v.key(schemas.StepInspect) + v.key(schemas.StepTest) }

// record is the latest record of a step; nil for none. One that is older than a verdict about something else does not count.
func (v *verification) record(step string) (last *schemas.Run) {
	key := v.key(step)
	for _, r := range v.Runs() {
		if r.Node == step && r.NodeKey == key && (last == nil || last.Seq < r.Seq) {
			last = r
		}
	}
	for _, r := range v.Runs() {
		if last != nil && r.Node == step && r.NodeKey != key && r.FinishedAt.After(last.FinishedAt.Time) {
			return nil
		}
	}
	return last
}

// want asks for the effect that does a step.
func (v *verification) want(step, commit string) {
	v.st.State, v.st.Message = schemas.QualityInspecting, "its work as a whole is being inspected"
	if step == schemas.StepTest {
		v.st.State, v.st.Message = schemas.QualityTesting, "its work as a whole is being tested"
	}
	key, limits := v.key(step), v.Tree.Settings().Limits
	e := settle.Effect{Owner: v.Ref, Session: v.Name, Node: step, NodeKey: key, Seq: 1, Rank: v.spec.Priority.Rank(), Ageing: limits.Ageing.Std(), Weight: v.spec.Weight,
		Groups: []settle.Group{{Name: settle.TasksGroup, Limit: limits.ConcurrentTasks, Load: limits.Load}, {Name: settle.SessionGroup + v.Name, Limit: v.spec.MaxConcurrentTasks}}}
	for _, r := range v.Runs() {
		if r.Node == step && r.NodeKey == key {
			e.Seq = max(e.Seq, r.Seq+1)
		}
	}
	for i := range v.Claims {
		if c := &v.Claims[i]; c.Node == step && c.NodeKey == key {
			if e.Key, e.Seq = c.Key, c.Seq; v.gate.Keep || v.gate.Open {
				v.effects = append(v.effects, e)
			}
			return
		}
	}
	if !v.gate.Open {
		v.st.State, v.st.Message = schemas.QualityPending, v.gate.Message
		return
	}
	e.Key = keys.OfEffect(schemas.SessionKind, v.Name, step, key, e.Seq)
	args := settle.VerifyArgs(v.spec.Quality.Steps(), step)
	if step == schemas.StepInspect && v.spec.Quality.Scope == schemas.QualitySession && v.st.Base != "" {
		args = append(args, "--base", v.st.Base)
	}
	task := &settle.Verify{Run: v.Ref.String(), Step: step, Commit: commit, Branch: v.spec.Branch, Clean: inPlace(v.Tree, v.Name), Args: args,
		Sandbox: &settle.Sandbox{Default: true}}
	task.Env, task.EnvFrom = settle.Variables(v.spec.Env)
	task.Env = preferences.WithTools(task.Env, v.Tree, v.Name)
	e.Task = task
	v.effects = append(v.effects, e)
}

// refuse finds who mends what a step found.
func (v *verification) refuse(step string, e *checks.Evidence) {
	all := found(e, v.spec.Quality)
	v.st.Corrections = nil
	for _, f := range all {
		if v.st.Corrections == nil {
			v.st.Corrections = map[string]int{}
		}
		v.st.Corrections[string(f.Severity)]++
	}
	digest, q := correctionsDigest(all), v.spec.Quality
	from, name, what := "inspector", v.st.Fix, e.Summary+first(all)
	if step == schemas.StepTest {
		from = "tester"
	}
	switch {
	case !q.Fix:
		v.wait(fmt.Sprintf("the %s does not pass it: %s", from, what))
	case e.Outcome == checks.Unknown:
		v.wait(fmt.Sprintf("the %s cannot say whether it passes, and no change of files helps: %s", from, what))
	case v.st.Found == digest && v.Tree.Entry(dagRef(name)) != nil:
		v.wait(fmt.Sprintf("%s has mended nothing of what the %s found: %s", name, from, what))
	case v.st.Found != digest && v.st.Rounds-v.st.From >= q.Most():
		v.wait(fmt.Sprintf("%s did not mend what the %s finds: %s", schemas.Count(q.Most(), "DAG"), from, what))
	default:
		if v.st.Found != digest {
			v.st.Found, v.st.Rounds = digest, max(v.st.Rounds, fixes(v.Tree, v.Entry))+1
			v.st.Fix = schemas.DAGKind.Ref(fixName(v.Tree, v.Name, v.st.Rounds)).String()
		}
		v.st.State, v.st.Message = schemas.QualityFixing, v.st.Fix+" is made, which mends it: "+what
		if engineersOf(v.Tree) == nil {
			v.wait("there is no agent with the role engineer that could mend it: " + what)
		}
	}
}

// first shows the first finding.
func first(all []checks.Finding) string {
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s%s)", shorten.Text(strings.TrimPrefix(all[0].Place()+": "+all[0].Message, ": "), 200), schemas.AndOthers(len(all)-1))
}

// Choices begins what the message of a session says that a person can do.
const Choices = "; commit what mends it and "

// wait leaves it to a person.
func (v *verification) wait(why string) {
	v.st.State = schemas.QualityWaiting
	v.st.Message = fmt.Sprintf("%s%sreconcile retry %s, or take it as it is: reconcile approve %[3]s --reason TEXT", why, Choices, v.Ref)
}

// found are the findings that count, and the failed tests.
func found(e *checks.Evidence, q *schemas.Quality) []checks.Finding {
	least := checks.Severity(cmp.Or(q.FailOn, string(checks.Low)))
	all := slices.DeleteFunc(slices.Clone(e.Findings), func(f checks.Finding) bool { return !f.Severity.AtLeast(least) })
	all = append(all, checks.OfTests(e.Failures)...)
	for _, r := range e.Tools {
		if r.Outcome == checks.Failed && r.Findings == 0 && !(r.Tests != nil && r.Tests.Failed > 0) { // as what does not build
			all = append(all, checks.Finding{Severity: checks.High, Tool: r.Tool, Message: cmp.Or(r.Reason, r.Tool+" failed"), Suggestion: r.Output})
		}
	}
	return all
}

func correctionsDigest(all []checks.Finding) string {
	lines := make([]string, len(all))
	for i, f := range all {
		lines[i] = strings.Join([]string{f.File, f.Tool, f.Rule, f.Message}, "\x00")
		if f.File == "" {
			lines[i] += f.Suggestion
		}
	}
	slices.Sort(lines)
	return keys.Digest([]byte(strings.Join(lines, "\n")))
}

// judge adds the verification to the judgement of an active session.
func (v *verification) judge(j *settle.Judgement) {
	if v == nil || j.Class != settle.ClassReady || j.Phase != schemas.SessionActive {
		return
	}
	switch v.st.State {
	case schemas.QualityInspecting, schemas.QualityTesting, schemas.QualityFixing:
		if j.Class, j.Reason, j.Message = settle.ClassWorking, v.reason(), v.st.Message; v.waits {
			j.Class = settle.ClassWaiting
		}
	case schemas.QualityWaiting:
		j.Class, j.Reason, j.Message = settle.ClassWaiting, settle.ReasonWaitsForPerson, v.st.Message
	case schemas.QualityVerified:
		if j.Message += ", verified"; v.st.TakenBy != "" {
			j.Message = strings.TrimSuffix(j.Message, "verified") + "taken as they are"
		}
	}
}

func (v *verification) reason() string {
	switch v.st.State {
	case schemas.QualityInspecting:
		return settle.ReasonInspecting
	case schemas.QualityTesting:
		return settle.ReasonTesting
	case schemas.QualityFixing:
		return settle.ReasonFixing
	case schemas.QualityWaiting:
		return settle.ReasonWaitsForPerson
	}
	return settle.ReasonPending
}

// condition adds the condition Verified.
func (v *verification) condition(c, old *schemas.Common) {
	switch {
	case v == nil:
	case v.st.State != schemas.QualityVerified:
		settle.Verified(c, old, schemas.False, v.reason(), v.st.Message, schemas.Time{}, v.Now)
	case v.st.TakenBy != "":
		settle.Verified(c, old, schemas.True, settle.ReasonTaken, "taken as it is by "+v.st.TakenBy, schemas.Time{}, v.Now)
	default:
		settle.Verified(c, old, schemas.True, settle.ReasonVerified, v.summary(), v.st.At, v.Now)
	}
}

// summary lists the checks, their tools, and the findings that people accepted.
func (v *verification) summary() string {
	s := fmt.Sprintf("commit %s: inspected: %s; tested: %s", v.st.Commit[:min(10, len(v.st.Commit))], v.st.Inspected, v.st.Tested)
	if len(v.st.Overridden) > 0 {
		s += "; overridden: " + strings.Join(v.st.Overridden[:min(3, len(v.st.Overridden))], "; ")
		if n := len(v.st.Overridden) - 3; n > 0 {
			s += fmt.Sprintf("; %d more", n)
		}
	} else if v.st.Accepted > 0 {
		s += fmt.Sprintf("; %d accepted by people", v.st.Accepted)
	}
	return s
}

// Approvable reports whether a person can take the work of a session as it is.
func Approvable(session *state.Entry) bool {
	st, ok := session.Status().(*schemas.SessionStatus)
	return ok && st.Quality != nil && st.Quality.State == schemas.QualityWaiting
}
