package mirror

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
)

// PullVersion is that of the form of a Pull.
const PullVersion = 1

// Pull is the effect of a pull request. The job that reads the files of a pull request has no permission to write, since
// anyone can open one; so a Pull is passed on as JSON to a job that has it. There it is only a claim of the author of the
// pull request: Check bounds it, and Body shows all of it as text.
type Pull struct {
	Version int `json:"version"` // PullVersion
	// Number is that of the pull request; 0 where the plan is of none.
	Number int `json:"pullRequest,omitempty"`
	// Base is the commit whose settings and state count, Head the one whose specs do.
	Base string `json:"base"`
	Head string `json:"head"`
	// Specs says that the two have other specs, Settings that they have other settings.
	Specs    bool `json:"specs"`
	Settings bool `json:"settings"`
	// Errors and Warnings count the problems of the specs of Head.
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	// Steps are what a run would do after a merge, and would not do without it.
	Steps []PullStep `json:"steps"`
	// Anyway counts the steps that a run would take with and without it.
	Anyway int `json:"anyway"`
	// Bounds are those of the runs among Steps.
	Bounds PullBounds `json:"bounds"`
}

// Verbs of a step.
const (
	PullCreate = "create" // an object is new
	PullChange = "change" // its status changes
	PullRun    = "run"    // a node runs, or an agent is asked
	PullSkip   = "skip"   // a node is skipped
	PullStop   = "stop"   // a node is cancelled, or its run is ended
	PullRemove = "remove" // an object is removed
)

// PullStep is one thing that a pull request would do.
type PullStep struct {
	Ref  string `json:"ref"` // as dag/checks
	Node string `json:"node,omitempty"`
	Verb string `json:"verb"`
	Why  string `json:"why"`
}

// PullBounds are what the runs cost at most: see controllers.Bounds. Times are in seconds.
type PullBounds struct {
	Runs    int         `json:"runs"`
	Seconds int64       `json:"seconds"`
	Endless int         `json:"endless"`
	People  int         `json:"people"`
	Agents  []PullAgent `json:"agents"`
	// Budgets say what budgets have left.
	Budgets []string `json:"budgets,omitempty"`
}

// PullAgent is the part that an agent has in them.
type PullAgent struct {
	Name    string `json:"name"`
	Model   string `json:"model,omitempty"`
	Window  int    `json:"window"` // of the model, in tokens
	Runs    int    `json:"runs"`
	Seconds int64  `json:"seconds"`
	Endless int    `json:"endless"`
}

// Limits for untrusted input.
const (
	pullSteps   = 50_000
	pullAgents  = 5_000
	pullBudgets = 20     // that are shown
	pullName    = 400    // bytes of the names of one step or agent
	pullText    = 20_000 // bytes of a reason
	pullRows    = 100    // of a table that is shown
	pullWhy     = 300    // characters of a reason that are shown
)

// PullKey returns the key of the comment with the plan of a pull request, by its number.
func PullKey(number int) string { return fmt.Sprintf("plan/%d", number) }

// Check returns an error for a pull request's plan that is invalid: of another version, without a number, base or head,
// or with too many steps or agents.
func (p *Pull) Check() error {
	switch {
	case p.Version != PullVersion:
		return fmt.Errorf("its version is %d, and this program knows %d: plan and comment with one version", p.Version, PullVersion)
	case p.Number < 1 || p.Number > math.MaxInt32:
		return fmt.Errorf("it is of no pull request: %d is no number of one", p.Number)
	case !isCommit(p.Base) || !isCommit(p.Head):
		return fmt.Errorf("base and head are not two full names of commits")
	case len(p.Steps) > pullSteps || len(p.Bounds.Agents) > pullAgents:
		return fmt.Errorf("it has %d steps and %d agents; no more than %d and %d are read", len(p.Steps), len(p.Bounds.Agents),
			pullSteps, pullAgents)
	case min(p.Errors, p.Warnings, p.Anyway, p.Bounds.Runs, p.Bounds.Endless, p.Bounds.People) < 0 || p.Bounds.Seconds < 0:
		return fmt.Errorf("it counts below zero")
	}
	for i, s := range p.Steps {
		if !slices.Contains([]string{PullCreate, PullChange, PullRun, PullSkip, PullStop, PullRemove}, s.Verb) {
			return fmt.Errorf("steps[%d]: %.40q is no verb", i, s.Verb)
		}
		if len(s.Ref)+len(s.Node) > pullName || len(s.Why) > pullText {
			return fmt.Errorf("steps[%d]: its names have more than %d bytes, or its reason more than %d", i, pullName, pullText)
		}
	}
	for i, a := range p.Bounds.Agents {
		if len(a.Name)+len(a.Model) > pullName || min(a.Window, a.Runs, a.Endless) < 0 || a.Seconds < 0 {
			return fmt.Errorf("bounds.agents[%d]: it is too long, or counts below zero", i)
		}
	}
	for i, text := range p.Bounds.Budgets {
		if i >= pullAgents || len(text) > pullText {
			return fmt.Errorf("bounds.budgets[%d]: there are too many, or it is too long", i)
		}
	}
	return nil
}

