package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/admission"
	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// throng is a tree with sessions of one DAG each: jobs has the number of nodes of each.
type throng struct {
	jobs     []int
	places   int
	job      string // the work of a node, as fields of a spec
	engineer string // seconds that the agent engineer takes; "": there is none
}

// equal are sessions with as many jobs each.
func equal(sessions, jobs int) []int { return slices.Repeat([]int{jobs}, sessions) }

func (c throng) write(dir string) error {
	head := func(kind, name string) string {
		return "apiVersion: reconcile.dev/v1alpha1\nkind: " + kind + "\nmetadata: {name: " + name + "}\n"
	}
	files := map[string]string{"reconcile.yaml": head("Settings", "settings") +
		fmt.Sprintf("spec: {limits: {concurrentTasks: %d, engineers: %[1]d}}\n", c.places)}
	if c.engineer != "" {
		files["specs/engineer.yaml"] = head("Agent", "engineer") + fmt.Sprintf("spec: {concurrency: 10000, workspace: inPlace, "+
			"runner: {command: {argv: [sh, -c, %q]}}}\n", "cat > /dev/null; sleep "+c.engineer+"; echo done")
	}
	for i, jobs := range c.jobs {
		name := fmt.Sprintf("s%d", i)
		files["specs/"+name+".yaml"] = head("Session", name) + fmt.Sprintf("spec: {maxConcurrentTasks: %d, maxEngineers: %[1]d}\n", max(50, c.places/len(c.jobs)))
		spec := head("DAG", name) + "spec:\n  session: " + name + "\n  nodes:\n"
		for k := range jobs {
			spec += fmt.Sprintf("    - {name: n%d, %s}\n", k, c.job)
		}
		files["specs/dags/"+name+".yaml"] = spec
	}
	for name, content := range files {
		if err := writeFile(filepath.Join(dir, name), content); err != nil {
			return err
		}
	}
	return nil
}

// starts are the sessions of all runs on record, in the order in which they started; those of one millisecond in their fair order.
func starts(dir string) (order []string, err error) {
	type start struct {
		session string
		at      time.Time
		place   int64
	}
	var all []start
	err = filepath.WalkDir(filepath.Join(dir, "state", "runs"), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		var r schemas.Run
		if err := json.Unmarshal(data, &r); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		all = append(all, start{strings.TrimPrefix(r.Owner, "dag/"), r.StartedAt.Time, r.VirtualStart})
		return nil
	})
	slices.SortStableFunc(all, func(a, b start) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.place, b.place)) })
	for _, s := range all {
		order = append(order, s.session)
	}
	return order, err
}

