package readiness

import (
	"iter"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Row is how one object is.
type Row struct {
	Ref     schemas.Ref
	Waits   bool   `json:",omitempty"` // it neither failed nor is invalid, nor is it ready
	Ready   string // as ReadyWord
	Phase   string // as PhaseWord
	Because string
}

// RowOf returns the row of an object.
func RowOf(e *state.Entry) Row {
	return Row{e.Ref, Standing(e).Waiting == 1, ReadyWord(e), PhaseWord(e), Because(e)}
}

// Report is the output of a run that changed nothing, about a tree with failures.
type Report struct {
	Count StandingCount // of all objects
	// Rows are objects that wait, failed or are invalid, by kind and name: the first MostRows, and the first MostRows that do not wait.
	Rows     []Row
	Problems []FileProblem
}

// FileProblem is a problem with all of its fields in JSON.
type FileProblem struct {
	schemas.Problem
	Ref    schemas.Ref
	Source string
}

// Whole returns the problem.
func (p FileProblem) Whole() schemas.Problem {
	p.Problem.Ref, p.Problem.Source = p.Ref, p.Source
	return p.Problem
}

// MostRows is how many rows a report has of each sort, as many as a run lists; "reconcile get" lists all.
const MostRows = 50

// ReportOf returns the report about a tree; nil if it has more problems than MostRows.
func ReportOf(t *state.Tree) *Report {
	problems := t.Problems()
	if len(problems) > MostRows {
		return nil
	}
	r := &Report{Rows: NotReady((*settle.Selection)(nil).Unrested(t, MostRows), MostRows)}
	for _, c := range StandingOf(t, nil) {
		r.Count.Add(c)
	}
	for _, p := range problems {
		r.Problems = append(r.Problems, FileProblem{p, p.Ref, p.Source})
	}
	return r
}

// Whole reports whether all objects that are not ready have a row.
func (r *Report) Whole() bool { return len(r.Rows) == r.Count.Unready() }

// NotReady lists objects that are not ready, at most the given number of them; those that failed or are invalid are listed in
// addition if these come later, up to the same number.
func NotReady(list iter.Seq[*state.Entry], most int) (rows []Row) {
	all, failed := 0, 0
	for e := range list {
		c := Standing(e)
		if c.Unready() == 0 {
			continue
		}
		if all < most || c.Waiting == 0 && failed < most {
			rows = append(rows, RowOf(e))
		}
		all++
		failed += c.Failed + c.Invalid
	}
	return rows
}
