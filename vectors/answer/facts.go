package answer

import (
	"fmt"
	"strings"
	"time"

	"reconcile.dev/reconcile/vectors/graph"
)

// Fact is a stated fact about a node: a provenance, a review, a change of trust or a conflict.
type Fact struct {
	ID   string `json:"id"`
	Said string `json:"said"`
	By   string `json:"by,omitempty"`
	At   string `json:"at,omitempty"` // RFC 3339
	Path string `json:"path"`
}

func (f *Fact) String() string {
	out := f.Said
	if f.By != "" {
		out += ", by " + f.By
	}
	return out + " (" + f.Path + ")"
}

// Facts lists the facts about a node: its provenances, with their confidence and verifier, and its conflicts with other
// nodes, with their resolution.
func (x Index) Facts(r graph.Ref) []Fact {
	var out []Fact
	for _, p := range x.Graph.Provenance(r) {
		said := strings.TrimSpace(p.SourceType+" "+p.SourceID) + fmt.Sprintf(" (%v)", float64(p.Confidence)/1000)
		out = append(out, Fact{ID: p.ID, Said: said, By: p.Verifier, At: timeOf(p.VerifiedAt), Path: p.Source})
	}
	id := x.Graph.ID(r)
	for _, c := range x.Graph.Conflicts(r) {
		other := c.A
		if other == id {
			other = c.B
		}
		f := Fact{ID: c.ID, Said: c.Type + " with " + other, At: timeOf(c.DetectedAt), Path: c.Source}
		if c.Resolution != "" {
			f.Said += "; resolved: " + c.Resolution
		}
		out = append(out, f)
	}
	return out
}

func timeOf(seconds int64) string {
	if seconds == 0 {
		return ""
	}
	return time.Unix(seconds, 0).UTC().Format(time.RFC3339)
}
