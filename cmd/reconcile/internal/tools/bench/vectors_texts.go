package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"reconcile.dev/reconcile/vectors/embed"
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
	var rows, asked []float32
	every := max(2, len(vectors)/kindAsked)
	for i, vector := range vectors {
		if i%every == 0 {
			asked = append(asked, vector...)
		} else {
			rows = append(rows, vector...)
		}
	}
	return knntest.New(vectorDims, rows, asked), nil
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
