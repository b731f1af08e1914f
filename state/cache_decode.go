package state

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"
	"path"
	"strings"
	"time"
	"unsafe"

	"github.com/cespare/xxhash/v2"
	"reconcile.dev/reconcile/schemas"
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
	return disk.Stat{Size: d.int(), Mtime: d.int(), Ctime: d.int(), Ino: d.uint(), Mode: uint32(d.uint())}
}

// payload decodes the content of a block; at is its offset in the file.
func (d *decoder) payload(payload []byte, at int64) cachePart {
	part := cachePart{inputs: map[string]*inputFile{}}
	kind := payload[0]
	err := eachRecord(payload, func(record []byte, start int) {
		d.b = record
		switch kind {
		case blockSpecs, blockStates, blockLedgers:
			f := d.file()
			f.at = at + int64(start)
			part.files = append(part.files, f)
		case blockInputs:
			path := strings.Clone(d.shared())
			in := &inputFile{stat: d.stat(), racy: d.bool()}
			if b := d.take(8); len(b) == 8 {
				in.rules = binary.LittleEndian.Uint64(b)
			}
			copy(in.digest[:], d.take(sha256.Size))
			part.inputs[path] = in
		}
	})
	part.ok = err == nil && !d.bad
	d.bad = false
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
	f := &file{path: d.shared(), area: area(d.byte()), stat: d.stat(), racy: d.bool(), link: d.bool()}
	if sum := d.take(8); sum != nil {
		f.sum = binary.LittleEndian.Uint64(sum)
	}
	switch body := d.byte(); {
	case (body == bodySpec) != (f.area == areaSpecs), (body == bodyLedger) && f.area != areaLedgers,
		(body == bodyStatus) && f.area != areaStatus, (body == bodyRun) && f.area != areaRuns,
		(body == bodyCheckpoint) && f.area != areaCheckpoints:
		d.fail()
	case body == bodySpec:
		f.body = d.spec()
		return f
	case body == bodyDamage:
		f.body = &damage{text: strings.Clone(d.shared()), line: int(d.uint()), column: int(d.uint())}
	case body == bodyLedger:
		f.path = strings.Clone(f.path)
		f.body = d.ledger(f.path)
		return f
	case body == bodyCheckpoint:
		f.path = strings.Clone(f.path)
		f.body = d.store.layout().decodeCheckpoint(f.path, d.bytes())
		return f
	case body == bodyStatus:
		f.path = strings.Clone(f.path)
		h := &lazyStatus{store: d.store, path: f.path, brief: d.brief(), raw: d.bytes()}
		h.briefOnce.Do(func() {}) // it is set above
		f.body = h
		return f
	case body == bodyRun:
		f.path = strings.Clone(f.path)
		f.body = &lazyRun{key: d.store.layout().runKey(f.path), has: Traits(d.byte()), raw: d.bytes()}
		return f
	default:
		d.fail()
	}
	f.path = strings.Clone(f.path)
	return f
}

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.fail()
		return nil
	}
	s := d.b[:n:n]
	d.b = d.b[n:]
	return s
}

func (d *decoder) brief() (b schemas.Brief) {
	b.Phase, b.ObservedDigest = d.shared(), d.shared()
	b.Ready, b.Stalled, b.StalledReason = schemas.ConditionStatus(d.shared()), schemas.ConditionStatus(d.shared()), d.shared()
	b.ID = d.shared()
	b.Progress.Done, b.Progress.Total, b.Running = int(d.int()), int(d.int()), int(d.int())
	b.Blocked = d.bool()
	finished := d.bool()
	if at := d.int(); finished {
		b.FinishedAt = schemas.Time{Time: time.UnixMilli(at).UTC()}
	}
	return b
}

// ledger reads a ledger that this program has parsed before. It points into the block.
func (d *decoder) ledger(p string) any {
	issue, ok := ledgerIssue(path.Base(p))
	if !ok {
		d.fail()
	}
	return &Ledger{Issue: issue, Path: p, Last: int(d.uint()), Open: int(d.uint()), Doubled: d.bool(), Rejected: d.rejected(),
		packed: d.bytes()}
}

// rejected reads what encoder.rejected wrote.
func (d *decoder) rejected() []RejectedRecord {
	var list []RejectedRecord
	for range d.count() {
		list = append(list, RejectedRecord{Line: int(d.uint()), Number: int(d.uint()), ID: strings.Clone(d.shared()),
			Reason: strings.Clone(d.shared())})
	}
	return list
}

func (d *decoder) spec() *specBody {
	b := &specBody{ref: schemas.Ref{Kind: d.kindName(), Name: d.shared()}, at: d.place()}
	if n := d.count(); n > 0 {
		b.problems = make([]schemas.Problem, n)
		for i := range b.problems {
			d.problem(&b.problems[i])
		}
	}
	if d.bool() {
		b.object = d.object(b.ref.Kind)
	}
	b.refs = d.references()
	return b
}

