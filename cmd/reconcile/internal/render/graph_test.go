package render

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/graph"
)

var update = flag.Bool("update", false, "rewrite golden files")

// golden compares got with testdata/name, or rewrites it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update rewrites it); got:\n%s", path, got)
	}
}

func checkGraph() graph.Picture {
	return graph.Picture{Title: "dag/checks", Nodes: []graph.Node{
		{Name: "format", State: "Succeeded", Note: "0.3s"},
		{Name: "build", State: "Succeeded", Note: "4.1s"},
		{Name: "vet", State: "Running", Needs: []string{"build"}},
		{Name: "unit_tests", State: "Failed", Note: "12s", Needs: []string{"build"}},
		{Name: "race_tests", State: "Queued", Needs: []string{"build"}},
		{Name: "lint", State: "Blocked", Needs: []string{"format", "build"}},
		{Name: "integration", State: "Cancelled", Needs: []string{"unit_tests"}},
		{Name: "docs", State: "Skipped", Needs: []string{"format"}},
		{Name: "publish", State: "Pending", Needs: []string{"integration", "vet", "lint", "docs", "race_tests", "format"}},
	}}
}

func TestGraphFormats(t *testing.T) {
	for name, write := range map[string]func(io.Writer, graph.Picture) error{
		"graph.mmd": Mermaid, "graph.dot": DOT, "graph.svg": SVG,
	} {
		var b bytes.Buffer
		if err := write(&b, checkGraph()); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.Bytes())
	}
}

func TestGraphEscapes(t *testing.T) {
	nasty := graph.Picture{Title: `</title><script>"x"`, Nodes: []graph.Node{
		{Name: "a\"]; click n0 \"javascript:x\"\x1b[31m", State: "<b>&", Note: "\\\"\x00"},
	}}
	var svg, dot, mmd bytes.Buffer
	for _, err := range []error{SVG(&svg, nasty), DOT(&dot, nasty), Mermaid(&mmd, nasty)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := wellFormed(svg.Bytes()); err != nil {
		t.Errorf("svg: %v", err)
	}
	if strings.Contains(svg.String(), "<script>") {
		t.Error("svg: a title became an element")
	}
	if strings.ContainsAny(svg.String()+dot.String()+mmd.String(), "\x1b\x00") {
		t.Error("control characters came through")
	}
	if strings.Contains(mmd.String(), `"]; click`) {
		t.Errorf("mermaid: a label ended early:\n%s", mmd.String())
	}
	if !strings.Contains(dot.String(), `[label="a\"]; click n0 \"javascript:x\"\\x1b[31m\n`) {
		t.Errorf("dot: a label ended early:\n%s", dot.String())
	}
}

func wellFormed(src []byte) error {
	d := xml.NewDecoder(bytes.NewReader(src))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// Boxes must not overlap, and every line must go from left to right.
func TestLayoutKeepsItsDistances(t *testing.T) {
	big := graph.Picture{Title: "big"}
	for i := range 300 {
		n := graph.Node{Name: "node_" + strconv.Itoa(i), State: "Pending"}
		for j := 1; j <= i%4; j++ {
			n.Needs = append(n.Needs, "node_"+strconv.Itoa(i*j/5))
		}
		big.Nodes = append(big.Nodes, n)
	}
	for _, g := range []graph.Picture{checkGraph(), big, {Title: "none"}} {
		l := newLayout(g)
		for _, column := range l.columns {
			for i := 1; i < len(column); i++ {
				if gap := column[i].y - column[i-1].y - layoutDistance(column[i-1], column[i]); gap < -1e-6 {
					t.Errorf("%s: two boxes overlap by %g", g.Title, -gap)
				}
			}
		}
		for _, way := range l.lines {
			for i := 1; i < len(way); i++ {
				if way[i].x <= way[i-1].x {
					t.Errorf("%s: a line goes back", g.Title)
				}
			}
		}
	}
}

// A cycle is not drawn, but it must not hang either.
func TestLayoutOfACycle(t *testing.T) {
	g := graph.Picture{Nodes: []graph.Node{{Name: "a", Needs: []string{"b"}}, {Name: "b", Needs: []string{"a", "gone"}}}}
	if l := newLayout(g); len(l.columns) != 1 || len(l.columns[0]) != 2 {
		t.Errorf("columns = %v", l.columns)
	}
}
