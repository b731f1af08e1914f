package state

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"
	"path"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/sections"
	"reconcile.dev/reconcile/state/disk"
)

func newDecoder(s *Store) *decoder {
	d := &decoder{store: s, kinds: map[string]schemas.Kind{}, fields: map[string][]any{}}
	for _, k := range s.opts.Kinds {
		d.kinds[k.Name] = k
	}
	return d
}

func (d *decoder) stat() disk.Stat {
	return disk.Stat{Size: d.Int(), Mtime: d.Int(), Ctime: d.Int(), Ino: d.Uint(), Mode: uint32(d.Uint())}
}

// payload decodes the content of a block; at is its offset in the file.
func (d *decoder) payload(payload []byte, at int64) cachePart {
	part := cachePart{inputs: map[string]*inputFile{}}
	kind := payload[0]
	err := eachRecord(payload, func(record []byte, start int) {
		d.B = record
		switch kind {
		case blockSpecs, blockStates, blockLedgers:
			f := d.file()
			f.at = at + int64(start)
			part.files = append(part.files, f)
		case blockInputs:
			path := strings.Clone(d.Shared())
			in := &inputFile{stat: d.stat(), racy: d.Bool()}
			if b := d.Take(8); len(b) == 8 {
				in.rules = binary.LittleEndian.Uint64(b)
			}
			copy(in.digest[:], d.Take(sha256.Size))
			part.inputs[path] = in
		}
	})
	part.ok = err == nil && !d.Bad
	d.Bad = false
	return part
}

// eachRecord splits a payload into its records; start is the offset of the header of each.
func eachRecord(payload []byte, do func(record []byte, start int)) error {
	for start := 1; start < len(payload); {
		b := payload[start:]
		if len(b) < recordHeader {
			return errDamaged
		}
		n := int(binary.LittleEndian.Uint32(b))
		if n > len(b)-recordHeader {
			return errDamaged
		}
		do(b[recordHeader:recordHeader+n], start)
		start += recordHeader + n
	}
	return nil
}

var errDamaged = errors.New("the cache is damaged")

func (d *decoder) file() *file {
	f := &file{path: d.Shared(), area: area(d.Byte()), stat: d.stat(), racy: d.Bool(), link: d.Bool()}
	if sum := d.Take(8); sum != nil {
		f.sum = binary.LittleEndian.Uint64(sum)
	}
	switch body := d.Byte(); {
	case (body == bodySpec) != (f.area == areaSpecs), (body == bodyLedger) && f.area != areaLedgers,
		(body == bodyStatus) && f.area != areaStatus, (body == bodyRun) && f.area != areaRuns,
		(body == bodyCheckpoint) && f.area != areaCheckpoints:
		d.Fail()
	case body == bodySpec:
		f.body = d.spec()
		return f
	case body == bodyDamage:
		f.body = &damage{text: strings.Clone(d.Shared()), line: int(d.Uint()), column: int(d.Uint())}
	case body == bodyLedger:
		f.path = strings.Clone(f.path)
		f.body = d.ledger(f.path)
		return f
	case body == bodyCheckpoint:
		f.path = strings.Clone(f.path)
		f.body = d.store.layout().decodeCheckpoint(f.path, d.Bytes())
		return f
	case body == bodyStatus:
		f.path = strings.Clone(f.path)
		h := &lazyStatus{store: d.store, path: f.path, brief: d.brief(), raw: d.Bytes(), packed: true}
		h.briefOnce.Do(func() {}) // it is set above
		f.body = h
		return f
	case body == bodyRun:
		f.path = strings.Clone(f.path)
		f.body = &lazyRun{key: d.store.layout().runKey(f.path), has: Traits(d.Byte()), raw: d.Bytes()}
		return f
	default:
		d.Fail()
	}
	f.path = strings.Clone(f.path)
	return f
}

func (d *decoder) brief() (b schemas.Brief) {
	b.Phase, b.ObservedDigest = d.Shared(), d.Shared()
	b.Ready, b.Stalled, b.StalledReason = schemas.ConditionStatus(d.Shared()), schemas.ConditionStatus(d.Shared()), d.Shared()
	b.ID = d.Shared()
	b.Progress.Done, b.Progress.Total, b.Running = int(d.Int()), int(d.Int()), int(d.Int())
	b.Blocked = d.Bool()
	finished := d.Bool()
	if at := d.Int(); finished {
		b.FinishedAt = schemas.Time{Time: time.UnixMilli(at).UTC()}
	}
	return b
}

// ledger reads a ledger that this program has parsed before. It points into the block.
func (d *decoder) ledger(p string) any {
	issue, ok := ledgerIssue(path.Base(p))
	if !ok {
		d.Fail()
	}
	l := &Ledger{Issue: issue, Path: p, Last: int(d.Uint()), Open: int(d.Uint()), Foreign: d.Bool(), Doubled: d.Bool(), Rejected: d.rejected()}
	if hash := d.Take(8); hash != nil {
		l.hash = binary.LittleEndian.Uint64(hash)
	}
	if d.leave {
		l.size = int(d.Uint())
		return l
	}
	if l.packed = d.Bytes(); xxhash.Sum64(l.packed) != l.hash {
		d.Fail()
	}
	return l
}

// rejected reads what encoder.rejected wrote.
func (d *decoder) rejected() []RejectedRecord {
	var list []RejectedRecord
	for range d.Count(1) {
		list = append(list, RejectedRecord{Line: int(d.Uint()), Number: int(d.Uint()), ID: strings.Clone(d.Shared()),
			Reason: strings.Clone(d.Shared())})
	}
	return list
}

