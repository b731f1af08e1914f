package render

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hinshun/vt10x"

	"reconcile.dev/reconcile/controllers/progress"
	"reconcile.dev/reconcile/controllers/progress/progresstest"
	"reconcile.dev/reconcile/schemas"
)

func node(name string, needs ...string) schemas.Node {
	return schemas.Node{Name: name, Run: []string{"x"}, Needs: needs}
}

func play(t *testing.T, nodes ...schemas.Node) *progresstest.Play {
	s := &schemas.DAGSpec{Nodes: nodes}
	s.Default()
	return progresstest.New(t, start, map[string]*schemas.DAGSpec{"checks": s})
}

func flaky(name string, limit int) schemas.Node {
	n := node(name)
	backoff := schemas.Duration(4 * time.Second)
	n.Retry = &schemas.Retry{Limit: limit, Backoff: &backoff}
	return n
}

func TestLines(t *testing.T) {
	p := play(t, node("build"), flaky("style", 1))
	var b bytes.Buffer
	l := &Lines{W: &b, Now: func() time.Time { return p.Now }}
	var printed strings.Builder
	for i := range 25 {
		fmt.Fprintf(&printed, "line %d\x1b[2J\n", i)
	}
	attempt := func() {
		l.Report(p.Start("checks", "style"))
		l.Tree(p.Turn())
		p.Pass(time.Second)
		l.Report(p.Finish("checks", "style", schemas.OutcomeFailed, printed.String()))
		l.Tree(p.Turn())
		p.Pass(4 * time.Second)
		l.Tree(p.Turn())
	}
	l.Tree(p.Tree)
	l.Report(p.Start("checks", "build"))
	attempt()
	l.Report(p.Finish("checks", "build", schemas.OutcomeSucceeded, "quiet"))
	l.Note("committed\x07")
	attempt()
	l.Close()
	l.Note("late")
	want := `12:03:04 dag/checks build Running
12:03:04 dag/checks style Running
12:03:05 dag/checks style Failed 1.0s: exit code 1; attempt 2 of 2 follows in 4.0s
12:03:09 dag/checks build Succeeded 5.0s
committed\x07
12:03:09 dag/checks style Running
12:03:10 dag/checks style Failed 1.0s: exit code 1 (attempt 2 of 2)
`
	for i := 5; i < 25; i++ {
		want += fmt.Sprintf("    line %d\\x1b[2J\n", i)
	}
	want += "  log:  .reconcile/logs/dags/checks/style-KEY-2.log\n  next: reconcile logs dag/checks style\n"
	got := b.String()
	if key := p.Tree.Entry(schemas.Ref{Kind: "DAG", Name: "checks"}).Status().(*schemas.DAGStatus).Nodes.Of("style").Key; key != "" {
		got = strings.ReplaceAll(got, key[len("sha256:"):][:16], "KEY")
	}
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// Of many failures only the first are told in full; of each there is the next command.
func TestManyFailures(t *testing.T) {
	var nodes []schemas.Node
	for i := range fullFailures + 5 {
		nodes = append(nodes, node(fmt.Sprint("n", i)))
	}
	p := play(t, nodes...)
	var b bytes.Buffer
	l := &Lines{W: &b, Now: func() time.Time { return p.Now }}
	l.Tree(p.Tree)
	for _, n := range nodes {
		l.Report(p.Start("checks", n.Name))
		p.Pass(time.Second)
		l.Report(p.Finish("checks", n.Name, schemas.OutcomeFailed, "why\n"))
	}
	l.Tree(p.Turn())
	if full, next := strings.Count(b.String(), "    why\n"), strings.Count(b.String(), "  next: reconcile logs "); full != fullFailures || next != len(nodes) {
		t.Errorf("%d in full, %d next commands of %d failures", full, next, len(nodes))
	}
}

// TestFailureWithoutOutput: logs would print nothing of a run that failed before its program began.
func TestFailureWithoutOutput(t *testing.T) {
	lines := (&eventLines{}).of(Palette{}, progress.Event{Node: progress.Node{Owner: "dag/checks", Name: "a", State: "Failed", Message: "no such program"}, Final: true})
	if len(lines) != 2 || lines[1] != "  next: reconcile describe dag/checks a" {
		t.Errorf("got:\n%s", strings.Join(lines, "\n"))
	}
}

func TestCountLines(t *testing.T) {
	now := start
	var b bytes.Buffer
	l := &Lines{W: &b, Now: func() time.Time { return now }}
	for i := range 1000 { // half a second
		now = now.Add(time.Millisecond / 2)
		l.Count("decide", i, 1000)
	}
	for i := range 2500 { // ten seconds
		now = now.Add(4 * time.Millisecond)
		l.Count("write", i, 2500)
	}
	now = now.Add(time.Hour)
	l.Count("decide", 0, 10)
	want := "write: 750 of 2,500 done, about 7s left\n" +
		"write: 1,500 of 2,500 done, about 4s left\n" +
		"write: 2,250 of 2,500 done, about 1s left\n"
	if b.String() != want {
		t.Errorf("got:\n%swant:\n%s", b.String(), want)
	}
}

// terminal is a screen with its history, as people see it.
type terminal struct {
	*testing.T
	vt      vt10x.Terminal
	resized sync.Mutex // guards width and height
	width   int
	height  int
	history []string // what was scrolled off
	writes  int
}

func newTerminal(t *testing.T, width, height int) *terminal {
	return &terminal{T: t, vt: vt10x.New(vt10x.WithSize(width, height)), width: width, height: height}
}

func (s *terminal) size() (width, height int) {
	s.resized.Lock()
	defer s.resized.Unlock()
	return s.width, s.height
}

func (s *terminal) resize(width, height int) {
	s.resized.Lock()
	defer s.resized.Unlock()
	s.width, s.height = width, height
	s.vt.Resize(width, height)
}

// Write feeds the emulator. A terminal device makes a new line of each line feed.
func (s *terminal) Write(b []byte) (int, error) {
	s.writes++
	for _, clears := range []string{"\x1b[J", "\x1b[0J", "\x1b[2J", "\x1b[3J", "\x1bc"} {
		if bytes.Contains(b, []byte(clears)) {
			s.Errorf("%q makes some terminals keep the screen in their history", clears)
		}
	}
	for _, r := range string(b) {
		if r == '\n' {
			if s.vt.Cursor().Y == s.height-1 {
				s.history = append(s.history, s.rows()[0])
			}
			io.WriteString(s.vt, "\r")
		}
		io.WriteString(s.vt, string(r))
	}
	return len(b), nil
}

// rows are the rows of the screen without what is empty at their ends.
func (s *terminal) rows() []string {
	rows := strings.Split(s.vt.String(), "\n")
	for i := range rows {
		rows[i] = strings.TrimRight(rows[i], " \x00")
	}
	return rows[:min(len(rows), s.height)]
}

// shows compares the screen, without the empty rows at its end.
func (s *terminal) shows(step string, want ...string) {
	s.Helper()
	rows := s.rows()
	for len(rows) > 0 && rows[len(rows)-1] == "" {
		rows = rows[:len(rows)-1]
	}
	if !slices.Equal(rows, want) {
		s.Errorf("%s: the screen is\n%s\nwant\n%s", step, strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
}

// show is a live view of a run on a terminal, with the bubble's clock as the run's.
type show struct {
	*progresstest.Play
	*terminal
	live *Live
}

func newShow(t *testing.T, s *terminal, nodes ...schemas.Node) *show {
	spec := &schemas.DAGSpec{Nodes: nodes}
	spec.Default()
	p := progresstest.New(t, time.Now().UTC(), map[string]*schemas.DAGSpec{"checks": spec})
	v := &show{p, s, NewLive(s, Palette{}, s.size, func() time.Time { return time.Now().UTC() }, 4)}
	v.live.Tree(p.Tree)
	return v
}

// pass lets time pass until shortly after a redraw.
func (v *show) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
	v.Now = time.Now().UTC()
}

func (v *show) start(nodes ...string) {
	for _, n := range nodes {
		v.live.Report(v.Play.Start("checks", n))
	}
	v.live.Tree(v.Turn())
}

func (v *show) finish(node, outcome, output string) {
	v.live.Report(v.Play.Finish("checks", node, outcome, output))
	v.live.Tree(v.Turn())
}

func TestLiveRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTerminal(t, 80, 24)
		ask := schemas.Node{Name: "look", Agent: "ada", Prompt: "look"}
		v := newShow(t, s, node("build"), flaky("style", 1), ask, node("publish", "build", "look"))
		v.start("build", "style")
		v.pass(redrawEvery + time.Millisecond)
		s.shows("at first",
			"0 of 4 nodes done, 2 running, 1 waiting",
			"  dag/checks build  250ms",
			"  dag/checks style  250ms",
			"  dag/checks look   waits for ada; approve it when it is done")
		v.pass(3 * time.Second)
		v.finish("style", schemas.OutcomeFailed, "main.go:1: bad\n")
		v.pass(redrawEvery)
		s.shows("back-off",
			"00:00:03 dag/checks style Failed 3.2s: exit code 1; attempt 2 of 2 follows",
			"    in 4.0s",
			"0 of 4 nodes done, at least 4.0s left, 1 running, 1 waiting, 1 queued",
			"  dag/checks build  3.5s",
			"  dag/checks style  attempt 2 of 2 in 3.7s",
			"  dag/checks look   waits for ada; approve it when it is done")
		v.pass(4 * time.Second)
		v.start("style")
		v.finish("build", schemas.OutcomeSucceeded, "")
		v.pass(2 * time.Second)
		s.shows("again",
			"00:00:03 dag/checks style Failed 3.2s: exit code 1; attempt 2 of 2 follows",
			"    in 4.0s",
			"1 of 4 nodes done, about 6.0s left, 1 running, 1 waiting",
			"  dag/checks style  1.9s, attempt 2 of 2",
			"  dag/checks look   waits for ada; approve it when it is done")
		v.finish("style", schemas.OutcomeSucceeded, "")
		v.pass(3 * redrawEvery)
		ended := []string{
			"00:00:03 dag/checks style Failed 3.2s: exit code 1; attempt 2 of 2 follows",
			"    in 4.0s",
			"ran 2 nodes in 9.5s:",
			"  dag/checks style  Succeeded  5.2s in 2 attempts",
			"  dag/checks build  Succeeded  7.5s",
			"waiting:",
			"  dag/checks look  waits for ada; approve it when it is done",
		}
		s.shows("ended", ended...)
		writes := s.writes
		v.pass(time.Hour)
		if s.writes != writes {
			t.Errorf("drawn %d times while nothing ran", s.writes-writes)
		}
		v.live.Close()
		v.live.Close()
		v.live.Note("late")
		s.shows("closed", ended...)
		if len(s.history) > 0 {
			t.Errorf("in the history: %q", s.history)
		}
	})
}

