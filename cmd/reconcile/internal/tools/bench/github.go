package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/mirroring"
	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/cmd/reconcile/internal/tools/githubtest"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/derive"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/schemas"
)

// mirrored is a tree whose objects are shown on a GitHub of tests, with what a working tree keeps of that.
type mirrored struct {
	dir, cache string
	rig        *githubtest.Rig
}

// mirroredIssues is how many objects are mirrored, each on an issue of its own: a half are sessions, for which an issue is
// made, the others DAGs, on issues that people wrote.
const mirroredIssues = 100

// github: mirroring objects for the first time, and again when nothing changed, against an emulator. The emulator and its
// proxy share the processors; the compared figure is the number of requests.
func (b *bench) github(ctx context.Context, _ []int) error {
	if _, err := githubtest.Install(ctx); err != nil {
		fmt.Fprintf(b.out, "\ngithub is not measured: %v\n", err)
		return nil
	}
	m := &mirrored{dir: filepath.Join(b.trees, "github")}
	if err := m.make(ctx, b.binary); err != nil {
		return err
	}
	var first, again []usage
	var requests, looks, unchanged int
	for range b.runs {
		if err := m.begin(); err != nil {
			return err
		}
		u, err := timed(func() error { return m.sync(ctx) })
		requests = len(m.rig.Journal())
		first = append(first, u)
		if err == nil {
			err = m.sync(ctx) // fills the cache
		}
		m.rig.Journal()
		if err == nil {
			u, err = timed(func() error { return m.sync(ctx) })
			again = append(again, u)
		}
		looks, unchanged = 0, 0
		for _, r := range m.rig.Journal() {
			looks++
			if r.Status == http.StatusNotModified {
				unchanged++
			}
		}
		if err = errors.Join(err, m.end()); err != nil {
			return err
		}
	}
	took := median(first).wall
	b.row(fmt.Sprintf("github: %d objects on as many issues, first time", mirroredIssues), short(took), fmt.Sprint(requests, " requests"), short(took),
		took.Seconds(), 5, " s")
	took = median(again).wall
	b.row("github: the same, unchanged", short(took), fmt.Sprintf("%d of %d 304", unchanged, looks), short(took), ms(took), 500, " ms")
	return nil
}

func timed(do func() error) (usage, error) {
	start := time.Now()
	err := do()
	return usage{wall: time.Since(start)}, err
}

// make writes the objects, and runs reconcile on them.
func (m *mirrored) make(ctx context.Context, binary string) error {
	if err := os.RemoveAll(m.dir); err != nil {
		return err
	}
	for i := range mirroredIssues / 2 {
		var session, dag bytes.Buffer
		head(&session, "Session", name("sessions", i))
		fmt.Fprintf(&session, "  title: The session of team %d\n  owner: team-%d\n", i, i)
		head(&dag, "DAG", name("dags", i))
		fmt.Fprintf(&dag, "  session: %s\n  issue: %d\n  nodes:\n    - {name: build, run: [\"true\"]}\n", name("sessions", i), i+1)
		dag.WriteString("    - {name: test, run: [\"true\"], needs: [build]}\n")
		for _, f := range []struct{ folder, text string }{{"sessions", session.String()}, {"dags", dag.String()}} {
			if err := writeFile(filepath.Join(m.dir, "specs", f.folder, name(f.folder, i)+".yaml"), f.text); err != nil {
				return err
			}
		}
	}
	g := generator{dir: m.dir, binary: binary}
	return g.reconcile(ctx)
}

// begin makes a fresh repository on GitHub with the issues of the DAGs, and forgets the one before.
func (m *mirrored) begin() (err error) {
	if err := os.RemoveAll(filepath.Join(m.dir, "state", "github")); err != nil {
		return err
	}
	if m.cache, err = os.MkdirTemp("", "reconcile-bench-github"); err != nil {
		return err
	}
	if m.rig, err = githubtest.New(); err != nil {
		return err
	}
	for i := range mirroredIssues / 2 { // they are numbered from 1
		issue := map[string]string{"title": name("dags", i)}
		if err := m.rig.Do(githubtest.Mona, "POST", "/repos/"+m.rig.Repo+"/issues", issue, nil); err != nil {
			return err
		}
	}
	return nil
}

func (m *mirrored) end() error {
	m.rig.Close()
	var err error
	for _, v := range m.rig.Violations() {
		err = errors.Join(err, errors.New(v))
	}
	return errors.Join(err, os.RemoveAll(m.cache))
}

// sync is what a process does: it opens the tree, mirrors it, and reads what people wrote.
func (m *mirrored) sync(ctx context.Context) (err error) {
	store, err := openStore(m.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	t, err := store.Load(ctx)
	if err != nil {
		return err
	}
	client, err := github.New(github.Options{
		Repo: m.rig.Repo, BaseURL: m.rig.URL, Token: githubtest.Token(githubtest.Bot), Pace: -1, Cache: m.cache,
	})
	if err != nil {
		return err
	}
	records := mirroring.NewRecords(store, m.rig.Repo, false, func(string) {})
	out := &mirroring.Mirror{Remote: client, Records: records, Now: time.Now}
	if out.Keys, err = records.Keys(ctx, ""); err != nil {
		return err
	}
	made := func(ref schemas.Ref) int {
		n, _ := records.Made(ctx, ref) // one that cannot be read is made again, and counted below
		return n
	}
	issues := mirror.Project(t, controllers.MirrorOptions(t, mirror.Options{Made: made}))
	report, err := out.Out(ctx, issues)
	if err == nil && (len(issues) != mirroredIssues || report.Left > 0) {
		err = fmt.Errorf("%d issues are to be mirrored, %d were left: %v", len(issues), report.Left, report.Notes)
	}
	if err != nil {
		return err
	}
	in := &mirroring.Inbox{
		Mirror: out, Client: client,
		Tree:  store.Load,
		Write: func(derive.Spec) error { return errors.New("nobody wrote anything") },
	}
	heard, err := in.Read(ctx)
	return errors.Join(err, heard.Later)
}
