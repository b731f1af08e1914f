package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/schemas"
)

// The groups of commands in the help.
const (
	groupMain    = "main"
	groupLook    = "look"
	groupCode    = "code"
	groupSteer   = "steer"
	groupAsk     = "ask"
	groupMemory  = "memory"
	groupAuthor  = "author"
	groupProgram = "program"
)

const rootLong = `GitOps for teams of software agents. You declare in files what should happen: work as DAGs of commands and agents, questions
between agents, what they should remember. reconcile compares that with what has happened, does the missing work, and records
the outcome in files next to it. Git keeps all of it: there is no server and no database.

  reconcile init --example    make a tree with sample work
  reconcile                   run once, until nothing is left to do
  reconcile get               see what there is, and what is not ready
  reconcile ready             see what waits for you

The tree is the nearest folder upward from the current directory, or from the one that -C names, that has reconcile.yaml or
an object in specs/ (the declarations); state/ has what happened.`

// newRootCmd builds the whole command tree. It reads no files.
func newRootCmd(a *app) *cobra.Command {
	root := newBareCmd(a)
	addCommands(a, root)
	addBuildCommands(root)
	return root
}

// rootFor builds the part of the command tree that args need: the bare command, the most frequent one, needs no other, and a
// command that is named first needs no others.
func rootFor(a *app, args []string) *cobra.Command {
	root := newBareCmd(a)
	if len(args) > 0 {
		for _, c := range menu() {
			if c.name == args[0] {
				addGroups(root)
				c.addTo(a, root)
				return root
			}
		}
	}
	if err := root.ParseFlags(args); err != nil || root.Flags().NArg() > 0 { // --help is an error here
		root = newRootCmd(a)
	}
	return root
}

func newBareCmd(a *app) *cobra.Command {
	run := &ops.RunRequest{}
	root := &cobra.Command{
		Use:               "reconcile",
		Short:             "GitOps for teams of software agents",
		Long:              rootLong + "\n\n" + exitHelp(),
		Args:              noCommand,
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.prepare(cmd) },
		RunE:              func(cmd *cobra.Command, _ []string) error { return a.run(cmd.Context(), *run) },
	}
	bindRun(run, root.Flags())
	a.bindGlobal(root)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetIn(a.stdin)
	root.SetFlagErrorFunc(flagError)
	return root
}

func (a *app) bindGlobal(root *cobra.Command) {
	f := root.PersistentFlags()
	f.StringVarP(&a.global.dir, "chdir", "C", ".", "work on the tree that `DIR` is in")
	f.BoolVar(&a.global.noColor, "no-color", false, "never print colours (also: NO_COLOR in the environment)")
	f.BoolVarP(&a.global.quiet, "quiet", "q", false, "print no progress, and no results where all is well")
	a.outputFlag(root, f, formatTable, formatJSON, formatYAML)
	a.bindLog(root, f)
	// Both errors mean an unknown flag, which the line above rules out.
	_ = root.MarkPersistentFlagDirname("chdir")
}

// item is a command in the menu.
type item struct {
	group, name string
	build       func(*app) *cobra.Command
}

func (c *item) addTo(a *app, root *cobra.Command) {
	cmd := c.build(a)
	cmd.GroupID = c.group
	root.AddCommand(cmd)
}

