//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/events"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// program is the program and a tree in which an engineer may ask an architect, who is a person.
type program struct {
	t        *testing.T
	bin, dir string
}

func newProgram(t *testing.T) *program {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, bin: filepath.Join(t.TempDir(), "reconcile"), dir: t.TempDir()}
	if err := os.Symlink(exe, p.bin); err != nil {
		t.Fatal(err)
	}
	const agent = "apiVersion: reconcile.dev/v1alpha1\nkind: Agent\nmetadata: {name: "
	p.write("specs/agents/engineer.yaml", agent+"engineer}\nspec: {canClarify: [architect], runner: {human: {}}}\n")
	p.write("specs/agents/architect.yaml", agent+"architect}\nspec: {runner: {human: {}}}\n")
	return p
}

func (p *program) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *program) command(now string, args ...string) *exec.Cmd {
	cmd := exec.Command(p.bin, args...)
	cmd.Dir = p.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "USER=ada", "RECONCILE_NOW=" + now}
	return cmd
}

// run runs a command at a time, which must succeed.
func (p *program) run(now string, args ...string) {
	p.t.Helper()
	if out, err := p.command(now, args...).CombinedOutput(); err != nil {
		p.t.Fatalf("reconcile %q: %v\n%s", args, err, out)
	}
}

// followed is a reconcile events --follow that runs.
type followed struct {
	*exec.Cmd
	t      *testing.T
	out    *os.File
	lines  *bufio.Reader
	stderr bytes.Buffer
}

func (p *program) follow(args ...string) *followed {
	p.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		p.t.Fatal(err)
	}
	f := &followed{t: p.t, Cmd: p.command("", append([]string{"events", "--follow", "-o", "json"}, args...)...), out: r}
	f.lines = bufio.NewReader(r)
	f.Stdout, f.Stderr = w, &f.stderr
	if err := f.Start(); err != nil {
		p.t.Fatal(err)
	}
	w.Close()
	p.t.Cleanup(func() {
		r.Close()
		if f.ProcessState == nil {
			_ = f.Process.Kill() // the test has failed before it waited
			_ = f.Wait()
		}
	})
	return f
}

// next is the next line, for which it waits.
func (f *followed) next() events.Event {
	f.t.Helper()
	if err := f.out.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		f.t.Fatal(err)
	}
	line, err := f.lines.ReadBytes('\n')
	var e events.Event
	if err != nil || json.Unmarshal(line, &e) != nil {
		f.t.Fatalf("no event came: %q, %v; stderr: %s", line, err, &f.stderr)
	}
	return e
}

func clockTime(s string) schemas.Time {
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err) // a literal of this file
	}
	return schemas.NewTime(at)
}

