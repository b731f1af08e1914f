package runner

import (
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/schemas"
)

func memoryName(key string) string { return flat(key) + ".memory.md" }

// remind looks for what the agent should know of earlier work, and writes it to the file that RECONCILE_MEMORY names.
func (a *attempt) remind() error {
	if a.task.Recall == nil || a.o.Recall == nil {
		return nil
	}
	if a.memory = a.o.Recall(*a.task.Recall); a.memory == "" {
		return nil
	}
	return a.writeWork(memoryName(a.effect.Key), []byte(a.memory))
}

// reminded is text with what was found below it.
func (a *attempt) reminded(text string) string {
	return agentio.Remind(a.task.StdinFormat, text, a.memory)
}

// learn notes in the record what is to be kept of what an agent said. Whatever became of the run, it may have found
// something out; one that did not come to its own end was not heard to the end.
func (a *attempt) learn(b *buffers) {
	if a.task.Recall == nil || a.o.Learn == nil || a.record.ExitCode == nil || len(b.capture) == 0 {
		return
	}
	text := printable(a.cleanLines(b.capture))
	if len(b.capture) > a.o.ResultLimit {
		text += "\n" + a.record.Output // what is said at the end counts most
	}
	learned, tokens := a.o.Learn(controllers.Lesson{Recall: *a.task.Recall, At: a.record.FinishedAt.Time, Text: text,
		Failed: a.record.Outcome == schemas.OutcomeFailed})
	if len(learned) > 0 {
		a.record.Learned, a.record.SourceTokens, a.record.Issue = learned, tokens, a.task.Recall.Issue
	}
}
