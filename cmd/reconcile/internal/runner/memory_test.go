//go:build unix

package runner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

const section = "## Memory Recall\n\nNotes of earlier work.\n\n| [decision] Use one adapter.\n"

// brain recalls a section and learns one entry, and notes what it was told.
type brain struct {
	recalled []settle.Recall
	lessons  []settle.Lesson
}

func (m *brain) Recall(r settle.Recall) string {
	m.recalled = append(m.recalled, r)
	return section
}

func (m *brain) Learn(l settle.Lesson) ([]schemas.ObservationEntry, int) {
	m.lessons = append(m.lessons, l)
	return []schemas.ObservationEntry{{Category: schemas.CategoryDecision, Content: "Learned."}}, 42
}

func (m *brain) options() Options { return Options{Memory: m} }

var theRecall = settle.Recall{Agent: "engineer", Issue: 29, Context: "Build it."}

// remembering is an effect of an agent that reads its stdin in a format.
func remembering(format, script string) settle.Effect {
	e := sh(script)
	e.Command().Output, e.Command().StdinFormat, e.Command().Recall = "text", format, &theRecall
	return e
}

func TestAgentsAreReminded(t *testing.T) {
	for format, stdin := range map[string][2]string{
		"prompt": {"Build it.", "Build it.\n\n" + strings.TrimSuffix(section, "\n")},
		"json": {"{\"prompt\":\"Build it.\"}\n", `{"prompt":"Build it.","memory":"## Memory Recall\n\n` +
			`Notes of earlier work.\n\n| [decision] Use one adapter.\n"}`},
		"none": {"", ""},
	} {
		t.Run(format, func(t *testing.T) {
			m := &brain{}
			g := newRig(t, m.options())
			e := remembering(format, `cat; cp "$RECONCILE_MEMORY" file; echo .`)
			e.Command().Stdin = stdin[0]
			run := g.do(e)
			if out := strings.TrimSuffix(strings.TrimSpace(run.Output), "."); run.Outcome != schemas.OutcomeSucceeded ||
				strings.TrimSpace(out) != strings.TrimSpace(stdin[1]) {
				t.Errorf("%s: it read\n%s\nwant\n%s", run.Outcome, run.Output, stdin[1])
			}
			if file, err := os.ReadFile(filepath.Join(g.dir, "file")); string(file) != section {
				t.Errorf("the file holds %q, %v", file, err)
			}
			if len(m.recalled) != 1 || m.recalled[0] != theRecall {
				t.Errorf("asked for %+v", m.recalled)
			}
			g.end()
			if left, _ := os.ReadDir(filepath.Join(g.dir, state.WorkDir)); len(left) > 0 {
				t.Errorf("%s is left", left[0].Name())
			}
		})
	}
}

func TestRunsTeach(t *testing.T) {
	for name, c := range map[string]struct {
		script, outcome string
		teaches         bool
	}{
		"a success":  {"echo 'Decided: one adapter.'", schemas.OutcomeSucceeded, true},
		"a failure":  {"echo 'Decided: one adapter.'; exit 3", schemas.OutcomeFailed, true},
		"a question": {"echo 'CLARIFICATION NEEDED from architect about it: What?'", schemas.OutcomeAsked, true},
		"silence":    {"true", schemas.OutcomeFailed, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := &brain{}
			run := newRig(t, m.options()).do(remembering("prompt", c.script))
			if run.Outcome != c.outcome || len(run.Learned) > 0 != c.teaches || len(m.lessons) > 0 != c.teaches {
				t.Fatalf("%s: %+v of %+v", run.Outcome, run.Learned, m.lessons)
			}
			if !c.teaches {
				return
			}
			l := m.lessons[0]
			if l.Recall != theRecall || l.Failed != (c.outcome == schemas.OutcomeFailed) || !l.At.Equal(run.FinishedAt.Time) ||
				!strings.Contains(c.script, strings.TrimSpace(l.Text)) {
				t.Errorf("the lesson is %+v", l)
			}
			if run.Issue != 29 || run.SourceTokens != 42 {
				t.Errorf("issue %d, %d tokens", run.Issue, run.SourceTokens)
			}
		})
	}
}

// What a run prints is cleaned before anything is made of it, and of a long one the end is heard, too.
func TestLessonsAreClean(t *testing.T) {
	m := &brain{}
	o := m.options()
	o.Runs.ResultLimit, o.Environ = 100, []string{"PATH=" + os.Getenv("PATH"), "MY_TOKEN=verysecret"}
	run := newRig(t, o).do(remembering("prompt",
		"echo a verysecret and a '<private>hidden</private>' b; seq 100; echo end"))
	if run.Outcome != schemas.OutcomeSucceeded || len(m.lessons) != 1 {
		t.Fatal(run.Message)
	}
	text := m.lessons[0].Text
	if strings.Contains(text, "verysecret") || strings.Contains(text, "hidden") ||
		!strings.HasSuffix(strings.TrimSpace(text), "end") {
		t.Errorf("it was told %q", text)
	}
}

// A run whose program could not be started says nothing, and not what the one before it said.
func TestWhoDoesNotStartTeachesNothing(t *testing.T) {
	m := &brain{}
	o := m.options()
	o.Slots = 1
	g := newRig(t, o)
	g.do(remembering("prompt", "echo 'Decided: one adapter.'"))
	e := effect("dags/d/second-0123456789abcdef-1", "no-such-program")
	e.Command().Output, e.Command().Recall = "text", &theRecall
	if run := g.do(e); run.Outcome != schemas.OutcomeFailed || run.Learned != nil || len(m.lessons) != 1 {
		t.Errorf("%s: %+v", run.Outcome, m.lessons)
	}
}

// A command that is no agent's, and a tree without memory, have nothing to do with it.
func TestOthersAreNotReminded(t *testing.T) {
	m := &brain{}
	e := remembering("prompt", "cat; env")
	e.Command().Recall = nil
	run := newRig(t, m.options()).do(e)
	if len(m.recalled)+len(m.lessons) > 0 || strings.Contains(run.Output, "MEMORY") || run.Learned != nil {
		t.Errorf("%+v %+v\n%s", m.recalled, m.lessons, run.Output)
	}
	run = newRig(t, Options{}).do(remembering("prompt", "cat; env"))
	if strings.Contains(run.Output, "MEMORY") || run.Learned != nil {
		t.Errorf("without memory: %s", run.Output)
	}
}
