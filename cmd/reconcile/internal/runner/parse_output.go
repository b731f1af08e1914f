package runner

import (
	"errors"
	"fmt"
	"strings"

	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/schemas"
)

// blocked reports whether the command needs an answer to continue. A non-blocking question accompanies a result.
func blocked(said agentio.Said) bool { return said.Escalates || said.Ask != nil && said.Ask.Blocking }

// handsOff reports whether the agent did not complete the task, and hands the rest of it to a new session.
func handsOff(said agentio.Said) bool {
	return said.Report != nil && said.Report.Status == schemas.ReportHandoff
}

// parseOutput parses stdout and the promised file. A run that asks has not finished its work, and owes no file.
func (a *attempt) parseOutput(b *buffers) (agentio.Said, error) {
	said, err := a.readStdout(b)
	if err != nil || blocked(said) || handsOff(said) || a.task.OutputJSON == "" {
		return said, err
	}
	said.Result, err = a.readResultFile(a.task.OutputJSON)
	return said, err
}

// readStdout parses stdout, if configured.
func (a *attempt) readStdout(b *buffers) (agentio.Said, error) {
	if a.task.Output == "" {
		return agentio.Said{}, nil
	}
	form := a.outputForm(b.capture)
	out, err := a.cleanStdout(form, b.capture)
	switch {
	case err != nil && a.task.OutputJSON != "":
		return agentio.Said{}, nil // the result is in the file; output that is not JSON asks nothing
	case err != nil:
		return agentio.Said{}, err
	case !a.task.Answer:
		said, err := agentio.Read(form, out)
		if errors.Is(err, agentio.ErrEmpty) && a.runner.o.Specs != "" && askedBy(a.runner.root, a.runner.o.Specs, a.job.effect.Key) {
			return agentio.Said{}, nil // it asked by command, and waits for the answer
		}
		return said, err
	}
	answer, err := agentio.ReadAnswer(form, out)
	if long := (*agentio.TooLongError)(nil); errors.As(err, &long) {
		a.record.Result, _ = schemas.Marshal(long.Kept()) // text always marshals
	}
	if err != nil {
		return agentio.Said{}, err
	}
	result, err := schemas.Marshal(answer)
	return agentio.Said{Result: result}, err
}

// cleanStdout redacts stdout: long text is cut, JSON must fit.
func (a *attempt) cleanStdout(form string, out []byte) ([]byte, error) {
	switch form {
	case "text":
		return []byte(a.cleanText(out)), nil
	case "json":
		if len(out) > a.runs.ResultLimit {
			return nil, fmt.Errorf("stdout is no result: it is longer than %d bytes", a.runs.ResultLimit)
		}
		if a.task.Profile != nil {
			return a.jsonResult("the final text", unfenced(out))
		}
		return a.jsonResult("stdout", out)
	}
	return nil, fmt.Errorf("output %q is not known: it is text or json", form)
}

// cleanText returns stdout as text.
func (a *attempt) cleanText(out []byte) string {
	cut := len(out) > a.runs.ResultLimit
	if cut {
		out = a.runner.secrets.trimPartial(out)
	}
	text := strings.TrimSpace(printable(a.runner.cleanLines(out)))
	if cut {
		text = strings.ToValidUTF8(text[:min(len(text), a.runs.ResultLimit)], "") + agentio.CutMark
	}
	return text
}
