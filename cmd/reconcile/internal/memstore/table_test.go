package memstore

import (
	"errors"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// TestTable: what a table is built of is read from it, and no changed byte is read as if it were that.
func TestTable(t *testing.T) {
	t.Parallel()
	b := tableBuilder{bare: true}
	at := time.UnixMilli(1_700_000_000_123)
	o := schemas.Observation{ID: "o1", IssueNumber: 7, Agent: "lead", Category: "decision", Summary: "use it", Source: "capture",
		Timestamp: schemas.Stamp{Time: at}, VerifiedAt: schemas.Stamp{Time: at.Add(time.Hour)}, Tokens: 11, RecallCount: 3, SeenCount: 2, SupersededBy: "o2",
		Anchors: []schemas.Anchor{{Path: "a.go", Digest: "sha256:1"}}, Compacts: []string{"o0"}}
	id := state.Identity{Size: 1, Mtime: 2, Ctime: 3, Ino: 4, Mode: 5}
	b.addFile(source{issue: 7, id: id, hash: 6, racy: true}, &schemas.MemoryFile{
		IssueNumber: 7, Observations: []schemas.Observation{o}, Sources: map[string]string{"capture": "sha256:2"}})
	data := b.bytes(nil, 99)
	check := func(data []byte) error {
		table, err := openTable(data)
		if err != nil {
			return err
		}
		s, r := table.sources()[0], table.row(0)
		taken, err := table.taken(&s)
		if err != nil {
			return err
		}
		blob, err := table.blob(&r)
		if err != nil {
			return err
		}
		if s.id != id || s.hash != 6 || !s.racy || taken.Sources["capture"] != "sha256:2" || table.basis() != 99 || table.len() != 1 ||
			table.word(r.agent) != "lead" || table.word(r.category) != "decision" || r.ms != at.UnixMilli() ||
			r.verified != o.VerifiedAt.UnixMilli() || r.tokens != 11 || r.recalls != 3 || r.seen != 2 || !r.superseded || !r.anchored ||
			!r.merged || blob.id != "o1" || blob.summary != "use it" || blob.supersededBy != "o2" || blob.source != "capture" ||
			!slices.Equal(blob.anchors, o.Anchors) || !slices.Equal(blob.compacts, o.Compacts) {
			t.Errorf("%+v, %+v, %+v", s, r, blob)
		}
		return nil
	}
	if err := check(data); err != nil {
		t.Fatal(err)
	}
	for i := range data {
		bad := slices.Clone(data)
		bad[i] ^= 4
		if err := check(bad); !errors.Is(err, errDamagedCache) {
			t.Errorf("byte %d is changed: %v", i, err)
		}
	}
}
