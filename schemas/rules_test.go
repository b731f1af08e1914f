package schemas

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCheckName(t *testing.T) {
	for _, good := range []string{"a", "0", "a.b_c-d", "clr-42-001-r1", strings.Repeat("a", 63), "console", "com", "lpt10", "nul-x"} {
		if err := CheckName(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "A", "-a", ".a", "_a", "a/b", "a b", "a.", "con", "nul.txt", "lpt9", "é", "a\x00", "a\u200b",
		strings.Repeat("a", 64), "..", "a\\b", "a:b"} {
		if CheckName(bad) == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestNearest(t *testing.T) {
	words := []string{"name", "needs", "run", "script", "session", "timeout", "when", ""}
	for s, want := range map[string]string{
		"nmae": "name", "need": "needs", "Name": "name", "sesion": "session", "scirpt": "script", "tiemout": "timeout",
		"": "", "x": "", "deployment": "", "runs": "run", "rum": "run", strings.Repeat("n", 500): "",
	} {
		if got := GuessWord(s, words); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", s, got, want)
		}
	}
}

// TestEditsAgainstDefinition compares the bounded distance with the plain recursive definition.
func TestEditsAgainstDefinition(t *testing.T) {
	var plain func(a, b string) int
	plain = func(a, b string) int {
		if a == "" || b == "" {
			return len(a) + len(b)
		}
		d := min(plain(a[1:], b)+1, plain(a, b[1:])+1, plain(a[1:], b[1:])+differ(rune(a[0]), rune(b[0])))
		if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] {
			d = min(d, plain(a[2:], b[2:])+1)
		}
		return d
	}
	rnd := rand.New(rand.NewPCG(5, 6))
	word := func() string {
		b := make([]byte, rnd.IntN(6))
		for i := range b {
			b[i] = "abc"[rnd.IntN(3)]
		}
		return string(b)
	}
	for range 2000 {
		a, b, limit := word(), word(), rnd.IntN(5)
		want := min(plain(a, b), limit+1)
		if got := min(editDistance([]rune(a), []rune(b), limit), limit+1); got != want {
			t.Fatalf("edits(%q, %q, %d) = %d, want %d", a, b, limit, got, want)
		}
	}
}

func TestSnake(t *testing.T) {
	for s, want := range map[string]string{
		"unitTests": "unit_tests", "Unit-Tests": "unit_tests", "build": "build", "1st": "", "": "", "_x_": "x", "A  B": "a_b",
		"HTTPServer": "httpserver", "prüfen": "", strings.Repeat("a", 70): strings.Repeat("a", 63),
	} {
		if got := snake(s); got != want {
			t.Errorf("snake(%q) = %q, want %q", s, got, want)
		}
	}
}

func nodes(tasks []task) (list []task, r *Report) {
	r = new(Report)
	checkGraph(r, graphWords{list: "nodes", name: "name", noun: "node"}, tasks)
	return tasks, r
}

// hasCycle is the definition: some task reaches itself.
func hasCycle(tasks []task) map[string]bool {
	reach := map[string]map[string]bool{}
	for _, t := range tasks {
		reach[t.name] = map[string]bool{}
		for _, n := range t.needs {
			reach[t.name][n] = true
		}
	}
	for k := range reach {
		for i := range reach {
			for j := range reach {
				if reach[i][k] && reach[k][j] {
					reach[i][j] = true
				}
			}
		}
	}
	on := map[string]bool{}
	for name := range reach {
		if reach[name][name] {
			on[name] = true
		}
	}
	return on
}

// TestCyclesAgainstDefinition: over random graphs, a cycle is reported for every knot and for nothing else, each is a
// real cycle, starts at the smallest name of its knot, and comes with the place of every edge.
func TestCyclesAgainstDefinition(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for range 3000 {
		tasks := make([]task, 1+rnd.IntN(7))
		for i := range tasks {
			tasks[i].name = string(rune('a' + i))
		}
		for range rnd.IntN(2 * len(tasks)) {
			i, j := rnd.IntN(len(tasks)), rnd.IntN(len(tasks))
			if need := tasks[j].name; i != j && !slices.Contains(tasks[i].needs, need) {
				tasks[i].needs = append(tasks[i].needs, need)
			}
		}
		rnd.Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
		_, r := nodes(tasks)
		named := map[string]bool{}
		for _, f := range r.Findings() {
			checkCycle(t, tasks, f, named)
		}
		want := hasCycle(tasks)
		if len(want) > 0 != (len(named) > 0) {
			t.Fatalf("%v: on cycles are %v, reported %v", tasks, want, named)
		}
		for name := range named {
			if !want[name] {
				t.Fatalf("%v: %s is on no cycle", tasks, name)
			}
		}
	}
}

func checkCycle(t *testing.T, tasks []task, f *Finding, named map[string]bool) {
	t.Helper()
	_, path, ok := strings.Cut(f.Message, ": ")
	names := strings.Split(path, " -> ")
	if f.Code != "cycle" || !ok || names[0] != names[len(names)-1] || len(f.Related) != len(names)-2 {
		t.Fatalf("%v: odd finding %+v", tasks, f)
	}
	needs := map[string][]string{}
	for _, x := range tasks {
		needs[x.name] = x.needs
	}
	for i, n := range names[:len(names)-1] {
		if !slices.Contains(needs[n], names[i+1]) {
			t.Fatalf("%v: %s does not need %s", tasks, n, names[i+1])
		}
		if n < names[0] {
			t.Fatalf("%v: %q does not start at the smallest name", tasks, path)
		}
		named[n] = true
	}
	at := f.Field
	if tasks[at[1].(int)].name != names[0] || tasks[at[1].(int)].needs[at[3].(int)] != names[1] {
		t.Fatalf("%v: the place %v is not that of the first need", tasks, at)
	}
}

// TestLargeGraphs: chains, fans and rings of 20,000 nodes neither recurse that deep nor take quadratic work.
func TestLargeGraphs(t *testing.T) {
	const n = 20_000
	name := func(i int) string { return fmt.Sprintf("n%05d", i) }
	chain, fan, ring := make([]task, n), make([]task, n), make([]task, n)
	for i := range n {
		chain[i], fan[i], ring[i] = task{name: name(i)}, task{name: name(i)}, task{name(i), []string{name((i + 1) % n)}}
		if i > 0 {
			chain[i].needs, fan[i].needs = []string{name(i - 1)}, []string{name(0)}
		}
	}
	for what, tasks := range map[string][]task{"chain": chain, "fan": fan} {
		if _, r := nodes(tasks); len(r.Findings()) > 0 {
			t.Errorf("%s: %s", what, r.Findings()[0].Message)
		}
	}
	_, r := nodes(ring)
	if len(r.Findings()) != 1 || len(r.Findings()[0].Related) != n-1 || len(r.Findings()[0].Message) > 500 {
		t.Errorf("ring: %d findings, want one with a short message and %d related places", len(r.Findings()), n-1)
	}
}

// TestSuggestionsEnd: the first problems of a file carry suggestions; those that are not shown cost no search.
func TestSuggestionsEnd(t *testing.T) {
	tasks := make([]task, 3*maxProblems)
	for i := range tasks {
		tasks[i] = task{fmt.Sprintf("build_%03d", i), []string{fmt.Sprintf("biuld_%03d", i)}}
	}
	_, r := nodes(tasks)
	if len(r.Findings()) != len(tasks) {
		t.Fatalf("%d findings, want %d", len(r.Findings()), len(tasks))
	}
	for i, f := range r.Findings() {
		if got, want := f.Suggestion != "", i < maxProblems; got != want {
			t.Fatalf("finding %d has a suggestion: %t, want %t", i, got, want)
		}
	}
}

func TestPolicies(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		p    Policy
		want bool
	}{
		{Policy{}, true}, {Policy{FailFast: &no}, false}, {Policy{FailFast: &yes}, true},
		{Policy{ContinueOnFailure: &yes}, false}, {Policy{ContinueOnFailure: &no}, true},
	} {
		s := DAGSpec{Policy: c.p}
		if s.Default(); c.p.FailsFast() != c.want || s.Policy.FailsFast() != c.want {
			t.Errorf("%+v: fails fast %v, defaulted %v, want %v", c.p, c.p.FailsFast(), s.Policy.FailsFast(), c.want)
		}
	}
}

