//go:build !man

package main

import "github.com/spf13/cobra"

func addBuildCommands(*cobra.Command) {}
