package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// getOptions are the flags of get.
type getOptions struct {
	selector string
	at       string // a revision of git; empty: the tree as it is
}

func newGetCmd(a *app) *cobra.Command {
	o := &getOptions{}
	cmd := &cobra.Command{
		Use:   "get [KIND[,KIND…] | KIND/NAME…]",
		Short: "List objects: all that are not ready, those of a kind, or those that are named",
		Long: `List objects. Without an argument: how many of each kind there are, and those that are not ready.

-o json and yaml print spec and status as one object, several objects as a list.`,
		Example: "  reconcile get\n" +
			"  reconcile get dags -l team=core\n" +
			"  reconcile get sessions,dags\n" +
			"  reconcile get dag/checks -o yaml\n" +
			"  reconcile get dags --at HEAD~3",
		Args:              arguments(0, -1, "a kind or kind/name"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.get(cmd.Context(), args, *o) },
		ValidArgsFunction: a.completeObjects(true),
	}
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "only objects with these labels: `a=b,c!=d,e,!f`")
	a.atFlag(cmd, &o.at)
	return cmd
}

func (a *app) get(ctx context.Context, what []string, o getOptions) error {
	if len(what) == 2 && !isObject(what[0]) && !strings.Contains(what[1], "/") {
		what = []string{strings.Join(what, "/")} // "dag checks"
	}
	selected, err := parseSelector(o.selector)
	if err != nil {
		return err
	}
	t, done, err := a.loadAt(ctx, o.at)
	if err != nil {
		return err
	}
	defer done()
	if o.at == "" && a.global.output == formatTable {
		a.noteOn(t, what)
	}
	switch {
	case len(what) == 0:
		return a.getAll(t, selected)
	case len(what) > 1 || isObject(what[0]):
		return a.getNamed(t, what)
	}
	return a.getKinds(t, strings.Split(what[0], ","), selected)
}

// isObject reports whether a word names an object, and not a kind.
func isObject(word string) bool {
	_, ok := clarificationID(word)
	return ok || strings.Contains(word, "/")
}

// getKinds prints the objects of one kind, or of several: a table for each that has some.
func (a *app) getKinds(t *state.Tree, words []string, selected selector) error {
	found := map[string][]*state.Entry{}
	var all []*state.Entry
	for _, word := range words {
		k, ok := kinds().Find(word)
		if !ok {
			return badUsage("no kind is called %q%s", word, kindHint(word))
		}
		if len(words) == 1 {
			return a.getKind(k, pick(t.Entries(k.Name), selected))
		}
		if found[k.Name] == nil {
			found[k.Name] = pick(t.Entries(k.Name), selected)
			all = append(all, found[k.Name]...)
		}
	}
	switch {
	case a.global.output != formatTable:
		return a.print(list(all))
	case len(all) == 0:
		a.note("no %s", strings.Join(words, ", "))
		return nil
	}
	return a.kindTables(found)
}

// getNamed prints the objects that words name as kind/name; where they are of several kinds, a table for each.
func (a *app) getNamed(t *state.Tree, words []string) error {
	named := map[string][]*state.Entry{}
	var all []*state.Entry
	for _, word := range words {
		e, err := find(t, word)
		if err != nil {
			return err
		}
		all, named[e.Kind] = append(all, e), append(named[e.Kind], e)
	}
	switch {
	case a.global.output == formatTable:
		return a.kindTables(named)
	case len(all) == 1:
		return a.print(mergedOf(all[0]))
	}
	return a.print(list(all))
}

func (a *app) kindTables(named map[string][]*state.Entry) error {
	printed := false
	for _, k := range kinds() {
		if len(named[k.Name]) == 0 {
			continue
		}
		if printed {
			fmt.Fprintln(a.stdout)
		}
		printed = true
		if err := a.kindTable(k.Name, named[k.Name]); err != nil {
			return err
		}
	}
	return nil
}

// getAll prints the summary, or everything for machines.
func (a *app) getAll(t *state.Tree, selected selector) error {
	var all []*state.Entry
	for _, kind := range t.Kinds() {
		all = append(all, pick(t.Entries(kind), selected)...)
	}
	if a.global.output != formatTable {
		return a.print(list(all))
	}
	if err := a.countTable(all); err != nil {
		return err
	}
	bad := listNotReady(all)
	if len(bad) > 0 && len(all) > 0 {
		fmt.Fprintln(a.stdout)
	}
	return a.objectTable(bad, len(bad))
}

