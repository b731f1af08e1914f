package controllers

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"reconcile.dev/reconcile/controllers/admission"
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

var update = flag.Bool("update", false, "rewrite the expected traces in testdata")

// TestScenarios runs testdata/*.txtar. The comment of an archive is a script, its files are specs, and its last file,
// out, is the trace that the script must leave. Lines of a script:
//
//	put PATH…                 the files PATH of the archive are written to the tree ("put" alone: all of in/)
//	rm PATH                   a spec is removed
//	inputs DAG NODE DIGEST    the declared inputs have this content now
//	missing DAG NODE [FILE…]  these declared outputs do not exist now
//	lost DAG NODE             what the records describe of them could not be restored
//	cached DAG NODE           the local cache has what the records describe of them
//	wait DURATION             time passes
//	only [DAG [NODE…]]        the run is asked for that and decides all that it affects; alone: for everything again
//	proved ACTION WHO PROOF   a commit or a comment proves who wrote the action
//	settle                    everything affected is decided, and what changed is traced
//	start DAG NODE [PROCESS]  the wanted effect is claimed and runs; DAG may be the name of a request
//	reaches DAG NODE PERCENT [SESSION]  the running turn has used that share of its context, in that session of its agent
//	heard DAG NODE ACTION     the running turn has got the text of that action
//	admit                     what may start is claimed and runs; what is reserved for it is traced
//	finish DAG NODE OUTCOME [tokens=N] [estimate=N] [requests=N] [cost=USD] [failure=CLASS] [exit=N] [result=JSON] [message=WORD] [answer=WORD] [outputs=PATH,…] [resolution=WORD] [ask=TO|TOPIC|QUESTION]; see detail for the rest
//	derive                    the specs that follow from the tree are written
//	fold                      the ledgers are brought up to date; what changed is traced
//	ledger ISSUE PATH         the file PATH of the archive is the ledger now
//	hook AGENT OUTCOME ISSUE  an agent takes up or ends work
//	cancel                    what runs and is not wanted is ended, and recorded as cancelled
//	crash                     all claims vanish
//	prune DAG                 all records of a DAG are removed
//	forget DAG                the status of a DAG is lost
//	handed DAG NODE           the records of the hand-offs of the node are traced
//	show KIND/NAME            the status file is traced whole
//	spec KIND/NAME            the spec is traced
//	plan | why KIND/NAME | task DAG NODE | verdict | events
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := &scenario{sim: newSim(t), archive: a, proved: map[schemas.Ref]settle.Identity{}}
			s.decider.Identify = func(action schemas.Ref) (settle.Identity, bool) {
				id, ok := s.proved[action]
				return id, ok
			}
			s.run()
			s.compare(file)
		})
	}
}

type scenario struct {
	*sim
	proved  map[schemas.Ref]settle.Identity
	archive *txtar.Archive
	out     bytes.Buffer
	events  []settle.Event
}

func (s *scenario) run() {
	for n, line := range strings.Split(string(s.archive.Comment), "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		fmt.Fprintf(&s.out, "> %s\n", strings.Join(words, " "))
		if !s.step(words[0], words[1:]) {
			s.t.Fatalf("line %d of the script: %q is not understood", n+1, line)
		}
	}
}

func (s *scenario) step(verb string, args []string) bool {
	switch verb {
	case "put":
		s.putFiles(args)
	case "rm":
		s.put(args[0], "")
	case "inputs":
		e := s.entry(schemas.DAGKind.Ref(args[0]))
		if e.Inputs == nil {
			e.Inputs = map[string]string{}
		}
		e.Inputs[args[1]] = args[2]
	case "missing":
		e := s.entry(schemas.DAGKind.Ref(args[0]))
		e.Missing = maps.Clone(e.Missing)
		if e.Missing == nil {
			e.Missing = map[string]state.Missing{}
		}
		if e.Missing[args[1]] = (state.Missing{Files: args[2:]}); len(args) == 2 {
			delete(e.Missing, args[1])
		}
	case "lost":
		e := s.entry(schemas.DAGKind.Ref(args[0]))
		m := e.Missing[args[1]]
		for _, r := range e.Runs() {
			if r.Node == args[1] {
				m.Lost = append(m.Lost, r.Key)
			}
		}
		e.Missing = maps.Clone(e.Missing)
		e.Missing[args[1]] = m
	case "cached":
		e := s.entry(schemas.DAGKind.Ref(args[0]))
		m := e.Missing[args[1]]
		for _, r := range e.Runs() {
			if _, ok := r.OutputsAt(m.Files); ok && r.Node == args[1] {
				m.Cached = append(m.Cached, r.Key)
			}
		}
		e.Missing = maps.Clone(e.Missing)
		e.Missing[args[1]] = m
	case "only":
		if s.only = nil; len(args) > 0 {
			s.only = &settle.Selection{DAG: args[0], Nodes: args[1:]}
			s.entry(schemas.DAGKind.Ref(args[0]))
		}
	case "proved":
		s.proved[schemas.ActionKind.Ref(args[0])] = settle.Identity{Who: args[1], Proof: args[2]}
		s.dirty[schemas.ActionKind.Ref(args[0])] = true
	case "wait":
		d, err := time.ParseDuration(args[0])
		if err != nil {
			s.t.Fatal(err)
		}
		s.now = s.now.Add(d)
		s.wakeUp()
	case "settle":
		s.trace()
	default:
		return s.effect(verb, args) || s.converse(verb, args) || s.tell(verb, args)
	}
	return true
}

