package main

import (
	"context"
	"errors"
)

// reconcileTree wires store, loop, performer, git and event log together.
func reconcileTree(ctx context.Context, a *app, o loopOptions) (outcome, error) {
	return outcome{}, errors.New("not wired")
}
