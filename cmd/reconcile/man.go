//go:build man

package main

import (
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// addBuildCommands adds the commands that only the build of a release needs: the generator of man pages would enlarge
// the program.
func addBuildCommands(root *cobra.Command) {
	date := ""
	cmd := &cobra.Command{
		Use:    "man DIR",
		Short:  "Write a man page for each command",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := time.Parse(time.DateOnly, date)
			if err != nil {
				return badUsage("--date %q: write YYYY-MM-DD", date)
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root.DisableAutoGenTag = true
			escapeHelp(root)
			head := doc.GenManHeader{Title: "RECONCILE", Section: "1", Source: "reconcile", Manual: "reconcile", Date: &at}
			return doc.GenManTree(root, &head, args[0])
		},
	}
	cmd.Flags().StringVar(&date, "date", "", "the `DATE` of the pages, as 2006-01-02")
	root.AddCommand(cmd)
}

// escapeHelp has the generator, which reads Markdown, take help texts as plain text: <kinds> would be a tag in them, and #
// a heading. Indented lines are code and stay as they are; the texts of completion, which are cobra's, are Markdown.
func escapeHelp(cmd *cobra.Command) {
	if cmd.Name() == "completion" {
		return
	}
	lines := strings.Split(cmd.Long, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "    ") {
			lines[i] = markdown.Replace(line)
		}
	}
	cmd.Long = strings.Join(lines, "\n")
	for _, c := range cmd.Commands() {
		escapeHelp(c)
	}
}

var markdown = strings.NewReplacer("<", `\<`, "#", `\#`, "*", `\*`)
