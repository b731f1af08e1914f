package repotest

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// workflow is a workflow of GitHub Actions, or an action, as far as the rules look at it.
type workflow struct {
	On          yaml.Node
	Permissions *permissions
	Concurrency concurrency
	Env         map[string]string
	Jobs        map[string]job
	Runs        struct {
		Using string
		Steps []step
	}
}

type job struct {
	If          string
	Permissions *permissions
	Concurrency concurrency
	Env         map[string]string
	Timeout     int    `yaml:"timeout-minutes"`
	Uses        string // a workflow that is called
	Secrets     yaml.Node
	Steps       []step
}

type step struct {
	ID, Name, Uses, Run string
	If                  string
	Env, With           map[string]string
}

// concurrency is a group's name, or a group with more.
type concurrency struct {
	Group  string
	Cancel string `yaml:"cancel-in-progress"`
}

func (c *concurrency) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return n.Decode(&c.Group)
	}
	type plain concurrency
	return n.Decode((*plain)(c))
}

// permissions are rights by area; a single word for all areas is kept under "".
type permissions map[string]string

func (p *permissions) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*p = permissions{"": n.Value}
		return nil
	}
	return n.Decode((*map[string]string)(p))
}

// writes are the areas in which something may be written.
func (p *permissions) writes() []string {
	var areas []string
	if p != nil {
		for area, right := range *p {
			if right != "read" && right != "none" {
				areas = append(areas, area)
			}
		}
	}
	slices.Sort(areas)
	return areas
}

// mayWrite lists what the jobs of a workflow may write; all others only read.
var mayWrite = map[string][]string{
	"reconcile.yml":    {"contents", "issues"},
	"plan-comment.yml": {"pull-requests"},
	"release.yml":      {"contents", "packages"},
}

var (
	pinned = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)
	// tagged is the pin as a file has it: with the release that the hash is of.
	tagged = regexp.MustCompile(`@[0-9a-f]{40} # v\d+\.\d+\.\d+`)
)

// events are the names of what starts a workflow.
func (w *workflow) events() (names []string) {
	switch w.On.Kind {
	case yaml.ScalarNode:
		return []string{w.On.Value}
	case yaml.MappingNode:
		for i := 0; i < len(w.On.Content); i += 2 {
			names = append(names, w.On.Content[i].Value)
		}
	case yaml.SequenceNode:
		for _, n := range w.On.Content {
			names = append(names, n.Value)
		}
	}
	return names
}

// workflowFaults says what is wrong with a workflow or an action, one line each.
func workflowFaults(name, text string) []string {
	var w workflow
	if err := yaml.Unmarshal([]byte(text), &w); err != nil {
		return []string{err.Error()}
	}
	var faults []string
	add := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if _, uses, ok := strings.Cut(line, "uses: "); ok && line[0] != '#' && strings.Contains(uses, "@") && !tagged.MatchString(uses) {
			add("uses: %s: say behind the hash of which release it is, as # v1.2.3", strings.TrimSpace(uses))
		}
	}
	stepFaults(w.Runs.Steps, add)
	if w.Runs.Using != "" {
		return faults
	}
	if w.Permissions == nil {
		add("no permissions at the top: write permissions: {}, and what each job needs at the job")
	} else if areas := w.Permissions.writes(); areas != nil {
		add("permissions at the top to write %q: give them to the job that needs them", areas)
	}
	if len(w.Jobs) == 0 {
		add("no jobs")
	}
	for id, j := range w.Jobs {
		jobFaults(path.Base(name), &w, &j, func(format string, args ...any) { add("job %s: "+format, append([]any{id}, args...)...) })
	}
	eventFaults(&w, text, add)
	return faults
}

// eventFaults are about what strangers can start.
func eventFaults(w *workflow, text string, add func(string, ...any)) {
	events := w.events()
	if slices.Contains(events, "pull_request_target") {
		add("pull_request_target: it gives what strangers propose the rights of the base")
	}
	if slices.Contains(events, "pull_request") && (strings.Contains(text, "secrets.") || strings.Contains(text, "github.token")) {
		add("pull_request with a secret or a token")
	}
}

