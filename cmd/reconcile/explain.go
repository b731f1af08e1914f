package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
)

func newExplainCmd(a *app) *cobra.Command {
	schema, dir := false, ""
	cmd := &cobra.Command{
		Use:   "explain [KIND[.FIELD…]]",
		Short: "List the kinds, explain the fields of one, or print its JSON Schema",
		Long: `Explain what may be written in a field of a kind. Without a field, list the kinds.

With --schema, print the JSON Schema (draft 2020-12) of the kind. An editor with the YAML language server
checks and completes a spec whose first line is
# yaml-language-server: $schema=PATH-OF-THE-SCHEMA`,
		Example: "  reconcile explain dag\n" +
			"  reconcile explain dag.spec.nodes.needs\n" +
			"  reconcile explain agent.spec.runner -o json\n" +
			"  reconcile explain --schema dag\n" +
			"  reconcile explain --schema --dir .reconcile/schemas",
		RunE: func(cmd *cobra.Command, args []string) error {
			if schema || dir != "" || len(args) == 0 {
				return a.printSchema(cmd.Context(), args, dir)
			}
			e, err := ops.Explain(cmd.Context(), a.env(), args[0])
			return a.result(e.Explanation, err, func() error {
				return render.Explanation(a.stdout, a.palette(), e.Kind, e.Explanation)
			})
		},
		Args:              arguments(0, 1, "a field"),
		ValidArgsFunction: completeFields,
	}
	cmd.Flags().BoolVar(&schema, "schema", false, "print the JSON Schema instead")
	cmd.Flags().StringVar(&dir, "dir", "", "write the schemas of all kinds into `DIR`")
	_ = cmd.MarkFlagDirname("dir")
	return cmd
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

func completeKind(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return kindCompletions(true, nil)
}

// printSchema prints the schema of the named kind, or lists the kinds; with dir it writes all schemas there.
func (a *app) printSchema(ctx context.Context, args []string, dir string) error {
	switch {
	case dir != "" && len(args) > 0:
		return badUsage("--dir writes all schemas; leave %q out", args[0])
	case dir != "":
		written, err := ops.WriteSchemas(ctx, a.env(), a.within(dir))
		for _, name := range written {
			a.note("%s", name)
		}
		return err
	case len(args) == 0:
		return a.listKinds()
	}
	schema, err := ops.ExplainSchema(ctx, a.env(), args[0])
	switch {
	case err != nil:
		return err
	case a.global.output == formatYAML:
		return a.print(json.RawMessage(schema))
	}
	_, err = a.stdout.Write(schema)
	return err
}

// kindInfo is the -o json output for a kind.
type kindInfo struct {
	Kind    string   `json:"kind"`
	Plural  string   `json:"plural"`
	Aliases []string `json:"aliases,omitempty"`
	Short   string   `json:"description"`
}

func (a *app) listKinds() error {
	var infos []kindInfo
	t := render.NewTable(a.palette(), "KIND", "FOLDER", "DESCRIPTION")
	t.Wrap = true
	for _, k := range kinds() {
		infos = append(infos, kindInfo{k.Name, k.Plural, k.Aliases, k.Short})
		t.Row(k.Name, k.Plural, k.Short)
	}
	return a.result(infos, nil, func() error { return t.Write(a.stdout) })
}