// wakeUp marks the objects that asked to be decided again by now, as the loop does.
func (s *scenario) wakeUp() {
	for ref, out := range s.last.Outs {
		if !out.Again.IsZero() && !out.Again.After(s.now) {
			s.entry(ref)
		}
	}
}

func (s *scenario) putFiles(paths []string) {
	for _, f := range s.archive.Files {
		name, in := strings.CutPrefix(f.Name, "in/")
		if in && len(paths) == 0 || slices.Contains(paths, f.Name) {
			for _, version := range []string{"new/", "newer/", "blind/"} {
				name = strings.TrimPrefix(name, version)
			}
			s.put(filepath.ToSlash(name), string(f.Data))
		}
	}
}

func (s *scenario) effect(verb string, args []string) bool {
	switch verb {
	case "start", "claim":
		e, ok := s.find(args[0], args[1])
		if !ok {
			s.t.Fatalf("no effect of dag %s, node %s, is wanted\n%s", args[0], args[1], s.out.Bytes())
		}
		if len(args) > 2 {
			s.claim(e, args[2])
		}
		if s.claim(e, "p1"); verb == "start" {
			s.start(e)
		}
	case "begin":
		s.begin(args[0], args[1])
	case "finish":
		s.finish(args[0], args[1], args[2], func(r *schemas.Run) { s.detail(r, args[3:]) })
	case "reaches":
		s.turn(args[0], args[1], func(t *schemas.Turn) {
			n, err := strconv.Atoi(args[2])
			if err != nil {
				s.t.Fatal(err)
			}
			if len(args) > 3 {
				t.SessionID = args[3]
			}
			t.Usage = &schemas.Usage{ContextUsed: int64(n) * 1000, ContextWindow: 100_000}
			t.Marks = append(t.Marks, schemas.ContextMark{Percent: n, At: schemas.NewTime(s.now), Used: int64(n) * 1000, Window: 100_000,
				Session: t.SessionID, Said: "so far"})
		})
	case "heard":
		s.turn(args[0], args[1], func(t *schemas.Turn) {
			t.Steered = append(t.Steered, schemas.Delivery{Action: args[2], At: schemas.NewTime(s.now)})
		})
	case "admit":
		s.admit()
	case "cancel":
		s.cancelUnwanted()
	case "crash":
		for ref, e := range maps.Clone(s.entries) {
			if len(e.Claims) > 0 {
				s.entry(ref).Claims = nil
			}
		}
	case "prune":
		s.entry(schemas.DAGKind.Ref(args[0])).SetRuns(nil)
	case "forget":
		s.entry(schemas.DAGKind.Ref(args[0])).SetStatus(nil)
	default:
		return false
	}
	return true
}

