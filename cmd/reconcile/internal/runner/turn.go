package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"reconcile.dev/reconcile/controllers/profiles"
	"reconcile.dev/reconcile/controllers/tokens"
	"reconcile.dev/reconcile/controllers/turns"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
)

// isAgent reports whether the command is the program of an agent, whose turn is judged.
func (a *attempt) isAgent() bool { return a.task.Output != "" }

// readTurn fills in the record's turn from what an agent with a profile printed. After it, b.capture is the agent's final text.
func (a *attempt) readTurn(b *buffers) profiles.Reading {
	if a.reader == nil {
		return profiles.Reading{}
	}
	r := a.reader.Reading()
	b.capture = append(b.capture[:0], r.Text[:min(len(r.Text), a.runs.ResultLimit+1)]...)
	t := r.Turn
	t.Profile, t.Runner = a.task.ProfileName, schemas.RunnerCommand
	if t.Model == "" {
		t.Model = lookup(a.task.Env, "RECONCILE_MODEL")
	}
	if b := a.resumes; b != nil && b.SessionID == t.SessionID && t.SessionUsage == nil {
		t.SessionUsage = b.SessionUsage
	} else if t.SessionUsage != nil {
		t.Usage = profiles.TurnUsage(t.SessionUsage, a.resumes)
	}
	for _, s := range []*string{&t.Model, &t.SessionID, &t.StopReason} {
		*s = a.brief(*s)
	}
	a.addMetered(&t)
	t.Permissions = a.cleanDenied(t.Permissions)
	a.record.Turn = &t
	return r
}

// brief makes a text of an agent fit for a record: one short line without secrets.
func (a *attempt) brief(s string) string {
	return shorten.Text(strings.Join(strings.Fields(printable([]byte(a.runner.clean(s)))), " "), 200)
}

// judge returns why the turn of an agent failed; nil if it succeeded, or if the command is not an agent. The failure is recorded.
func (a *attempt) judge(f turns.Facts, r profiles.Reading) error {
	f.Runner, f.At, f.Text = schemas.RunnerCommand, a.runner.o.Now(), a.lastWords(r)
	if a.task.Profile != nil {
		f.Error = r.Failure
	}
	if f.Error == nil && !r.Succeeded {
		f.Error = r.Retry
	}
	a.addWire(&f)
	if a.task.Profile != nil {
		f.Missing = r.Missing(a.task.Profile)
	}
	v := turns.Judge(f)
	if v == nil {
		return nil
	}
	v.Message = printable([]byte(a.runner.clean(v.Message)))
	if a.record.Turn != nil || v.Class != schemas.FailureUnknown {
		if a.record.Turn == nil {
			a.record.Turn = &schemas.Turn{Runner: schemas.RunnerCommand}
		}
		a.record.Turn.Failure = v
	}
	return errors.New(turns.Describe(v, f.At))
}

// lastWords is the text that may tell why a turn failed: the agent's final text, else the end of the output without JSON.
func (a *attempt) lastWords(r profiles.Reading) string {
	if r.HasText {
		return r.Text
	}
	const most = 10
	var words []string
	for line := range strings.SplitSeq(a.sink.end(), "\n") {
		if a.task.Profile == nil || !strings.HasPrefix(line, "{") {
			words = append(words, line)
		}
	}
	return strings.Join(words[max(len(words)-most, 0):], "\n")
}

// end returns the printable end of the output so far.
func (k *sink) end() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text()
}

// text is the printable end of the output; k.mu is held. What is removed to make it printable, or what two streams print, may join
// the parts of a secret.
func (k *sink) text() string {
	return ending(string(k.secrets.removeBroken([]byte(printable(k.tail)))), k.tailLimit)
}

// reportedError is the error that the JSON of a command without a profile says it ended with; nil for none.
func (a *attempt) reportedError(out []byte) *turns.Error {
	if a.task.Profile != nil || a.task.Output != "json" {
		return nil
	}
	return turns.Reported(out)
}

// checkText checks that the output of an agent without a profile is text.
func (a *attempt) checkText(out []byte) error {
	if a.task.Profile != nil || a.task.Output != "text" {
		return nil
	}
	if len(out) > a.runs.ResultLimit {
		out = out[:lastRune(out)]
	}
	if !utf8.Valid(out) {
		return errors.New("the output is not text in UTF-8")
	}
	for i, line := range bytes.Split(out, []byte("\n")) {
		at := bytes.IndexFunc(line, func(r rune) bool { return r < ' ' && r != '\t' && r != '\r' || r >= 0x7f && r < 0xa0 })
		if at >= 0 {
			r, _ := utf8.DecodeRune(line[at:])
			return fmt.Errorf("line %d of the output has the control character %U; an agent prints plain text", i+1, r)
		}
	}
	return nil
}

// outputForm is how the final text of an agent is read. With a profile, structured output needs no output: json.
func (a *attempt) outputForm(text []byte) string {
	if (a.task.Profile != nil || a.talk != nil || a.dialogue != nil) && isStructured(text) {
		return "json"
	}
	return a.task.Output
}

// estimate adds to the record of an agent's turn whose tokens are not known those of its prompt and output.
func (a *attempt) estimate(b *buffers) {
	_, known := a.record.Turn.Tokens()
	agent := a.isAgent() || a.talk != nil || a.dialogue != nil
	if known || !agent || a.record.StartedAt.IsZero() || a.interrupted != "" {
		return
	}
	if a.record.Turn == nil {
		a.record.Turn = &schemas.Turn{Runner: schemas.RunnerCommand, Profile: a.task.ProfileName}
	}
	output := string(b.capture)
	if output == "" {
		output = a.record.Output
	}
	a.record.Turn.Estimate = &schemas.Usage{InputTokens: int64(tokens.Count(a.prompt)), OutputTokens: int64(tokens.Count(output))}
}

// showText makes the record's output the final text of an agent with a profile: the log has the stream around it.
func (a *attempt) showText(b *buffers) {
	if a.reader == nil {
		return
	}
	text := a.cleanText(b.capture)
	if text == "" {
		text = a.runner.clean(a.lastWords(profiles.Reading{}))
	}
	a.record.Output = ending(text, a.runs.TailLimit)
}

// unfenced returns the content of text that is one fenced block of Markdown, as models like to print JSON; other text is unchanged.
func unfenced(text []byte) []byte {
	t := bytes.TrimSpace(text)
	first, rest, ok := bytes.Cut(t, []byte("\n"))
	if fence := []byte("```"); ok && bytes.HasPrefix(first, fence) && bytes.HasSuffix(rest, fence) {
		return bytes.TrimSuffix(rest, fence)
	}
	return text
}

// isStructured reports whether a text is structured output of the contract: a JSON object with the field reconcile.
func isStructured(text []byte) bool {
	t := bytes.TrimSpace(unfenced(text))
	var fields map[string]json.RawMessage
	return bytes.HasPrefix(t, []byte("{")) && json.Unmarshal(t, &fields) == nil && fields["reconcile"] != nil
}