// Whoever looks at a run sees that its agent waits for a permission, and how to give it; a log says so once.
func TestAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTerminal(t, 80, 24)
		v := newShow(t, s, schemas.Node{Name: "n", Agent: "coder", Prompt: "Work."})
		var log bytes.Buffer
		lines := &Lines{W: &log, Now: func() time.Time { return v.Now }}
		lines.Tree(v.Tree)
		turn := func() {
			v.live.Tree(v.Turn())
			lines.Tree(v.Tree)
			v.pass(redrawEvery + time.Millisecond)
		}
		v.start("n")
		v.Ask("checks", "n", "npm", "ci")
		turn()
		turn()
		s.shows("asked",
			"0 of 1 node done, 1 running",
			"  dag/checks n  500ms: coder asks to run: npm ci; allow or refuse it: reconcil…")
		v.Ask("checks", "n", "npm", "publish")
		turn()
		if n := strings.Count(log.String(), "\n"); n != 2 || strings.Count(log.String(), "00:00:00 dag/checks n WaitsForPermission: coder asks to run: npm ") != 2 {
			t.Errorf("the log has %d lines:\n%s", n, log.String())
		}
		v.live.Close()
	})
}

// A watcher's view vanishes when everything has ended and comes back with the next work.
func TestLiveComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTerminal(t, 40, 6)
		v := newShow(t, s, node("a"), node("b"))
		v.start("a")
		v.pass(time.Second)
		v.finish("a", schemas.OutcomeSucceeded, "")
		v.pass(time.Second)
		v.start("b")
		v.pass(time.Second)
		v.finish("b", schemas.OutcomeSucceeded, "")
		v.pass(2 * time.Second)
		s.shows("after a and b", "ran 2 nodes in 3.0s:", "  dag/checks a  Succeeded  1.0s", "  dag/checks b  Succeeded  1.0s")
		e := *v.Tree.Entry(schemas.Ref{Kind: "DAG", Name: "checks"})
		spec := &schemas.DAGSpec{Session: "work", Nodes: []schemas.Node{node("a", "c"), node("c")}}
		spec.Default()
		e.Object = progresstest.New(t, v.Now, map[string]*schemas.DAGSpec{"checks": spec}).Tree.Entry(e.Ref).Object
		v.Tree = v.Tree.With(&e)
		v.live.Tree(v.Turn())
		v.start("c")
		v.pass(time.Second)
		s.shows("back", "ran 2 nodes in 3.0s:", "  dag/checks a  Succeeded  1.0s", "  dag/checks b  Succeeded  1.0s",
			"0 of 2 nodes done, about 1.0s left, 1 …", "  dag/checks c  1.0s")
		v.live.Close()
	})
}

