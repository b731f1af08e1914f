package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// usage is what a process took.
type usage struct {
	wall, cpu time.Duration
	peak      int64 // bytes of resident memory
}

// process runs a command to its end. Exit codes that are not in allowed, and 0, are errors.
func process(cmd *exec.Cmd, allowed ...int) (usage, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	err := cmd.Run()
	u := usage{wall: time.Since(start)}
	if p := cmd.ProcessState; p != nil {
		u.cpu = p.UserTime() + p.SystemTime()
		u.peak = peakMemory(p)
		if slices.Contains(allowed, p.ExitCode()) {
			err = nil
		}
	}
	if err != nil {
		err = fmt.Errorf("%s: %w\n%.2000s", strings.Join(cmd.Args, " "), err, out.String())
	}
	return u, err
}

// peakApart runs a command in a process of its own, and returns the bytes of memory that it had at most. Linux counts for
// a new process what the one that started it has, and this one may have a lot.
func peakApart(ctx context.Context, cmd *exec.Cmd) (int64, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	apart := exec.CommandContext(ctx, self, append([]string{"peak", "--"}, cmd.Args...)...)
	apart.Env = cmd.Env
	out, err := apart.Output()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
}

// printPeak is the command bench peak: it runs another one, and prints what memory that had at most.
func printPeak(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: bench peak -- COMMAND")
	}
	u, err := process(exec.CommandContext(ctx, args[0], args[1:]...))
	if err == nil {
		_, err = fmt.Println(u.peak)
	}
	return err
}

// alternate runs each of the functions in turn, runs times after one round that warms up, and returns the median of
// each.
func alternate(runs int, functions ...func() (usage, error)) ([]usage, error) {
	samples := make([][]usage, len(functions))
	for round := range runs + 1 {
		for i, f := range functions {
			u, err := f()
			if err != nil {
				return nil, err
			}
			if round > 0 {
				samples[i] = append(samples[i], u)
			}
		}
	}
	out := make([]usage, len(functions))
	for i, s := range samples {
		out[i] = median(s)
	}
	return out, nil
}

// median takes each quantity for itself; of memory it takes the largest.
func median(samples []usage) usage {
	n := len(samples) / 2
	slices.SortFunc(samples, func(a, b usage) int { return int(a.wall - b.wall) })
	u := usage{wall: samples[n].wall}
	slices.SortFunc(samples, func(a, b usage) int { return int(a.cpu - b.cpu) })
	u.cpu = samples[n].cpu
	for _, s := range samples {
		u.peak = max(u.peak, s.peak)
	}
	return u
}

// quantile is the value below which a share of the samples is.
func quantile(samples []time.Duration, share float64) time.Duration {
	slices.Sort(samples)
	return samples[min(len(samples)-1, int(share*float64(len(samples))))]
}

// table prints one row per figure, as soon as it is known.
type table struct {
	out  io.Writer
	only string
	rows int
}

// wants reports whether figures of this name are asked for.
func (t *table) wants(name string) bool {
	return slices.ContainsFunc(strings.Split(t.only, ","), func(part string) bool { return strings.Contains(name, part) })
}

const rowForm = "%-46s %14s %14s %9s  %-8s %s\n"

// row prints a figure: its name, both measurements, the number that has a bound, and the bound. A bound of 0 means
// none.
func (t *table) row(what string, ours, theirs, number string, value, bound float64, unit string) {
	t.judged(what, ours, theirs, number, "≤ "+trim(bound)+unit, bound > 0, value <= bound)
}

// least prints a figure that is to be as large as the bound, or larger.
func (t *table) least(what string, ours, theirs, number string, value, bound float64, unit string) {
	t.judged(what, ours, theirs, number, "≥ "+trim(bound)+unit, bound > 0, value >= bound)
}

func (t *table) judged(what, ours, theirs, number, limit string, bounded, kept bool) {
	if t.rows++; t.rows == 1 {
		fmt.Fprintf(t.out, rowForm, "WHAT", "RECONCILE", "COMPARED", "FIGURE", "BOUND", "")
	}
	verdict := "ok"
	switch {
	case !bounded:
		limit, verdict = "", ""
	case !kept:
		verdict = "OVER"
		if strings.HasPrefix(limit, "≥") {
			verdict = "UNDER"
		}
	}
	fmt.Fprintf(t.out, rowForm, what, ours, theirs, number, limit, verdict)
}

// ratio prints a figure that is one time through another.
func (t *table) ratio(what string, ours, theirs time.Duration, bound float64) {
	r := float64(ours) / float64(theirs)
	t.row(what, short(ours), short(theirs), fmt.Sprintf("%.2f", r), r, bound, "")
}

func trim(f float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", f), ".0") }

// short rounds a time to three digits.
func short(d time.Duration) string {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(10 * time.Nanosecond).String()
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
