package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"reconcile.dev/reconcile/controllers/profiles"
)

// agentsPage fills the table of profiles in the page about agents.
func agentsPage(root string) (file, error) {
	const name = "docs/agents.md"
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return file{}, err
	}
	text, err = replace(text, "profiles", profileTable())
	if err != nil {
		return file{}, fmt.Errorf("%s: %w", name, err)
	}
	return file{name, text}, nil
}

func profileTable() string {
	var b strings.Builder
	b.WriteString("| Profile | Command | Configuration | Silence |\n|---|---|---|---|\n")
	for _, name := range profiles.Names(nil) {
		p, _ := profiles.Find(nil, name)
		var folders []string
		for _, f := range p.Folders {
			folders = append(folders, "`"+f+"`")
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", name, strings.Join(p.Argv, " "), strings.Join(folders, ", "), p.Silence)
	}
	return b.String()
}
