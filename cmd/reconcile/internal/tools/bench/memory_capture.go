package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// memoryCapture: durable captures of 50 observations each, by one process. The store is measured last, and made again for
// every few captures, so that its size stays. The reference is the disk's share: after each capture two files of the sizes
// of the two that it syncs are written, synced and renamed by system calls alone. Garbage is collected as seldom as in the
// commands that capture.
func (b *bench) memoryCapture(ctx context.Context, r *remembered) error {
	defer debug.SetGCPercent(debug.SetGCPercent(memstore.HeapGrowth))
	var captures, files []time.Duration
	for range max(10, 2*b.runs) { // of fewer than 300 captures the 99th percentile is one or two
		if err := r.make(ctx); err != nil {
			return err
		}
		_ = exec.CommandContext(ctx, "sync").Run() // else captures wait until the new store is on disk
		debug.FreeOSMemory()                       // and for what making it left in memory
		some, bare, err := r.captures(ctx, 30)
		if err != nil {
			return err
		}
		captures, files = append(captures, some...), append(files, bare...)
	}
	bound := 15.0
	if r.n > 10_000 {
		bound = 30
	}
	b.quantiles(b.memoryName(r, fmt.Sprintf("capture of 50, GC %d%% (p50; p99)", memstore.HeapGrowth)), "50 ms", captures, bound)
	b.row(b.memoryName(r, "two synced files of that size"), short(quantile(files, 0.5)), "", short(quantile(files, 0.99)), 0, 0, "")
	return nil
}

// captures captures some times in one process, after two captures that warm it up.
func (r *remembered) captures(ctx context.Context, times int) (captures, files []time.Duration, err error) {
	const warm = 2
	specs := make([]*schemas.ObservationSpec, warm+times)
	for i := range specs {
		specs[i] = r.spec()
	}
	err = r.in(func(_ *state.Store, m *memstore.Files) error {
		for i, s := range specs {
			start := time.Now()
			c, err := m.Capture(ctx, s)
			took := time.Since(start)
			if err == nil && (c.Held || len(c.Observations) != entriesEach) {
				err = fmt.Errorf("captured %d of %d observations", len(c.Observations), entriesEach)
			}
			if err != nil {
				return err
			}
			start = time.Now()
			if err := r.syncTwo(c.Path, fmt.Sprintf("state/memory/issue-%d.json", s.Issue)); err != nil {
				return err
			}
			if i >= warm {
				captures, files = append(captures, took), append(files, time.Since(start))
			}
		}
		return nil
	})
	return captures, files, err
}

// syncTwo writes, syncs and renames files as large as those given, and syncs their folder.
func (r *remembered) syncTwo(paths ...string) error {
	dir := filepath.Join(r.dir, "bare")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for i, p := range paths {
		fi, err := os.Stat(filepath.Join(r.dir, p))
		if err != nil {
			return err
		}
		name := filepath.Join(dir, fmt.Sprint(i))
		if err := syncFile(name, make([]byte, fi.Size())); err != nil {
			return err
		}
		folder, err := os.Open(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(folder.Sync(), folder.Close()); err != nil {
			return err
		}
	}
	return nil
}

func syncFile(name string, data []byte) error {
	f, err := os.Create(name + ".new")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}
