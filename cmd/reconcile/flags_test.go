package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reconcile.dev/reconcile/state"
)

// Of several errors the one that stands first in the table of exit codes decides.
func TestExitCode(t *testing.T) {
	busy := fmt.Errorf("lock: %w", state.ErrBusy)
	usage := badUsage("no such flag")
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{exitWith(0), 0},
		{exitWith(3), 3},
		{exitWith(4), 4},
		{busy, 75},
		{fmt.Errorf("%w: %w; run the command again", state.ErrBusy, state.ErrStolen), 75},
		{context.Canceled, 130},
		{fmt.Errorf("turn: %w", context.Canceled), 130},
		{errors.New("broken"), 1},
		{usage, 2},
		{errors.Join(exitWith(4), exitWith(3)), 3},
		{errors.Join(exitWith(3), busy), 75},
		{errors.Join(busy, context.Canceled), 130},
		{errors.Join(context.Canceled, errors.New("broken")), 1},
		{errors.Join(errors.New("broken"), errors.Join(exitWith(3), usage)), 2},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("exitCode(%v) = %d, want %d", c.err, got, c.want)
		}
	}
}

func TestExitHelpListsEveryCode(t *testing.T) {
	help := exitHelp()
	for _, code := range []int{exitOK, exitFailure, exitUsage, exitInvalid, exitNotReady, exitBusy, exitInterrupted} {
		if !strings.Contains(help, fmt.Sprintf("\n  %-4d ", code)) {
			t.Errorf("exit code %d is not explained", code)
		}
	}
}

// Every command stands in a group, says in a line what it does, and shows how it is used.
func TestCommandsAreDocumented(t *testing.T) {
	root := newRootCmd(&app{})
	for _, c := range root.Commands() {
		if c.Hidden {
			continue
		}
		shown := strings.Contains(c.Example, "reconcile "+c.Name())
		if c.GroupID == "" || c.Short == "" || strings.HasSuffix(c.Short, ".") || !shown {
			t.Errorf("%s: group %q, short %q, example %q", c.Name(), c.GroupID, c.Short, c.Example)
		}
	}
}

// A command that is named first is the same as in the whole tree of commands.
func TestMenuNamesItsCommands(t *testing.T) {
	whole := newRootCmd(&app{})
	for _, c := range menu() {
		root := rootFor(&app{}, []string{c.name})
		cmd, _, err := root.Find([]string{c.name})
		same, _, err2 := whole.Find([]string{c.name})
		if err != nil || err2 != nil || cmd.Name() != c.name || len(root.Commands()) != 1 {
			t.Errorf("%s: %d commands, with %s, not %s: %v", c.name, len(root.Commands()), cmd.Name(), same.Name(), errors.Join(err, err2))
			continue
		}
		if cmd.UsageString() != same.UsageString() || cmd.GroupID != same.GroupID || cmd.Hidden != same.Hidden {
			t.Errorf("%s differs:\n%s\n%s", c.name, cmd.UsageString(), same.UsageString())
		}
	}
}

// The help of each flag that takes a value names what it takes (FILE, N, REASON), not a type of Go.
func TestFlagsNameTheirValues(t *testing.T) {
	checked := 0
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			name, _ := pflag.UnquoteUsage(f)
			switch _, isChoice := f.Value.(*choice); {
			case f.Name == "help" || f.Value.Type() == "bool":
				return
			case name == strings.ToLower(name) && !strings.Contains(name, "="):
				t.Errorf("%s --%s: help calls its value %q", c.CommandPath(), f.Name, name)
			case isChoice && name == "FORMAT" && f.Name != "output" && f.Name != "format":
				t.Errorf("%s --%s: its value is not a format", c.CommandPath(), f.Name)
			}
			if _, known := expectedValues[f.Value.Type()]; !known && !ownWords[f.Value.Type()] {
				t.Errorf("%s --%s: no text says what a wrong value of type %s should be", c.CommandPath(), f.Name, f.Value.Type())
			}
			checked++
		})
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(newRootCmd(&app{}))
	if checked < 50 {
		t.Errorf("only %d flags were checked", checked)
	}
}

// ownWords are types of flags that accept every text, or whose errors are the program's own: choices and issues.
var ownWords = map[string]bool{"string": true, "stringArray": true, "choice": true, "N": true}
