package main

import (
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// completeFunc is what cobra asks for the words that may stand at the cursor.
type completeFunc = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective)

// completeObjects offers kinds, and after the slash the names of the tree's objects of that kind: of the given kinds,
// or of all. bare says that a kind alone is an argument too.
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

// completeNames offers word/name for each object of the kind that word names.
func (a *app) completeNames(cmd *cobra.Command, word string) []cobra.Completion {
	k, ok := kinds().Find(word)
	if !ok {
		return nil
	}
	t := a.loadQuietly(cmd)
	if t == nil {
		return nil
	}
	var out []cobra.Completion
	for _, e := range t.Entries(k.Name) {
		out = append(out, cobra.CompletionWithDesc(word+"/"+e.Name, controllers.PhaseWord(e)))
	}
	if k.Name == schemas.ClarificationRequestKind.Name {
		out = append(out, a.completeIDs(cmd, word+"/")...)
	}
	return out
}

// completeIDs offers the ids of clarifications, each after prefix.
func (a *app) completeIDs(cmd *cobra.Command, prefix string) []cobra.Completion {
	t := a.loadQuietly(cmd)
	if t == nil {
		return nil
	}
	var out []cobra.Completion
	for _, e := range t.Entries(schemas.ClarificationRequestKind.Name) {
		if id := ops.RequestStatus(e).ID; id != "" {
			out = append(out, cobra.CompletionWithDesc(prefix+id, e.Name))
		}
	}
	return out
}

// completeNamesOf offers the names of the tree's objects of one kind.
func (a *app) completeNamesOf(k schemas.Kind) completeFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		t := a.loadQuietly(cmd)
		if t == nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []cobra.Completion
		for _, e := range t.Entries(k.Name) {
			out = append(out, cobra.CompletionWithDesc(e.Name, controllers.PhaseWord(e)))
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeNodes offers objects first, then the nodes of the DAG that stands before the cursor.
func (a *app) completeNodes(only ...schemas.Kind) completeFunc {
	objects := a.completeObjects(false, only...)
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return objects(cmd, args, typed)
		}
		ref, err := kinds().ParseRef(args[0])
		t := a.loadQuietly(cmd)
		if err != nil || t == nil || t.Entry(ref) == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return controllers.NodeNames(t.Entry(ref)), cobra.ShellCompDirectiveNoFileComp
	}
}

// loadQuietly reads the tree for a completion: what is wrong with it is not the moment's question.
func (a *app) loadQuietly(cmd *cobra.Command) *state.Tree {
	if a.enterTree(treeNeeded) != nil {
		return nil
	}
	s, t, err := a.load(cmd.Context())
	if err != nil {
		return nil
	}
	s.Close()
	return t
}
