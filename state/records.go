package state

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	quick "github.com/segmentio/encoding/json"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

func (s *Store) recordOf(r *schemas.Run) (record, error) {
	data, err := EncodeRun(r)
	return record{r, s.layout().runPath(r.Key), data}, err
}

func (r *record) op() durable.Op { return durable.Op{Path: r.path, Data: r.data} }

// writeRuns writes the records of finished runs durably; some may be drafted, d may be nil. It does not replace an
// existing record: it may come from another clone, and other records may depend on it.
func (s *Store) writeRuns(ctx context.Context, runs []*schemas.Run, d *drafts) error {
	runs = slices.DeleteFunc(slices.Clone(runs), s.recorded)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.ensureLocal(tmpDir); err != nil {
		return err
	}
	batch, made := d.take()
	if batch != nil && !s.draftsUsable(made, runs) {
		batch.Discard()
		batch, made = nil, nil
	}
	if len(runs) == 0 {
		return nil
	}
	all, err := s.commitDrafts(batch, made, runs)
	if err != nil && batch != nil { // perhaps because of the drafts
		all, err = s.commitDrafts(nil, nil, runs)
	}
	if err != nil {
		return err
	}
	look := folderCache{root: s.root}
	defer look.close()
	for _, r := range all {
		s.noteWritten(&look, r.path, r.data, newLazyRun(r.run.Key, r.run))
	}
	return s.bumpGeneration()
}

// draftsUsable reports whether there are drafts, and each is of one of the runs and for its record's path.
func (s *Store) draftsUsable(made []record, runs []*schemas.Run) bool {
	wanted := make(map[*schemas.Run]bool, len(runs))
	for _, r := range runs {
		wanted[r] = true
	}
	return len(made) > 0 && !slices.ContainsFunc(made, func(r record) bool {
		return !wanted[r.run] || r.path != s.layout().runPath(r.run.Key)
	})
}

// commitDrafts puts drafts in place, and writes the records of all other runs with them.
func (s *Store) commitDrafts(batch *durable.Staged, made []record, runs []*schemas.Run) ([]record, error) {
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

// recorded reports whether the run has a usable file.
func (s *Store) recorded(r *schemas.Run) bool {
	data, err := regular.Read(s.root, s.layout().runPath(r.Key))
	if err != nil {
		return false
	}
	_, err = decodeRun(r.Key, data, data)
	return err == nil
}

// minDrafts is the number of results in a journal from which on their records are drafted: fewer are written fast enough.
const minDrafts = 16

// addLines starts the drafting of the records for lines that are in the journal.
func (d *drafts) addLines(s *Store, finished []line) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range finished {
		if l.Run.Done() {
			d.queue = append(d.queue, l.Run)
		}
	}
	if d.busy || d.batch == nil && len(d.queue) < minDrafts {
		return
	}
	d.busy = true
	d.working.Go(func() {
		for r := d.next(); r != nil; r = d.next() {
			d.draft(s, r)
		}
	})
}

// next returns the run to draft now, nil if none is left.
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

// draft ignores records that cannot be written: the checkpoint tries again and reports the error.
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

// take stops the drafting and returns its result: a batch to commit or to discard, and the records in it.
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

// EncodeRun encodes the record of a finished run as JSON, with its apiVersion, kind, name and unknown fields.
func EncodeRun(r *schemas.Run) ([]byte, error) {
	c := *r
	c.APIVersion, c.Kind = schemas.APIVersion, runKind
	c.Metadata.Name = runName(r.Key)
	b, err := Encode(&c)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", r.Key, err)
	}
	if r.Unknown == nil {
		return b, nil
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, withUnknownFields(b, r.Unknown), "", "  "); err != nil {
		return nil, fmt.Errorf("run %s: %w", r.Key, err)
	}
	return indented.Bytes(), nil
}

// decodeRun decodes a record that EncodeRun wrote under the given key. same has the same content as data; the run points
// into it.
func decodeRun(key string, data, same []byte) (*schemas.Run, error) {
	r := new(schemas.Run)
	if err := decodeState(data, same, r); err != nil {
		return nil, err
	}
	switch {
	case r.Kind != runKind || r.APIVersion != schemas.APIVersion:
		return nil, fmt.Errorf("it is not a Run of %s", schemas.APIVersion)
	case r.Key != key:
		return nil, fmt.Errorf("it is the record of %q", r.Key)
	case !r.Done():
		return nil, errors.New("it has no outcome")
	}
	return r, nil
}

// DecodeRun decodes a run from the data of its record, which [EncodeRun] wrote, by the key in it.
func DecodeRun(data []byte) (*schemas.Run, error) {
	var head struct {
		Key string `json:"key"`
	}
	if err := decodeState(data, bytes.Clone(data), &head); err != nil {
		return nil, err
	}
	return decodeRun(head.Key, data, bytes.Clone(data))
}

// unknownRunFields returns the fields of a record that schemas.Run does not have, as a JSON object with sorted names; nil
// if there are none.
func unknownRunFields(record []byte) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(record, &fields) != nil {
		return nil
	}
	for name := range fields {
		for _, known := range knownRunFields() {
			if strings.EqualFold(name, known) { // as decoders match names
				delete(fields, name)
			}
		}
	}
	if len(fields) == 0 {
		return nil
	}
	unknown, err := json.Marshal(fields)
	if err != nil {
		return nil
	}
	return unknown
}

// withUnknownFields returns a record with the members of the object unknown added at its end. It keeps the line break after
// the record, and neither adds nor removes other whitespace.
func withUnknownFields(record []byte, unknown json.RawMessage) []byte {
	members := bytes.TrimSpace(unknown)
	if len(members) <= len("{}") {
		return record
	}
	end := bytes.LastIndexByte(record, '}')
	body := bytes.TrimRight(record[:end], " \n")
	out := append(bytes.Clone(body), ',')
	out = append(out, members[1:]...)
	return append(out, record[end+1:]...)
}

// parseRun decodes a record into r, which points into data afterwards. It reports whether data is of the expected form.
func parseRun(data []byte, r *schemas.Run) bool {
	if rest, err := quick.Parse(data, r, quick.ZeroCopy|quick.DisallowUnknownFields); err == nil && len(rest) == 0 {
		return true
	}
	*r = schemas.Run{}
	rest, err := quick.Parse(data, r, quick.ZeroCopy)
	if err != nil || len(rest) > 0 {
		return false
	}
	r.Unknown = unknownRunFields(data)
	return true
}
