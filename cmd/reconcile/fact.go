package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
)

const factLong = `State facts that no file shows: a relation between two nodes, the origin of a node, a conflict, or the review of a node.
Nodes are named as for related: kind/name, path, path:symbol or folder/:symbol.

Each fact is a separate file in state/graph/ with a name that is derived from its content, so that facts of two clones
never conflict; a run with --commit commits it. related, path and search --explain show it. Stating a fact again replaces
it, except for reviews and trust levels, which are kept as a history.`

func newCreateFactCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fact",
		Short: "State relations, origins and conflicts of nodes; review and trust them",
		Long:  factLong,
		Example: "  reconcile create fact edge docs/git.md state/tree.go --type documents --note \"how a tree is shared\"\n" +
			"  reconcile create fact review docs/git.md approved\n  reconcile get facts docs/git.md",
		RunE: noSubcommand,
	}
	cmd.AddCommand(newFactEdgeCmd(a), newFactProvenanceCmd(a), newFactConflictCmd(a), newFactResolutionCmd(a), newFactReviewCmd(a),
		newFactTrustCmd(a), newFactsFromCmd(a))
	return cmd
}

// newFormerFactCmd has the former names of the commands for facts, for one version.
func newFormerFactCmd(a *app) *cobra.Command {
	cmd := newCreateFactCmd(a)
	for _, c := range cmd.Commands() {
		a.renamed(c, "create fact "+c.Name())
	}
	list, remove := newGetFactsCmd(a), newDeleteFactCmd(a)
	list.Use, list.Aliases, remove.Use = "list", nil, "remove"
	cmd.AddCommand(a.renamed(list, "get facts"), a.renamed(remove, "delete fact"))
	return cmd
}

// factCmd completes a command that states one fact; read returns the fact for its arguments and flags.
func (a *app) factCmd(cmd *cobra.Command, read func(args []string) (ops.Statement, error)) *cobra.Command {
	q := ops.StateFactsRequest{}
	bindBy(cmd, &q.By)
	cmd.Flags().StringVar(&q.Note, "note", "", "the `REASON`")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f, err := read(args)
		if err != nil {
			return err
		}
		q.Facts = []ops.Statement{f}
		return a.stated(cmd.Context())(ops.StateFacts(cmd.Context(), a.env(), q))
	}
	return cmd
}

func newFactEdgeCmd(a *app) *cobra.Command {
	r := &ops.Relation{}
	cmd := &cobra.Command{
		Use:   "edge FROM TO --type TYPE",
		Short: "State a relation between two nodes",
		Long: `State a relation between two nodes. The same types of edges are allowed between kinds of nodes as for edges that are
found in files; an error lists them. A symbol that is named by its folder may move to another file.`,
		Example: "  reconcile create fact edge docs/git.md state/:Tree.Entry --type documents\n" +
			"  reconcile create fact edge dag/checks docs/git.md --type used_pattern --weight 0.5",
		Args: arguments(2, 2, "two nodes"),
	}
	cmd.Flags().StringVar(&r.Type, "type", "", "`TYPE` of the edge: "+strings.Join(ops.EdgeNames(), ", "))
	cmd.Flags().Float32Var(&r.Weight, "weight", 1, "how strong the relation is: a `NUMBER` above 0, up to 1")
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions(ops.EdgeNames(), cobra.ShellCompDirectiveNoFileComp))
	return a.factCmd(cmd, func(args []string) (ops.Statement, error) {
		r.From, r.To = args[0], args[1]
		if r.Weight == 0 { // a file without a weight means 1
			return nil, badUsage("--weight 0: write above 0 up to 1")
		}
		return r, nil
	})
}

