package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/filelock"
	"reconcile.dev/reconcile/state/regular"
)

// ErrChanged says that another process changed a file: the caller must load the tree again.
var ErrChanged = errors.New("the tree changed meanwhile")

// Settle records the summary and the stats of all files of the tree as its settled base, with which Fresh compares: the
// tree, as this store knows it, is at its fixed point. It returns ErrChanged and records nothing if another reconcile
// process wrote or recorded something since the last load. If a journal is still in use, it records nothing, so that the
// next run loads the tree; nor if it left temporary files, which the next run then removes. Settle waits, for some milliseconds, until no file is racy.
func (s *Store) Settle(sum Summary) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model == nil || s.model.deferred != nil || s.opts.NoCache {
		return nil
	}
	if !s.waitOutTick() || s.journalsInUse() || durable.Litter(s.root, tmpDir) {
		return s.unsettle()
	}
	present, missing := s.model.declared.split()
	if s.needsFullLoad.Load() || s.generation() != s.seenGen || !s.outputsUnchanged(present, missing) {
		return ErrChanged
	}
	if err := errors.Join(s.ensureLocal(localDir), s.bumpGeneration()); err != nil {
		return err
	}
	if err := s.rereadRacy(context.Background()); err != nil {
		return fmt.Errorf("read again what was written: %w", err)
	}
	s.wakeAsked()
	base, files, err := s.writeBase(sum.Clocks, sum.Dormant)
	if err != nil {
		return err
	}
	l := s.layout()
	b, err := json.Marshal(settled{s.opts.Build, schemas.Folders{Specs: l.specs, State: l.state}, s.model.inputs.globs,
		present, missing, s.model.sum(files), base, s.opts.Now(), sum})
	if err != nil {
		return fmt.Errorf("record that the tree is settled: %w", err)
	}
	return s.replaceLocal(settledPath, append(fmt.Appendf(nil, "%016x\n", xxhash.Sum64(b)), b...))
}

// rereadRacy reads again the files that were racy when they were read or written. They are old enough now, so that the
// next process finds all of them in the cache, even after a first run. A file whose content differs by now stays
// unchanged here: then the tree is not settled.
func (s *Store) rereadRacy(ctx context.Context) error {
	var young []scanEntry
	for p, f := range s.model.files {
		if f.racy && f.area != areaOther {
			young = append(young, scanEntry{p, f.area, f.stat})
		}
	}
	slices.SortFunc(young, bySeenPath)
	for part := range slices.Chunk(young, Batch) {
		read, _, err := s.readFiles(ctx, s.root, part, s.model.files)
		if err != nil {
			return err
		}
		for _, f := range read {
			if old := s.model.files[f.path]; !f.racy && old.sum == f.sum && old.stat == f.stat {
				old.racy, old.at = false, f.at
			}
		}
	}
	s.cache.finishLoad(s.model)
	return nil
}

// outputsUnchanged reports whether exactly the present ones of the declared outputs exist.
func (s *Store) outputsUnchanged(present, missing []string) bool {
	if len(present)+len(missing) == 0 {
		return true
	}
	is := findMissing(s.root, slices.Concat(present, missing))
	return !slices.ContainsFunc(present, func(p string) bool { return is[p] }) &&
		!slices.ContainsFunc(missing, func(p string) bool { return !is[p] })
}

func (s *Store) unsettle() error {
	if err := s.root.Remove(settledPath); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("forget that the tree was settled: %w", err)
	}
	return nil
}

// waitOutTick reports whether all files are old enough, after waiting for at most one tick of the file system's clock.
func (s *Store) waitOutTick() bool {
	newest := s.model.settings.stat.Changed()
	for _, f := range s.model.files {
		newest = max(newest, f.stat.Changed())
	}
	for _, f := range s.model.inputs.files {
		newest = max(newest, f.stat.Changed())
	}
	wait := time.Duration(newest-s.opts.FileNow().UnixNano()) + s.tick
	if wait > s.tick {
		return false // a time in the future: the clocks differ
	}
	if wait > 0 {
		<-time.After(wait)
	}
	return true
}

// journalsInUse reports whether a journal has entries, or is left from a process that died.
func (s *Store) journalsInUse() bool {
	for _, name := range s.journalNames() {
		f, fi, err := regular.Open(s.root, journalDir+"/"+name+journalSuffix)
		if err != nil {
			continue
		}
		holds := fi.Size() > 0 || (s.own.Load() == nil || s.own.Load().name != name) && !filelock.Held(f)
		f.Close()
		if holds {
			return true
		}
	}
	return false
}

// treeLockExists reports whether a process holds the lock of the tree, or died while it did.
func (s *Store) treeLockExists() bool {
	return slices.ContainsFunc(s.folderNames(localDir), func(name string) bool {
		return strings.HasPrefix(localDir+"/"+name, treeLockPath+".")
	})
}