// However small the terminal: no row is wrapped, the view is never higher, nothing of it gets into the history, and it is
// drawn four times a second at most.
func TestLiveFits(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {40, 10}, {20, 5}, {10, 2}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTerminal(t, size[0], size[1])
				names := []string{"a_node_with_a_name_that_is_far_too_long_for_a_line"}
				for i := range 40 {
					names = append(names, fmt.Sprint("n", i))
				}
				var nodes []schemas.Node
				for _, name := range names {
					nodes = append(nodes, node(name))
				}
				v := newShow(t, s, nodes...)
				v.live.Note("$")
				v.start(names...)
				for i, name := range names[1:] {
					v.pass(time.Second)
					v.finish(name, schemas.OutcomeSucceeded, "")
					if i == 10 {
						v.live.Note("note")
					}
				}
				if s.writes > 41*4+5 {
					t.Errorf("drawn %d times in 41 s", s.writes)
				}
				v.live.Note("$")
				rows, history := s.rows(), s.history
				v.live.Close()
				if rows[size[1]-1] != "" {
					t.Errorf("the cursor's row holds %q", rows[size[1]-1])
				}
				for _, row := range history {
					if row != "$" && row != "note" && row != "" {
						t.Errorf("a row of the view is in the history: %q", row)
					}
				}
			})
		})
	}
}

func TestLiveShowsAsManyAsFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTerminal(t, 40, 6)
		long := "a_node_with_a_name_that_is_far_too_long"
		names := []string{"b", long, "c", "d", "e"}
		v := newShow(t, s, node("b"), node(long), node("c"), node("d"), node("e"))
		v.start(names...)
		v.pass(10 * time.Second)
		frame := []string{
			"0 of 5 nodes done, 5 running",
			"  dag/c… a_nod…o_long  10s",
			"  dag/checks b         10s",
			"  dag/checks c         10s",
			"  … and 2 more",
		}
		s.shows("40x6", frame...)
		s.resize(80, 8)
		v.pass(redrawEvery)
		s.shows("80x8", "0 of 5 nodes done, 5 running",
			"  dag/c… a_node_with_a_n…_is_far_too_long  10s",
			"  dag/checks b                             10s",
			"  dag/checks c                             10s",
			"  dag/checks d                             10s",
			"  dag/checks e                             10s")
		v.live.Close()
	})
}

func TestLiveCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTerminal(t, 80, 24)
		v := newShow(t, s, node("a"))
		v.live.Count("read", 0, 1000)
		v.pass(time.Second)
		v.live.Count("read", 250, 1000)
		v.pass(redrawEvery)
		if got := s.rows()[0]; got != "read: 250 of 1,000 done, about 4s left" {
			t.Errorf("the view begins with %q", got)
		}
		v.live.Tree(v.Turn())
		v.pass(redrawEvery)
		if got := s.rows()[0]; strings.HasPrefix(got, "read") {
			t.Errorf("it is over, and yet: %q", got)
		}
		v.live.Close()
	})
}

// The list of what ran is bounded; what did not succeed is in it, and what took longest.
func TestListOfWhatRan(t *testing.T) {
	var r ranNodes
	for i := range 3 * ranKept {
		e := progress.Event{At: start.Add(time.Hour), Node: progress.Node{Owner: "dag/checks", Name: fmt.Sprint("n", i),
			State: schemas.OutcomeSucceeded, Took: time.Duration(i+1) * time.Millisecond}}
		if i == 7 {
			e.State = schemas.OutcomeFailed
		}
		r.add(e)
	}
	text := r.take(Palette{Width: 80})
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != ranRows+2 || !strings.HasPrefix(lines[0], "ran 3000 nodes in ") || !strings.Contains(lines[1], "dag/checks n7  ") ||
		!strings.Contains(text, " n2999 ") || lines[len(lines)-1] != "  … and 2950 more that succeeded sooner" {
		t.Errorf("the list is\n%s", text)
	}
	if r.take(Palette{}) != "" {
		t.Error("what was told is told again")
	}
}
