package agentio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
)

// Said is what the output of a run means.
type Said struct {
	// Result is the value that the run ended with, as it was printed; nil for none. For text it is a JSON string.
	Result json.RawMessage
	// Answer is the answer of an agent that was asked. Read hands it on as it is; ReadAnswer checks it.
	Answer string
	// Resolution is the agent's conclusion from the answers in its input, at most AnswerLimit characters.
	Resolution string
	// Ask is what the agent wants to know before it can go on; nil: nothing.
	Ask *schemas.Ask
	// PlanChange is the change of the plan that the agent asks for, without a target; nil: none. Escalates says that it is what blocks the
	// agent.
	PlanChange *schemas.PlanChangeSpec
	Escalates  bool
	// Report is what the agent says about its task; nil: nothing.
	Report *schemas.AgentReport
	// Observed are the observations to remember.
	Observed []schemas.ObservationEntry
}

// ErrEmpty is the error of a task whose output has no text.
var ErrEmpty = errors.New("the output is empty: print what was done, or ask in the form: " + askForm)

// Read reads from stdout what an agent said in a task: a result, or a question that it asks. Format is "json" or
// "text", as in schemas.CommandRunner.Output.
//
// JSON output is an object with "reconcile": 1 and the fields of this contract, or any other value, which is the
// result. Text is the result, unless a line of it asks: see [sentence]. The error describes an invalid question or
// object of this contract, and names the field; a line that almost has the form of a question; or empty text.
func Read(format string, stdout []byte) (Said, error) {
	if format == FormatJSON {
		return readJSON(stdout)
	}
	text := plainText(stdout)
	ask, near := sentence(text)
	switch {
	case ask != nil:
		return Said{Ask: ask}, checkAsk(ask)
	case near != "":
		return Said{}, fmt.Errorf("the line %q is no question that can be put; the form is: %s", shorten.Text(strings.TrimSpace(near), 100), askForm)
	case text == "":
		return Said{}, ErrEmpty
	}
	return textResult(text)
}

func plainText(stdout []byte) string {
	return strings.TrimSpace(strings.ToValidUTF8(string(stdout), "\ufffd"))
}

func textResult(text string) (Said, error) {
	result, err := schemas.Marshal(text)
	return Said{Result: result, Answer: text}, err
}

func readJSON(stdout []byte) (Said, error) {
	if !json.Valid(stdout) || !utf8.Valid(stdout) {
		return Said{}, errors.New("stdout is not one JSON value in UTF-8")
	}
	if !isStructured(stdout) {
		return Said{Result: stdout}, nil
	}
	return readStructured(stdout)
}

// isStructured reports whether a JSON value is an object of this contract: it has the field "reconcile", which is 1.
func isStructured(value []byte) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) != nil {
		return false
	}
	return string(bytes.TrimSpace(fields["reconcile"])) == "1"
}

// checkAsk checks a question by the rules of a ClarificationRequest, which is made from it.
func checkAsk(a *schemas.Ask) error {
	err := checkLength("topic", a.Topic, TopicLimit)
	if err == nil {
		err = checkLength("question", a.Question, QuestionLimit)
	}
	if err != nil {
		return fmt.Errorf("the question is not taken: %w", err)
	}
	spec := schemas.ClarificationRequestSpec{From: "asker", To: a.To, Topic: a.Topic, Question: a.Question,
		Artifacts: a.Artifacts}
	if a.To == spec.From {
		spec.From += "s" // only the target matters here
	}
	var r schemas.Report
	spec.Check(&r)
	for _, f := range r.Findings() {
		if f.Severity == schemas.Error {
			return fmt.Errorf("the question is not taken: %v: %s", f.Field[0], f.Message)
		}
	}
	return nil
}
