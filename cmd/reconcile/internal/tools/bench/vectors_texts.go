package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/vectors/embed"
	"reconcile.dev/reconcile/vectors/kernel"
	"reconcile.dev/reconcile/vectors/knn/knntest"
)

const textsName = "vectors of comments in Go's own source"

// embeddedTexts are vectors that the embedder of this program computes from the comments in Go's own source, each text once; some of them
// are the queries.
func embeddedTexts(ctx context.Context) (*knntest.Data, error) {
	source, err := goSource(ctx)
	if err != nil {
		return nil, err
	}
	texts, err := comments(source)
	if err != nil {
		return nil, err
	}
	learner := embed.NewLearner()
	for _, text := range texts {
		learner.Add(nil, text, 1)
	}
	vectors, err := embed.Learned(vectorDims, learner).Embed(ctx, texts)
	if err != nil {
		return nil, err
	}
	return queried(vectors), nil
}

// queried makes queries of some of the vectors, which have the length one.
func queried(vectors [][]float32) *knntest.Data {
	var rows, asked []float32
	every := max(2, len(vectors)/kindAsked)
	for i, vector := range vectors {
		if i%every == 0 {
			asked = append(asked, vector...)
		} else {
			rows = append(rows, vector...)
		}
	}
	return knntest.New(len(vectors[0]), rows, asked)
}

// readVectors reads vectors from a file, a line each: numbers between spaces, after a name if there is one. Some of them are the queries.
func readVectors(path string) (*knntest.Data, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var vectors [][]float32
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) > 0 {
			if _, err := strconv.ParseFloat(fields[0], 32); err != nil {
				fields = fields[1:]
			}
		}
		vector := make([]float32, len(fields))
		for i, field := range fields {
			x, err := strconv.ParseFloat(field, 32)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", path, len(vectors)+1, err)
			}
			vector[i] = float32(x)
		}
		length := float32(kernel.Norm(vector))
		if length == 0 || len(vectors) > 0 && len(vector) != len(vectors[0]) {
			return nil, fmt.Errorf("%s:%d: there is no vector of the same length as the first one, not zero", path, len(vectors)+1)
		}
		for i := range vector {
			vector[i] /= length
		}
		vectors = append(vectors, vector)
	}
	if len(vectors) < 2 {
		return nil, fmt.Errorf("%s has fewer than two vectors", path)
	}
	return queried(vectors), nil
}

// comments returns up to graphVectors texts of comments below a folder: runs of lines that begin with slashes.
func comments(dir string) (texts []string, err error) {
	const least = 80 // bytes: others say little
	seen := map[string]bool{}
	var block strings.Builder
	end := func() {
		if text := block.String(); len(text) >= least && !seen[text] && len(texts) < graphVectors {
			seen[text] = true
			texts = append(texts, text)
		}
		block.Reset()
	}
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(p) != ".go" || len(texts) >= graphVectors {
			return err
		}
		content, err := os.ReadFile(p)
		for line := range strings.Lines(string(content)) {
			if text, is := strings.CutPrefix(strings.TrimSpace(line), "// "); is {
				block.WriteString(text + "\n")
			} else {
				end()
			}
		}
		end()
		return err
	})
	return texts, err
}