func (a *app) getKind(k schemas.Kind, entries []*state.Entry) error {
	if a.global.output != formatTable {
		return a.print(list(entries))
	}
	if len(entries) == 0 {
		a.note("no %s", k.Plural)
		return nil
	}
	return a.kindTable(k.Name, entries)
}

func (a *app) countTable(all []*state.Entry) error {
	counts := map[string]*count{}
	for _, e := range all {
		if counts[e.Kind] == nil {
			counts[e.Kind] = &count{}
		}
		counts[e.Kind].add(standing(e))
	}
	t := render.NewTable(a.palette(), "KIND", "TOTAL", "READY", "WAITING", "FAILED", "INVALID")
	for _, k := range kinds() {
		if c := counts[k.Name]; c != nil {
			t.Row(k.Plural, number(c.total()), number(c.Ready), number(c.Waiting), number(c.Failed), number(c.Invalid))
		}
	}
	if t.Len() == 0 {
		a.note("%s", a.noObjects())
	}
	return t.Write(a.stdout)
}

func number(n int) string { return fmt.Sprint(n) }

// merged is one object as -o json prints it: spec and status together.
type merged struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   schemas.Metadata  `json:"metadata"`
	Spec       json.RawMessage   `json:"spec,omitempty"`
	Status     schemas.Status    `json:"status,omitempty"`
	Problems   []schemas.Problem `json:"problems,omitempty"`
	// NotHere are the declared outputs that nodes which have succeeded lack, by node.
	NotHere map[string][]string `json:"outputsNotHere,omitempty"`
}

func mergedOf(e *state.Entry) merged {
	m := merged{
		APIVersion: schemas.APIVersion, Kind: e.Kind, Metadata: schemas.Metadata{Name: e.Name},
		Status: e.Status(), Problems: e.Problems, NotHere: controllers.NotHere(e),
	}
	if e.Object != nil {
		m.Metadata, m.Spec = e.Object.Metadata, e.Object.Canonical()
	}
	return m
}

// objectList is several objects as -o json prints them.
type objectList struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Items      []merged `json:"items"`
}

func list(entries []*state.Entry) objectList {
	l := objectList{APIVersion: schemas.APIVersion, Kind: "List", Items: make([]merged, len(entries))}
	for i, e := range entries {
		l.Items[i] = mergedOf(e)
	}
	return l
}

// kindHint is what was probably meant by a word that names no kind, and all kinds there are.
func kindHint(word string) string {
	var all []string
	for _, k := range kinds() {
		all = append(all, k.Plural)
	}
	return didYouMean(word, kindWords()) + "; kinds: " + strings.Join(all, ", ")
}

func kindWords() []string {
	var words []string
	for _, k := range kinds() {
		words = append(words, k.Singular(), k.Plural)
	}
	return words
}

// selector is a condition on labels.
type selector []requirement

// requirement is one part of a selector: key=value, key!=value, key or !key.
type requirement struct {
	key, value string
	any        bool // the value does not matter
	not        bool
}

// parseSelector reads "a=b,c!=d,e,!f".
func parseSelector(s string) (selector, error) {
	var out selector
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		var r requirement
		key, value, ok := strings.Cut(part, "=")
		if r.key, r.not = strings.CutSuffix(key, "!"); !ok {
			r.key, r.not = strings.CutPrefix(part, "!")
			r.any = true
		}
		r.key, r.value = strings.TrimSpace(r.key), strings.TrimSpace(strings.TrimPrefix(value, "="))
		if r.key == "" {
			return nil, badUsage("--selector %q: %q names no label; write a=b, a!=b, a or !a", s, part)
		}
		out = append(out, r)
	}
	return out, nil
}

func (s selector) matches(labels map[string]string) bool {
	for _, r := range s {
		value, has := labels[r.key]
		if match := has && (r.any || value == r.value); match == r.not {
			return false
		}
	}
	return true
}

// pick returns the entries whose labels match; a broken object has none.
func pick(entries []*state.Entry, s selector) []*state.Entry {
	if len(s) == 0 {
		return entries
	}
	var out []*state.Entry
	for _, e := range entries {
		var labels map[string]string
		if e.Object != nil {
			labels = e.Object.Metadata.Labels
		}
		if s.matches(labels) {
			out = append(out, e)
		}
	}
	return out
}