func TestRetry(t *testing.T) {
	own, policy := Duration(time.Minute), Duration(time.Hour)
	n := Node{Retry: &Retry{Limit: 2, Backoff: &own}}
	r := n.RetryOr(Policy{Retry: &Retry{Limit: 9, Backoff: &policy}})
	if r.Limit != 2 || *r.Backoff != own || r.Factor != defaultFactor || *r.Max != defaultMaxBackoff {
		t.Errorf("the node's own retry: %+v", r)
	}
	if r := new(Node).RetryOr(Policy{Retry: &Retry{Limit: 9}}); r.Limit != 9 || *r.Backoff != defaultBackoff {
		t.Errorf("the policy's retry: %+v", r)
	}
	var waits []time.Duration
	for i := 1; i <= 8; i++ {
		waits = append(waits, Retry{}.Wait(i))
	}
	if fmt.Sprint(waits) != "[1s 2s 4s 8s 16s 32s 1m0s 1m0s]" {
		t.Errorf("waits %v", waits)
	}
	if w := (Retry{Factor: 100}).Wait(math.MaxInt); w != time.Minute {
		t.Errorf("a huge attempt waits %v", w)
	}
}

func TestPrecedences(t *testing.T) {
	order := []string{roleGuide, roleProductManager, roleUXDesigner, RoleArchitect, RoleDesigner, RoleEngineer, roleReviewer, "gardener"}
	for i := 1; i < len(order); i++ {
		if DefaultPrecedence(order[i-1]) >= DefaultPrecedence(order[i]) {
			t.Errorf("%s is not upstream of %s", order[i-1], order[i])
		}
	}
	named := AgentSpec{}
	if applyDefaults(&named, "architect"); named.Role != "architect" || *named.Precedence != 20 {
		t.Errorf("an agent called architect: %q %d", named.Role, *named.Precedence)
	}
}

