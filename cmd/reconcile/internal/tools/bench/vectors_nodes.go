package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/lexical/lexicaltest"
)

// nodeSizes are how many nodes the indexes have that are asked as a whole, by words, vectors and relations.
var nodeSizes = []int{10_000, 100_000}

// nodeIndex is an index of nodes of all domains, as a file that is mapped.
type nodeIndex struct {
	*vectors.Index
	path    string
	queries []string
}

// nodes builds the index of n nodes, or returns the cached one.
func (v *vectorFigures) nodes(ctx context.Context, n int) (*nodeIndex, error) {
	if x := v.related[n]; x != nil {
		return x, nil
	}
	corpus := lexicaltest.New(v.bench.seed)
	inputs := nodeInputs(corpus, v.bench.seed, n)
	x := &nodeIndex{path: filepath.Join(v.bench.trees, fmt.Sprint("vectors-nodes-", n)), queries: corpus.Queries(vectorAsked)}
	if !v.kept(x, vectors.DigestInputs(inputs)) {
		if err := writeNodes(ctx, x.path, inputs); err != nil {
			return nil, err
		}
	}
	data, _, err := mapVectors(x.path)
	if err != nil {
		return nil, err
	}
	if x.Index, err = vectors.Open(data, nil, vectors.Options{Sound: true}); err != nil {
		return nil, err
	}
	v.related[n] = x
	return x, nil
}

// kept reports whether a folder that is kept has the index of these inputs from another run.
func (v *vectorFigures) kept(x *nodeIndex, inputs uint64) bool {
	if v.bench.keep == "" {
		return false
	}
	data, unmap, err := mapVectors(x.path)
	if err != nil {
		return false
	}
	defer unmap()
	was, err := vectors.Open(data, nil, vectors.Options{})
	return err == nil && was.Stored.Inputs() == inputs
}

func writeNodes(ctx context.Context, path string, inputs []vectors.Input) (err error) {
	var refused error // an invalid node or edge
	made, err := vectors.Build(ctx, inputs, vectors.Options{Warn: func(err error) { refused = err }})
	if err = errors.Join(err, refused); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	to := bufio.NewWriterSize(f, 1<<20)
	if err := made.Write(func(b []byte) error { _, err := to.Write(b); return err }); err != nil {
		return err
	}
	return to.Flush()
}

// nodesEach is how many nodes a folder has: of ten a file, a document about a function, a task that changed the file, and
// seven functions that the file defines.
const nodesEach = 500

// folder makes one input.
type folder struct {
	graph.PartBuilder
	corpus *lexicaltest.Corpus
	random *rand.Rand
	n      int // nodes of all folders
}

// nodeInputs are folders of sources with documents and work about them: about five edges for each node, most to
// neighbours, an eighth of the calls to a few common functions.
func nodeInputs(corpus *lexicaltest.Corpus, seed uint64, n int) []vectors.Input {
	var inputs []vectors.Input
	for from := 0; from < n; from += nodesEach {
		f := &folder{corpus: corpus, random: rand.New(rand.NewPCG(seed, uint64(from))), n: n}
		digest := xxhash.New()
		for i := from; i < min(from+nodesEach, n); i++ {
			f.node(i)
			last := &f.Items[len(f.Items)-1]
			_, _ = digest.WriteString(last.ID + last.Title + last.Body)
		}
		inputs = append(inputs, vectors.Input{Name: fmt.Sprint("go:", from), Digest: digest.Sum64(), Part: f.Part})
	}
	return inputs
}

// What a node is, by its last digit; all others are functions.
const (
	nodeFile, nodeDoc, nodeTask = 0, 1, 2
	nodeFunction                = 5
)

func nodeID(i int) string {
	file := fmt.Sprintf("dir%03d/file%05d", i/nodesEach, i/10)
	switch i % 10 {
	case nodeFile:
		return file + ".go"
	case nodeDoc:
		return file + ".md"
	case nodeTask:
		return fmt.Sprintf("dag/build%05d:change", i/10)
	}
	return fmt.Sprintf("%s.go:Function%d", file, i)
}

// node adds a node and its edges.
func (f *folder) node(i int) {
	name := f.corpus.Word() + "_" + f.corpus.Word()
	it := graph.Item{Node: graph.Node{ID: nodeID(i), Name: name, Line: 1 + i%900}, Title: f.corpus.Text(12), Body: f.corpus.Text(40)}
	file := i / 10 * 10
	switch i % 10 {
	case nodeFile:
		it.Type, it.Labels = graph.File, []string{"lang=go"}
	case nodeDoc:
		it.Type = graph.Doc
	case nodeTask:
		it.Type, it.Labels = graph.Task, []string{[]string{"agent=engineer", "agent=tester", "agent=reviewer", "agent=lead"}[i/10%4]}
	default:
		it.Type, it.Labels = graph.Function, []string{"lang=go"}
		f.Edge(nodeID(file), graph.Defines, it.ID)
	}
	if it.Type != graph.Task {
		it.Path = strings.SplitN(it.ID, ":", 2)[0]
	}
	f.Add(it)
	for range 4 {
		near := min(f.n-1, max(0, i+f.random.IntN(400)-200)) / 10 * 10
		switch it.Type {
		case graph.Doc:
			f.Edge(it.ID, graph.Documents, nodeID(near+nodeFunction))
		case graph.Task:
			f.Edge(it.ID, graph.Modified, nodeID(near))
		case graph.Function:
			if f.random.IntN(8) == 0 {
				near = int(f.random.ExpFloat64()*100) / 10 * 10 % f.n
			}
			f.Edge(it.ID, graph.Calls, nodeID(near+3+f.random.IntN(7)))
		}
	}
}
