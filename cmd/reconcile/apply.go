package main

import (
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
)

func newApplyCmd(a *app) *cobra.Command {
	var files []string
	q := ops.ApplyRequest{}
	cmd := &cobra.Command{
		Use:   "apply -f FILE…",
		Short: "Write specs from files or standard input, if all of them are valid",
		Long: `Write specs: each to the file that holds its object already, else to specs/<kinds>/<name>.yaml. A file may hold
several YAML documents. Where one cannot be written, none is. The next run takes them up.

What was asked, answered, captured or done is a record, and not changed.`,
		Example: "  reconcile apply -f dag.yaml\n" +
			"  reconcile get dag/checks -o yaml | sed s/1h/2h/ | reconcile apply -f -\n" +
			"  reconcile apply -f specs.yaml --dry-run",
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(files) == 0 {
				return badUsage("apply needs -f FILE, or -f - for standard input")
			}
			for _, name := range files {
				text, err := a.read("-f", name, streamSize)
				if err != nil {
					return err
				}
				q.Texts = append(q.Texts, ops.SpecText{Name: name, Text: text})
			}
			changes, err := ops.Apply(cmd.Context(), a.env(), q)
			return a.specChanges(changes, q.DryRun, err)
		},
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "read `FILE`, which may be a pipe, or standard input for -; may be repeated")
	cmd.Flags().BoolVar(&q.DryRun, "dry-run", false, "only say what would be written")
	return cmd
}

// specChanges prints the changes of specs.
func (a *app) specChanges(changes []ops.SpecChange, dryRun bool, err error) error {
	suffix := ""
	if dryRun {
		suffix = " (dry run)"
	}
	return a.result(changes, err, func() error {
		for _, c := range changes {
			a.printf("%s %s: %s%s\n", c.Ref, c.Change, c.Path, suffix)
		}
		return nil
	})
}

func newDeleteCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete KIND/NAME…",
		Short: "Remove the specs of objects",
		Long: `Remove the spec files of objects. The next run ends what runs of them, and removes their statuses and records. git keeps
the files that were committed.`,
		Example: "  reconcile delete dag/checks\n  reconcile delete dag/checks session/health",
		Args:    arguments(1, -1, "an object"),
		RunE: func(cmd *cobra.Command, args []string) error {
			changes, err := ops.Delete(cmd.Context(), a.env(), args)
			return a.specChanges(changes, false, err)
		},
		ValidArgsFunction: a.completeObjects(false),
	}
	cmd.AddCommand(newDeleteFactCmd(a))
	return cmd
}

func newEditCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "edit KIND/NAME",
		Short: "Change the spec of an object in your editor, and check it before it is written",
		Long: `Open a copy of the spec of an object in $VISUAL or $EDITOR, and apply it when the editor ends. A text that is not valid
is not written: the message names the copy, and "reconcile apply -f" takes it when it is right.`,
		Example: "  reconcile edit dag/checks",
		Args:    arguments(1, 2, "an object"),
		RunE: func(cmd *cobra.Command, args []string) error {
			changes, err := ops.Edit(cmd.Context(), a.env(), ops.EditRequest{Object: strings.Join(args, "/"), Change: a.openEditor})
			return a.specChanges(changes, false, err)
		},
		ValidArgsFunction: a.completeObjects(false),
	}
}

func newCreateCmd(a *app) *cobra.Command {
	q := ops.CreateRequest{}
	fields := []string{}
	edit := false
	cmd := &cobra.Command{
		Use:   "create KIND NAME",
		Short: "Write the spec of a new object, with a comment on each field",
		Long: `Write the spec of a new object to specs/<kinds>/<name>.yaml: the fields that are given, and the others as comments. It is
written only if it is valid.`,
		Example: "  reconcile create session health --set title='Keep it healthy'\n" +
			"  reconcile create dag build --set session=health --set nodes='[{name: all, run: [make]}]'\n" +
			"  reconcile create dag build --edit",
		Args: arguments(2, 2, "a kind and a name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Kind, q.Name, q.Fields = args[0], args[1], map[string]string{}
			for _, f := range fields {
				name, value, ok := strings.Cut(f, "=")
				if !ok {
					return badUsage("--set %q: write FIELD=VALUE", f)
				}
				q.Fields[name] = value
			}
			if edit {
				q.Change = a.openEditor
			}
			changes, text, err := ops.Create(cmd.Context(), a.env(), q)
			if err == nil && q.DryRun {
				_, err = a.stdout.Write(text)
				return err
			}
			return a.specChanges(changes, false, err)
		},
		ValidArgsFunction: completeKind,
	}
	f := cmd.Flags()
	f.StringArrayVar(&fields, "set", nil, "give a field of the spec a value, as `FIELD=VALUE`, the value in YAML; may be repeated")
	f.StringToStringVar(&q.Labels, "label", nil, "give the object labels: `a=b,c=d`")
	f.BoolVar(&edit, "edit", false, "open the spec in $VISUAL or $EDITOR first")
	f.BoolVar(&q.DryRun, "dry-run", false, "only print the spec")
	cmd.AddCommand(newCreateFactCmd(a))
	return cmd
}
