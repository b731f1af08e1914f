package turns

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
)

// endTurn is the stop reason of a turn that the agent regards as complete, in the words of the Agent Client Protocol. The
// HTTP runner translates the finish reasons of its endpoints into these words.
const endTurn = "end_turn"

// Facts are the observations of a turn's end. The zero value of a field means that nothing like it was observed.
type Facts struct {
	// Runner is one of schemas.RunnerCommand, RunnerACP and RunnerHTTP.
	Runner string
	// At is when the turn ended; relative times in messages count from it.
	At time.Time
	// Silent is how long the agent had said nothing when reconcile ended its turn; 0 if reconcile did not.
	Silent time.Duration
	// Late says that the time of the turn ran out and reconcile ended it, in words; "" if that is not why.
	Late string
	// Spent says what of its budget the turn had used up when reconcile ended it; "" if that is not why.
	Spent string
	// Dead says that the agent's process ended before its answer (ACP), or the connection did (HTTP).
	Dead bool
	// ExitCode is that of a command; nil if it did not exit.
	ExitCode *int
	// Exit describes the exit; "" for "exit code N".
	Exit string
	// StopReason is the agent's, in the words of the Agent Client Protocol. A command needs none.
	StopReason string
	// OutputTokens is the number of tokens that the model produced, from the best source; nil if no source knows it.
	OutputTokens *int64
	// Error is a failure that the agent reported with a type, or an error on the wire.
	Error *Error
	// Wire is the error that the last request to the model's service ended with, as the metering proxy saw it; nil for none.
	Wire *Error
	// Over is the part of the turn's budget that was used up when it was refused more; "" if it was not refused anything.
	Over string
	// Missing are the signs of success that a command's profile names and its output lacks, in words.
	Missing []string
	// Output is why a command's output is not a result; nil if it is one.
	Output error
	// Text is the agent's final text, or the end of a command's output. It is only read to classify a failure.
	Text string
}

// Error is a failure in the agent's terms. At least one field is set.
type Error struct {
	Kind       string // the agent's or the service's type: rate_limit, usageLimitExceeded, authentication_error, …
	Code       int    // of a JSON-RPC error
	Status     int    // HTTP
	Message    string
	RetryAfter string // the header's value, or a time that the agent names
}

// Reported returns the error that an agent's output says it ended with, as Claude Code and others print it whatever the exit code is: a
// JSON object with "is_error": true, or a list that ends with one. It is nil for all other output.
func Reported(output []byte) *Error {
	var last struct {
		IsError bool   `json:"is_error"`
		Status  int    `json:"api_error_status"`
		Type    string `json:"api_error_type"`
		Subtype string `json:"subtype"`
		Result  string `json:"result"`
	}
	var list []json.RawMessage
	if json.Unmarshal(output, &list) == nil && len(list) > 0 {
		output = list[len(list)-1]
	}
	if json.Unmarshal(output, &last) != nil || !last.IsError {
		return nil
	}
	return &Error{Kind: last.Type, Status: last.Status, Message: cmp.Or(last.Result, last.Subtype, "the agent says is_error")}
}

// Judge returns nil if the turn succeeded, else why not. What the metering proxy saw explains a failure better than the agent
// can.
func Judge(f Facts) *schemas.TurnFailure {
	v := f.judge()
	switch {
	case v == nil:
		return nil
	case f.Over != "":
		return failure(schemas.FailureBudget, "it had used "+f.Over)
	case f.Wire == nil:
		return v
	}
	seen := f.classify(*f.Wire)
	switch {
	case v.Class == schemas.FailureUnknown || v.Class == schemas.FailureConnection:
		return seen
	case v.Class == seen.Class && v.Until.IsZero():
		v.Until, v.Status = seen.Until, seen.Status
	}
	return v
}

