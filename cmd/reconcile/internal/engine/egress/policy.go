// Package egress holds what leaves this machine: the addresses that the user allows the settings of trees to name, and the
// clients of what is reached there.
package egress

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"reconcile.dev/reconcile/cmd/reconcile/internal/allowlist"
	"reconcile.dev/reconcile/schemas"
)

// The environment variables with the token of GitHub: the one of GitHub's workflows, and that of gh.
const (
	TokenVariable = schemas.GitHubTokenVariable
	OtherToken    = "GH_TOKEN"
)

// Policy says where this process may send data.
type Policy struct {
	Getenv func(string) string
}

// AllowVariable lists addresses, separated by commas, that one process may send to.
const AllowVariable = "RECONCILE_ALLOW"

// Allowed is what the user lets trees send elsewhere.
func (p Policy) Allowed() (*allowlist.List, error) {
	dir, err := os.UserConfigDir()
	if err == nil {
		dir = filepath.Join(dir, "reconcile")
	} // else there is no list, and nothing can be added to it
	return allowlist.Open(dir, p.Getenv(AllowVariable))
}

// DeniedError says why nothing is sent to an address of the settings, and what to do.
type DeniedError struct {
	text     string
	reported atomic.Bool
}

func (e *DeniedError) Error() string { return e.text }

// FirstReport reports whether it is called for the first time. One denial is the cause of several warnings.
func (e *DeniedError) FirstReport() bool { return !e.reported.Swap(true) }

// Check returns a *DeniedError when nothing may be sent to a destination.
func (p Policy) Check(d schemas.Destination) error {
	if err := CheckVariable(d); err != nil {
		return err
	}
	list, err := p.Allowed()
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
	return &DeniedError{text: fmt.Sprintf("%s: %s has %s sent to %s%s, which you have not allowed: nothing is sent; if you trust it, "+
		"run \"reconcile allow\"", schemas.SettingsPath, d.Setting, d.What, d.URL, with)}
}

// CheckVariable returns a *DeniedError when a destination is to get a variable that no settings may name.
func CheckVariable(d schemas.Destination) error {
	if d.Env == "" || d.Env == schemas.GitHubTokenVariable || schemas.IsKeyVariable(d.Env) {
		return nil
	}
	return &DeniedError{text: fmt.Sprintf("%s: index.apiKeyEnv names %s, and only variables called RECONCILE_… or …_API_KEY can be "+
		"named: nothing is sent; put the key into one of these", schemas.SettingsPath, d.Env)}
}
