package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
)

func newExplainCmd(a *app) *cobra.Command {
	schema, dir := false, ""
	cmd := &cobra.Command{
		Use:   "explain KIND[.FIELD…]",
		Short: "Explain the fields of a kind, or print its JSON Schema",
		Long: `Explain what may be written in a field of a kind.

With --schema: print the JSON Schema (draft 2020-12) of the kind, or list the kinds. An editor with the YAML language server
checks and completes a spec whose first line is
# yaml-language-server: $schema=PATH-OF-THE-SCHEMA`,
		Example: "  reconcile explain dag\n" +
			"  reconcile explain dag.spec.nodes.needs\n" +
			"  reconcile explain agent.spec.runner -o json\n" +
			"  reconcile explain --schema dag\n" +
			"  reconcile explain --schema --dir .reconcile/schemas",
		RunE: func(cmd *cobra.Command, args []string) error {
			least := 1
			if schema || dir != "" {
				least = 0
			}
			if err := arguments(least, 1, "a field")(cmd, args); err != nil {
				return err
			}
			if least == 0 {
				return a.printSchema(cmd.Context(), args, dir)
			}
			return a.explain(cmd.Context(), args[0])
		},
		ValidArgsFunction: completeFields,
	}
	cmd.Flags().BoolVar(&schema, "schema", false, "print the JSON Schema instead")
	a.schemaDirFlag(cmd, &dir)
	return cmd
}

func (a *app) explain(ctx context.Context, field string) error {
	e, err := ops.Explain(ctx, a.env(), field)
	if err != nil {
		return err
	}
	if a.global.output != formatTable {
		return a.print(e.Explanation)
	}
	return render.Explanation(a.stdout, a.palette(), e.Kind, e.Explanation)
}

// completeFields completes kinds, and after a dot fields.
func completeFields(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	directive := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	dot := strings.LastIndexByte(typed, '.')
	if dot < 0 {
		words, _ := kindCompletions(true, nil)
		return words, directive
	}
	path := strings.Split(typed[:dot], ".")
	k, ok := kinds().Find(path[0])
	if !ok {
		return nil, directive
	}
	e, err := schemas.Explain(k, path[1:])
	if err != nil {
		return nil, directive
	}
	var out []cobra.Completion
	for _, f := range e.Fields {
		name := f.Path[strings.LastIndexByte(f.Path, '.')+1:]
		out = append(out, cobra.CompletionWithDesc(typed[:dot+1]+name, render.FirstSentence(f.Description)))
	}
	return out, directive
}