// menu lists the commands, in the order of the help.
func menu() []item {
	unlisted := func(build func(*app) *cobra.Command) func(*app) *cobra.Command {
		return func(a *app) *cobra.Command { return hidden(build(a)) }
	}
	verb := func(v ops.Verb) func(*app) *cobra.Command {
		return func(a *app) *cobra.Command { return newVerbCmd(a, v) }
	}
	resume := func(a *app) *cobra.Command {
		cmd := newVerbCmd(a, ops.Verbs[slices.IndexFunc(ops.Verbs, func(v ops.Verb) bool { return v.Name == schemas.VerbResume })])
		cmd.ValidArgsFunction = a.completeNamesOf(schemas.SessionKind)
		return cmd
	}
	items := []item{
		{groupMain, "run", newRunCmd}, {groupMain, "plan", newPlanCmd}, {groupMain, "validate", newValidateCmd},
		{groupLook, "get", newGetCmd}, {groupLook, "describe", newDescribeCmd},
		{groupLook, "history", former("history", newDescribeCmd, "history")}, {groupLook, "wait", newWaitCmd},
		{groupLook, "graph", newGraphCmd}, {groupLook, "logs", newLogsCmd}, {groupLook, "prompt", newPromptCmd},
		{groupLook, "events", newEventsCmd}, {groupLook, "metrics", newMetricsCmd}, {groupLook, "ready", newReadyCmd}, {groupLook, "workspace", newWorkspaceCmd},
		{groupLook, "state", unlisted(newStateCmd)},
		{groupLook, "digest", unlisted(func(a *app) *cobra.Command { return newDigestCmd(a, "digest") })},
		{groupLook, "search", newSearchCmd}, {groupLook, "related", newRelatedCmd}, {groupLook, "path", newPathCmd},
		{groupCode, "tools", newToolsCmd}, {groupCode, "inspect", newInspectCmd}, {groupCode, "test", newTestCmd}, {groupCode, "preview", newPreviewCmd},
		{groupCode, "style", newStyleCmd}, {groupCode, "deps", newDepsCmd},
	}
	for _, v := range ops.Verbs {
		items = append(items, item{groupSteer, v.Name, verb(v)})
	}
	return append(items, []item{
		{groupSteer, "start", newStartCmd}, {groupSteer, "task", newTaskCmd}, {groupSteer, "switch", former("switch", resume, "exclusive")},
		{groupSteer, "hook", unlisted(newHookCmd)},
		{groupAsk, "clarify", newClarifyCmd}, {groupAsk, "escalate", newEscalateCmd}, {groupAsk, "propose", newProposeCmd},
		{groupMemory, "memory", newMemoryCmd}, {groupMemory, "fact", unlisted(newFormerFactCmd)}, {groupMemory, "budget", newBudgetCmd},
		{groupAuthor, "init", newInitCmd}, {groupAuthor, "create", newCreateCmd}, {groupAuthor, "edit", newEditCmd},
		{groupAuthor, "apply", newApplyCmd}, {groupAuthor, "delete", newDeleteCmd}, {groupAuthor, "explain", newExplainCmd},
		{groupAuthor, "schema", former("schema", newExplainCmd, "schema")},
		{groupProgram, "doctor", newDoctorCmd}, {groupProgram, "allow", newAllowCmd},
		{groupProgram, "index", func(a *app) *cobra.Command { return a.renamed(newIndexCmd(a), "search index") }}, {groupProgram, "merge-driver", unlisted(newMergeDriverCmd)},
		{groupProgram, "version", newVersionCmd},
	}...)
}

// former is the former name of what is a flag of another command now, for one version.
func former(name string, build func(*app) *cobra.Command, flag string) func(*app) *cobra.Command {
	return func(a *app) *cobra.Command {
		cmd := build(a)
		now := cmd.Name() + " --" + flag
		cmd.Use = name + strings.TrimPrefix(cmd.Use, cmd.Name())
		_ = cmd.Flags().Set(flag, "true") // the command has it
		return a.renamed(cmd, now)
	}
}

func addGroups(root *cobra.Command) {
	root.AddGroup(
		&cobra.Group{ID: groupMain, Title: "Reconcile:"},
		&cobra.Group{ID: groupLook, Title: "Look:"},
		&cobra.Group{ID: groupCode, Title: "Check the code:"},
		&cobra.Group{ID: groupSteer, Title: "Steer:"},
		&cobra.Group{ID: groupAsk, Title: "Ask:"},
		&cobra.Group{ID: groupMemory, Title: "Remember:"},
		&cobra.Group{ID: groupAuthor, Title: "Write specs:"},
		&cobra.Group{ID: groupProgram, Title: "The program:"},
	)
	root.SetHelpCommandGroupID(groupProgram)
	root.SetCompletionCommandGroupID(groupProgram)
}

