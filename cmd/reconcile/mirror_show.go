package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/slash"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/state"
)

// showLimit is how much a comment shows of what a command prints, in characters.
const showLimit = 20_000

// show writes what a command in a comment asks for, as the command line prints it, in a block of code: GitHub acts on
// nothing in there.
func (a *app) show(t *state.Tree, v slash.View) string {
	b := *a
	var out bytes.Buffer
	b.stdout, b.stderr = &out, io.Discard
	b.global.output, b.global.noColor = formatTable, true
	var err error
	switch v.Verb {
	case slash.Status:
		err = b.showStatus(t, v)
	case slash.Explain:
		var objects []render.Description
		for _, e := range entriesNamed(t, v.Objects) {
			objects = append(objects, render.Description{Entry: e, Why: controllers.Why(e, t)})
		}
		err = render.Explain(b.stdout, b.palette(), objects, v.Node, b.now())
	case slash.Clarify:
		err = b.showQuestions(t, v.Issue)
	}
	if err != nil {
		fmt.Fprintf(&out, "%v\n", err)
	}
	if strings.TrimSpace(out.String()) == "" {
		return "There is nothing to tell."
	}
	return fenced(secrets.Redact(out.String()))
}

// showStatus prints the objects of an issue, and what can be worked on there.
func (a *app) showStatus(t *state.Tree, v slash.View) error {
	if err := render.ObjectTables(a.stdout, a.palette(), entriesNamed(t, v.Objects), a.now()); err != nil {
		return err
	}
	items := slices.DeleteFunc(controllers.Ready(t, a.now()), func(it controllers.Item) bool { return !concerns(t, &it, v.Objects) })
	if len(items) == 0 {
		return nil
	}
	fmt.Fprintln(a.stdout)
	return render.ReadyTable(a.stdout, a.palette(), items, true, a.now())
}

// concerns reports whether an item is about one of the objects.
func concerns(t *state.Tree, it *controllers.Item, objects []schemas.Ref) bool {
	return slices.ContainsFunc(objects, func(ref schemas.Ref) bool {
		if e := t.Entry(ref); e != nil && ref.Kind == schemas.ClarificationRequestKind.Name {
			return it.Clarification != "" && ops.RequestStatus(e).ID == it.Clarification
		}
		return strings.HasPrefix(it.Name, ref.String()+"/")
	})
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

// showQuestions prints the open questions of all issues, or all threads of one.
func (a *app) showQuestions(t *state.Tree, issue int) error {
	if issue >= 0 {
		return a.printThreads(ledgerView{IssueNumber: &issue, Clarifications: controllers.DecidedThreads(t, issue, false)})
	}
	list := controllers.DecidedThreads(t, -1, true)
	if len(list) == 0 {
		return nil
	}
	return render.ClarificationTable(a.stdout, a.palette(), list, a.now())
}

// fenced is a text as a block of code that nothing in it ends. What is too long is cut, and says so.
func fenced(text string) string {
	cut := ""
	if r := []rune(text); len(r) > showLimit {
		text, cut = string(r[:showLimit]), "\n\n_There is more: the command line prints all of it._"
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "text\n" + strings.TrimRight(render.Text(text), "\n") + "\n" + fence + cut
}
