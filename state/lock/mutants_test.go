package lock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/state/proc"
)

// mutants are protocols that look right. Each has a scenario in which the search of model_test.go must find it out,
// and a word of the promise that it breaks.
var mutants = map[string]struct {
	scenario
	breaks string
}{
	"naive: steals and releases without looking": {scenario{ours: 2, leftover: true, program: naive}, "inside"},
	"naive, one is paused":                       {scenario{ours: 2, pauses: 1, program: naive}, "inside"},
	"naive, one is killed":                       {scenario{ours: 2, kills: 1, patient: true, program: naive}, "gave up"},
	"rename and verify, with a fence, without a guard": {
		scenario{ours: 3, leftover: true, program: renameLock}, "inside"},
	"no fence":        {scenario{ours: 1, peers: 1, pauses: 1, program: noFence}, "lost"},
	"foreign release": {scenario{ours: 2, peers: 1, pauses: 1, program: foreignRelease}, "lost"},
	"removes without looking what": {
		scenario{ours: 1, peers: 2, leftover: true, program: with(func(d disk) disk { return noVerify{d} })}, "lost"},
	"trusts the pids of others": {
		scenario{ours: 1, peers: 1, program: with(func(d disk) disk { return anyPid{d} })}, "lost"},
	"an empty lock is stale": {
		scenario{ours: 1, peers: 1, program: with(func(d disk) disk { return emptyStale{d} })}, "lost"},
	"does not wait after taking a stale lock": {scenario{ours: 1, peers: 1, leftover: true, program: noSettle}, "lost"},
	"never judges corpses": {
		scenario{ours: 2, kills: 1, patient: true, program: with(func(d disk) disk { return noCorpse{d} })}, "gave up"},
	"forgets what a killed one began": {
		scenario{ours: 2, kills: 1, patient: true, program: with(func(d disk) disk { return litterbug{d, new(bool)} })}, "gave up"},
}

func TestMutantsAreFound(t *testing.T) {
	for name, m := range mutants {
		states, err := explore(m.scenario, 400_000)
		if err == nil || errors.Is(err, errTooMany) || !strings.Contains(err.Error(), m.breaks) {
			t.Errorf("%s: %d states, %v; want it to be found out: %q", name, states, err, m.breaks)
		}
	}
}

// inside does one update between a lock and its release.
func inside(d *modelDisk, check, release func() error) error {
	old, _ := d.read()
	data, _ := d.mutate(old)
	s, _ := d.stage(data)
	err := check()
	if err == nil {
		err = s.Commit()
	}
	d.leave()
	return errors.Join(err, release())
}

func always() error { return nil }

// naive is the agreed protocol in the obvious way.
func naive(d *modelDisk) error {
	o := d.options()
	for range 3 {
		_, err := d.create(lockFile, newBody(d.self(), "", o.Now()).encode())
		if err == nil {
			return inside(d, always, func() error { return d.remove(lockFile) })
		}
		if f, err := d.open(lockFile); err == nil && o.Now().Sub(parseBody(f.content()).Timestamp) > o.Stale {
			_ = d.remove(lockFile)
		}
	}
	return ErrBusy
}

// renameLock does what the protocol does, but for the guard.
func renameLock(d *modelDisk) error {
	o := d.options()
	for range 3 {
		own, err := d.create(lockFile, newBody(d.self(), "", o.Now()).encode())
		if err == nil {
			l := &Lock{disk: d, guard: d, own: own, o: o, since: o.Now()}
			_, _ = l.Read()
			return inside(d, l.Check, func() error { _, err := reap(d, own); return err })
		}
		f, err := d.open(lockFile)
		if err == nil && o.Now().Sub(parseBody(f.content()).Timestamp) > o.Stale {
			_, _ = reap(d, f)
		}
	}
	return ErrBusy
}

// with runs the protocol on a disk that keeps something from it.
func with(change func(disk) disk) program {
	return func(d *modelDisk) error {
		o := d.options()
		changed := change(d)
		err := update(o.Tries, func() (*Lock, error) { d.leave(); return acquire(context.Background(), changed, "F", o) }, d.mutate)
		d.leave()
		return err
	}
}

type noVerify struct{ disk }

func (d noVerify) same(f file, r role) (bool, error) {
	if r == reapFile {
		return true, nil
	}
	return d.disk.same(f, r)
}

type anyPid struct{ disk }

func (d anyPid) gone(id proc.ID) bool { return id.Tag == "" && id.PID != 0 || d.disk.gone(id) }

type noCorpse struct{ disk }

func (d noCorpse) gone(proc.ID) bool { return false }

type emptyStale struct{ disk }

func (d emptyStale) open(r role) (file, error) {
	f, err := d.disk.open(r)
	if err == nil && len(f.content()) == 0 {
		return ancient{f}, nil
	}
	return f, err
}

func (d emptyStale) same(f file, r role) (bool, error) {
	if a, ok := f.(ancient); ok {
		f = a.file
	}
	return d.disk.same(f, r)
}

type ancient struct{ file }

func (f ancient) modified() time.Time { return f.file.modified().AddDate(-1, 0, 0) }

// litterbug removes N only where it has made it, and so not that of a killed process.
type litterbug struct {
	disk
	made *bool
}

func (d litterbug) create(r role, data []byte) (file, error) {
	*d.made = *d.made || r == newFile
	return d.disk.create(r, data)
}

func (d litterbug) remove(r role) error {
	if r == newFile && !*d.made {
		return nil
	}
	return d.disk.remove(r)
}

func noFence(d *modelDisk) error {
	l, err := acquire(context.Background(), d, "F", d.options())
	if err != nil {
		return err
	}
	return inside(d, always, l.Release)
}

func foreignRelease(d *modelDisk) error {
	l, err := acquire(context.Background(), d, "F", d.options())
	if err != nil {
		return err
	}
	_, err = l.Read()
	return errors.Join(err, inside(d, l.Check, func() error {
		defer l.guard.unlock()
		return d.remove(lockFile)
	}))
}

func noSettle(d *modelDisk) error {
	o := d.options()
	o.Sleep = func(context.Context, time.Duration) error { return nil }
	return update(o.Tries, func() (*Lock, error) { return acquire(context.Background(), d, "F", o) }, d.mutate)
}