// kindName reads a kind's name; equal names share one string.
func (d *decoder) kindName() string {
	s := d.shared()
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
	m := schemas.Metadata{Name: d.shared(), Labels: d.table(), Annotations: d.table()}
	path, digest, canonical := d.shared(), d.shared(), d.bytes()
	refs := d.references()
	if d.bad || !ok {
		d.fail()
		return nil
	}
	return schemas.NewObject(k, m, path, digest, canonical, refs)
}

func (d *decoder) references() []schemas.Reference {
	n := d.count()
	if n == 0 {
		return nil
	}
	refs := make([]schemas.Reference, n)
	for i := range refs {
		refs[i] = schemas.Reference{To: schemas.Ref{Kind: d.kindName(), Name: d.shared()}, Hard: d.bool(),
			Line: int32(d.uint()), Column: int32(d.uint()), Field: d.field()}
	}
	return refs
}

func (d *decoder) bool() bool { return d.byte() == 1 }

func (d *decoder) uint() uint64 {
	n, size := binary.Uvarint(d.b)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[size:]
	return n
}

func (d *decoder) table() map[string]string {
	n := d.count()
	if n == 0 {
		return nil
	}
	m := make(map[string]string, n)
	for range n {
		k := d.shared()
		m[k] = d.shared()
	}
	return m
}

func (d *decoder) field() []any {
	coded := d.bytes()
	if f, ok := d.fields[string(coded)]; ok {
		return f
	}
	sub := decoder{b: coded}
	f := make([]any, sub.count())
	for i := range f {
		if sub.byte() == 0 {
			f[i] = strings.Clone(sub.shared())
		} else {
			f[i] = int(sub.int())
		}
	}
	if sub.bad {
		d.fail()
		return nil
	}
	d.fields[string(coded)] = f
	return f
}

func (d *decoder) bytes() []byte { return d.take(d.uint()) }

func (d *decoder) byte() byte {
	if s := d.take(1); len(s) == 1 {
		return s[0]
	}
	return 0
}

func (d *decoder) int() int64 {
	n, size := binary.Varint(d.b)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[size:]
	return n
}

func (d *decoder) fail() { d.bad, d.b = true, nil }

func (d *decoder) problem(p *schemas.Problem) {
	p.Place = d.place()
	p.Severity = schemas.Severity(d.shared())
	for _, s := range []*string{&p.Code, &p.Ref.Kind, &p.Ref.Name, &p.Field, &p.Message, &p.Suggestion, &p.Source} {
		*s = d.shared()
	}
	for range d.count() {
		p.Related = append(p.Related, d.place())
	}
	for range d.count() {
		p.Notes = append(p.Notes, d.shared())
	}
}

func (d *decoder) place() schemas.Place {
	return schemas.Place{Path: d.shared(), Line: int(d.uint()), Column: int(d.uint())}
}

// count reads the length of a list whose elements take at least one byte each.
func (d *decoder) count() int {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.fail()
		return 0
	}
	return int(n)
}

// shared reads a string without copying it: the block must stay in memory and never change.
func (d *decoder) shared() string {
	s := d.bytes()
	return unsafe.String(unsafe.SliceData(s), len(s))
}

// clarifications reads records that encoder.ledger wrote; their strings point into the block.
func (d *decoder) clarifications() []schemas.Clarification {
	records := make([]schemas.Clarification, d.count())
	for i := range records {
		d.clarification(&records[i])
	}
	if d.bad {
		return nil
	}
	return records
}

func (d *decoder) clarification(c *schemas.Clarification) {
	for _, s := range []*string{&c.ID, &c.From, &c.To, &c.Topic, &c.Status, &c.Request} {
		*s = d.shared()
	}
	c.Blocking = d.bool()
	c.Round, c.MaxRounds = int(d.int()), int(d.int())
	c.Created, c.StaleAfter, c.ResolvedAt = d.time(), d.time(), d.time()
	if there, n := d.bool(), d.count(); there {
		c.Thread = make([]schemas.ClarificationTurn, n)
	}
	for i := range c.Thread {
		c.Thread[i] = schemas.ClarificationTurn{Round: int(d.int()), From: d.shared(), Type: d.shared(), Body: d.shared(),
			Timestamp: d.time()}
	}
}

func (d *decoder) time() schemas.Time {
	if !d.bool() {
		return schemas.Time{}
	}
	return schemas.NewTime(time.UnixMilli(d.int()))
}

// dormant reads an object into o, whose list of references it overwrites.
func (d *decoder) dormant(o *Dormant) {
	from := d.b
	o.Ref = schemas.Ref{Kind: d.kindName(), Name: d.shared()}
	o.Brief, o.path = d.brief(), d.uint()
	o.Refs = d.appendRefs(o.Refs[:0])
	o.coded = from[:len(from)-len(d.b)]
}

func (d *decoder) refs() []schemas.Ref { return d.appendRefs(nil) }

func (d *decoder) appendRefs(to []schemas.Ref) []schemas.Ref {
	for range d.count() {
		if n := len(to); n < cap(to) {
			d.kind = to[:n+1][n].Kind // of the object before, mostly the same
		}
		to = append(to, schemas.Ref{Kind: d.kindName(), Name: d.shared()})
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