// addCommands adds the commands by group.
func addCommands(a *app, root *cobra.Command) {
	addGroups(root)
	for _, c := range menu() {
		c.addTo(a, root)
	}
	root.InitDefaultCompletionCmd()
	if c, _, err := root.Find([]string{"completion"}); err == nil {
		c.Example = "  source <(reconcile completion bash)\n  reconcile completion zsh > \"${fpath[1]}/_reconcile\""
		c.Args, c.RunE = knownShell, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
}

// knownShell refuses shells without a completion script, for which cobra would print the help.
func knownShell(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	names := namesOf(cmd)
	return badUsage("no completion for %q%s; there is one for %s", args[0], schemas.DidYouMean(args[0], names),
		strings.Join(names, ", "))
}

// otherWords are words of other programs for our commands.
var otherWords = map[string]string{
	"status": "get", "list": "get", "ls": "get", "ps": "get", "show": "describe", "rm": "delete", "new": "create", "add": "create",
	"stop": "cancel", "kill": "cancel", "up": "run", "sync": "run", "watch": "run", "dry-run": "plan", "dry": "plan", "next": "ready",
	"lint": "validate", "check": "validate", "rerun": "retry", "restart": "retry",
}

// noCommand refuses arguments of the bare command, which are unknown commands.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
			names = append(names, c.Aliases...)
		}
	}
	return badUsage("no command is called %q%s; \"reconcile --help\" lists them", args[0],
		schemas.DidYouMean(cmp.Or(otherWords[args[0]], args[0]), names))
}

// flagError converts an error of pflag to a usage error with a suggestion.
func flagError(cmd *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	var unknown *pflag.NotExistError
	hint := ""
	if errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) > 1 {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		hint = schemas.DidYouMean("--"+unknown.GetSpecifiedName(), names)
		if c, _, err := cmd.Find([]string{unknown.GetSpecifiedName()}); err == nil && c != cmd {
			hint = fmt.Sprintf(" (did you mean %q?)", c.CommandPath())
		}
	}
	return badUsage("%s%s; see \"%s --help\"", flagWords(err), hint, cmd.CommandPath())
}

// notInFlags reports whether a character cannot be part of a flag's name.
func notInFlags(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-')
}

// flagWords returns pflag's message without words that cannot be a flag: they may be a text that begins with a hyphen.
func flagWords(err error) string {
	const text = `; a text that begins with "-" goes to the end, after "--"`
	var unknown *pflag.NotExistError
	var syntax *pflag.InvalidSyntaxError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &invalid):
		return invalidValue(invalid)
	case errors.As(err, &unknown) && len(unknown.GetSpecifiedName()) == 1:
		return fmt.Sprintf("unknown flag: -%s", unknown.GetSpecifiedName()) + text
	case errors.As(err, &unknown) && strings.ContainsFunc(unknown.GetSpecifiedName(), notInFlags),
		errors.As(err, &syntax):
		return "unknown flag" + text
	}
	return err.Error()
}

// expectedValues describe the values of pflag's types. Other types describe them in their errors.
var expectedValues = map[string]string{
	"int":            "a whole number, for example 10",
	"float32":        "a number, for example 0.5",
	"float64":        "a number, for example 0.5",
	"duration":       "a duration, for example 30s, 5m or 1h30m",
	"bool":           "true or false",
	"stringToString": "name=value, several separated by commas",
	"stringSlice":    `a list separated by commas; a value that has a comma or a quotation mark stands in "…"`,
}

// invalidValue names the flag with a wrong value and the expected one, instead of the message of Go's parsers.
func invalidValue(err *pflag.InvalidValueError) string {
	want, ok := expectedValues[err.GetFlag().Value.Type()]
	if !ok {
		return err.Error()
	}
	text := strings.TrimSuffix(err.Error(), errors.Unwrap(err).Error())
	if errors.Is(err, strconv.ErrRange) {
		text += "is out of range; "
	}
	return text + "must be " + want
}

func newVersionCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of reconcile",
		Example: "  reconcile version -o json",
		Args:    arguments(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.version(cmd.Context()) },
	}
}

func (a *app) version(ctx context.Context) error {
	v := ops.Version(ctx, a.env())
	line := "reconcile " + v.Version
	if v.Revision != "" {
		line += " (" + v.Revision + ")"
	}
	if v.Modified {
		line += " with local changes"
	}
	return a.result(v, nil, func() error {
		a.printf("%s, %s, %s\n", line, v.Go, v.Platform)
		return nil
	})
}
