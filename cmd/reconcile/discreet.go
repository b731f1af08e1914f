package main

import (
	"fmt"

	"reconcile.dev/reconcile/schemas/secrets"
)

// discreet is a text of the command line as it may be written: without secrets and private text. That something was taken
// out is told.
func (a *app) discreet(what, text string) string {
	plain := secrets.Redact(text)
	if plain != text {
		fmt.Fprintf(a.stderr, "warning: %s held a secret or private text, which was taken out\n", what)
	}
	return plain
}