func newFactProvenanceCmd(a *app) *cobra.Command {
	p := &ops.Provenance{}
	from := ""
	cmd := &cobra.Command{
		Use:   "provenance NODE --source TYPE:ID",
		Short: "State the origin of a node, and vouch for it",
		Long: `State the origin of a node, and vouch for it: --by names who does, and the time is now. TYPE is the type of ID: file,
commit, review, url, agent, or another name.`,
		Example: "  reconcile create fact provenance docs/git.md --source commit:1a2b3c4d --confidence 0.9\n" +
			"  reconcile create fact provenance docs/git.md --source url:https://git-scm.com/docs",
		Args: arguments(1, 1, "a node"),
	}
	cmd.Flags().StringVar(&from, "source", "", "the origin, as `TYPE:ID`")
	cmd.Flags().Float64Var(&p.Confidence, "confidence", 1, "the confidence: a `NUMBER` from 0 to 1")
	return a.factCmd(cmd, func(args []string) (ops.Statement, error) {
		kind, id, ok := strings.Cut(from, ":")
		if !ok || id == "" || schemas.CheckName(kind) != nil {
			return nil, badUsage("--source %q: write TYPE:ID, as commit:1a2b3c4d", from)
		}
		p.Node, p.SourceType, p.SourceID = args[0], kind, id
		return p, nil
	})
}

func newFactConflictCmd(a *app) *cobra.Command {
	c := &ops.Conflict{}
	cmd := &cobra.Command{
		Use:     "conflict A B",
		Short:   "State that two nodes contradict each other",
		Long:    "State that two nodes contradict each other. reconcile create fact resolution resolves the conflict.",
		Example: "  reconcile create fact conflict docs/git.md docs/files.md --note \"they differ on who writes .gitignore\"",
		Args:    arguments(2, 2, "two nodes"),
	}
	cmd.Flags().StringVar(&c.Type, "type", "contradiction", "`TYPE` of the conflict: contradiction, supersession, duplicate, or another name")
	return a.factCmd(cmd, func(args []string) (ops.Statement, error) {
		if err := schemas.CheckName(c.Type); err != nil {
			return nil, badUsage("--type: %v", err)
		}
		c.A, c.B = args[0], args[1]
		return c, nil
	})
}