func (d *decoder) spec() *specBody {
	b := &specBody{ref: schemas.Ref{Kind: d.kindName(), Name: d.Shared()}}
	if d.only != "" && b.ref.Kind != d.only {
		return b
	}
	b.at = d.place()
	if n := d.Count(1); n > 0 {
		b.problems = make([]schemas.Problem, n)
		for i := range b.problems {
			d.problem(&b.problems[i])
		}
	}
	if d.Bool() {
		b.object = d.object(b.ref.Kind)
	}
	b.refs = d.references()
	return b
}

// kindName reads a kind's name; equal names share one string.
func (d *decoder) kindName() string {
	s := d.Shared()
	if s == d.kind {
		return d.kind // the last one
	}
	if k, ok := d.kinds[s]; ok {
		d.kind = k.Name
		return k.Name
	}
	return s
}

func (d *decoder) object(kind string) *schemas.Object {
	k, ok := d.kinds[kind]
	m := schemas.Metadata{Name: d.Shared(), Labels: d.table(), Annotations: d.table()}
	path, digest, canonical := d.Shared(), d.Shared(), d.Bytes()
	refs := d.references()
	if d.Bad || !ok {
		d.Fail()
		return nil
	}
	return schemas.NewObject(k, m, path, digest, canonical, refs)
}

func (d *decoder) references() []schemas.Reference {
	n := d.Count(1)
	if n == 0 {
		return nil
	}
	refs := make([]schemas.Reference, n)
	for i := range refs {
		refs[i] = schemas.Reference{To: schemas.Ref{Kind: d.kindName(), Name: d.Shared()}, Hard: d.Bool(),
			Line: int32(d.Uint()), Column: int32(d.Uint()), Field: d.field()}
	}
	return refs
}

func (d *decoder) table() map[string]string {
	n := d.Count(1)
	if n == 0 {
		return nil
	}
	m := make(map[string]string, n)
	for range n {
		k := d.Shared()
		m[k] = d.Shared()
	}
	return m
}

func (d *decoder) field() []any {
	coded := d.Bytes()
	if f, ok := d.fields[string(coded)]; ok {
		return f
	}
	sub := decoder{Decoder: sections.Decoder{B: coded}}
	f := make([]any, sub.Count(1))
	for i := range f {
		if sub.Byte() == 0 {
			f[i] = strings.Clone(sub.Shared())
		} else {
			f[i] = int(sub.Int())
		}
	}
	if sub.Bad {
		d.Fail()
		return nil
	}
	d.fields[string(coded)] = f
	return f
}

func (d *decoder) problem(p *schemas.Problem) {
	p.Place = d.place()
	p.Severity = schemas.Severity(d.Shared())
	for _, s := range []*string{&p.Code, &p.Ref.Kind, &p.Ref.Name, &p.Field, &p.Message, &p.Suggestion, &p.Source} {
		*s = d.Shared()
	}
	for range d.Count(1) {
		p.Related = append(p.Related, d.place())
	}
	for range d.Count(1) {
		p.Notes = append(p.Notes, d.Shared())
	}
}

func (d *decoder) place() schemas.Place {
	return schemas.Place{Path: d.Shared(), Line: int(d.Uint()), Column: int(d.Uint())}
}

// clarifications reads records that encoder.ledger wrote; their strings point into the block.
func (d *decoder) clarifications() []schemas.Clarification {
	records := make([]schemas.Clarification, d.Count(1))
	for i := range records {
		d.clarification(&records[i])
	}
	if d.Bad {
		return nil
	}
	return records
}

func (d *decoder) clarification(c *schemas.Clarification) {
	for _, s := range []*string{&c.ID, &c.From, &c.To, &c.Topic, &c.Status, &c.Request} {
		*s = d.Shared()
	}
	c.Blocking = d.Bool()
	c.Round, c.MaxRounds = int(d.Int()), int(d.Int())
	c.Created, c.StaleAfter, c.ResolvedAt = d.time(), d.time(), d.time()
	if there, n := d.Bool(), d.Count(1); there {
		c.Thread = make([]schemas.ClarificationTurn, n)
	}
	for i := range c.Thread {
		c.Thread[i] = schemas.ClarificationTurn{Round: int(d.Int()), From: d.Shared(), Type: d.Shared(), Body: d.Shared(),
			Timestamp: d.time()}
	}
}

func (d *decoder) time() schemas.Time {
	if !d.Bool() {
		return schemas.Time{}
	}
	return schemas.NewTime(time.UnixMilli(d.Int()))
}

// dormant reads an object into o, whose list of references it overwrites.
func (d *decoder) dormant(o *Dormant) {
	from := d.B
	o.Ref = schemas.Ref{Kind: d.kindName(), Name: d.Shared()}
	o.Brief, o.path = d.brief(), d.Uint()
	o.Refs = d.appendRefs(o.Refs[:0])
	o.coded = from[:len(from)-len(d.B)]
}

func (d *decoder) refs() []schemas.Ref { return d.appendRefs(nil) }

func (d *decoder) appendRefs(to []schemas.Ref) []schemas.Ref {
	for range d.Count(1) {
		if n := len(to); n < cap(to) {
			d.kind = to[:n+1][n].Kind // of the object before, mostly the same
		}
		to = append(to, schemas.Ref{Kind: d.kindName(), Name: d.Shared()})
	}
	return to
}

// block reads and decodes one block.
func (d *decoder) block(f *os.File, b block) cachePart {
	payload, err := b.read(f)
	if err != nil {
		return cachePart{}
	}
	return d.payload(payload, b.at)
}

func (b block) read(f *os.File) ([]byte, error) {
	payload := make([]byte, b.size)
	if _, err := f.ReadAt(payload, b.at); err != nil {
		return nil, err
	}
	if xxhash.Sum64(payload) != b.hash {
		return nil, errors.New("damaged")
	}
	return payload, nil
}
