package index_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
	"reconcile.dev/reconcile/vectors/embed"
)

// moody is an embedder that can be away, and knows what it was asked for.
type moody struct {
	mu    sync.Mutex
	away  bool
	asked map[string]int
}

func (m *moody) Model() string { return "moody" }

func (m *moody) Embed(_ context.Context, texts []string) ([][]float32, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return nil, fmt.Errorf("%w: moody is away", embed.ErrUnavailable)
	}
	var out [][]float32
	for _, text := range texts {
		m.asked[text]++
		v := embed.Nothing(768)
		for i := range len(text) {
			v[int(text[i])%768] += float32(i%7) + 1
		}
		if err := embed.Unit(v); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func (m *moody) be(away bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = away
}

// kept brings the index up to date as the command index does, if retry is set, or as a search.
func (r *rig) kept(m *moody, retry bool) *index.Kept {
	r.Helper()
	k, tree := r.keeper()
	k.Embedder, k.Retry = m, retry
	x, err := k.Complete(r.Context(), tree)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(x.Close)
	return x
}

// An index that was built while the embedder was away has its vectors made when it is back, and is then what it would
// have been; so is what changed meanwhile.
func TestVectorsAreMadeLater(t *testing.T) {
	t.Parallel()
	r, m := newRig(t, program), &moody{asked: map[string]int{}}
	whole := r.kept(m, false)
	if whole.LacksVectors() || whole.Stored.Meta().Model != "moody" {
		t.Fatalf("a new index lacks vectors: %+v", whole.Stored.Meta())
	}
	want := r.read(index.SnapshotPath)
	r.remove(index.SnapshotPath)

	m.be(true)
	if x := r.kept(m, false); !x.LacksVectors() || x.Stored.Meta().Model != "" {
		t.Errorf("vectors were made while the embedder was away: %+v", x.Stored.Meta())
	}
	words := r.read(index.SnapshotPath)
	if x := r.kept(m, true); !x.LacksVectors() || x.How.Rebuilt != "" {
		t.Errorf("the index was built anew though the embedder is still away: %+v", x.How)
	}
	if !strings.Contains(strings.Join(r.warned, "\n"), "still lacks vectors") {
		t.Errorf("nobody was told that vectors are lacking: %q", r.warned)
	}
	m.be(false)
	if x := r.kept(m, false); !x.LacksVectors() || !bytes.Equal(r.read(index.SnapshotPath), words) {
		t.Error("a search built the index anew")
	}
	if x := r.kept(m, true); x.LacksVectors() || x.How.Rebuilt != "it had no vectors" {
		t.Errorf("the index still lacks vectors: %+v", x.How)
	}
	if !bytes.Equal(r.read(index.SnapshotPath), want) {
		t.Error("the index is not what it would have been with the embedder at hand")
	}
	if x := r.kept(m, true); x.LacksVectors() || x.How.Rebuilt != "" || x.How.Changed != 0 {
		t.Errorf("a whole index is not left alone: %+v", x.How)
	}
}

func TestVectorsOfChangesAreMadeLater(t *testing.T) {
	t.Parallel()
	r, m := newRig(t, program), &moody{asked: map[string]int{}}
	r.kept(m, false)
	m.be(true)
	r.write("notes.txt", "remember the bread\n")
	if x := r.kept(m, true); !x.LacksVectors() || x.How.Changed != 1 {
		t.Errorf("a change has a vector while the embedder is away: %+v", x.How)
	}
	m.be(false)
	before := len(m.asked)
	if x := r.kept(m, false); !x.LacksVectors() {
		t.Error("a search made the vectors of what changed")
	}
	if x := r.kept(m, true); x.LacksVectors() || x.How.Rebuilt != "" {
		t.Errorf("the change still lacks a vector: %+v", x.How)
	}
	if made := len(m.asked) - before; made != 2 { // whether it is there, and the one text
		t.Errorf("%d texts were asked for", made)
	}
	before = len(m.asked)
	if x := r.kept(m, true); x.LacksVectors() || len(m.asked) != before {
		t.Error("what has its vectors is asked for again")
	}
}