func newFactResolutionCmd(a *app) *cobra.Command {
	by := ""
	cmd := &cobra.Command{
		Use:     "resolution ID TEXT…",
		Aliases: []string{"resolve"},
		Short:   "State the resolution of a conflict",
		Long:    "State the resolution of a conflict. The conflict is kept, with its resolution.",
		Example: "  reconcile create fact resolution conflict-0123456789ab \"docs/git.md is right\"",
		Args:    arguments(2, -1, "the id of a conflict, and its resolution"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q := ops.ResolveRequest{ID: args[0], Text: strings.Join(args[1:], " "), By: by}
			return a.stated(cmd.Context())(ops.ResolveConflict(cmd.Context(), a.env(), q))
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	bindBy(cmd, &by)
	return cmd
}

func newFactReviewCmd(a *app) *cobra.Command {
	verdicts := strings.Join(ops.Verdicts, ", ")
	return a.factCmd(&cobra.Command{
		Use:     "review NODE VERDICT",
		Short:   "State the verdict of a review: " + verdicts,
		Long:    "State the verdict of a review: " + verdicts + ". The fact records the digest of the reviewed text.",
		Example: "  reconcile create fact review docs/git.md approved\n  reconcile create fact review state/:Tree.Entry rejected --note \"it may panic\"",
		Args:    arguments(2, 2, "the reviewed node, and one of "+verdicts),
	}, func(args []string) (ops.Statement, error) {
		return &ops.Review{Node: args[0], Verdict: args[1]}, nil
	})
}

func newFactTrustCmd(a *app) *cobra.Command {
	return a.factCmd(&cobra.Command{
		Use:   "trust NODE LEVEL",
		Short: "State the trust level of a node: 0 to 1",
		Long: `State the trust level of a node from now on: 0 to 1. Earlier levels are kept: reconcile get facts NODE --kind trust shows
who changed it, when and why.`,
		Example: "  reconcile create fact trust docs/git.md 0.8 --note \"checked against the code\"",
		Args:    arguments(2, 2, "a node, and its trust level"),
	}, func(args []string) (ops.Statement, error) {
		level, err := strconv.ParseFloat(args[1], 64)
		if err != nil {
			return nil, badUsage("%q is no level of trust; write 0 to 1, as 0.8", args[1])
		}
		return &ops.Trust{Node: args[0], Level: level}, nil
	})
}

func newFactsFromCmd(a *app) *cobra.Command {
	by := ""
	cmd := &cobra.Command{
		Use:     "from FILE|-",
		Aliases: []string{"add"},
		Short:   "State all facts of a file in the format of state/graph/",
		Long: `State all facts of a file in the format of state/graph/: an object with edges, provenances, conflicts, reviews or
trusts. If one of them is invalid, none is written. The facts get new ids.`,
		Example: "  reconcile create fact from edges.json\n  generate-edges | reconcile create fact from -",
		Args:    arguments(1, 1, "a file, or - for stdin"),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := ops.ReadFacts(a.textFrom(cmd.Context(), args[0]))
			if err != nil {
				return err
			}
			return a.stated(cmd.Context())(ops.StateFacts(cmd.Context(), a.env(), ops.StateFactsRequest{Facts: all, By: by}))
		},
	}
	bindBy(cmd, &by)
	return cmd
}

func newDeleteFactCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "fact ID…",
		Aliases: []string{"facts"},
		Short:   "Retract facts",
		Long: `Retract facts by their ids. If one of the ids is wrong, none is retracted. A second file, the tombstone, prevents a
retracted fact from returning from another clone; delete the first file to remove its text. To retract a fact that was
written by hand, edit its file.`,
		Example: "  reconcile delete fact edge-0123456789ab",
		Args:    arguments(1, -1, "ids of facts; reconcile get facts shows them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.printDone(args, "removed", ops.RemoveFacts(cmd.Context(), a.env(), args))
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
}

// stated prints facts that were stated.
func (a *app) stated(ctx context.Context) func([]ops.Stated, *ops.Pending, error) error {
	return func(all []ops.Stated, rest *ops.Pending, err error) error {
		return a.indexResult(ctx, all, rest, err, func() error {
			for _, t := range all {
				a.printf("%s: %s (%s)\n", t.ID, t.Change, clean(t.Path))
			}
			return nil
		})
	}
}

func newGetFactsCmd(a *app) *cobra.Command {
	q := ops.FactsRequest{}
	cmd := &cobra.Command{
		Use:     "facts [KIND/NAME|PATH[:SYMBOL]]",
		Aliases: []string{"fact"},
		Short:   "List all facts, or those about one node",
		Long:    "List all facts, or those about one node, including facts that were written by hand.",
		Example: "  reconcile get facts\n  reconcile get facts docs/git.md --kind review,trust",
		Args:    arguments(0, 1, "an object, a file or a symbol"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				q.About = &args[0]
			}
			all, rest, err := ops.Facts(cmd.Context(), a.env(), q)
			return a.indexResult(cmd.Context(), all, rest, err, func() error { return a.factTable(all) })
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	namesFlag(cmd, cmd.Flags(), &q.Kinds, "kind", "only facts of `KIND`: "+strings.Join(ops.FactKinds, ", ")+"; may be repeated", ops.FactKinds)
	return cmd
}

func (a *app) factTable(all []ops.Fact) error {
	return a.table(len(all), "no facts; see reconcile create fact --help", func(i int) []string {
		at, f := "-", all[i].Fact
		if !f.When().IsZero() {
			at = f.When().UTC().Format(time.RFC3339)
		}
		return []string{all[i].ID, f.Said(), render.Word(f.By()).Text, at}
	}, "ID", "FACT", "BY", "AT")
}
