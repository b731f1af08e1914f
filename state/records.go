package state

import (
	"context"
	"slices"
	"sync"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

// record is the file that a finished run becomes.
type record struct {
	run  *schemas.Run
	path string
	data []byte
}

func (s *Store) recordOf(r *schemas.Run) (record, error) {
	data, err := EncodeRun(r)
	return record{r, s.layout().runPath(r.Key), data}, err
}

func (r *record) op() durable.Op { return durable.Op{Path: r.path, Data: r.data} }

// writeRuns makes the records of finished runs durable files; some may be drafted, d may be nil. A record that exists
// stands: it may have come from another clone meanwhile, and others rest on it.
func (s *Store) writeRuns(ctx context.Context, runs []*schemas.Run, d *drafts) error {
	runs = slices.DeleteFunc(slices.Clone(runs), s.recorded)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.ensureLocal(tmpDir); err != nil {
		return err
	}
	batch, made := d.take()
	if batch != nil && !s.fits(made, runs) {
		batch.Discard()
		batch, made = nil, nil
	}
	if len(runs) == 0 {
		return nil
	}
	all, err := s.place(batch, made, runs)
	if err != nil && batch != nil { // perhaps the drafts are what went wrong
		all, err = s.place(nil, nil, runs)
	}
	if err != nil {
		return err
	}
	look := nearby{root: s.root}
	defer look.close()
	for _, r := range all {
		s.wrote(&look, r.path, r.data, holdRun(r.run.Key, r.run))
	}
	return s.bump()
}

// fits reports whether there are drafts, each of one of the runs and for the place where its record is to be.
func (s *Store) fits(made []record, runs []*schemas.Run) bool {
	wanted := make(map[*schemas.Run]bool, len(runs))
	for _, r := range runs {
		wanted[r] = true
	}
	return len(made) > 0 && !slices.ContainsFunc(made, func(r record) bool {
		return !wanted[r.run] || r.path != s.layout().runPath(r.run.Key)
	})
}

// place puts drafts in place, and the records of all other runs with them.
func (s *Store) place(batch *durable.Staged, made []record, runs []*schemas.Run) ([]record, error) {
	if batch == nil {
		batch = durable.Begin(s.root, tmpDir)
	}
	defer batch.Discard()
	drafted := make(map[*schemas.Run]bool, len(made))
	for _, r := range made {
		drafted[r.run] = true
	}
	for _, r := range runs {
		if drafted[r] {
			continue
		}
		rec, err := s.recordOf(r)
		if err == nil {
			err = batch.Add(rec.op())
		}
		if err != nil {
			return nil, err
		}
		made = append(made, rec)
	}
	if err := batch.Sync(); err != nil {
		return nil, err
	}
	return made, batch.Commit()
}

// recorded reports whether the run has a file that can be used.
func (s *Store) recorded(r *schemas.Run) bool {
	data, err := regular.Read(s.root, s.layout().runPath(r.Key))
	if err != nil {
		return false
	}
	_, err = decodeRun(r.Key, data, data)
	return err == nil
}

// draftFrom is how many results a journal holds before their records are drafted: fewer are written in no time.
const draftFrom = 16

// drafts are the records of results, written to temporary files while other effects still run, so that a checkpoint has
// only to sync them and to put them in place: making the files is what takes longest. Nothing depends on them. What is
// not drafted, or was lost, is written by the checkpoint; what a killed process leaves is swept up as its litter.
type drafts struct {
	mu      sync.Mutex
	working sync.WaitGroup
	busy    bool
	queue   []*schemas.Run

	// Of the worker while there is one.
	batch *durable.Staged
	made  []record
}

// add has the records drafted that the lines, which stand in the journal now, become.
func (d *drafts) add(s *Store, finished []line) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range finished {
		if l.Run.Done() {
			d.queue = append(d.queue, l.Run)
		}
	}
	if d.busy || d.batch == nil && len(d.queue) < draftFrom {
		return
	}
	d.busy = true
	d.working.Go(func() {
		for r := d.next(); r != nil; r = d.next() {
			d.draft(s, r)
		}
	})
}

// next is the run to draft now, nil when there is none.
func (d *drafts) next() *schemas.Run {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) == 0 {
		d.busy = false
		return nil
	}
	r := d.queue[0]
	d.queue = d.queue[1:]
	return r
}

// draft leaves out what cannot be written: the checkpoint tries again, and says why not.
func (d *drafts) draft(s *Store, r *schemas.Run) {
	rec, err := s.recordOf(r)
	if err != nil {
		return
	}
	if d.batch == nil {
		d.batch = durable.Begin(s.root, tmpDir)
	}
	if d.batch.Add(rec.op()) == nil {
		d.made = append(d.made, rec)
	}
}

// take ends the drafting and gives away what there is: a batch to commit or to discard, and the records in it.
func (d *drafts) take() (*durable.Staged, []record) {
	if d == nil {
		return nil, nil
	}
	d.mu.Lock()
	d.queue = nil
	d.mu.Unlock()
	d.working.Wait()
	batch, made := d.batch, d.made
	d.batch, d.made = nil, nil
	return batch, made
}
