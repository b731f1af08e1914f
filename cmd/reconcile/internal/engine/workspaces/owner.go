package workspaces

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/filelock"
	"reconcile.dev/reconcile/state/proc"
	"reconcile.dev/reconcile/state/regular"
)

// State is what a workspace is for now; see the package comment.
type State string

// The states of a workspace.
const (
	stateCreated State = "created"
	stateWorking State = "working"
	stateDone    State = "done"
	stateLanded  State = "landed"
	stateParked  State = "parked"
	stateSpare   State = "spare"
)

// Owner is the record of a workspace.
type Owner struct {
	Name     string  `json:"name"`
	Kind     string  `json:"kind"`
	State    State   `json:"state"`
	Owner    string  `json:"owner"` // "dag/checks"
	Node     string  `json:"node"`
	Agent    string  `json:"agent,omitempty"`
	Run      string  `json:"run"`      // the key of the latest run that worked in it
	Attempts string  `json:"attempts"` // what the keys of its runs begin with
	Process  proc.ID `json:"process"`  // the reconcile that started that run
	Base     string  `json:"base"`     // the commit that it was made from
	Target   string  `json:"target,omitempty"`
	Branch   string  `json:"branch"`
	Commit   string  `json:"commit,omitempty"` // of the latest success
	Parked   string  `json:"parked,omitempty"` // the commit with what was not committed
	// Tests is the commit of another agent whose tests are there, which are no part of the work; it is made onto TestsOf. "": none.
	Tests     string    `json:"tests,omitempty"`
	TestsOf   string    `json:"testsOf,omitempty"`
	PortBase  int       `json:"portBase,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	ChangedAt time.Time `json:"changedAt"`
}

// event changes a record, or refuses to.
type event func(Owner) (Owner, error)

// opened starts a run of some attempts in the workspace.
func opened(run, attempts string, by proc.ID) event {
	return func(o Owner) (Owner, error) {
		switch o.State {
		case stateCreated, stateWorking, stateDone:
			o.State, o.Run, o.Attempts, o.Process = stateWorking, run, attempts, by
			return o, nil
		}
		return o, o.refuse("a run cannot start in it")
	}
}

// tested says that tests of another agent are in the workspace; nil: none is any more.
func tested(t *settle.Tests) event {
	return func(o Owner) (Owner, error) {
		if o.Tests, o.TestsOf = "", ""; t != nil {
			o.Tests, o.TestsOf = t.Commit, t.Base
		}
		return o, nil
	}
}

// tests are those of another agent that are in the workspace; nil for none.
func (o *Owner) tests() *settle.Tests {
	if o.Tests == "" {
		return nil
	}
	return &settle.Tests{Base: o.TestsOf, Commit: o.Tests}
}

// released ends a run in the workspace, whatever its outcome.
func released(o Owner) (Owner, error) {
	o.Process = proc.ID{}
	return o, nil
}

// succeeded ends the work, and the run; commit is "" if nothing changed.
func succeeded(commit string) event {
	return func(o Owner) (Owner, error) {
		if o.State != stateWorking {
			return o, o.refuse("no run works in it")
		}
		o.State, o.Commit, o.Process = stateDone, commit, proc.ID{}
		return o, nil
	}
}

// landed says that the commit is part of the branch that the work is for.
func landed(o Owner) (Owner, error) {
	switch o.State {
	case stateDone, stateLanded:
		o.State = stateLanded
		return o, nil
	}
	return o, o.refuse("its work is not done")
}

// parked gives the workspace up; commit has its uncommitted changes, "" without any.
func parked(commit string) event {
	return func(o Owner) (Owner, error) {
		if o.State == stateCreated {
			return o, o.refuse("nobody has worked in it")
		}
		if o.State != stateLanded {
			o.State = stateParked
		}
		if commit != "" {
			o.Parked = commit
		}
		return o, nil
	}
}

// spared says that nobody uses a checkout for checks.
func spared(o Owner) (Owner, error) {
	if o.Kind != settle.CheckWorkspace {
		return o, o.refuse("it is no checkout for checks")
	}
	o.State, o.Process = stateSpare, proc.ID{}
	return o, nil
}

// removable reports whether the workspace may be deleted: no one has worked in it, or it was given up and a reference has its uncommitted changes.
func (o *Owner) removable() bool {
	return o.State == stateCreated || o.State == stateLanded || o.State == stateParked || o.State == stateSpare
}

// unfinished reports whether what is in the workspace may still become part of a commit.
func (o *Owner) unfinished() bool { return o.State == stateWorking || o.State == stateDone }

func (o *Owner) refuse(why string) error {
	return fmt.Errorf("workspace %s is %s: %s", o.Name, o.State, why)
}

const recordSuffix = ".json"

// lock locks the records of the tree's workspaces.
func (m *Manager) lock() (unlock func(), err error) {
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return nil, err
	}
	f, _, err := regular.OpenPath(filepath.Join(m.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	l, err := filelock.Wait(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _, _ = l.Unlock(), f.Close() }, nil // a lock ends with its file
}

// owners returns all records, by name. A record that cannot be read is an error: its workspace may hold work.
func (m *Manager) owners() ([]Owner, error) {
	if m.unusable != nil {
		return nil, nil
	}
	entries, err := os.ReadDir(m.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Owner
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), recordSuffix); ok && !e.IsDir() {
			o, err := m.known(name, e)
			if err != nil {
				return nil, err
			}
			out = append(out, o)
		}
	}
	return out, nil
}

// knownOwner is a record as this process has read it.
type knownOwner struct {
	file  fs.FileInfo
	owner Owner
}

// known returns a record. It reads a file once: a new version replaces it.
func (m *Manager) known(name string, e fs.DirEntry) (Owner, error) {
	is, err := e.Info()
	if err != nil {
		return Owner{}, err
	}
	was, _ := m.records.Load(name)
	if was, ok := was.(knownOwner); ok && os.SameFile(was.file, is) && was.file.Size() == is.Size() && was.file.ModTime().Equal(is.ModTime()) {
		return was.owner, nil
	}
	o, err := m.read(name)
	if err == nil {
		m.records.Store(name, knownOwner{is, o})
	}
	return o, err
}

func (m *Manager) read(name string) (Owner, error) {
	path := m.path(name + recordSuffix)
	data, err := regular.ReadPath(path)
	if err != nil {
		return Owner{}, err
	}
	var o Owner
	if err := json.Unmarshal(data, &o); err != nil || o.Name != name {
		return Owner{}, fmt.Errorf("%s: this is no record of a workspace: %w; move it and the folder beside it away after you have "+
			"saved what is in there", path, orDamaged(err))
	}
	return o, nil
}

func orDamaged(err error) error {
	if err == nil {
		return errors.New("it has another name")
	}
	return err
}

// write makes a record durable. The lock is held.
func (m *Manager) write(o Owner) error {
	data, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return err
	}
	root, err := regular.Root(m.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return durable.WriteFile(root, ".tmp", o.Name+recordSuffix, append(data, '\n'))
}

// change applies an event to a record.
func (m *Manager) change(name string, e event) (Owner, error) {
	unlock, err := m.lock()
	if err != nil {
		return Owner{}, err
	}
	defer unlock()
	return m.changeLocked(name, e)
}

func (m *Manager) changeLocked(name string, e event) (Owner, error) {
	o, err := m.read(name)
	if err != nil {
		return o, err
	}
	next, err := e(o)
	if err != nil || next == o {
		return next, err
	}
	next.ChangedAt = m.o.Now()
	return next, m.write(next)
}
