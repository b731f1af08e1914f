package schemas

// IssueComment is what someone wrote about an issue.
type IssueComment struct {
	// From is who wrote it.
	From string `json:"from,omitempty" jsonschema:"maxLength=100"`
	// Text is what was written.
	Text string `json:"text" jsonschema:"maxLength=70000"`
}

// startField names the first field of a start that is set; "" for none.
func (s *ActionSpec) startField() string {
	switch {
	case s.Issue != 0:
		return "issue"
	case len(s.Params) > 0:
		return "params"
	case len(s.Comments) > 0:
		return "comments"
	case len(s.Skip) > 0:
		return "skip"
	}
	return ""
}

// checkStart reports a start of something else than a workflow, another verb for a workflow, and fields of a start with another verb. It
// returns whether it reported something.
func (s *ActionSpec) checkStart(r *Report, to Ref) bool {
	if s.Verb != VerbStart {
		if field := s.startField(); field != "" {
			r.At(field).Errorf("conflict", "only start has %s", field).suggest("remove %s", field)
			return true
		}
		if to.Kind == WorkflowKind.Name {
			r.At("verb").Errorf("conflict", "a workflow cannot %s", s.Verb).also("the target", "target").
				suggest("write start, or name the DAG of a run: reconcile describe %s lists them", to)
			return true
		}
		return false
	}
	checkRefs(r, s.Skip, "skip")
	switch {
	case to.Kind != WorkflowKind.Name:
		r.At("verb").Errorf("conflict", "only a workflow can start, and the target is %s", to).also("the target", "target").
			suggest("write workflow/NAME as the target, or retry")
	case s.Node != "":
		r.At("node").Errorf("conflict", "a start is about a whole workflow").suggest("remove node; skip names optional steps to leave out")
	case s.Issue == 0 && IssueTitle(s.Text) == "":
		r.At("issue").Errorf("missing", "the start says for what: it has neither an issue nor a text with a title").
			suggest("add issue, or text that begins with a line such as \"# Add a health check\"")
	default:
		return false
	}
	return true
}

func withoutSecretComments(all []IssueComment) {
	for i := range all {
		withoutSecrets(&all[i].From, &all[i].Text)
	}
}