func TestReferences(t *testing.T) {
	refs := func(s Spec) string {
		var out []string
		for _, r := range s.References() {
			mark := ""
			if r.Hard {
				mark = "!"
			}
			out = append(out, pathText(r.Field)+"="+r.To.String()+mark)
		}
		return strings.Join(out, " ")
	}
	for want, s := range map[string]Spec{
		"session=session/s! nodes[1].agent=agent/a!": &DAGSpec{Session: "s", Nodes: []Node{{}, {Agent: "a"}}},
		"from=agent/a! to=agent/b!":                  &ClarificationRequestSpec{From: "a", To: "b"},
		"steps[0].agent=agent/a steps[0].can_clarify[0]=agent/b": &WorkflowSpec{
			Steps: []Step{{Agent: "a", CanClarify: []string{"b"}}}},
		"canClarify[0]=agent/b":                &AgentSpec{CanClarify: []string{"b"}},
		"agent=agent/a":                        &ObservationSpec{Agent: "a", Session: "s"},
		"clarification=clarificationrequest/q": &ReplySpec{Clarification: "q"},
		"target=dag/d":                         &ActionSpec{Target: "DAGS/d"},
	} {
		if got := refs(s); got != want {
			t.Errorf("%T: %s, want %s", s, got, want)
		}
	}
	for _, s := range []Spec{&SessionSpec{}, &SettingsSpec{}, &ReplySpec{Clarification: "CLR-1-001"}, &ActionSpec{Target: "x"},
		&ObservationSpec{Agent: PersonAgent("Ada")}, &ObservationSpec{Agent: PersonAgent("no name")}} {
		if got := refs(s); got != "" {
			t.Errorf("%T: %s, want none", s, got)
		}
	}
}

