package sessions

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
	"reconcile.dev/reconcile/state"
)

// What mends the work of a session is a DAG of its own: one task for each folder in which something was found, and each agent who changed that
// there. Where there is an architect, it plans the tasks first, in a DAG before that one.

// FixDAG is the DAG that a session needs to mend what its verification found; nil for none, or while it exists.
func FixDAG(t *state.Tree, session *state.Entry) (name string, dag *schemas.DAGSpec) {
	st, ok := session.Status().(*schemas.SessionStatus)
	spec := state.SpecOf[*schemas.SessionSpec](session)
	if !ok || spec == nil || spec.Quality == nil || st.Quality == nil || st.Quality.State != schemas.QualityFixing {
		return "", nil
	}
	fix := dagRef(st.Quality.Fix)
	c, all := correctionsOf(t, session, st.Quality)
	if e := t.Entry(fix); c == nil || len(c.Engineers) == 0 || e != nil && !e.Gone() {
		return "", nil
	}
	out := &schemas.DAGSpec{Session: session.Name, Fixes: session.Name, Description: fmt.Sprintf("Mend what the %s of session %s found", c.From, session.Name)}
	architect, plan := architectOf(t), dagRef(planOf(st.Quality.Fix))
	if e := t.Entry(plan); architect != "" && len(c.Files) > 0 && (e == nil || e.Gone()) {
		out.Description = "Plan how to m" + out.Description[1:]
		out.Nodes = []schemas.Node{{Name: "plan", Agent: architect, Priority: schemas.High, Prompt: c.Question(), Optional: true, Retry: &schemas.Retry{Limit: 1}}}
		return plan.Name, out
	} else if architect != "" && mends(session.Name, e) {
		made := state.StatusOf[schemas.DAGStatus](e)
		if made == nil || !endedWell(made.Phase) {
			return "", nil // it is at it, or a person has to decide
		}
		tasks, err := c.ReadFix(made.Nodes.Of("plan").Result)
		if err == nil {
			if out.Nodes = planned(c, all, tasks); valid(out) {
				return fix.Name, out
			}
			err = errors.New("its tasks are no valid nodes")
		}
		out.Description += fmt.Sprintf(". %s was put aside: %s", plan, shorten.Text(strings.Join(strings.Fields(err.Error()), " "), 300))
	}
	if out.Nodes = byRule(t, session.Name, c, all); !valid(out) {
		return "", nil
	}
	return fix.Name, out
}

// valid reports whether a spec has no problems.
func valid(dag *schemas.DAGSpec) bool {
	var r schemas.Report
	filled := *dag
	filled.Nodes = slices.Clone(dag.Nodes)
	filled.Default()
	filled.Check(&r)
	return len(r.Findings()) == 0
}

// correctionsOf are the corrections for which a session has a DAG made; nil if they are not on record.
func correctionsOf(t *state.Tree, session *state.Entry, st *schemas.QualityStatus) (*agentio.Corrections, []checks.Finding) {
	v := verification{spec: state.SpecOf[*schemas.SessionSpec](session), st: st}
	v.Entry, v.Tree = session, t
	for _, step := range []string{schemas.StepTest, schemas.StepInspect} {
		r := v.record(step)
		if r == nil {
			continue
		}
		e := checks.EvidenceOf(r)
		all := found(e, v.spec.Quality)
		if correctionsDigest(all) != st.Found {
			return nil, nil
		}
		c := &agentio.Corrections{Session: session.Name, From: "inspector", Commit: st.Commit, Summary: e.Summary, Text: e.Text(), Engineers: engineersOf(t)}
		if step == schemas.StepTest {
			c.From = "tester"
		}
		for _, f := range all {
			if f.File != "" && !f.Outside() && !slices.Contains(c.Files, f.File) {
				c.Files = append(c.Files, f.File)
			}
		}
		slices.Sort(c.Files)
		if len(e.Failures) > 0 { // whose files say nothing about what is wrong
			also, more := LandedFiles(t, session.Name)
			c.Also = slices.DeleteFunc(also, func(f string) bool { return slices.Contains(c.Files, f) })
			c.Anywhere = more > 0 || len(also) == 0
		}
		return c, all
	}
	return nil, nil
}

