package render

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/dags"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/slash"
	"reconcile.dev/reconcile/controllers/threads"
	"reconcile.dev/reconcile/controllers/work"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/state"
)

// showLimit is how much a comment shows of what a command prints, in characters.
const showLimit = 20_000

// Show returns the view that a slash command in a comment asks for: the status, explanation or clarifications of
// objects. It is in a block of code, as the command line prints it: GitHub acts on nothing in there.
func Show(t *state.Tree, v slash.View, now time.Time) string {
	var out strings.Builder
	var err error
	objects := entriesNamed(t, v.Objects)
	switch v.Verb {
	case slash.Status:
		err = showStatus(&out, t, objects, now)
	case slash.Explain:
		var all []Description
		for _, e := range objects {
			all = append(all, Description{Entry: e, Details: settle.TableOf(t).Details(e), Why: readiness.Why(e, t)})
		}
		err = describeWhy(&out, Palette{}, all, v.Node, now)
	case slash.Task:
		for _, e := range objects {
			if task, ok := dags.Task(settle.In{Entry: e, Tree: t, World: settle.NewWorld(t, now, nil), Now: now}, v.Node); ok {
				err = Task(&out, &task)
			}
		}
	case slash.Clarify:
		err = showQuestions(&out, t, v.Issue, now)
	}
	if err != nil {
		fmt.Fprintf(&out, "%v\n", err)
	}
	if strings.TrimSpace(out.String()) == "" {
		return "There is nothing to tell."
	}
	return showFenced(secrets.Redact(out.String()))
}

func entriesNamed(t *state.Tree, refs []schemas.Ref) []*state.Entry {
	var out []*state.Entry
	for _, ref := range refs {
		if e := t.Entry(ref); e != nil {
			out = append(out, e)
		}
	}
	return out
}

// showStatus prints objects of an issue, and what can be worked on there.
func showStatus(w io.Writer, t *state.Tree, entries []*state.Entry, now time.Time) error {
	if err := ObjectTables(w, Palette{}, settle.TableOf(t), entries, false, now); err != nil {
		return err
	}
	items := slices.DeleteFunc(work.Ready(t, now, nil), func(it work.Item) bool { return !showsIssue(entries, &it) })
	if len(items) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return ReadyTable(w, Palette{}, items, true, now)
}

// showsIssue reports whether an item is about one of the objects.
func showsIssue(objects []*state.Entry, it *work.Item) bool {
	return slices.ContainsFunc(objects, func(e *state.Entry) bool {
		if st, ok := e.Status().(*schemas.ClarificationRequestStatus); ok {
			return it.Clarification != "" && st.ID == it.Clarification
		}
		return strings.HasPrefix(it.Name, e.Ref.String()+"/")
	})
}

// showQuestions prints the open questions of all issues, or all threads of one.
func showQuestions(w io.Writer, t *state.Tree, issue int, now time.Time) error {
	if issue < 0 {
		return ClarificationTable(w, Palette{}, threads.Decided(t, -1, true), now)
	}
	for i, c := range threads.Decided(t, issue, false) {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := ClarificationThread(w, Palette{}, c); err != nil {
			return err
		}
	}
	return nil
}

// showFenced is a text as a block of code that nothing in it ends. A text that is too long is cut, with a note.
func showFenced(text string) string {
	cut := ""
	if r := []rune(text); len(r) > showLimit {
		text, cut = string(r[:showLimit]), "\n\n_There is more: the command line prints all of it._"
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "text\n" + strings.TrimRight(Text(text), "\n") + "\n" + fence + cut
}

func issueOf(issue *int) string {
	if issue == nil {
		return none
	}
	return issueNumber(*issue)
}

func issueNumber(issue int) string {
	if issue == 0 {
		return none
	}
	return "#" + strconv.Itoa(issue)
}