func (s *scenario) detail(r *schemas.Run, words []string) {
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		switch k {
		case "exit":
			code, err := strconv.Atoi(v)
			if err != nil {
				s.t.Fatal(err)
			}
			r.ExitCode = &code
		case "final":
			r.Final = true
		case "result":
			r.Result = json.RawMessage(v)
		case "message":
			r.Message = strings.ReplaceAll(v, "_", " ")
		case "reported": // as SUMMARY|REMAINING,…
			summary, rest, _ := strings.Cut(strings.NewReplacer("_", " ", `\e`, "\x1b", `\u`, "\u2028").Replace(v), "|")
			if r.Reported = (&schemas.AgentReport{Summary: summary}); rest != "" {
				r.Reported.Remaining = strings.Split(rest, ",")
			}
		case "outputs":
			for _, p := range strings.Split(v, ",") {
				r.Outputs = append(r.Outputs, schemas.Output{Path: p, Digest: "sha256:" + strings.Repeat("0", 64)})
			}
		case "answer":
			r.Result, _ = json.Marshal(strings.ReplaceAll(v, "_", " "))
		case "limit": // of a rate, and how long it lasts
			d, err := time.ParseDuration(v)
			if err != nil {
				s.t.Fatal(err)
			}
			r.Turn = &schemas.Turn{Failure: &schemas.TurnFailure{Class: schemas.FailureLimit, Until: schemas.NewTime(s.now.Add(d))}}
		case "tokens", "requests", "cost", "failure", "estimate":
			s.used(r, k, v)
		case "commit": // of a run in a workspace, or of a landing
			r.Workspace = &schemas.RunWorkspace{Kind: schemas.WorkspaceClone, Name: "w", Base: "b", Commit: v}
		case "lines": // the size of that commit
			r.Workspace.Change = &schemas.Change{}
			r.Workspace.Change.Lines, _ = strconv.Atoi(v)
		case "sensitive":
			r.Workspace.Change.Sensitive = []string{v}
		case "tree": // the digest of its files
			r.Workspace.Tree = v
		case "doubt": // about the change
			r.Workspace.Doubts = []string{strings.ReplaceAll(v, "_", " ")}
		case "evidence": // what a verification found
			r.Result = fmt.Appendf(nil, `{"outcome":%q,"summary":"2 findings","tools":[{"tool":"flake8","category":"linter","outcome":%[1]q}]}`, v)
		case "missing": // the tool that would verify
			r.Result = fmt.Appendf(nil, `{"outcome":"unknown","summary":"%s is unknown","tools":[{"tool":%[1]q,"category":"linter","outcome":"unknown","notInstalled":true}]}`, v)
		case "unchecked": // a file, beside those at which a tool looked
			r.Result = fmt.Appendf(nil, `{"outcome":"passed","summary":"clean: flake8","tools":[{"tool":"flake8","category":"linter","outcome":"passed"}],"unchecked":[%q]}`, v)
		case "undecided": // as LANGUAGE/CATEGORY[/CHOSEN]: no tool looked at it
			of := append(strings.Split(v, "/"), "")
			r.Result = fmt.Appendf(nil, `{"outcome":"unknown","summary":"no tool is about it","undecided":[{"language":%q,"category":%q,"chosen":%q}]}`, of[0], of[1], of[2])
		case "found": // by it, as FILE|MESSAGE, with commas between several
			var all []string
			for f := range strings.SplitSeq(strings.ReplaceAll(v, "_", " "), ",") {
				file, message, _ := strings.Cut(f, "|")
				all = append(all, fmt.Sprintf(`{"id":"%d","file":%q,"line":1,"category":"linter","severity":"medium","message":%q,"tool":"flake8"}`, len(all)+1, file, message))
			}
			r.Result = fmt.Appendf(nil, `{"outcome":"failed","summary":"%s","tools":[{"tool":"flake8","category":"linter","outcome":"failed","findings":%d}],"findings":[%s]}`,
				schemas.Count(len(all), "finding"), len(all), strings.Join(all, ","))
		case "failed": // a test, as FILE|MESSAGE
			file, message, _ := strings.Cut(strings.ReplaceAll(v, "_", " "), "|")
			r.Result = fmt.Appendf(nil, `{"outcome":"failed","summary":"1 failed","tools":[{"tool":"go test","category":"test","outcome":"failed","tests":{"failed":1}}],`+
				`"failures":[{"name":"TestA","file":%q,"outcome":"failed","message":%q}]}`, strings.ReplaceAll(file, " ", "_"), message)
		case "unbuilt": // what a tool printed that failed without a finding
			r.Result = fmt.Appendf(nil, `{"outcome":"failed","summary":"it does not build","tools":[{"tool":"make","category":"build","outcome":"failed","reason":"make failed","output":%q}]}`,
				strings.ReplaceAll(v, "_", " "))
		case "wrote": // tests, as FILE, or FILE|TEST for one that is said to fail
			file, claim, _ := strings.Cut(v, "|")
			r.Result = fmt.Appendf(nil, `{"outcome":"passed","summary":"wrote tests","written":{"by":"tester","files":[%q],"tests":["TestNew"]}}`, file)
			if r.Workspace != nil {
				r.Workspace.Files = []string{file}
			}
			if claim != "" {
				r.Result = append(r.Result[:len(r.Result)-1], fmt.Sprintf(`,"failures":[{"name":%q,"outcome":"failed"}]}`, claim)...)
			}
		case "fails": // a test, as NAME|BLAME
			name, blame, _ := strings.Cut(v, "|")
			r.Result = fmt.Appendf(nil, `{"outcome":"failed","summary":"1 failed","failures":[{"name":%q,"outcome":"failed","blame":%q,"why":"of its reason"}]}`, name, blame)
		case "files": // of that commit
			r.Workspace.Files = strings.Split(v, ",")
			r.Workspace.Changed = len(r.Workspace.Files)
		case "unlanded": // a reason, as REASON, or REASON|COMMIT for the commit of tests that conflicts
			reason, commit, _ := strings.Cut(v, "|")
			r.Workspace = &schemas.RunWorkspace{Kind: "land", Name: "w", Reason: reason, Commit: commit}
		case "resolution":
			r.Resolution = strings.ReplaceAll(v, "_", " ")
		case "ask":
			parts := strings.Split(strings.ReplaceAll(v, "_", " "), "|")
			r.Asks = &schemas.Ask{To: parts[0], Topic: parts[1], Question: parts[2], Blocking: true}
		}
	}
}

