package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/vectors/knn"
	"reconcile.dev/reconcile/vectors/knn/knntest"
)

// hnswProgram is the program in the folder hnsw, compiled.
type hnswProgram struct{ dir string }

// compileHNSW compiles it. The error names the missing tool or source.
func compileHNSW(ctx context.Context) (*hnswProgram, error) {
	compiler, err := exec.LookPath("c++")
	if err != nil {
		return nil, errors.New("there is no C++ compiler")
	}
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "reconcile.dev/reconcile").Output()
	if err != nil {
		return nil, fmt.Errorf("find the folder of this module: %w", err)
	}
	dir, err := os.MkdirTemp("", "reconcile-bench-hnsw")
	if err != nil {
		return nil, err
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "cmd", "reconcile", "internal", "tools", "bench", "hnsw", "main.cpp")
	cmd := exec.CommandContext(ctx, compiler, "-O3", "-march=native", "-pthread", "-o", filepath.Join(dir, "hnsw"), source)
	if out, err := cmd.CombinedOutput(); err != nil {
		first, _, _ := strings.Cut(string(out), "\n")
		return nil, errors.Join(fmt.Errorf("it does not compile (Debian has the header in libhnswlib-dev): %s", first), os.RemoveAll(dir))
	}
	return &hnswProgram{dir}, nil
}

func (p *hnswProgram) remove() { _ = os.RemoveAll(p.dir) }

// hnsw is the program at work.
type hnsw struct {
	data *knntest.Data
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
}

// start has the program build an index of the vectors.
func (p *hnswProgram) start(ctx context.Context, d *knntest.Data) (*hnsw, error) {
	path := filepath.Join(p.dir, "vectors")
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer os.Remove(path)
	w := bufio.NewWriterSize(f, 1<<20)
	for _, numbers := range []any{[]uint64{uint64(d.N), uint64(d.Queries), uint64(d.Dims)}, d.Vectors, d.Asked} {
		err = errors.Join(err, binary.Write(w, binary.NativeEndian, numbers))
	}
	if err = errors.Join(err, w.Flush(), f.Close()); err != nil {
		return nil, err
	}
	h := &hnsw{data: d, cmd: exec.CommandContext(ctx, filepath.Join(p.dir, "hnsw"), path)}
	h.cmd.Stderr = os.Stderr
	if h.in, err = h.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	h.out = bufio.NewReaderSize(out, 1<<20)
	if err := h.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := h.out.ReadString('\n'); err != nil {
		return nil, errors.Join(fmt.Errorf("hnswlib builds no index: %w", err), h.cmd.Wait())
	}
	return h, nil
}

func (h *hnsw) stop() {
	_ = h.in.Close()
	_ = h.cmd.Wait()
}

// ask searches for all queries, runs times.
func (h *hnsw) ask(ef int, truth [][]knntest.Neighbor, runs int) (p point, err error) {
	var means []time.Duration
	for range runs {
		if _, err := fmt.Fprintln(h.in, ef, knn.DefaultK); err != nil {
			return p, err
		}
		line, err := h.out.ReadString('\n')
		if err != nil {
			return p, err
		}
		fields := strings.Fields(line)
		if len(fields) != 1+knn.DefaultK*h.data.Queries {
			return p, fmt.Errorf("hnswlib answers with %d fields", len(fields))
		}
		seconds, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			return p, err
		}
		means = append(means, time.Duration(seconds*float64(time.Second)/float64(h.data.Queries)))
		p.recall = 0
		rows := make([]uint32, knn.DefaultK)
		for q := range h.data.Queries {
			for i, field := range fields[1+q*knn.DefaultK:][:knn.DefaultK] {
				row, err := strconv.ParseUint(field, 10, 32)
				if err != nil {
					return p, err
				}
				rows[i] = uint32(row)
			}
			p.recall += h.data.Recall(q, truth[q], rows) / float64(h.data.Queries)
		}
	}
	p.mean = quantile(means, 0.5)
	return p, nil
}