// jobFaults are about rights and limits of a job, and what it starts.
func jobFaults(name string, w *workflow, j *job, add func(string, ...any)) {
	if j.Timeout < 1 || j.Timeout > 60 {
		add("timeout-minutes: %d; set 1 to 60", j.Timeout)
	}
	if j.Uses != "" || !j.Secrets.IsZero() {
		add("it calls another workflow, or hands on secrets")
	}
	if len(*w.permissionsOf(j)) == 0 {
		add("no permissions: say which, also where contents: read is all")
	}
	writes := w.permissionsOf(j).writes()
	for _, area := range writes {
		if !slices.Contains(mayWrite[name], area) {
			add("permission to write %q, which %s has no reason for", area, name)
		}
	}
	if writes != nil && (j.Concurrency.Cancel != "false" || w.Concurrency.Group != "") {
		add("what writes must have a concurrency group of its own with cancel-in-progress: false")
	}
	events := w.events()
	if writes != nil && w.startsOnBranches() {
		ownPushFaults(j.Steps, add)
	}
	if writes != nil && slices.Contains(events, "issue_comment") && (!strings.Contains(j.If, "author_association") ||
		!strings.Contains(j.If, "github.event.comment.user.type == 'User'")) {
		add("anybody's comment starts it: see the condition of reconcile.yml")
	}
	for _, s := range j.Steps {
		if writes != nil && strings.HasPrefix(s.Uses, "actions/checkout@") && s.With["ref"]+s.With["repository"] != "" {
			add("it may write, and checks out %s%s: only the branch that the workflow is of", s.With["repository"], s.With["ref"])
		}
	}
	stepFaults(j.Steps, add)
}

// startsOnBranches reports whether a push to a branch starts the workflow: reconcile pushes no tags.
func (w *workflow) startsOnBranches() bool {
	if w.On.Kind != yaml.MappingNode {
		return slices.Contains(w.events(), "push")
	}
	for i := 0; i < len(w.On.Content); i += 2 {
		if w.On.Content[i].Value == "push" {
			var filter map[string][]string
			return w.On.Content[i+1].Decode(&filter) != nil || len(filter) != 1 || len(filter["tags"]) == 0
		}
	}
	return false
}

// notOurs is the condition of steps that have nothing to do for a commit of reconcile itself.
const notOurs = "steps.commit.outputs.ours != 'true'"

// ownPushFaults are steps that would work again for a commit that the work itself made.
func ownPushFaults(steps []step, add func(string, ...any)) {
	looks := slices.IndexFunc(steps, func(s step) bool {
		return s.ID == "commit" && strings.Contains(s.Run, "%(trailers:key=Reconcile-Objects,valueonly)")
	})
	if looks < 0 {
		add("a push of ours starts it again: look for the trailer of its commit, see reconcile.yml")
		return
	}
	for _, s := range steps[looks+1:] {
		if s.If != notOurs {
			add("step %q%s: a push of ours starts it again: write if: %s", s.Name, s.Uses, notOurs)
		}
	}
}

func (w *workflow) permissionsOf(j *job) *permissions {
	switch {
	case j.Permissions != nil:
		return j.Permissions
	case w.Permissions != nil:
		return w.Permissions
	}
	return new(permissions)
}

// stepFaults are about what is run and used.
func stepFaults(steps []step, add func(string, ...any)) {
	for _, s := range steps {
		if strings.Contains(s.Run, "${{") || strings.Contains(s.With["script"], "${{") {
			add("step %q: an expression in a script; hand it over through env", s.Name)
		}
		if s.Uses != "" && !strings.HasPrefix(s.Uses, "./.github/actions/") && !pinned.MatchString(s.Uses) {
			add("uses: %s: name the hash of the commit, 40 digits", s.Uses)
		}
		if strings.HasPrefix(s.Uses, "actions/checkout@") && s.With["persist-credentials"] != "false" {
			add("checkout without persist-credentials: false: what runs later would find the token in .git/config")
		}
	}
}

// workflows are this project's, and those that it gives to others.
func workflows(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, p := range tracked(t) {
		if ext := path.Ext(p); (ext == ".yml" || ext == ".yaml") && strings.Contains("/"+p, "/.github/") {
			found[p] = read(t, p)
		}
	}
	if len(found) < 9 {
		t.Fatalf("only %d workflows and actions found", len(found))
	}
	return found
}

func TestWorkflowsKeepToTheRules(t *testing.T) {
	for name, text := range workflows(t) {
		for _, fault := range workflowFaults(name, text) {
			t.Errorf("%s: %s", name, fault)
		}
	}
}

