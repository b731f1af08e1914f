package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/graph"
)

// vouched is what somebody stated of a node, as it is printed beside it: a provenance, a review, a change of trust or a
// conflict.
type vouched struct {
	ID   string `json:"id"`
	Said string `json:"said"`
	By   string `json:"by,omitempty"`
	At   string `json:"at,omitempty"` // RFC 3339
	Path string `json:"path"`
}

// vouchedFor is what the index has of that.
func vouchedFor(g *graph.Graph, r graph.Ref) []vouched {
	var out []vouched
	for _, p := range g.Provenance(r) {
		said := strings.TrimSpace(p.SourceType+" "+p.SourceID) + fmt.Sprintf(" (%v)", float64(p.Confidence)/1000)
		out = append(out, vouched{ID: p.ID, Said: said, By: p.Verifier, At: timeOf(p.VerifiedAt), Path: p.Source})
	}
	id := g.ID(r)
	for _, c := range g.Conflicts(r) {
		other := c.A
		if other == id {
			other = c.B
		}
		v := vouched{ID: c.ID, Said: c.Type + " with " + other, At: timeOf(c.DetectedAt), Path: c.Source}
		if c.Resolution != "" {
			v.Said += "; resolved: " + c.Resolution
		}
		out = append(out, v)
	}
	return out
}

func timeOf(seconds int64) string {
	if seconds == 0 {
		return ""
	}
	return time.Unix(seconds, 0).UTC().Format(time.RFC3339)
}

func (v *vouched) String() string {
	out := v.Said
	if v.By != "" {
		out += ", by " + v.By
	}
	return out + " (" + v.Path + ")"
}

// factRow is what -o json prints of a fact.
type factRow struct {
	ID   string          `json:"id"`
	Kind string          `json:"kind"`
	Path string          `json:"path"`
	Hand bool            `json:"byHand"` // somebody wrote the file, and is who may change it
	Fact index.Statement `json:"fact"`
}

func newFactListCmd(a *app) *cobra.Command {
	var only []string
	cmd := &cobra.Command{
		Use:     "list [KIND/NAME|PATH[:SYMBOL]]",
		Short:   "List what is stated, of everything or of one thing",
		Long:    "List what is stated, of everything or of one thing. What was written by hand is listed, too.",
		Example: "  reconcile fact list\n  reconcile fact list docs/git.md --kind review,trust",
		Args:    arguments(0, 1, "an object, a file or a symbol"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if i := slices.IndexFunc(only, func(k string) bool { return !slices.Contains(index.Kinds, k) }); i >= 0 {
				return badUsage("--kind: there is no %q%s; there are %s", only[i], didYouMean(only[i], index.Kinds),
					strings.Join(index.Kinds, ", "))
			}
			return a.factList(cmd.Context(), args, only)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	namesFlag(cmd, cmd.Flags(), &only, "kind", "only facts of `KIND`: "+strings.Join(index.Kinds, ", ")+"; may be repeated", index.Kinds)
	return cmd
}

func (a *app) factList(ctx context.Context, about, kinds []string) error {
	wanted := func(f index.Fact) bool { return len(kinds) == 0 || slices.Contains(kinds, f.Kind()) }
	if len(about) == 0 {
		s, err := a.open()
		if err != nil {
			return err
		}
		defer s.Close()
		return a.printFacts(s, wanted)
	}
	return a.withIndex(ctx, func(s *state.Store, x *index.Kept) error {
		r, err := a.nodeOf(x, about[0])
		if err != nil {
			return err
		}
		return a.printFacts(s, func(f index.Fact) bool {
			return wanted(f) && slices.ContainsFunc(f.About(), func(name string) bool {
				is, ok := x.Resolve(name)
				return ok && is == r
			})
		})
	})
}

func (a *app) printFacts(s *state.Store, wanted func(index.Fact) bool) error {
	all, err := a.book(s).List()
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(f index.Fact) bool { return !wanted(f) })
	if a.global.output != formatTable {
		out := []factRow{}
		for _, f := range all {
			out = append(out, factRow{ID: f.ID, Kind: f.Kind(), Path: f.Path, Hand: !f.Own, Fact: f.Statement})
		}
		return a.print(out)
	}
	if len(all) == 0 {
		a.note("nothing is stated; reconcile fact --help tells what can be")
		return nil
	}
	t := render.NewTable(a.palette(), "ID", "FACT", "BY", "AT")
	for _, f := range all {
		at := "-"
		if !f.When().IsZero() {
			at = f.When().UTC().Format(time.RFC3339)
		}
		t.Row(render.Line(f.ID), render.Line(f.Said()), render.Line(dashed(f.By())), at)
	}
	return t.Write(a.stdout)
}
