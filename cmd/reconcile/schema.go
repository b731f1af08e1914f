package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
)

// schemaOptions are the flags of schema.
type schemaOptions struct {
	dir string
}

func newSchemaCmd(a *app) *cobra.Command {
	o := &schemaOptions{}
	cmd := &cobra.Command{
		Use:   "schema [KIND]",
		Short: "Print the JSON Schema of a kind, for editors and other tools",
		Long: `Print the JSON Schema (draft 2020-12) of a kind, or list the kinds.

An editor with the YAML language server checks and completes a spec whose first line is
# yaml-language-server: $schema=PATH-OF-THE-SCHEMA`,
		Example: "  reconcile schema dag\n  reconcile schema --dir .reconcile/schemas",
		Args:    arguments(0, 1, "a kind"),
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case o.dir != "" && len(args) > 0:
				return badUsage("--dir writes all schemas; leave %q out", args[0])
			case o.dir != "":
				return a.writeSchemas(o.dir)
			case len(args) == 0:
				return a.listKinds()
			}
			return a.schema(args[0])
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return kindCompletions(true, nil)
		},
	}
	cmd.Flags().StringVar(&o.dir, "dir", "", "write the schemas of all kinds into `DIR`")
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

func (a *app) schema(word string) error {
	k, err := findKind(word)
	if err != nil {
		return err
	}
	if a.global.output == formatYAML {
		return a.print(json.RawMessage(schemas.Schema(k)))
	}
	_, err = a.stdout.Write(schemas.Schema(k))
	return err
}

// findKind returns the kind that a word of the command line names.
func findKind(word string) (schemas.Kind, error) {
	k, ok := kinds().Find(word)
	if !ok {
		return k, badUsage("no kind is called %q%s; \"reconcile schema\" lists them", word, didYouMean(word, kinds().Words()))
	}
	return k, nil
}

// kindInfo is a kind as -o json lists it.
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
	if a.global.output != formatTable {
		return a.print(infos)
	}
	return t.Write(a.stdout)
}

// writeSchemas writes one file for each kind. They are derived, so files that are there are replaced.
func (a *app) writeSchemas(dir string) error {
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(a.global.dir, dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the folder for the schemas: %w", err)
	}
	for _, k := range kinds() {
		name := filepath.Join(dir, k.Singular()+".schema.json")
		if err := os.WriteFile(name, schemas.Schema(k), 0o644); err != nil {
			return fmt.Errorf("write a schema: %w", err)
		}
		a.note("%s", name)
	}
	return nil
}
