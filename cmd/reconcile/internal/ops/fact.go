package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/source"
)

// Statement is a statement about nodes: a relation, a provenance, a conflict, a review or a trust level.
type (
	Statement  = index.Statement
	Relation   = index.Relation
	Provenance = index.Provenance
	Conflict   = index.Conflict
	Review     = index.Review
	Trust      = index.Trust
	Stated     = index.PutResult // the result of recording a statement
)

// FactKinds are the kinds of statements, Verdicts those of reviews.
var (
	FactKinds = index.Kinds
	Verdicts  = index.Verdicts
)

// StateFactsRequest are statements to record.
type StateFactsRequest struct {
	Facts []Statement // nodes may be given by any of their names
	By    string      // "": the caller
	Note  string      // the reason, for statements without one; secrets are removed from it
}

// StateFacts states facts about nodes: it records each Statement of a StateFactsRequest in a file, signed by who states
// it. It writes nothing if a statement has an unknown node, a forbidden edge, or a secret.
func StateFacts(ctx context.Context, env Env, q StateFactsRequest) ([]Stated, *Pending, error) {
	for _, f := range q.Facts {
		if err := checkFact(f); err != nil {
			return nil, nil, err
		}
	}
	note := env.redact("--note", q.Note)
	who, err := env.person(q.By)
	if err != nil {
		return nil, nil, typed(err)
	}
	return withIndex(ctx, env, func(x *indexed) ([]Stated, error) { return x.state(ctx, who, note, q.Facts) })
}

// ResolveRequest resolves a conflict.
type ResolveRequest struct{ ID, Text, By string }

// ResolveConflict records the resolution of the conflict with the ID of a ResolveRequest, and who resolved it, as a
// fact.
func ResolveConflict(ctx context.Context, env Env, q ResolveRequest) ([]Stated, *Pending, error) {
	if strings.TrimSpace(q.Text) == "" {
		return nil, nil, badRequest("the resolution is empty: say how the conflict ended")
	}
	text := env.redact("the text", q.Text)
	who, err := env.person(q.By)
	if err != nil {
		return nil, nil, typed(err)
	}
	return withIndex(ctx, env, func(x *indexed) ([]Stated, error) {
		c, err := env.factStore(x.store).Conflict(q.ID)
		if err != nil {
			return nil, err
		}
		c.Resolution, c.ResolvedBy = text, who
		c.ResolvedAt = env.Tree.Now().UTC().Truncate(time.Second)
		return x.state(ctx, who, "", []Statement{c})
	})
}

func (x *indexed) state(ctx context.Context, who, note string, all []Statement) ([]Stated, error) {
	for _, f := range all {
		index.Sign(f, who, x.env.Tree.Now(), note)
		if err := errors.Join(x.resolveNodes(f), checkSecrets(f)); err != nil {
			return nil, err
		}
	}
	return x.env.factStore(x.store).Put(ctx, all)
}

// checkFact returns an error for values out of range.
func checkFact(f Statement) error {
	switch f := f.(type) {
	case *Relation:
		types, err := parseNames("type", []string{f.Type}, graph.ParseEdgeType)
		if err != nil {
			return err
		}
		if f.Type = types[0].String(); !(f.Weight >= 0 && f.Weight <= 1) {
			return badField("weight", " %v: write above 0 up to 1", f.Weight)
		}
	case *Provenance:
		if !(f.Confidence >= 0 && f.Confidence <= 1) {
			return badField("confidence", " %v: write 0 to 1", f.Confidence)
		}
	case *Review:
		if !slices.Contains(index.Verdicts, f.Verdict) {
			return badRequest("%q is no verdict%s; write one of %s", f.Verdict, schemas.DidYouMean(f.Verdict, index.Verdicts),
				strings.Join(index.Verdicts, ", "))
		}
	case *Trust:
		if !(f.Level >= 0 && f.Level <= 1) {
			return badRequest("\"%v\" is no level of trust; write 0 to 1, as 0.8", f.Level)
		}
	}
	return nil
}

