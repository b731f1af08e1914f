package progress

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"reconcile.dev/reconcile/controllers/dags"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Estimate says how far a DAG is, and how long the rest may take.
type Estimate struct {
	NodesDone  int `json:"nodesDone"`
	Nodes      int `json:"nodes"`
	LayersDone int `json:"layersDone"`
	Layers     int `json:"layers"`
	// LeftSeconds is how long the rest may take, by what its nodes took before; nil: not known. Least says that some of the rest is of
	// unknown length.
	LeftSeconds *float64 `json:"leftSeconds,omitempty"`
	Least       bool     `json:"least,omitempty"`
}

// Left is LeftSeconds; 0 where it is not known.
func (e *Estimate) Left() time.Duration {
	if e.LeftSeconds == nil {
		return 0
	}
	return time.Duration(*e.LeftSeconds * float64(time.Second))
}

// EstimateOf estimates a DAG of a tree as the display of a run does; nil for one that has no work. A node without a record is assumed to
// take as long as the others of the DAG on average. cpus is used if limits.concurrentTasks is 0.
func EstimateOf(t *state.Tree, e *state.Entry, cpus int, now time.Time) *Estimate {
	st, ok := e.Status().(*schemas.DAGStatus)
	if !ok || e.Object == nil || !hasWork(st) {
		return nil
	}
	d := &dag{}
	d.take(e, st)
	d.remaining(now, d.usualMean())
	if most := t.Settings().Limits.ConcurrentTasks; most > 0 {
		cpus = most
	}
	out := &Estimate{NodesDone: d.done, Nodes: d.total, Layers: len(st.Layers), Least: d.rest.least}
	for _, layer := range st.Layers {
		if layerDone(st, layer) {
			out.LayersDone++
		}
	}
	if left := max(d.rest.chain, d.rest.sum/time.Duration(max(cpus, 1))).Seconds(); left > 0 {
		out.LeftSeconds = &left
	}
	return out
}

// usualMean is what the latest successes of the nodes took on average; 0 without any.
func (d *dag) usualMean() time.Duration {
	var sum time.Duration
	n := 0
	for i := range d.plan {
		if usual := d.plan[i].usual; usual > 0 {
			sum += usual
			n++
		}
	}
	return sum / time.Duration(max(n, 1))
}

func layerDone(st *schemas.DAGStatus, layer []string) bool {
	for _, name := range layer {
		if s := st.Nodes.Of(name).State; s != schemas.NodeSucceeded && s != schemas.NodeSkipped {
			return false
		}
	}
	return true
}

// Wide returns a table of kinds in which DAGs have columns with their estimates.
func Wide(table settle.Table, t *state.Tree, cpus int, now time.Time) settle.Table {
	table = slices.Clone(table)
	touched := sync.OnceValue(func() *dags.Touching { return dags.TouchingIn(t) })
	for i := range table {
		if table[i].Name != schemas.DAGKind.Name {
			continue
		}
		of := func(text func(*Estimate) string) func(*state.Entry) string {
			return func(e *state.Entry) string {
				if est := EstimateOf(t, e, cpus, now); est != nil {
					return text(est)
				}
				return ""
			}
		}
		table[i].Columns = append(slices.Clip(table[i].Columns),
			settle.Column{Head: "LAYERS", Text: of(func(e *Estimate) string { return fmt.Sprintf("%d/%d", e.LayersDone, e.Layers) })},
			settle.Column{Head: "LEFT", Text: of((*Estimate).LeftText)},
			settle.Column{Head: "LANES", Text: func(e *state.Entry) string { return dags.LanesOf(e, t, now) }},
			settle.Column{Head: "HELD", Text: func(e *state.Entry) string { return heldText(dags.HeldNodes(e, touched())) }})
	}
	return table
}

// heldText is a line about nodes that wait for others which touch the same files.
func heldText(held map[string]string) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(held)) {
		out = append(out, name+" "+held[name])
	}
	return schemas.Shorten(out, 3)
}

// LeftText says how long the rest may take; "" where it is not known.
func (e *Estimate) LeftText() string {
	switch left := e.Left().Round(time.Second); {
	case left <= 0:
		return ""
	case e.Least:
		return "at least " + left.String()
	default:
		return "about " + left.String()
	}
}
