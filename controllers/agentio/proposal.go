package agentio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"reconcile.dev/reconcile/schemas"
)

// escalation is what blocks an agent, in its output.
type escalation struct {
	Blocker  string           `json:"blocker"`
	Type     string           `json:"type"`
	Tried    []string         `json:"tried"`
	Priority schemas.Priority `json:"priority"`
	Context  map[string]any   `json:"context"`
}

// proposal is the plan change in an output: one that the agent asks for, or its blocker. asks says that the output has a question, too.
func proposal(x *escalation, change json.RawMessage, asks bool) (spec *schemas.PlanChangeSpec, err error) {
	switch {
	case x != nil && len(change) > 0:
		return nil, errors.New("the output has both planChange and escalation: an escalation is answered with a change of the plan where one helps")
	case x != nil && asks:
		return nil, errors.New("the output has both clarification and escalation: ask first, and escalate what nobody could answer")
	case x != nil:
		spec = &schemas.PlanChangeSpec{Change: schemas.ChangeFix, Reason: x.Blocker, BlockerType: x.Type, Tried: x.Tried, Priority: x.Priority, Context: x.Context,
			Node: "escalates"}
	case len(change) > 0:
		d := json.NewDecoder(bytes.NewReader(change))
		d.DisallowUnknownFields()
		spec = new(schemas.PlanChangeSpec)
		if err := d.Decode(spec); err != nil {
			return nil, fmt.Errorf("planChange: %w; its fields are change, reason, blocked, failed, priority, context and suggestions", schemas.PlainJSON(err))
		}
		spec.Node, spec.Tried, spec.BlockerType = "", nil, ""
	default:
		return nil, nil
	}
	spec.Target, spec.Run, spec.By, spec.Proof, spec.At = "dag/own", "", "", "", schemas.Time{}
	if err := checkProposal(spec); err != nil {
		return nil, err
	}
	spec.Target, spec.Node = "", ""
	spec.Default()
	return spec, nil
}

// checkProposal checks a plan change by the rules of its kind.
func checkProposal(spec *schemas.PlanChangeSpec) error {
	switch spec.Change {
	case schemas.ChangeExtend, schemas.ChangeModify, schemas.ChangeReplace, schemas.ChangeFix:
	default:
		return fmt.Errorf("planChange: change %q is none of extend, modify, replace and fix", spec.Change)
	}
	if err := checkLength("the reason of the plan change", spec.Reason, AnswerLimit); err != nil {
		return err
	}
	var r schemas.Report
	spec.Check(&r)
	for _, f := range r.Findings() {
		if f.Severity == schemas.Error {
			return fmt.Errorf("the plan change is not taken: %v: %s", f.Field, f.Message)
		}
	}
	return nil
}