// resolveNodes replaces the names of nodes with their ids, and returns an error for a forbidden edge.
func (x *indexed) resolveNodes(f Statement) error {
	var refs []graph.Ref
	var ids []string
	for _, name := range f.About() {
		r, err := x.node(name)
		if err != nil {
			return err
		}
		refs, ids = append(refs, r), append(ids, x.Graph.ID(r))
	}
	switch f := f.(type) {
	case *Relation:
		t, err := graph.ParseEdgeType(f.Type)
		if err != nil {
			return err
		}
		from, to := x.Graph.Node(refs[0]), x.Graph.Node(refs[1])
		if err := graph.CheckEdge(t, &from, &to); err != nil {
			return err
		}
		f.From, f.To = edgeName(f.From, ids[0]), edgeName(f.To, ids[1])
	case *Provenance:
		f.Node = ids[0]
	case *Conflict:
		f.A, f.B = ids[0], ids[1]
	case *Review:
		f.Node, f.Digest = ids[0], fmt.Sprintf("%016x", x.Graph.Node(refs[0]).Digest)
	case *Trust:
		f.Node = ids[0]
	}
	return nil
}

// edgeName returns the name of a node to store in an edge. A symbol that was named by its folder keeps that name, since
// it may move to another file.
func edgeName(name, id string) string {
	if name = strings.TrimPrefix(name, "./"); source.IsAlias(name) {
		return name
	}
	return id
}

// checkSecrets returns an error for a fact that contains a secret, except in names of nodes, which are in the tree
// already.
func checkSecrets(f Statement) error {
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	delete(fields, "digest")
	for name, value := range fields {
		if text, ok := value.(string); ok && !slices.Contains(f.About(), text) {
			if err := specs.CheckSecret(name, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// ReadFacts reads the statements of a file of facts, such as those in state/graph/, up to the size limit of such files.
func ReadFacts(from Text) ([]Statement, error) {
	data, err := io.ReadAll(io.LimitReader(from, index.FactsLimit+1))
	if err == nil && len(data) > index.FactsLimit {
		err = fmt.Errorf("%s has more than %d bytes; split it", from.Name, index.FactsLimit)
	}
	if err != nil {
		return nil, typed(err)
	}
	all, err := index.ParseFacts(data)
	if err != nil {
		err = fmt.Errorf("%s: %w", from.Name, err)
	}
	return all, typed(err)
}

// FactsRequest requests facts.
type FactsRequest struct {
	About *string  // a node; nil: all
	Kinds []string // of FactKinds; none: all
}

// Fact is a statement with its file.
type Fact struct {
	ID   string    `json:"id"`
	Kind string    `json:"kind"`
	Path string    `json:"path"`
	Hand bool      `json:"byHand"` // written by hand: only the author of the file may change it
	Fact Statement `json:"fact"`
}

// Facts lists the facts of the kinds of a FactsRequest about one node, or about all nodes.
func Facts(ctx context.Context, env Env, q FactsRequest) ([]Fact, *Pending, error) {
	if i := slices.IndexFunc(q.Kinds, func(k string) bool { return !slices.Contains(index.Kinds, k) }); i >= 0 {
		return nil, nil, badField("kind", ": there is no %q%s; there are %s", q.Kinds[i], schemas.DidYouMean(q.Kinds[i], index.Kinds),
			strings.Join(index.Kinds, ", "))
	}
	if q.About != nil {
		return withIndex(ctx, env, func(x *indexed) ([]Fact, error) {
			r, err := x.node(*q.About)
			if err != nil {
				return nil, err
			}
			return x.env.facts(x.env.factStore(x.store), q.Kinds, func(name string) bool {
				is, ok := x.kept.Resolve(name)
				return ok && is == r
			})
		})
	}
	s, err := env.Tree.Open()
	if err != nil {
		return nil, nil, typed(err)
	}
	defer s.Close()
	all, err := env.facts(env.factStore(s), q.Kinds, nil)
	return all, nil, typed(err)
}

// facts lists the facts of some kinds whose nodes satisfy about; nil selects all.
func (e Env) facts(b *index.FactStore, kinds []string, about func(node string) bool) ([]Fact, error) {
	all, err := b.List()
	if err != nil {
		return nil, err
	}
	out := []Fact{}
	for _, f := range all {
		if (len(kinds) == 0 || slices.Contains(kinds, f.Kind())) && (about == nil || slices.ContainsFunc(f.About(), about)) {
			out = append(out, Fact{ID: f.ID, Kind: f.Kind(), Path: f.Path, Hand: !f.Own, Fact: f.Statement})
		}
	}
	return out, nil
}

// RemoveFacts retracts facts by their ids. It retracts nothing if one of the ids is wrong.
func RemoveFacts(ctx context.Context, env Env, ids []string) error {
	s, err := env.Tree.Open()
	if err != nil {
		return typed(err)
	}
	defer s.Close()
	return typed(env.factStore(s).Retract(ctx, ids))
}

// factStore returns the facts of an open tree.
func (e Env) factStore(s *state.Store) *index.FactStore {
	return &index.FactStore{Store: s, Warn: e.warnIndex}
}