// planned are the tasks of an architect's plan. What is about no file of any of them is told to all, and so is each failed test.
func planned(c *agentio.Corrections, all []checks.Finding, tasks []agentio.FixTask) (out []schemas.Node) {
	var own []string
	for _, t := range tasks {
		own = append(own, t.Files...)
	}
	for _, t := range tasks {
		its := task(c, all, t.Files, own)
		its.Also, its.Plan = nil, t.Prompt
		out = append(out, schemas.Node{Name: t.Name, Agent: t.Agent, Needs: t.Needs, Prompt: its.Prompt(), Touches: globsOf(its.Scope())})
	}
	return out
}

// mostByRule bounds the tasks that are made without a plan.
const mostByRule = 20

// byRule has the files of each folder mended in a task of the agent that changed them last, else of the first engineer. Where what was found may
// come from elsewhere, each agent has one task.
func byRule(t *state.Tree, session string, c *agentio.Corrections, all []checks.Finding) (out []schemas.Node) {
	type part struct{ agent, folder string }
	last := changedBy(t, session)
	divide := func(folder func(string) string) map[part][]string {
		files := map[part][]string{}
		for _, f := range c.Files {
			who := last[f]
			if !slices.Contains(c.Engineers, who) {
				who = c.Engineers[0]
			}
			in := part{who, folder(f)}
			files[in] = append(files[in], f)
		}
		return files
	}
	elsewhere := func(f checks.Finding) bool { return !slices.Contains(c.Files, f.File) }
	files := divide(path.Dir)
	if len(files) > mostByRule || len(c.Also) > 0 || c.Anywhere || slices.ContainsFunc(all, elsewhere) {
		files = divide(func(string) string { return "" })
	}
	if len(files) == 0 {
		files[part{agent: c.Engineers[0]}] = nil
	}
	parts := slices.SortedFunc(maps.Keys(files), func(a, b part) int {
		return cmp.Or(cmp.Compare(a.agent, b.agent), cmp.Compare(a.folder, b.folder))
	})
	for i, in := range parts {
		its, name := task(c, all, files[in], c.Files), "fix"
		if len(parts) > 1 {
			name = fmt.Sprintf("fix-%d", i+1)
		}
		out = append(out, schemas.Node{Name: name, Agent: in.agent, Prompt: its.Prompt(), Touches: globsOf(its.Scope())})
	}
	return out
}

// task are those of the corrections that are for somebody who changes some files, where others see to own: what was found in the files, what is
// in none that anybody sees to, and failed tests, whose cause may be anywhere.
func task(c *agentio.Corrections, all []checks.Finding, files, own []string) *agentio.Corrections {
	its := *c
	its.Files = files
	its.Text = textOf(all, func(f checks.Finding) bool {
		return c.From == schemas.RoleTester || !slices.Contains(own, f.File) || slices.Contains(files, f.File)
	})
	return &its
}

func textOf(all []checks.Finding, in func(checks.Finding) bool) string {
	e := checks.Evidence{}
	for _, f := range all {
		if in(f) {
			e.Findings = append(e.Findings, f)
		}
	}
	return e.Text()
}

// globsOf are globs of files; nil if they are more than a node can name. What would be a pattern in a name becomes "?", which stands for any character.
func globsOf(files []string) (out []string) {
	for _, f := range files {
		if len(files) <= 100 && path.Clean(f) == f {
			out = append(out, strings.Map(func(c rune) rune {
				if strings.ContainsRune(`*[]{}\!`, c) {
					return '?'
				}
				return c
			}, f))
		}
	}
	return out
}