// All five events fire, once each and in order, with their payload; a process that follows them sees each as it
// happens, and so does whoever reads the log later.
func TestScenario_EventBusEvents(t *testing.T) {
	const ten, late = "2026-02-26T10:00:00Z", "2026-02-26T10:31:00Z"
	p := newProgram(t)
	f := p.follow()
	payload := func(kind, id, topic string, blocking bool, at string, round int, status string) *settle.Clarified {
		return &settle.Clarified{
			Type: kind, ClarificationID: id, IssueNumber: 42, FromAgent: "engineer", ToAgent: "architect", Topic: topic,
			Blocking: blocking, Timestamp: clockTime(at), Round: round, Status: status,
		}
	}
	ask := []string{"clarify", "ask", "--issue", "42", "--from", "engineer", "--to", "architect", "--question", "Which?", "--topic"}
	steps := []struct {
		now  string
		args []string
		want *settle.Clarified
	}{
		{ten, append(ask, "Database"), payload("clarification-requested", "CLR-42-001", "Database", true, ten, 1, "pending")},
		{late, nil, payload("clarification-stale", "CLR-42-001", "Database", true, "2026-02-26T10:30:00Z", 1, "stale")},
		{late, []string{"clarify", "answer", "CLR-42-001", "PostgreSQL."},
			payload("clarification-answered", "CLR-42-001", "Database", true, late, 1, "answered")},
		{late, []string{"clarify", "resolve", "CLR-42-001", "Taken."},
			payload("clarification-resolved", "CLR-42-001", "Database", true, late, 2, "resolved")},
		{late, append(ask, "Cache", "--non-blocking"),
			payload("clarification-requested", "CLR-42-002", "Cache", false, late, 1, "pending")},
		{late, []string{"clarify", "escalate", "CLR-42-002", "Nobody knows."},
			payload("clarification-escalated", "CLR-42-002", "Cache", false, late, 1, "escalated")},
	}
	for i, step := range steps {
		p.run(step.now, step.args...)
		e := f.next()
		for e.Clarification == nil {
			e = f.next() // of the agents
		}
		if !reflect.DeepEqual(e.Clarification, step.want) {
			t.Errorf("step %d: %+v, want %+v", i, e.Clarification, step.want)
		}
		if e.Ref == "" || e.Time != step.want.Timestamp || !strings.Contains(e.Message, step.want.ClarificationID) {
			t.Errorf("step %d: %+v", i, e)
		}
	}
	logged := readEvents(t, p, "")
	if len(logged) != len(steps) {
		t.Errorf("the log has %d events about clarifications, want %d", len(logged), len(steps))
	}
	for _, typ := range events.Types() {
		if !strings.HasPrefix(typ, "clarification-") {
			continue
		}
		for _, e := range readEvents(t, p, typ) {
			if e.Clarification.Type != typ {
				t.Errorf("--type %s prints %s", typ, e.Clarification.Type)
			}
		}
	}
}

// readEvents are the events about clarifications that the log has, of one type or of all.
func readEvents(t *testing.T, p *program, typ string) []events.Event {
	t.Helper()
	cmd := p.command("", "events", "-o", "json", "--type", typ)
	if typ == "" {
		cmd = p.command("", "events", "-o", "json")
	}
	out, err := cmd.Output()
	var list, found []events.Event
	if err != nil || json.Unmarshal(out, &list) != nil {
		t.Fatalf("%q: %v: %s", cmd.Args, err, out)
	}
	for _, e := range list {
		if e.Clarification != nil {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		t.Errorf("no event of type %q", typ)
	}
	return found
}

// A follower ends well by a signal, at which it prints what has come meanwhile, and when nobody reads any more, even if
// nothing happens after that.
func TestFollowEnds(t *testing.T) {
	for name, end := range map[string]func(*followed) error{
		"interrupt":   func(f *followed) error { return f.Process.Signal(syscall.SIGINT) },
		"terminate":   func(f *followed) error { return f.Process.Signal(syscall.SIGTERM) },
		"closed pipe": func(f *followed) error { return f.out.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			p := newProgram(t)
			p.run("", "-q")
			f := p.follow()
			f.next() // it is at work
			if err := end(f); err != nil {
				t.Fatal(err)
			}
			if err := f.Wait(); err != nil || f.stderr.Len() > 0 {
				t.Errorf("it ended with %v and said %q", err, &f.stderr)
			}
		})
	}
}

// TestFollowAcrossProcesses: several processes write, and the log is put aside meanwhile; nothing is missed.
func TestFollowAcrossProcesses(t *testing.T) {
	p := newProgram(t)
	f := p.follow("--type", "clarification-requested")
	for i, topic := range []string{"One", "Two", "Three", "Four"} {
		p.run("", "clarify", "ask", "--issue", "7", "--from", "engineer", "--to", "architect", "--topic", topic,
			"--question", "What about it?")
		if got := f.next().Clarification; got == nil || got.Topic != topic {
			t.Fatalf("after %s came %+v", topic, got)
		}
		if i == 1 {
			log := filepath.Join(p.dir, filepath.FromSlash(events.Path))
			if err := os.Rename(log, log+".1"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := f.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(f.lines); err != nil || len(rest) > 0 {
		t.Errorf("at its end it printed %q, %v", rest, err)
	}
	if err := f.Wait(); err != nil || f.stderr.Len() > 0 {
		t.Errorf("it ended with %v and said %q", err, &f.stderr)
	}
}
