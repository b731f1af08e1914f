package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// edits is how many times a file is edited to measure what the index takes after it.
const edits = 40

// edited measures how long a look at a tree takes that has an index: where nothing changed, and after one function was
// added to a file, each beside git status of the same tree after that edit.
func (v *vectorFigures) edited(ctx context.Context, what, dir, file string) error {
	name := "index of " + what
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return err
	}
	var git, still, after, inside []time.Duration
	for i := range edits + 1 {
		change := fmt.Appendf(nil, "%s\nfunc added%d() int { return %d }\n", text, i, i)
		if err := os.WriteFile(filepath.Join(dir, file), change, 0o666); err != nil {
			return err
		}
		status, err := process(gitCommand(ctx, dir, "status", "--short"))
		if err != nil {
			return err
		}
		took, in, err := v.refreshed(ctx, dir)
		if err != nil {
			return err
		}
		same, _, err := v.refreshed(ctx, dir)
		if err != nil {
			return err
		}
		if i > 0 { // the first one comes to a tree that nobody has looked at
			git, still, after, inside = append(git, status.wall), append(still, same), append(after, took), append(inside, in)
		}
	}
	status := short(quantile(git, 0.5))
	row := func(what string, of []time.Duration, share, bound float64) {
		took := quantile(of, share)
		v.row(name+what, short(took), status, short(took), ms(took), bound, " ms")
	}
	row(", nothing changed", still, 0.5, 0)
	row(", after one edit", after, 0.5, 50)
	row(", after one edit, p95", after, 0.95, 0)
	row(", after one edit, inside", inside, 0.5, 0)
	return os.WriteFile(filepath.Join(dir, file), text, 0o666)
}

// tookIn is what index says of how long it took to take changes in.
var tookIn = regexp.MustCompile(`took in 1 inputs that changed and 0 that went, in (\S+)`)

// refreshed runs index, and returns how long the process took, and in it the index; that is 0 where nothing changed.
func (v *vectorFigures) refreshed(ctx context.Context, dir string) (whole, inside time.Duration, err error) {
	cmd := exec.CommandContext(ctx, v.binary, "-C", dir, "index")
	cmd.Env = environment()
	start := time.Now()
	out, err := cmd.CombinedOutput()
	whole = time.Since(start)
	if err != nil {
		return 0, 0, fmt.Errorf("index: %w\n%.2000s", err, out)
	}
	if found := tookIn.FindSubmatch(out); found != nil {
		inside, err = time.ParseDuration(string(found[1]))
		return whole, inside, err
	}
	if len(out) == 0 {
		return 0, 0, errors.New("index says nothing of what it did")
	}
	return whole, 0, nil
}
