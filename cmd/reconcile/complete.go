package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/nodes"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// completeFunc is cobra's function for the possible words at the cursor.
type completeFunc = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective)

// completeObjects completes kinds, and after the slash the names of the tree's objects of that kind: of the given
// kinds, or of all. bare says that a kind alone is an argument, too.
func (a *app) completeObjects(bare bool, only ...schemas.Kind) completeFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if word, _, ok := strings.Cut(typed, "/"); ok {
			return a.completeNames(cmd, word), cobra.ShellCompDirectiveNoFileComp
		}
		if strings.HasPrefix(typed, "CLR-") && len(only) == 0 {
			return a.completeIDs(cmd, ""), cobra.ShellCompDirectiveNoFileComp
		}
		return kindCompletions(bare, only)
	}
}

func kindCompletions(bare bool, only []schemas.Kind) ([]cobra.Completion, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	suffix := "/"
	if bare {
		directive, suffix = cobra.ShellCompDirectiveNoFileComp, ""
	}
	if len(only) == 0 {
		only = kinds()
	}
	var out []cobra.Completion
	for _, k := range only {
		out = append(out, cobra.CompletionWithDesc(k.Singular()+suffix, k.Short))
	}
	return out, directive
}

// completeNames completes word/name for each object of this kind that word names.
func (a *app) completeNames(cmd *cobra.Command, word string) []cobra.Completion {
	k, _ := kinds().Find(word)
	var out []cobra.Completion
	for _, e := range a.objects(cmd, word) {
		out = append(out, cobra.CompletionWithDesc(word+"/"+e.Name, readiness.PhaseWord(e)))
	}
	if k.Name == schemas.ClarificationRequestKind.Name {
		out = append(out, a.completeIDs(cmd, word+"/")...)
	}
	return out
}

// completeIDs completes the ids of clarifications, each after prefix.
func (a *app) completeIDs(cmd *cobra.Command, prefix string) []cobra.Completion {
	var out []cobra.Completion
	for _, e := range a.objects(cmd, schemas.ClarificationRequestKind.Plural) {
		if st, ok := e.Status().(*schemas.ClarificationRequestStatus); ok && st.ID != "" {
			out = append(out, cobra.CompletionWithDesc(prefix+st.ID, e.Name))
		}
	}
	return out
}

// completeNamesOf completes the names of the tree's objects of one kind.
func (a *app) completeNamesOf(k schemas.Kind) completeFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var out []cobra.Completion
		if len(args) == 0 {
			for _, e := range a.objects(cmd, k.Plural) {
				out = append(out, cobra.CompletionWithDesc(e.Name, readiness.PhaseWord(e)))
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeNodes completes objects first, and then the nodes of the DAG before the cursor.
func (a *app) completeNodes(only ...schemas.Kind) completeFunc {
	objects := a.completeObjects(false, only...)
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		words := withRef(args)
		if len(words) != 1 || !strings.Contains(words[0], "/") {
			return objects(cmd, args, typed)
		}
		var out []cobra.Completion
		for _, e := range a.objects(cmd, words[0]) {
			out = append(out, nodes.NodeNames(e)...)
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeThreads completes the ids of the open clarifications.
func (a *app) completeThreads(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	if len(args) == 0 && a.enterTree(treeNeeded) == nil {
		open, _ := ops.Threads(cmd.Context(), a.env(), ops.ThreadsRequest{NoRun: true}) // completion ignores errors
		for _, m := range open {
			out = append(out, cobra.CompletionWithDesc(m.Title(), render.Line(m.Topic)))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// objects returns the objects that word names as kind or kind/name. Completion ignores errors of the tree.
func (a *app) objects(cmd *cobra.Command, word string) []*state.Entry {
	if a.enterTree(treeNeeded) != nil {
		return nil
	}
	r, err := ops.Get(cmd.Context(), a.env(), ops.GetRequest{What: []string{word}})
	if err != nil {
		return nil
	}
	return r.Entries
}

// completeMemory completes the ids of observations.
func (a *app) completeMemory(
	cmd *cobra.Command, args []string, typed string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	const most = 200 // more than a shell shows
	var out []cobra.Completion
	rows, err := ops.ListMemory(cmd.Context(), a.env(), ops.MemoryFilter{All: true})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for i := 0; i < len(rows) && len(out) < most; i++ {
		if r := &rows[i]; !r.Archived && strings.HasPrefix(r.ID, typed) && !slices.Contains(args, r.ID) {
			out = append(out, cobra.CompletionWithDesc(r.ID, render.Cut(render.Line(r.Summary), 60)))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
