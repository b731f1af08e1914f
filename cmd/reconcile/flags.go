package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"reconcile.dev/reconcile/schemas"
)

// arguments checks that a command has between least and most arguments; words describes them.
func arguments(least, most int, words string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return badUsage("%s needs %s; for example: %s", cmd.CommandPath(), words, firstExample(cmd))
		case most >= 0 && len(args) > most:
			return badUsage("%s takes no argument %q; usage: %s", cmd.CommandPath(), args[most], cmd.UseLine())
		}
		return nil
	}
}

func firstExample(cmd *cobra.Command) string {
	line, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
	line, _, _ = strings.Cut(line, "  #")
	return strings.TrimSpace(line)
}

// namesOf lists the names of a command's subcommands.
func namesOf(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return names
}

// noSubcommand refuses a command that needs a subcommand, without one or with an unknown word.
func noSubcommand(cmd *cobra.Command, args []string) error {
	names := namesOf(cmd)
	if len(args) == 0 {
		return badUsage("%s needs one of %s; for example: %s", cmd.CommandPath(), strings.Join(names, ", "), firstExample(cmd))
	}
	return badUsage("%s has no command %q%s; there are %s", cmd.Name(), args[0], schemas.DidYouMean(args[0], names), strings.Join(names, ", "))
}

// outputFlag binds -o to the given formats; a command with other formats calls it again for its own flags.
func (a *app) outputFlag(cmd *cobra.Command, f *pflag.FlagSet, formats ...string) {
	a.global.output = formats[0]
	f.VarP(&choice{value: &a.global.output, allowed: formats}, "output", "o", "print as `FORMAT`: "+strings.Join(formats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

// choice is a flag with a fixed set of values.
type choice struct {
	value   *string
	allowed []string
	prefix  string // values with this prefix are allowed, too; "" allows none
}

func (c *choice) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}

// Type is not shown: the usage of each choice names its value in backquotes.
func (c *choice) Type() string { return "choice" }

func (c *choice) Set(s string) error {
	if c.prefix != "" && strings.HasPrefix(s, c.prefix) {
		*c.value = s
		return nil
	}
	if slices.Contains(c.allowed, s) {
		*c.value = s
		return nil
	}
	words := c.allowed
	if c.prefix != "" {
		words = append(slices.Clone(words), c.prefix+"…")
	}
	return fmt.Errorf("must be one of %s%s", strings.Join(words, ", "), schemas.DidYouMean(s, c.allowed))
}

// namesFlag is a flag for some of the given names, with completion.
func namesFlag(cmd *cobra.Command, f *pflag.FlagSet, to *[]string, name, usage string, names []string) {
	f.StringSliceVar(to, name, nil, usage)
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

// choiceFlag is a flag for one of the given names, with completion.
func choiceFlag(cmd *cobra.Command, f *pflag.FlagSet, to *string, name, usage string, names []string) {
	f.Var(&choice{value: to, allowed: names}, name, usage)
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

// hideDefaults hides the defaults of numbers in the help, if they mean that no number is given.
func hideDefaults(f *pflag.FlagSet, names ...string) {
	for _, name := range names {
		f.Lookup(name).DefValue = "0"
	}
}

// changed returns those of the flags that were given.
func changed(cmd *cobra.Command, names ...string) []string {
	var out []string
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			out = append(out, "--"+name)
		}
	}
	return out
}

// pointer returns the number of the issue; nil if it is not given.
func (f *issueFlag) pointer() *int {
	if !f.given {
		return nil
	}
	return &f.number
}

// issueFlag is an optional issue number.
type issueFlag struct {
	number int
	given  bool
}

func (f *issueFlag) String() string {
	if !f.given {
		return ""
	}
	return strconv.Itoa(f.number)
}

func (f *issueFlag) Type() string { return "N" }

func (f *issueFlag) Set(s string) error {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 0 {
		return errors.New("must be the number of an issue; 0 means none")
	}
	f.number, f.given = int(n), true
	return nil
}

func bindBy(cmd *cobra.Command, by *string) {
	cmd.Flags().StringVar(by, "by", "",
		"the `NAME` of the acting agent or person (in a run: its agent; default: RECONCILE_AGENT, else the login name)")
}

// hidden hides a command in the help: other programs call it, or it is another name of a listed command.
func hidden(cmd *cobra.Command) *cobra.Command {
	cmd.Hidden = true
	return cmd
}

// renamed keeps the former name of a command for one version. It prints the new name.
func (a *app) renamed(cmd *cobra.Command, now string) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a.note("%s is called \"%s\" now; the former name goes with the next version", strings.TrimPrefix(cmd.CommandPath(), "reconcile "), now)
		return run(cmd, args)
	}
	return hidden(cmd)
}