// isCommit reports whether s is the full name of a commit.
func isCommit(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// Speaks reports whether the pull request changes specs or settings or has steps, so that it needs a comment if it has
// none.
func (p *Pull) Speaks() bool { return p.Specs || p.Settings || len(p.Steps) > 0 }

// Body writes the Markdown text of the comment on a pull request, without a marker: a summary of what its plan would
// do, the errors in the specs, the steps and the cost.
func (p *Pull) Body() string {
	b := &Body{room: BodyLimit - noteRoom}
	b.foot = fmt.Sprintf("<sub>Planned by reconcile: the specs of %s over the state and the settings of %s.</sub>",
		codeText(shortCommit(p.Head)), codeText(shortCommit(p.Base)))
	b.Paragraph("### What this would do")
	b.Paragraph("%s", p.summary())
	if p.Errors > 0 {
		b.Paragraph("**%s** in the specs, shown as annotations of the files: until that is repaired, what it concerns is stalled.",
			schemas.Count(p.Errors, "error"))
	} else if p.Warnings > 0 {
		b.Paragraph("%s in the specs, shown as annotations of the files.", schemas.Count(p.Warnings, "warning"))
	}
	if p.Settings {
		b.Paragraph("The settings change, too. This is planned with those of the base; the new ones count after the merge.")
	}
	p.bounds(b)
	p.section(b, "Created", PullCreate)
	p.section(b, "Run", PullRun)
	p.section(b, "Stopped, skipped, removed", PullStop, PullSkip, PullRemove)
	p.section(b, "Changed", PullChange)
	return b.done()
}

// shortCommit is a commit as people write it.
func shortCommit(commit string) string { return commit[:min(len(commit), 10)] }

// summary is one sentence.
func (p *Pull) summary() string {
	anyway := ""
	if p.Anyway > 0 {
		anyway = fmt.Sprintf(" A run takes %s with and without this.", schemas.Count(p.Anyway, "step"))
	}
	if len(p.Steps) == 0 {
		return "Nothing would change." + anyway
	}
	var parts []string
	for _, v := range []struct{ verb, one, many string }{
		{PullCreate, "1 object is created", "%d objects are created"}, {PullRun, "1 node runs", "%d nodes run"},
		{PullStop, "1 node is stopped", "%d nodes are stopped"}, {PullSkip, "1 node is skipped", "%d nodes are skipped"},
		{PullRemove, "1 object is removed", "%d objects are removed"}, {PullChange, "1 status changes", "%d statuses change"},
	} {
		switch n := p.number(v.verb); n {
		case 0:
		case 1:
			parts = append(parts, v.one)
		default:
			parts = append(parts, fmt.Sprintf(v.many, n))
		}
	}
	return strings.Join(parts, ", ") + "." + anyway
}

func (p *Pull) number(verb string) (n int) {
	for _, s := range p.Steps {
		if s.Verb == verb {
			n++
		}
	}
	return n
}

// Cost says in words what the runs cost at most; "" where nothing runs.
func (k *PullBounds) Cost() string {
	return k.cost(func(budget string) string {
		return shorten.Text(strings.Join(strings.Fields(plainText(budget)), " "), pullWhy)
	})
}

// cost is Cost with budgets in the words of say.
func (k *PullBounds) cost(say func(budget string) string) string {
	if k.Runs == 0 && k.People == 0 {
		return ""
	}
	text := schemas.Count(k.Runs, "run") + ", retries included"
	if k.Runs > k.Endless {
		text += fmt.Sprintf(", of %s in all", statusSpan(k.Seconds))
	}
	if k.Endless > 0 {
		text += fmt.Sprintf("; no limit ends %d of them", k.Endless)
	}
	if k.People > 0 {
		text += fmt.Sprintf("; %s for people", schemas.Count(k.People, "task"))
	}
	for _, b := range k.Budgets[:min(len(k.Budgets), pullBudgets)] {
		text += "; " + say(b)
	}
	return text
}

// bounds says what the runs cost at most, and of whose they are.
func (p *Pull) bounds(b *Body) {
	k := p.Bounds
	cost := k.cost(func(budget string) string { return lineText(budget, pullWhy) })
	if cost == "" {
		return
	}
	b.Paragraph("**At most** %s. What agents ask others comes on top.", cost)
	var rows [][]string
	for _, a := range k.Agents[:min(len(k.Agents), pullRows)] {
		limit := statusSpan(a.Seconds)
		if a.Endless > 0 {
			limit = fmt.Sprintf("no limit for %d", a.Endless)
		}
		model := "–"
		if a.Model != "" {
			model = codeText(a.Model)
		}
		rows = append(rows, []string{codeText(a.Name), model, strconv.Itoa(a.Window), strconv.Itoa(a.Runs), limit})
	}
	if len(rows) > 0 {
		b.table([]string{"Agent", "Model", "Window, tokens", "Runs", "Time"}, rows)
	}
	b.more(len(k.Agents))
}

// section is the table of the steps with one of the verbs.
func (p *Pull) section(b *Body, heading string, verbs ...string) {
	var rows [][]string
	all := 0
	for _, s := range p.Steps {
		if !slices.Contains(verbs, s.Verb) {
			continue
		}
		if all++; all > pullRows {
			continue
		}
		object := codeText(s.Ref)
		if s.Node != "" {
			object += ": " + codeText(s.Node)
		}
		why := lineText(s.Why, pullWhy)
		if len(verbs) > 1 {
			why = s.Verb + ": " + why
		}
		rows = append(rows, []string{object, why})
	}
	if all == 0 {
		return
	}
	b.Paragraph("#### %s", heading)
	b.table([]string{"", "Why"}, rows)
	b.more(all)
}