func TestSettingsRules(t *testing.T) {
	check := func(change func(*SettingsSpec)) string {
		var s SettingsSpec
		change(&s)
		s.Default()
		var r Report
		s.Check(&r)
		var out []string
		for _, f := range r.Findings() {
			out = append(out, pathText(f.Field))
		}
		return strings.Join(out, " ")
	}
	for _, c := range []struct {
		change func(*SettingsSpec)
		want   string
	}{
		{func(s *SettingsSpec) {}, ""},
		{func(s *SettingsSpec) { s.Folders = Folders{Specs: "desired", State: "observed/now"} }, ""},
		{func(s *SettingsSpec) { s.Folders = Folders{Specs: "a", State: "a"} }, "folders"},
		{func(s *SettingsSpec) { s.Folders = Folders{Specs: "a/b", State: "A"} }, "folders"},
		{func(s *SettingsSpec) { s.Folders.State = "../x" }, "folders.state"},
		{func(s *SettingsSpec) { s.Folders.Specs = ".git/x" }, "folders.specs"},
		{func(s *SettingsSpec) { s.Git.Author = "Bot <bot@example.org>" }, ""},
		{func(s *SettingsSpec) { s.Git.Author = "bot@example.org" }, "git.author"},
		{func(s *SettingsSpec) { s.Git.Author = "Bot <bot@example.org> x" }, "git.author"},
		{func(s *SettingsSpec) { s.Git.Author = "Bot\n <a@b>" }, "git.author"},
		{func(s *SettingsSpec) { s.Git.Branch = "a b" }, "git.branch"},
		{func(s *SettingsSpec) { s.GitHub = GitHubSettings{Repo: "Owner/name.go", Mirror: true} }, ""},
		{func(s *SettingsSpec) { s.GitHub.Repo = "owner/name/more" }, "github.repo"},
		{func(s *SettingsSpec) { s.GitHub.Mirror = true }, "github.mirror"},
		{func(s *SettingsSpec) { s.GitHub.BaseURL = "https://git.example.org/api/v3" }, ""},
		{func(s *SettingsSpec) { s.GitHub.BaseURL = "https://user:token@example.org" }, "github.baseURL"},
		{func(s *SettingsSpec) { s.GitHub.BaseURL = "file:///etc" }, "github.baseURL"},
		{func(s *SettingsSpec) { s.Commands.Allow = []string{"go test", " "} }, "commands.allow[1]"},
		{func(s *SettingsSpec) { s.Watch.Poll = new(Duration) }, "watch.poll"},
		{func(s *SettingsSpec) { s.Git.Remote = "up/stream" }, ""},
		{func(s *SettingsSpec) { s.Git.Remote = "https://token@example.org/x" }, "git.remote"},
		{func(s *SettingsSpec) { s.Git.Remote = "--upload-pack=x" }, "git.remote"},
		{func(s *SettingsSpec) { s.Git.Poll = new(Duration) }, "git.poll"},
		{func(s *SettingsSpec) { s.Git.ClaimFor = new(Duration(9 * time.Second)) }, "git.claimFor"},
		{func(s *SettingsSpec) { s.Index.Exclude = []string{"gen/**", "a[", "../x"} }, "index.exclude[1] index.exclude[2]"},
		{func(s *SettingsSpec) { s.Index.APIKeyEnv = "sk-secret" }, "index.apiKeyEnv"},
		{func(s *SettingsSpec) { s.Index.APIKeyEnv = "OPENAI_API_KEY" }, ""},
		{func(s *SettingsSpec) { s.Index.Embedder = "openai" }, "index.embedder index.embedder"},
		{func(s *SettingsSpec) {
			s.Index = IndexSettings{Embedder: "openai", Endpoint: "https://api.example.org/v1", Model: "small"}
		}, ""},
		{func(s *SettingsSpec) { s.Index.Endpoint = "http://example.org/v1" }, "index.endpoint"},
	} {
		if got := check(c.change); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestIsEndpoint(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"https://api.example.org/v1":   true,
		"https://192.0.2.1:8443":       true,
		"http://localhost:11434/v1":    true,
		"http://127.0.0.1:8080":        true,
		"http://[::1]:8080/v1":         true,
		"http://127.9.9.9/":            true,
		"http://[::ffff:127.0.0.1]/v1": true,
		"http://192.168.0.2/v1":        false,
		"http://localhost.example.org": false,
		"http://127.0.0.1.example.org": false,
		"https://key@example.org/v1":   false,
		"https://example.org/v1?key=x": false,
		"https://example.org/v1#x":     false,
		"ftp://localhost/":             false,
		"https://":                     false,
		"localhost:11434":              false,
		"http://2130706433/v1":         false,
		"":                             false,
	} {
		if got := IsEndpoint(address); got != want {
			t.Errorf("IsEndpoint(%q) = %v, want %v", address, got, want)
		}
	}
}