// TestBrokenWorkflowsAreSeen breaks each rule in a workflow that keeps to all.
func TestBrokenWorkflowsAreSeen(t *testing.T) {
	const setup = "      - uses: ./.github/actions/reconcile\n"
	for _, m := range []struct{ file, old, new, fault string }{
		{"reconcile.yml", "actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2", "actions/checkout@v4", "40 digits"},
		{"plan.yml", "actions/upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02", "actions/upload-artifact@ea165f8", "40 digits"},
		{"plan.yml", " # v4.6.2", "", "of which release"},
		{"plan.yml", setup, "      - uses: docker://alpine:3\n", "40 digits"},
		{"plan.yml", setup, "      - uses: ./vendor/action\n", "40 digits"},
		{"plan.yml", "permissions: {}\n", "", "no permissions at the top"},
		{"plan.yml", "permissions: {}\n", "permissions: write-all\n", "at the top to write"},
		{"plan.yml", "      contents: read", "      contents: write", `write "contents", which plan.yml`},
		{"plan.yml", "    permissions:\n      contents: read\n", "    permissions: write-all\n", `write "", which`},
		{"plan.yml", "    permissions:\n      contents: read\n", "", "no permissions: say which"},
		{"plan-comment.yml", "      pull-requests: write", "      id-token: write", `write "id-token"`},
		{"plan.yml", "    timeout-minutes: 15\n", "", "timeout-minutes: 0"},
		{"plan.yml", "  pull_request:\n", "  pull_request_target:\n", "rights of the base"},
		{"plan.yml", "NUMBER: ${{ github.event.pull_request.number }}", "NUMBER: ${{ secrets.NUMBER }}", "with a secret"},
		{"plan.yml", "NUMBER: ${{ github.event.pull_request.number }}", "NUMBER: ${{ github.token }}", "with a secret"},
		{"plan.yml", `--pull-request "$NUMBER"`, "--pull-request ${{ github.event.pull_request.number }}", "expression in a script"},
		{"plan.yml", "run: reconcile plan --base HEAD^1 -o github", "run: echo ${{ github.event.pull_request.title }}", "expression in a script"},
		{"plan.yml", "run: reconcile plan --base HEAD^1 -o github", "run: echo ${{ github.head_ref }}", "expression in a script"},
		{"plan.yml", "          persist-credentials: false\n", "", "without persist-credentials"},
		{"plan-comment.yml", "          persist-credentials: false\n",
			"          persist-credentials: false\n          ref: ${{ github.event.workflow_run.head_sha }}\n", "may write, and checks out"},
		{"plan-comment.yml", "          persist-credentials: false\n",
			"          persist-credentials: false\n          repository: ${{ github.event.workflow_run.head_repository.full_name }}\n",
			"may write, and checks out"},
		{"plan-comment.yml", "      cancel-in-progress: false", "      cancel-in-progress: true", "cancel-in-progress: false"},
		{"reconcile.yml", "      cancel-in-progress: false\n", "", "cancel-in-progress: false"},
		{"reconcile.yml", "permissions: {}\n", "permissions: {}\nconcurrency: all\n", "group of its own"},
		{"reconcile.yml", "        if: steps.commit.outputs.ours != 'true'\n        env:", "        env:", "starts it again"},
		{"reconcile.yml", "        id: commit\n", "", "starts it again"},
		{"reconcile.yml", "      contains(fromJSON('[\"OWNER\", \"MEMBER\", \"COLLABORATOR\"]'), github.event.comment.author_association)",
			"      true", "anybody's comment"},
		{"reconcile.yml", "github.event.comment.user.type == 'User'", "true", "anybody's comment"},
		{"ci.yml", "    steps:\n", "    uses: ./.github/workflows/other.yml\n    secrets: inherit\n    steps:\n", "calls another workflow"},
		{"action.yml", "$VERSION", "${{ inputs.version }}", "expression in a script"},
		{"action.yml", "actions/setup-go@d35c59abb061a4a6fb18e82ac0862c26744d6ab5 # v5.5.0", "actions/setup-go@main", "40 digits"},
		{"plan.yml", "jobs:\n", "jobs:\n\tx\n", "cannot start any token"},
	} {
		file := ".github/workflows/" + m.file
		if m.file == "action.yml" {
			file = ".github/actions/reconcile/action.yml"
		}
		text := read(t, file)
		if !strings.Contains(text, m.old) {
			t.Errorf("%s has no %q to break", m.file, m.old)
			continue
		}
		faults := workflowFaults(file, strings.Replace(text, m.old, m.new, 1))
		if !slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, m.fault) }) {
			t.Errorf("%s with %q for %q: found %q, want %q", m.file, m.new, m.old, faults, m.fault)
		}
	}
}
