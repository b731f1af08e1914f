package runner

import (
	"slices"

	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// maxLearned bounds the entries of a record: those of an Observation.
const maxLearned = 50

func memoryName(key string) string { return flat(key) + ".memory.md" }

// writeRecall recalls earlier work for the agent, and writes it to the file that RECONCILE_MEMORY names.
func (a *attempt) writeRecall() error {
	if a.task.Recall == nil || a.runner.o.Memory == nil {
		return nil
	}
	if a.memory = a.runner.o.Memory.Recall(*a.task.Recall); a.memory == "" {
		return nil
	}
	return a.writeWork(memoryName(a.job.effect.Key), []byte(a.memory))
}

// learn records the observations in an agent's output. It does so for every outcome, but only if the command exited
// with a code, or the agent's turn ended, because other output is incomplete.
func (a *attempt) learn(b *buffers) {
	if a.task.Recall == nil || a.runner.o.Memory == nil || !a.said || len(b.capture) == 0 {
		return
	}
	text := agentio.WithoutPrompt(printable(a.runner.cleanLines(b.capture)), a.command.stdin)
	if len(b.capture) > a.runs.ResultLimit {
		text += "\n" + a.record.Output // the end matters most
	}
	learned, tokens := a.runner.o.Memory.Learn(settle.Lesson{Recall: *a.task.Recall, At: a.record.FinishedAt.Time, Text: text,
		Failed: a.record.Outcome == schemas.OutcomeFailed})
	if learned = append(slices.Clone(a.observed), learned...); len(learned) > 0 {
		learned = learned[:min(len(learned), maxLearned)]
		a.record.Learned, a.record.SourceTokens, a.record.Issue = learned, tokens, a.task.Recall.Issue
	}
}
