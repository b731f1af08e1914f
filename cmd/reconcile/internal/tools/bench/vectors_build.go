package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/vectors/knn"
	"reconcile.dev/reconcile/vectors/knn/knntest"
)

// build: all processors, and one alone, which makes the same bytes.
func (v *vectorFigures) build(context.Context, []int) error {
	x, err := v.index(v.spec(knntest.Clustered, graphVectors))
	if err != nil {
		return err
	}
	alone := &vectorIndex{data: x.data}
	one, err := alone.build(knn.Options{Threads: 1})
	if err != nil {
		return err
	}
	name := fmt.Sprintf("vectors %d, build", x.data.N)
	v.bench.row(fmt.Sprintf("%s on %d processors, beside one", name, runtime.GOMAXPROCS(0)), short(x.built.wall), short(one.wall),
		short(x.built.wall), x.built.wall.Seconds(), 20, " s")
	if one.cpu > 0 {
		v.bench.row(name+", processor time", short(x.built.cpu), short(one.cpu), short(x.built.cpu), x.built.cpu.Seconds(), 40, " s")
	}
	if !bytes.Equal(alone.bytes, x.bytes) {
		return fmt.Errorf("the index that one thread builds is not the one that %d build", runtime.GOMAXPROCS(0))
	}
	v.bench.row(name+", bytes on one processor", "the same", "", "", 0, 0, "")
	return nil
}

// insert: vectors that come one by one, into an index that is mapped.
func (v *vectorFigures) insert(context.Context, []int) error {
	x, err := v.index(v.spec(knntest.Clustered, graphVectors))
	if err != nil {
		return err
	}
	return v.insertInto(x)
}

func (v *vectorFigures) insertInto(x *vectorIndex) error {
	grown, err := knn.Open(x.bytes)
	if err != nil {
		return err
	}
	var samples []time.Duration
	sum := time.Duration(0)
	for q := range x.data.Queries {
		item := knn.Item{ID: vectorID(x.data.N + q), Vector: x.data.Query(q)}
		start := time.Now()
		if err := grown.Put(item); err != nil {
			return err
		}
		took := time.Since(start)
		samples, sum = append(samples, took), sum+took
	}
	name := fmt.Sprintf("vectors %d, insert", x.data.N)
	mean := sum / time.Duration(len(samples))
	v.bench.row(name, short(mean), "", short(mean), ms(mean), 0.4, " ms")
	p99 := quantile(samples, 0.99)
	v.bench.row(name+", p99", short(p99), "", short(p99), ms(p99), 0, "")
	return nil
}

// file: the snapshot on disk: what of it must be in memory, and how soon it answers.
func (v *vectorFigures) file(ctx context.Context, _ []int) error {
	x, err := v.index(v.spec(knntest.Clustered, graphVectors))
	if err != nil {
		return err
	}
	if err := v.opens(x, 20); err != nil {
		return err
	}
	name := fmt.Sprintf("vectors %d, ", x.data.N)
	exact := int64(x.data.N) * int64(x.data.Dims) * 4
	v.bench.row(name+"size of the file", mib(int64(len(x.bytes))), mib(exact), "", 0, 0, "")
	self, err := os.Executable()
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, self, "resident", x.path, strconv.FormatInt(exact, 10)).Output()
	if err != nil {
		return fmt.Errorf("measure the memory of an index: %w", err)
	}
	resident, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		return err
	}
	if resident > 0 {
		v.bench.row(name+"resident, without exact vectors", mib(resident), mib(exact), mib(resident), float64(resident)/1e6, 110, " MB")
	}
	return nil
}

// opens prints how soon a snapshot on disk answers, and the bound in milliseconds.
func (v *vectorFigures) opens(x *vectorIndex, bound float64) error {
	var samples []time.Duration
	for i := range 3*v.bench.runs + 1 {
		start := time.Now()
		if err := answerOnce(x.path, x.data.Query(i%x.data.Queries)); err != nil {
			return err
		}
		samples = append(samples, time.Since(start))
	}
	opened := quantile(samples, 0.5)
	v.bench.row(fmt.Sprintf("vectors %d, open and answer", x.data.N), short(opened), "", short(opened), ms(opened), bound, " ms")
	return nil
}

// answerOnce opens an index, and searches.
func answerOnce(path string, query []float32) error {
	mapped, unmap, err := mapVectors(path)
	if err != nil {
		return err
	}
	defer unmap()
	x, err := knn.Open(mapped)
	if err != nil {
		return err
	}
	hits, err := x.Search(query, knn.SearchOptions{})
	if err == nil && len(hits) == 0 {
		err = errors.New("the index finds nothing")
	}
	return err
}

// printResident is the command bench resident: it opens an index, has all of it in memory but the exact vectors, which
// are the last bytes of the file, searches, and prints by how many bytes the process has grown. It prints 0 where that
// cannot be known.
func printResident(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: bench resident FILE BYTES-OF-EXACT-VECTORS")
	}
	exact, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	before := residentMemory()
	mapped, unmap, err := mapVectors(args[0])
	if err != nil {
		return err
	}
	defer unmap()
	x, err := knn.Open(mapped)
	if err != nil {
		return err
	}
	query := make([]float32, x.Dims())
	for i := range 100 {
		query[i%len(query)] = 1
		if _, err := x.Search(query, knn.SearchOptions{Thorough: true}); err != nil {
			return err
		}
	}
	rest := mapped[:len(mapped)-exact]
	sum := byte(0)
	for i := 0; i < len(rest); i += os.Getpagesize() {
		sum += rest[i]
	}
	runtime.KeepAlive(sum)
	if err := forgetPages(mapped, len(rest)); err != nil {
		return err
	}
	_, err = fmt.Println(residentMemory() - before)
	runtime.KeepAlive(x)
	return err
}