func (f Facts) judge() *schemas.TurnFailure {
	switch {
	case f.Spent != "":
		return failure(schemas.FailureBudget, f.Spent+"; the turn was ended")
	case f.Silent > 0:
		return f.judgeSilent()
	case f.Error != nil:
		return f.classify(*f.Error)
	case f.Late != "":
		return failure(schemas.FailureUnknown, f.Late)
	case f.Runner == schemas.RunnerCommand:
		return f.judgeCommand()
	}
	return f.judgeProtocol()
}

// judgeSilent classifies a silent turn by the error that the agent was busy with, else as a lost connection.
func (f Facts) judgeSilent() *schemas.TurnFailure {
	silent := fmt.Sprintf("silent for %s; the turn was ended", f.Silent)
	if f.Error != nil {
		if v := f.classify(*f.Error); v.Class != schemas.FailureUnknown {
			v.Message += " (" + silent + ")"
			return v
		}
	}
	return failure(schemas.FailureConnection, silent)
}

func (f Facts) judgeCommand() *schemas.TurnFailure {
	switch {
	case f.ExitCode == nil:
		return failure(schemas.FailureUnknown, "the program did not exit")
	case *f.ExitCode != 0:
		return f.suspect(cmp.Or(f.Exit, fmt.Sprintf("exit code %d", *f.ExitCode)))
	case f.Output != nil:
		return failure(schemas.FailureUnknown, f.Output.Error())
	case len(f.Missing) > 0:
		return f.suspect("exit code 0, but " + strings.Join(f.Missing, " and "))
	}
	return nil
}

func (f Facts) judgeProtocol() *schemas.TurnFailure {
	switch {
	case f.Dead:
		return failure(schemas.FailureConnection, "the agent's process or connection ended during the turn")
	case f.StopReason == "refusal":
		return failure(schemas.FailureRequest, "the model refused the request")
	case f.StopReason == "max_tokens" || f.StopReason == "max_turn_requests":
		return failure(schemas.FailureRequest, "the turn ended at the agent's limit "+f.StopReason)
	case f.StopReason != endTurn:
		return f.suspect("the turn ended with " + cmp.Or(f.StopReason, "no stop reason"))
	case f.OutputTokens == nil:
		return f.suspect("the turn ended with end_turn, but the model's use of tokens is not known")
	case *f.OutputTokens <= 0:
		return f.suspect("the turn ended with end_turn, but the model produced nothing")
	}
	return nil
}

// suspect classifies a failure without a type by its text. Without a known class, the message is the text itself.
func (f Facts) suspect(observed string) *schemas.TurnFailure {
	v := f.classify(Error{Message: f.Text})
	if v.Class == schemas.FailureUnknown || v.Message == "" {
		v.Message = observed
	} else {
		v.Message += " (" + observed + ")"
	}
	return v
}

// messageLimit bounds the message of a failure, in characters.
const messageLimit = 500

// failure makes a message one line of bounded length.
func failure(class, message string) *schemas.TurnFailure {
	return &schemas.TurnFailure{Class: class, Message: shorten.Text(strings.Join(strings.Fields(message), " "), messageLimit)}
}

// titles are the names of the classes in messages.
var titles = map[string]string{
	schemas.FailureLimit: "rate limit", schemas.FailureService: "service failure", schemas.FailureAccess: "access denied",
	schemas.FailureConnection: "connection lost", schemas.FailureRequest: "request refused", schemas.FailureUnknown: "turn failed", schemas.FailureBudget: "budget used up",
}

// Describe says why a turn that ended at a time failed, in one line. Times are in UTC, as in all records.
func Describe(f *schemas.TurnFailure, at time.Time) string {
	if f.Class == schemas.FailureUnknown && f.Message != "" {
		return f.Message
	}
	s := cmp.Or(titles[f.Class], titles[schemas.FailureUnknown])
	if u := f.Until; !u.IsZero() {
		layout := "15:04 UTC"
		if u.UTC().Format(time.DateOnly) != at.UTC().Format(time.DateOnly) {
			layout = "2006-01-02 15:04 UTC"
		}
		s += " until " + u.UTC().Format(layout)
	}
	if f.Message != "" {
		s += ": " + f.Message
	}
	return s
}
