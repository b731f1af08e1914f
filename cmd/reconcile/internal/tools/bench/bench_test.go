package main

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
)

// specsOf generates the specs of a tree and returns their texts by path.
func specsOf(t *testing.T, n int, seed uint64) map[string]string {
	t.Helper()
	g := &generator{dir: t.TempDir(), n: n, rnd: rand.New(rand.NewPCG(seed, uint64(n)))}
	if err := g.writeSpecs(); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	err := filepath.WalkDir(g.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		rel, _ := filepath.Rel(g.dir, p)
		files[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestGeneratedSpecs(t *testing.T) {
	const n = 500
	files := specsOf(t, n, 1)
	if len(files) != n {
		t.Errorf("%d files, want %d", len(files), n)
	}
	decoder := schemas.NewDecoder(controllers.Schemas(), 1<<20)
	names := map[schemas.Ref]bool{}
	var objects []*schemas.Object
	for path, text := range files {
		d := decoder.Decode(path, []byte(text))
		if len(d.Problems) > 0 {
			t.Fatalf("%s: %v\n%s", path, d.Problems, text)
		}
		names[d.Ref] = true
		objects = append(objects, d.Object)
	}
	for _, o := range objects {
		for _, r := range o.Refs {
			if !names[r.To] {
				t.Errorf("%s refers to %s, which does not exist", o.Ref, r.To)
			}
		}
	}
	for path, text := range specsOf(t, n, 1) {
		if files[path] != text {
			t.Fatalf("%s: the same seed made another text", path)
		}
	}
	if other := specsOf(t, n, 2); other["specs/dags/dag-00000.yaml"] == files["specs/dags/dag-00000.yaml"] {
		t.Error("another seed made the same text")
	}
}

func TestShares(t *testing.T) {
	sum := 0
	for _, s := range shares() {
		sum += s.percent
	}
	if sum != 100 {
		t.Errorf("the shares add up to %d", sum)
	}
}

func TestMedianAndQuantile(t *testing.T) {
	u := median([]usage{{wall: 3, cpu: 1, peak: 5}, {wall: 1, cpu: 9, peak: 7}, {wall: 2, cpu: 2, peak: 6}})
	if u != (usage{wall: 2, cpu: 2, peak: 7}) {
		t.Errorf("median: %+v", u)
	}
	var samples []time.Duration
	for i := range 100 {
		samples = append(samples, time.Duration(100-i))
	}
	if p50, p99 := quantile(samples, 0.5), quantile(samples, 0.99); p50 != 51 || p99 != 100 {
		t.Errorf("quantiles: %d, %d", p50, p99)
	}
}

func TestOnly(t *testing.T) {
	for only, want := range map[string]bool{"": true, "flat": true, "idle,vectors f": true, "idle,dag": false, "vectors flatter": false} {
		if b := (table{only: only}); b.wants("vectors flat") != want {
			t.Errorf("-only %q wants it: %v", only, !want)
		}
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	b := table{out: &out}
	b.ratio("fast", time.Millisecond, 2*time.Millisecond, 1)
	b.ratio("slow", 3*time.Millisecond, 2*time.Millisecond, 1)
	b.row("plain", "x", "", "1", 1, 0, "")
	b.least("many", "x", "", "7", 7, 6.5, " q/s")
	b.least("few", "x", "", "6", 6, 6.5, " q/s")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 6 || !strings.Contains(lines[1], "0.50  ≤ 1") || !strings.HasSuffix(lines[1], "ok") ||
		!strings.HasSuffix(lines[2], "OVER") || strings.Contains(lines[3], "≤") ||
		!strings.Contains(lines[4], "≥ 6.5 q/s") || !strings.HasSuffix(lines[4], "ok") || !strings.HasSuffix(lines[5], "UNDER") {
		t.Errorf("table:\n%s", out.String())
	}
}