// used fills in what a run's turn used.
func (s *scenario) used(r *schemas.Run, what, value string) {
	if r.Turn == nil {
		r.Turn = &schemas.Turn{Usage: new(schemas.Usage)}
	}
	n, err := strconv.ParseFloat(value, 64)
	switch {
	case what == "failure":
		r.Turn.Failure, err = &schemas.TurnFailure{Class: value}, nil
	case what == "cost":
		r.Turn.CostUSD = &n
	case what == "estimate":
		r.Turn.Estimate = &schemas.Usage{InputTokens: int64(n)}
	case what == "requests":
		r.Turn.Usage.Requests = int64(n)
	default:
		r.Turn.Usage.InputTokens = int64(n)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// turn changes what is known of the turn that runs for a node.
func (s *scenario) turn(dag, node string, change func(*schemas.Turn)) {
	entry := s.entry(schemas.DAGKind.Ref(dag))
	for i := range entry.Claims {
		if c := &entry.Claims[i]; c.Node == node {
			t := schemas.Turn{Runner: schemas.RunnerACP, SessionID: "s1"}
			if c.Turn != nil {
				t = *c.Turn
			}
			change(&t)
			c.Turn = &t
			return
		}
	}
	s.t.Fatalf("no run of dag %s, node %s, is under way", dag, node)
}

// begin marks what is claimed for a node as running, whether it is still wanted or not.
func (s *scenario) begin(dag, node string) {
	for i, c := range s.entry(schemas.DAGKind.Ref(dag)).Claims {
		if c.Node == node && c.StartedAt.IsZero() {
			s.entry(schemas.DAGKind.Ref(dag)).Claims[i].StartedAt = schemas.NewTime(s.now)
			return
		}
	}
	s.t.Fatalf("no run of dag %s, node %s, is about to start", dag, node)
}

// admit claims and starts what may start, with what is reserved for it.
func (s *scenario) admit() {
	t := s.tree()
	ledger := &budgets.Ledger{Slots: 4, Sums: budgets.SumsOf(s.decider.OfRun(), t, s.now)}
	for _, e := range admission.Admit(t, pointers(s.effects()), s.only, "p1", 8, 0, ledger, new(admission.Turns), s.now) {
		text, err := json.Marshal(e.Reserved)
		if err != nil {
			s.t.Fatal(err)
		}
		if c := e.Command(); c != nil && c.Budget != e.Reserved {
			s.t.Errorf("%s reserves %s, and its task has %v", e.Key, text, c.Budget)
		}
		fmt.Fprintf(&s.out, "admit %s %s\n", e.Key, text)
		s.start(e)
	}
}

// cancelUnwanted does what the loop does with effects that are claimed and no longer wanted.
func (s *sim) cancelUnwanted() {
	wanted := map[string]bool{}
	for _, e := range s.effects() {
		wanted[e.Key] = true
	}
	for ref, e := range maps.Clone(s.entries) {
		for _, c := range slices.Clone(e.Claims) {
			if wanted[c.Key] {
				continue
			}
			s.end(ref, c.Key, func(r *schemas.Run) {
				if !c.StartedAt.IsZero() {
					r.Outcome, r.Message = schemas.OutcomeCancelled, "no longer wanted"
				}
			})
		}
	}
}

// converse does what bears on clarifications.
func (s *scenario) converse(verb string, args []string) bool {
	switch verb {
	case "derive":
		for _, spec := range s.derive() {
			fmt.Fprintf(&s.out, "write %s\n", spec.Path)
			s.write(spec)
		}
	case "fold":
		for _, issue := range s.fold() {
			fmt.Fprintf(&s.out, "%s\n", s.ledgers[issue])
		}
	case "ledger":
		issue, err := strconv.Atoi(args[0])
		i := slices.IndexFunc(s.archive.Files, func(f txtar.File) bool { return f.Name == args[1] })
		if err != nil || i < 0 {
			s.t.Fatalf("no ledger %v", args)
		}
		s.setLedger(issue, s.archive.Files[i].Data)
	case "hook":
		issue, err := strconv.Atoi(args[2])
		if err != nil {
			s.t.Fatal(err)
		}
		e := s.entry(schemas.AgentKind.Ref(args[0]))
		run := agents.NewHook(e, args[1], issue, s.now)
		e.SetRuns(append(e.Runs(), &run))
	default:
		return false
	}
	return true
}

func (s *scenario) tell(verb string, args []string) bool {
	switch verb {
	case "show":
		ref := s.ref(args[0])
		s.out.WriteString(s.text(ref, s.entries[ref].Status()))
	case "spec":
		b, err := json.MarshalIndent(s.entries[s.ref(args[0])].Object.Spec(), "", "  ")
		if err != nil {
			s.t.Fatal(err)
		}
		s.out.Write(append(b, '\n'))
	case "plan":
		for _, st := range Plan(s.tree(), s.now, nil, nil) {
			fmt.Fprintf(&s.out, "%s %s %s: %s\n", st.Verb, st.Ref, st.Node, st.Why)
		}
	case "why":
		for _, line := range readiness.Why(s.entries[s.ref(args[0])], s.tree()) {
			fmt.Fprintln(&s.out, line)
		}
	case "task":
		e, ok := s.find(args[0], args[1])
		if !ok {
			s.t.Fatalf("no effect of dag %s, node %s, is wanted\n%s", args[0], args[1], s.out.Bytes())
		}
		b, err := json.MarshalIndent(e, "", "  ")
		if err != nil {
			s.t.Fatal(err)
		}
		s.out.Write(append(b, '\n'))
	case "handed":
		for _, c := range s.checkpoints {
			if c.Handoff != nil && c.Node == "dag/"+args[0]+":"+args[1] {
				b, err := json.MarshalIndent(c.Handoff, "", "  ")
				if err != nil {
					s.t.Fatal(err)
				}
				fmt.Fprintf(&s.out, "%s at %s of %s %s\n", c.Name(), c.Timestamp.UTC().Format(time.RFC3339), c.Run, b)
			}
		}
	case "verdict":
		fmt.Fprintf(&s.out, "exit %d %v\n", readiness.Verdict(s.tree(), nil), readiness.Counts(s.tree()))
	case "events":
		for _, e := range s.events {
			fmt.Fprintf(&s.out, "%s %s %s->%s %s warning=%v\n", e.Ref, e.Node, e.From, e.To, e.Reason, e.Warning)
			if e.Clarified != nil {
				b, err := json.Marshal(e.Clarified)
				if err != nil {
					s.t.Fatal(err)
				}
				fmt.Fprintf(&s.out, "    %s\n", b)
			}
		}
		s.events = nil
	default:
		return false
	}
	return true
}

func (s *scenario) ref(word string) schemas.Ref {
	ref, err := Schemas().ParseRef(word)
	if err != nil {
		s.t.Fatal(err)
	}
	return ref
}

// trace settles and writes down what changed.
func (s *scenario) trace() {
	before := s.tree()
	was := s.effects()
	d := s.settle()
	for _, ref := range d.Changed {
		s.events = append(s.events, settle.Events(d.Tree, before.Entry(ref), d.Tree.Entry(ref))...)
		e := d.Tree.Entry(ref)
		if e == nil || !e.HasStatus() {
			fmt.Fprintf(&s.out, "%s removed\n", ref)
			continue
		}
		s.traceObject(ref, before.Entry(ref).Status(), e.Status())
	}
	s.traceEffects(was)
	for _, ref := range slices.SortedFunc(maps.Keys(s.last.Outs), schemas.Ref.Compare) {
		if again := s.last.Outs[ref].Again; !again.IsZero() {
			fmt.Fprintf(&s.out, "again: %s in %s\n", ref, again.Sub(s.now))
		}
	}
}

func (s *scenario) traceObject(ref schemas.Ref, before, after schemas.Status) {
	base := after.Base()
	fmt.Fprintf(&s.out, "%s %s", ref, base.Phase)
	for _, c := range base.Conditions {
		fmt.Fprintf(&s.out, " %s=%s", c.Type, c.Status)
	}
	c := base.Condition(schemas.Ready)
	fmt.Fprintf(&s.out, " %s: %s\n", c.Reason, c.Message)
	if st, ok := after.(*schemas.ClarificationRequestStatus); ok {
		was := new(state.Entry)
		was.SetStatus(before)
		s.traceThread(clarifications.Status(was), st)
	}
	if a, ok := after.(*schemas.AgentStatus); ok && a.ClarificationID != nil {
		fmt.Fprintf(&s.out, "    %s, waiting on %s, responding to %s\n", *a.ClarificationID, deref(a.WaitingOn), deref(a.RespondingTo))
	}
	dag, ok := after.(*schemas.DAGStatus)
	if !ok {
		return
	}
	was, _ := before.(*schemas.DAGStatus)
	for name, n := range dag.Nodes.All() {
		if was != nil {
			if old := was.Nodes.Find(name); asJSON(s.t, old) == asJSON(s.t, n) {
				continue
			}
		}
		fmt.Fprintf(&s.out, "    %s %s", name, strings.TrimSpace(n.State+" "+n.Reason))
		if n.Attempts > 0 {
			fmt.Fprintf(&s.out, " attempts=%d", n.Attempts)
		}
		if n.Message != "" {
			fmt.Fprintf(&s.out, ": %s", n.Message)
		}
		s.out.WriteString("\n")
	}
}

func deref(s *string) string {
	if s == nil {
		return "nobody"
	}
	return *s
}

// traceThread writes what is new in a thread.
func (s *scenario) traceThread(before, after *schemas.ClarificationRequestStatus) {
	if before.ID != after.ID {
		fmt.Fprintf(&s.out, "    is %s, at most %d rounds\n", after.ID, after.MaxRounds)
	}
	for _, t := range after.Thread[len(before.Thread):] {
		fmt.Fprintf(&s.out, "    %d %s of %s, %s: %s\n", t.Round, t.Type, t.From, t.Source, strings.ReplaceAll(t.Body, "\n", "\n      "))
	}
	for _, r := range after.Refused {
		if !slices.Contains(before.Refused, r) {
			fmt.Fprintf(&s.out, "    refused %s: %s\n", r.Name, r.Message)
		}
	}
	if after.Summary != before.Summary {
		fmt.Fprintf(&s.out, "    summary: %s\n", after.Summary)
	}
}

// traceEffects writes which effects became wanted and which are not wanted any more.
func (s *scenario) traceEffects(was []settle.Effect) {
	old := map[string]bool{}
	for _, e := range was {
		old[e.Key] = true
	}
	for _, e := range s.effects() {
		if !old[e.Key] {
			fmt.Fprintf(&s.out, "want %s\n", e.Key)
		}
		delete(old, e.Key)
	}
	for _, key := range slices.Sorted(maps.Keys(old)) {
		fmt.Fprintf(&s.out, "unwant %s\n", key)
	}
	for _, ref := range slices.SortedFunc(maps.Keys(s.last.Outs), schemas.Ref.Compare) {
		for _, r := range s.last.Outs[ref].Restore {
			fmt.Fprintf(&s.out, "restore %s %s: %s\n", ref, r.Node, r.Why())
		}
	}
}

func (s *scenario) compare(file string) {
	i := slices.IndexFunc(s.archive.Files, func(f txtar.File) bool { return f.Name == "out" })
	if *update {
		if i < 0 {
			s.archive.Files = append(s.archive.Files, txtar.File{Name: "out"})
			i = len(s.archive.Files) - 1
		}
		s.archive.Files[i].Data = s.out.Bytes()
		if err := os.WriteFile(file, txtar.Format(s.archive), 0o644); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	if i < 0 {
		s.t.Fatalf("%s has no file out; run go test ./controllers -run TestScenarios -update", file)
	}
	if want := s.archive.Files[i].Data; !bytes.Equal(want, s.out.Bytes()) {
		s.t.Errorf("%s: the trace differs; got:\n%s\nwant:\n%s", file, s.out.Bytes(), want)
	}
}

// asJSON returns a value as JSON.
func asJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
