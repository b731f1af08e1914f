package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/allowlist"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
)

// allowVariable lists addresses, separated by commas, that one process may send to.
const allowVariable = "RECONCILE_ALLOW"

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
the same address and the same variable. For one process, as in CI, ` + allowVariable + `=URL,… does the same.`,
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
	list, err := a.allowed()
	if err != nil {
		return err
	}
	if in := a.caller(); in != nil && !o.list { // the list holds for all trees: a run of any of them is refused
		return notInRun("allow what is sent elsewhere", in)
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
		if err := namesKey(d); err != nil {
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
		table.Row(r.Setting, clean(r.URL), orDash(r.Variable).Text, r.Sends, map[bool]string{true: "yes", false: "no"}[r.Allowed])
	}
	if err := table.Write(a.stdout); err != nil || only {
		return err
	}
	a.note("wrote %s", list.Path())
	return nil
}

// allowed is what the user lets trees send elsewhere.
func (a *app) allowed() (*allowlist.List, error) {
	dir, err := os.UserConfigDir()
	if err == nil {
		dir = filepath.Join(dir, "reconcile")
	} // else there is no list, and nothing can be added to it
	return allowlist.Open(dir, a.getenv(allowVariable))
}

// notAllowed says why nothing is sent to an address of the settings, and what to do.
type notAllowed struct {
	text string
	told atomic.Bool
}

func (e *notAllowed) Error() string { return e.text }

// permit returns an error that says what to do when nothing may be sent to a destination.
func (a *app) permit(d schemas.Destination) error {
	if err := namesKey(d); err != nil {
		return err
	}
	list, err := a.allowed()
	if err != nil {
		return err
	}
	if list.Allows(d) {
		return nil
	}
	with := ""
	if d.Env != "" {
		with = fmt.Sprintf(" with the value of %s", d.Env)
	}
	return &notAllowed{text: fmt.Sprintf("%s: %s has %s sent to %s%s, which you have not allowed: nothing is sent; if you trust it, "+
		"run \"reconcile allow\"", schemas.SettingsPath, d.Setting, d.What, d.URL, with)}
}

// namesKey returns an error when a destination is to get a variable that no settings may name.
func namesKey(d schemas.Destination) error {
	if d.Env == "" || d.Env == schemas.GitHubTokenVariable || schemas.IsKeyVariable(d.Env) {
		return nil
	}
	return &notAllowed{text: fmt.Sprintf("%s: index.apiKeyEnv names %s, and only variables called RECONCILE_… or …_API_KEY can be "+
		"named: nothing is sent; put the key into one of these", schemas.SettingsPath, d.Env)}
}
