package actions

import (
	"errors"
	"strings"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/workflows"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// startedRun begins the message of a start that has made a run.
const startedRun = "started "

// startMessage is the message of an applied start. A run that it made may have given way to that of another start of the same name.
func startMessage(in settle.In, message string) string {
	word, made := strings.CutPrefix(message, startedRun)
	ref, err := schemas.Kinds{schemas.DAGKind}.ParseRef(word)
	if run := in.Tree.Entry(ref); made && err == nil && run != nil && !run.Gone() && !workflows.Started(run, in.Name) {
		return "joined " + word + ", which another start had made"
	}
	return message
}

// judgeStart judges the start of a workflow. It is applied once its run is there: package derive makes it.
func judgeStart(in settle.In, spec *schemas.ActionSpec) settle.Judgement {
	run, name := workflows.RunOf(in.Tree, in.Name, spec, workflows.EndedIn(in.World))
	if run != nil {
		if err := workflows.Differs(run, in.Name, spec); err != nil {
			return settle.Judgement{Phase: schemas.ActionPending, Class: settle.ClassFailed, Reason: settle.ReasonCannotStart, Message: err.Error()}
		}
		message := startedRun + run.Ref.String()
		if !workflows.Started(run, in.Name) {
			message = "joined " + run.Ref.String() + ", which has not ended"
		}
		return settle.Judgement{Phase: schemas.ActionApplied, Class: settle.ClassReady, Reason: settle.ReasonApplied, Message: message, Since: spec.At.Time}
	}
	st, _ := in.Status().(*schemas.ActionStatus)
	if why := st.Distrusted(in.Object.Digest); why != "" {
		return settle.Judgement{Phase: schemas.ActionApplied, Class: settle.ClassReady, Reason: settle.ReasonApplied,
			Message: "applied to " + spec.Target + "; it was refused: " + why}
	}
	_, _, err := workflows.Make(in.Tree, name, in.Name, spec)
	if errors.Is(err, workflows.ErrNoText) && in.Tree.Settings().GitHub.Repo != "" {
		return settle.Judgement{Phase: schemas.ActionPending, Class: settle.ClassWaiting, Reason: settle.ReasonWaitsForIssue, Message: err.Error()}
	}
	if err != nil {
		return settle.Judgement{Phase: schemas.ActionPending, Class: settle.ClassFailed, Reason: settle.ReasonCannotStart, Message: err.Error()}
	}
	return settle.Judgement{Phase: schemas.ActionPending, Class: settle.ClassWorking, Reason: settle.ReasonPending,
		Message: "its run, " + schemas.DAGKind.Ref(name).String() + ", is being made"}
}

// addStarts adds the starts that are not applied when a session or an agent is new or was edited: a session may say what their issue is
// about, and an agent do one of their steps.
func addStarts(r *settle.Round) {
	edited := false
	for _, kind := range []string{schemas.SessionKind.Name, schemas.AgentKind.Name} {
		r.EachChanged(kind, func(was, is *state.Entry) {
			edited = edited || was == nil || was.Brief().ObservedDigest != is.Brief().ObservedDigest
		})
	}
	if !edited {
		return
	}
	for _, e := range r.Tree().Entries(schemas.ActionKind.Name) {
		if e.Object != nil && len(e.Object.Refs) > 0 && e.Object.Refs[0].To.Kind == schemas.WorkflowKind.Name && e.Brief().Phase != schemas.ActionApplied {
			r.Add(e.Ref)
		}
	}
}
