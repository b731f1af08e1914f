package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/allowlist"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/caller"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
)

// allowFlags are the flags of allow.
type allowFlags struct {
	list   bool
	remove string
}

func newAllowCmd(a *app) *cobra.Command {
	o := &allowFlags{}
	cmd := &cobra.Command{
		Use:   "allow",
		Short: "Let the settings of this tree send data to the addresses that they name",
		Long: `Show which addresses the settings of the tree send data to (index.endpoint, github.baseURL), and the environment
variable whose value goes along, and allow them. A tree may come from anybody: until its addresses are allowed, nothing
is sent there, search goes by words, and nothing is mirrored.

What is allowed is written to allowed.json in the configuration folder of the user, and holds for all trees that name
the same address and the same variable. For one process, as in CI, ` + egress.AllowVariable + `=URL,… does the same.`,
		Example: "  reconcile allow --list\n  reconcile allow\n  reconcile allow --remove https://api.example.com/v1",
		Args:    arguments(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.allow(cmd, *o) },
	}
	cmd.Flags().BoolVar(&o.list, "list", false, "only show what the settings name, and whether it is allowed")
	cmd.Flags().StringVar(&o.remove, "remove", "", "take back what was allowed for the address `URL`")
	cmd.MarkFlagsMutuallyExclusive("list", "remove")
	return cmd
}

// destinationRow is one address of the settings as it is printed.
type destinationRow struct {
	Setting  string `json:"setting"`
	URL      string `json:"url"`
	Variable string `json:"variable,omitempty"`
	Sends    string `json:"sends"`
	Allowed  bool   `json:"allowed"`
}

func (a *app) allow(cmd *cobra.Command, o allowFlags) error {
	list, err := a.egress().Allowed()
	if err != nil {
		return err
	}
	if in := a.caller().AnyRun(); in != nil && !o.list { // the list holds for all trees: a run of any of them is refused
		return caller.NotInRun("allow what is sent elsewhere", in)
	}
	if o.remove != "" {
		return a.disallow(list, o.remove)
	}
	s, t, err := a.load(cmd.Context())
	if err != nil {
		return err
	}
	defer s.Close()
	settings := t.Settings()
	wanted := settings.Destinations()
	for _, d := range wanted {
		if err := egress.CheckVariable(d); err != nil {
			return err
		}
	}
	if !o.list && len(wanted) > 0 {
		if err := list.Add(wanted); err != nil {
			return fmt.Errorf("write %s: %w", list.Path(), err)
		}
	}
	return a.printDestinations(list, wanted, o.list)
}

func (a *app) disallow(list *allowlist.List, address string) error {
	n, err := list.Remove(address)
	if err != nil {
		return fmt.Errorf("write %s: %w", list.Path(), err)
	}
	if n == 0 {
		return badUsage("%s does not allow %s", list.Path(), address)
	}
	a.note("%s is not allowed any more", address)
	return nil
}

func (a *app) printDestinations(list *allowlist.List, wanted []schemas.Destination, only bool) error {
	rows := make([]destinationRow, len(wanted))
	for i, d := range wanted {
		rows[i] = destinationRow{d.Setting, d.URL, d.Env, d.What, list.Allows(d)}
	}
	if a.global.output != formatTable {
		return a.print(rows)
	}
	if len(rows) == 0 {
		a.note("the settings name no address that data is sent to")
		return nil
	}
	table := render.NewTable(a.palette(), "SETTING", "ADDRESS", "VARIABLE", "SENDS", "ALLOWED")
	for _, r := range rows {
		table.Row(r.Setting, clean(r.URL), render.Word(r.Variable).Text, r.Sends, map[bool]string{true: "yes", false: "no"}[r.Allowed])
	}
	if err := table.Write(a.stdout); err != nil || only {
		return err
	}
	a.note("wrote %s", list.Path())
	return nil
}
