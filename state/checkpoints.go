package state

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// CheckpointPath returns the path of a checkpoint's file below the root.
func (s *Store) CheckpointPath(c *schemas.Checkpoint) string {
	return CheckpointsDir(s.layout().state) + "/" + c.Name() + ".json"
}

// decodeCheckpoint decodes the content of a checkpoint's file.
func (l *layout) decodeCheckpoint(p string, data []byte) any {
	_, ref := l.classify(p)
	c, err := DecodeCheckpoint(data)
	if err == nil && c.Name() != ref.Name {
		err = fmt.Errorf("it is the checkpoint %s, and its file is that of %s", c.Name(), ref.Name)
	}
	if err != nil {
		return damageOf(err)
	}
	return c
}

// DecodeCheckpoint decodes and checks a checkpoint.
func DecodeCheckpoint(data []byte) (*schemas.Checkpoint, error) {
	c := new(schemas.Checkpoint)
	if err := decodeState(data, slices.Clone(data), c); err != nil {
		return nil, err
	}
	return c, c.Check()
}

// EncodeCheckpoint encodes a checkpoint as its file.
func EncodeCheckpoint(c *schemas.Checkpoint) ([]byte, error) {
	data, err := Encode(c)
	if err != nil {
		return nil, fmt.Errorf("checkpoint %s: %w", c.Name(), err)
	}
	return data, nil
}

// compareCheckpoints orders checkpoints by session, agent and index.
func compareCheckpoints(a, b *schemas.Checkpoint) int {
	return cmp.Or(strings.Compare(a.SessionID, b.SessionID), strings.Compare(a.Agent, b.Agent), cmp.Compare(a.CheckpointIndex, b.CheckpointIndex))
}

// Checkpoints returns the tree's checkpoints, by session, agent and index.
func (t *Tree) Checkpoints() []*schemas.Checkpoint { return t.checkpoints }

// WithCheckpoints returns a tree in which the given checkpoints are added, or replace those of the same name, and those that
// drop names are gone.
func (t *Tree) WithCheckpoints(added, drop []*schemas.Checkpoint) *Tree {
	names := map[string]bool{}
	for _, c := range slices.Concat(added, drop) {
		names[c.Name()] = true
	}
	next := *t
	next.checkpoints = slices.DeleteFunc(slices.Clone(t.checkpoints), func(c *schemas.Checkpoint) bool { return names[c.Name()] })
	next.checkpoints = append(next.checkpoints, added...)
	slices.SortFunc(next.checkpoints, compareCheckpoints)
	return &next
}

// checkpoints returns those of all usable files.
func (m *model) checkpoints() []*schemas.Checkpoint {
	var out []*schemas.Checkpoint
	for _, f := range m.files {
		if c, ok := f.body.(*schemas.Checkpoint); ok {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, compareCheckpoints)
	return out
}

// diffCheckpoints returns the checkpoints that differ between two trees.
func diffCheckpoints(prev, next *Tree) []schemas.Ref {
	was := map[string]*schemas.Checkpoint{}
	for _, c := range prev.checkpoints {
		was[c.Name()] = c
	}
	var out []schemas.Ref
	for _, c := range next.checkpoints {
		if old := was[c.Name()]; old == nil || old.Timestamp != c.Timestamp || old.Run != c.Run {
			out = append(out, schemas.Ref{Kind: CheckpointKind, Name: c.Name()})
		}
		delete(was, c.Name())
	}
	for name := range was {
		out = append(out, schemas.Ref{Kind: CheckpointKind, Name: name})
	}
	return out
}