// fairness is the least index of Jain over the prefixes of starts from a length on, and the least share of its equal part that a session
// had started; both while all sessions, or that one, had jobs left.
func fairness(order []string, c throng, from int) (jain, share float64) {
	had := map[string]int{}
	jain, share = 1, 1
	for i, session := range order {
		had[session]++
		if i+1 < from {
			continue
		}
		var sum, squares float64
		all := true
		for k, jobs := range c.jobs {
			n := had[fmt.Sprintf("s%d", k)]
			sum, squares = sum+float64(n), squares+float64(n*n)
			if all = all && n < jobs; n < jobs {
				share = min(share, float64(n)/(float64(i+1)/float64(len(c.jobs))))
			}
		}
		if all {
			jain = min(jain, sum*sum/(float64(len(c.jobs))*squares))
		}
	}
	return jain, share
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// fair: the order in which jobs of several sessions start.
func (b *bench) fair(ctx context.Context, _ []int) error {
	even := throng{jobs: equal(10, 100), places: 4, job: `run: ["true"]`}
	order, _, err := b.order(ctx, even)
	if err != nil {
		return err
	}
	jain, _ := fairness(order, even, 100)
	b.least("fair: 10 x 100 on 4 places, least Jain", "", "", percent(jain), 100*jain, 97, " %")
	uneven := throng{jobs: append([]int{550}, equal(9, 50)...), places: 4, job: `run: ["true"]`}
	if order, _, err = b.order(ctx, uneven); err != nil {
		return err
	}
	for _, from := range []int{100, 200} {
		_, share := fairness(order, uneven, from)
		_, ideal := fairness(inTurns(uneven), uneven, from)
		b.least(fmt.Sprintf("fair: 550 + 9 x 50, least share of a tenth from %d on", from), "", percent(ideal), percent(share), 100*share, 90, " %")
	}
	return b.fairProcesses(ctx)
}

// inTurns are the starts of a throng if nothing but whose turn it is decides. Its shares are below 1 as well: of 109 starts in turns, the
// last session has 10, which is 0.917 of a tenth.
func inTurns(c throng) (order []string) {
	for turn := 0; len(order) == 0 || turn < slices.Max(c.jobs); turn++ {
		for k, jobs := range c.jobs {
			if turn < jobs {
				order = append(order, fmt.Sprintf("s%d", k))
			}
		}
	}
	return order
}

// fairProcesses: what a second process performs that begins when the first one has work in all places.
func (b *bench) fairProcesses(ctx context.Context) error {
	dir, err := os.MkdirTemp(b.trees, "crowd")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := (throng{jobs: equal(4, 50), places: 4, job: `run: [sleep, "0.2"]`}).write(dir); err != nil {
		return err
	}
	first := b.reconcile(ctx, dir, "run")
	if err := first.Start(); err != nil {
		return err
	}
	leases := filepath.Join(dir, ".reconcile", "leased", "*") // of what runs
	for names := []string(nil); len(names) == 0 && ctx.Err() == nil; names, _ = filepath.Glob(leases) {
		time.Sleep(10 * time.Millisecond)
	}
	second := b.reconcile(ctx, dir, "run")
	second.Args = slices.DeleteFunc(second.Args, func(arg string) bool { return arg == "--quiet" }) // its last line counts its runs
	out, err := second.CombinedOutput()
	if err = errors.Join(err, first.Wait()); err != nil {
		return err
	}
	var performed int
	if i := strings.LastIndex(string(out), "; "); i >= 0 {
		fmt.Sscanf(string(out[i:]), "; %d runs", &performed)
	}
	b.least("fair: a second process, its part of 200 jobs", "", "", percent(float64(performed)/200), 100*float64(performed)/200, 40, " %")
	return nil
}

// order runs a throng in a new tree, and returns the order of its starts.
func (b *bench) order(ctx context.Context, c throng) (order []string, u usage, err error) {
	dir, err := os.MkdirTemp(b.trees, "crowd")
	if err != nil {
		return nil, u, err
	}
	defer os.RemoveAll(dir)
	if err := c.write(dir); err != nil {
		return nil, u, err
	}
	if u, err = process(b.reconcile(ctx, dir, "run")); err != nil {
		return nil, u, err
	}
	order, err = starts(dir)
	return order, u, err
}

// sessions: 10 sessions of 50 engineers each, who sleep, in two rounds. What the program adds to the sleeps does not depend on their
// length, so a shorter one is harder on it.
func (b *bench) sessions(ctx context.Context, _ []int) error {
	c := throng{jobs: equal(10, 100), places: 500, job: "agent: engineer, prompt: Go.", engineer: fmt.Sprint(b.sleep.Seconds())}
	order, u, err := b.order(ctx, c)
	if err != nil {
		return err
	}
	ideal := 2 * b.sleep
	share := float64(ideal) / float64(u.wall)
	b.least(fmt.Sprintf("sessions: 10 x 50 engineers of %s, throughput", b.sleep), short(u.wall), short(ideal), percent(share), 100*share, 95, " %")
	jain, _ := fairness(order, c, 100)
	b.least("sessions: least Jain", "", "", percent(jain), 100*jain, 97, " %")
	b.row("sessions: memory", mib(u.peak), "", mib(u.peak), float64(u.peak)/(1<<20), 250, " MiB")
	return nil
}

// exclusive: the change to another session, beyond the start of the program, by CPU time.
func (b *bench) exclusive(ctx context.Context, _ []int) error {
	dir, err := b.tree(ctx, 1000)
	if err != nil {
		return err
	}
	i := 0
	got, err := alternate(3*b.runs,
		func() (usage, error) {
			i++
			return process(b.reconcile(ctx, dir, "resume", name("sessions", i%2), "--exclusive", "--no-run"), 4)
		},
		func() (usage, error) { return process(b.reconcile(ctx, dir, "version")) })
	if err != nil {
		return err
	}
	more := got[0].cpu - got[1].cpu
	b.row("switch: resume --exclusive, 1000 objects, CPU", short(got[0].cpu), short(got[1].cpu), trim(ms(more))+" ms", ms(more), 10, " ms")
	return nil
}

// next: choosing the next of 100,000 waiting effects in this process, by CPU time.
func (b *bench) next(context.Context, []int) error {
	const queued = 100_000
	wanted := make([]*settle.Effect, queued)
	for i := range wanted {
		s := fmt.Sprintf("s%02d", i%100)
		wanted[i] = &settle.Effect{Key: fmt.Sprintf("dags/%s/n%05d-0-1", s, i), Owner: schemas.DAGKind.Ref(s), Session: s, Rank: i % 5,
			Groups: []settle.Group{{Name: settle.TasksGroup, Limit: queued}, {Name: "session/" + s, Limit: queued}}}
	}
	t, now := state.NewTree(nil, nil, nil), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var samples []usage
	for range b.runs {
		start := processorTime()
		if n := len(admission.Admit(t, wanted, nil, "p", 4, 0, new(budgets.Ledger), new(admission.Turns), now)); n != queued {
			return fmt.Errorf("%d of %d were admitted", n, queued)
		}
		samples = append(samples, usage{cpu: processorTime() - start})
	}
	each := float64(median(samples).cpu.Microseconds()) / queued
	b.row("next of 100,000 that wait, CPU", fmt.Sprintf("%.2f µs", each), "", fmt.Sprintf("%.1f µs", each), each, 5, " µs")
	return nil
}
