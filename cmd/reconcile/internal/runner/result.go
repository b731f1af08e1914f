package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode/utf8"

	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/profiles"
	"reconcile.dev/reconcile/controllers/turns"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
	"reconcile.dev/reconcile/state/regular"
)

// concludeStopped fills in the record of a command that was ended. The turn of an agent that was silent, or whose time ran out, has a failure
// with a class: that of the error it was busy with, if it is known.
func (a *attempt) concludeStopped(end exit, read profiles.Reading) {
	s := end.stopped
	a.record.Outcome, a.record.Message = s.outcome, a.runner.clean(s.message)
	switch {
	case s.spent != "":
		f := turns.Facts{Spent: s.spent}
		a.failSpent(turns.Judge(f))
		a.record.Message = turns.Describe(a.record.Turn.Failure, a.runner.o.Now())
	case s.silent > 0:
		a.record.Message = a.judge(turns.Facts{Silent: s.silent}, read).Error()
	case s.outcome == schemas.OutcomeTimedOut && a.isAgent():
		a.record.Message = lateMessage(a.record.Message, a.judge(turns.Facts{Late: a.record.Message}, read))
	}
	if end.stuck != nil {
		a.record.Message += "; " + end.stuck.Error()
	}
}

// lateMessage says that the time of a turn ran out, and with what it was busy if that is known.
func lateMessage(late string, judged error) string {
	if judged.Error() == late {
		return late
	}
	return join(late, judged.Error())
}

// remarks returns notes about a success.
func remarks(end exit) string {
	switch {
	case end.stuck != nil:
		return "it left processes running that could not be ended"
	case end.left > 0:
		return fmt.Sprintf("it left %d of its processes running; they were ended", end.left)
	}
	return ""
}

func (a *attempt) readResultFile(name string) (json.RawMessage, error) {
	data, err := a.readRegular(name)
	switch {
	case err != nil:
		return nil, err
	case len(data) > a.runs.ResultLimit:
		return nil, fmt.Errorf("output %s is longer than %d bytes", name, a.runs.ResultLimit)
	}
	return a.jsonResult(name, data)
}

// readRegular reads at most one byte more than a result may have.
func (a *attempt) readRegular(name string) ([]byte, error) {
	if err := a.checkRegular(name); err != nil {
		return nil, err
	}
	f, _, err := regular.Open(a.place.root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(a.runs.ResultLimit)+1))
}

// jsonResult checks that data is one JSON value without repeated keys, and returns it in canonical form: sorted keys, no space, no secrets.
func (a *attempt) jsonResult(source string, data []byte) (json.RawMessage, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("%s is not UTF-8", source)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s is empty, it should be one JSON value", source)
		}
		return nil, fmt.Errorf("%s is not JSON: %w", source, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s is not one JSON value: something follows it", source)
	}
	if key := schemas.RepeatedKey(data); key != "" {
		return nil, fmt.Errorf("%s has the key %s twice", source, shorten.Text(key, 100))
	}
	return schemas.Marshal(a.runner.cleanValue(v))
}

// checkFiles checks that the promised files exist.
func (a *attempt) checkFiles() error {
	for _, name := range a.task.OutputFiles {
		if err := a.checkRegular(name); err != nil {
			return err
		}
	}
	return nil
}

// checkRegular checks that name is a file below the root, outside of .git and .reconcile.
func (a *attempt) checkRegular(name string) error {
	if err := checkOutputPath(name); err != nil {
		return err
	}
	fi, err := a.place.root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("output %s was not written", name)
	case err != nil:
		return fmt.Errorf("output: %w", err)
	case !fi.Mode().IsRegular():
		return fmt.Errorf("output %s is not a regular file", name)
	}
	return nil
}

// removeStaleResult removes the file of an earlier attempt, so that it cannot pass for this one's result.
func (a *attempt) removeStaleResult() error {
	name := a.task.OutputJSON
	if name == "" {
		return nil
	}
	if err := checkOutputPath(name); err != nil {
		return err
	}
	if fi, err := a.place.root.Lstat(name); err == nil && fi.IsDir() {
		return fmt.Errorf("output %s is a folder", name)
	}
	if err := a.place.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the result of an earlier run: %w", err)
	}
	return nil
}

// fillRecord fills in the record of a successful command from its output. An error fails the run.
func (a *attempt) fillRecord(end exit, b *buffers) error {
	said, err := a.parseOutput(b)
	a.record.Reported, a.observed = said.Report, said.Observed
	if errors.Is(err, agentio.ErrEmpty) && a.record.Turn != nil {
		a.record.Turn.Failure = &schemas.TurnFailure{Class: schemas.FailureUnknown, Message: "the output is empty"}
	}
	if err != nil {
		return err
	}
	outcome, message := schemas.OutcomeSucceeded, remarks(end)
	if said.Ask != nil {
		message = join(fmt.Sprintf("asks %s about %s", said.Ask.To, said.Ask.Topic), message)
	}
	if p := said.PlanChange; p != nil {
		if a.record.PlanChange, err = schemas.Marshal(p); err != nil {
			return err
		}
		message = join(fmt.Sprintf("asks to %s the plan: %s", p.Change, shorten.Text(strings.Join(strings.Fields(p.Reason), " "), 200)), message)
	}
	switch {
	case blocked(said):
		outcome = schemas.OutcomeAsked
	case a.wasDenied() && (said.Report == nil || said.Report.Status != schemas.ReportDone):
		return a.notPermitted("")
	case handsOff(said):
		outcome, message = schemas.OutcomeHandedOff, join("hands the rest of the task off", message)
		if err := a.keepChanges(said.Report); err != nil {
			return err
		}
	default:
		if err := a.checkResult(said.Result); err != nil {
			return err
		}
		if err := a.checkFiles(); err != nil {
			return err
		}
		if err := a.keepChanges(said.Report); err != nil {
			return err
		}
		if w := a.record.Workspace; w != nil && w.Commit == "" {
			message = strings.TrimPrefix(join(message, w.Note), "; ")
		}
		if err := a.checkOutputSecrets(); err != nil {
			return err
		}
		a.record.Outputs = a.keepOutputs()
	}
	a.record.Outcome, a.record.Message = outcome, message
	a.record.Result, a.record.Asks, a.record.Resolution = said.Result, said.Ask, said.Resolution
	return nil
}

// checkResult validates the result against the node's schema, if it has one.
func (a *attempt) checkResult(result json.RawMessage) error {
	if len(a.task.OutputSchema) == 0 {
		return nil
	}
	err := schemas.CheckResult(a.task.OutputSchema, result)
	if err != nil && a.task.Output == "text" && a.task.OutputJSON == "" {
		return fmt.Errorf("%w; what the agent prints is a string, since its runner says output: text", err)
	}
	return err
}
