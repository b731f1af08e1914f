package state

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/disk"
)

// The encoding of a file in the cache: numbers are varints; strings and lists have their length in front.

// The type of the body of a record.
const (
	bodySpec   = iota + 1
	bodyStatus // the brief, then the JSON without whitespace
	bodyRun    // the same for a record
	bodyDamage
	bodyLedger // the header, then the records
	bodyCheckpoint
)

// recordHeader is the size of a record's header: its length and its hash, four bytes each. With it a reader can skip a
// record, and read a single one.
const recordHeader = 4 + 4

// record writes a record after its header.
func (e *encoder) record(write func()) {
	at := len(e.b)
	e.b = append(e.b, make([]byte, recordHeader)...)
	write()
	record := e.b[at+recordHeader:]
	binary.LittleEndian.PutUint32(e.b[at:], uint32(len(record)))
	binary.LittleEndian.PutUint32(e.b[at+4:], uint32(xxhash.Sum64(record)))
	e.records++
}

// startFile says that the next record is that of a file.
func (e *encoder) startFile(f *file) {
	e.files, e.starts = append(e.files, f), append(e.starts, len(e.b))
}

func (e *encoder) stat(s *disk.Stat) {
	e.int(s.Size)
	e.int(s.Mtime)
	e.int(s.Ctime)
	e.uint(s.Ino)
	e.uint(uint64(s.Mode))
}

// file writes a file; data is its content, and packed its content without whitespace, if known.
func (e *encoder) file(f *file, data, packed []byte) {
	e.startFile(f)
	e.record(func() {
		e.str(f.path)
		e.b = append(e.b, byte(f.area))
		e.stat(&f.stat)
		e.bool(f.racy)
		e.bool(f.link)
		e.b = binary.LittleEndian.AppendUint64(e.b, f.sum)
		switch b := f.body.(type) {
		case *specBody:
			e.b = append(e.b, bodySpec)
			e.spec(b)
		case *damage:
			e.b = append(e.b, bodyDamage)
			e.str(b.text)
			e.uint(uint64(b.line))
			e.uint(uint64(b.column))
		case *Ledger:
			e.b = append(e.b, bodyLedger)
			e.uint(uint64(b.Last))
			e.uint(uint64(b.Open))
			e.bool(b.Doubled)
			e.rejected(b.Rejected)
			e.bytes(b.packed)
		case *schemas.Checkpoint:
			e.b = append(e.b, bodyCheckpoint)
			e.text(data, packed)
		case *lazyStatus:
			e.b = append(e.b, bodyStatus)
			e.brief(b.inBrief())
			e.text(data, packed)
		case *lazyRun:
			e.b = append(e.b, bodyRun, byte(b.has))
			e.text(data, packed)
		}
	})
}

// rejected writes the rejected records.
func (e *encoder) rejected(list []RejectedRecord) {
	e.uint(uint64(len(list)))
	for _, r := range list {
		e.uint(uint64(r.Line))
		e.uint(uint64(r.Number))
		e.str(r.ID)
		e.str(r.Reason)
	}
}

// text writes JSON without whitespace; packed is that text, if known.
func (e *encoder) text(data, packed []byte) {
	if packed == nil {
		e.packed = minify(e.packed[:0], data)
		packed = e.packed
	}
	e.bytes(packed)
}

func (e *encoder) brief(b *schemas.Brief) {
	for _, s := range []string{b.Phase, b.ObservedDigest, string(b.Ready), string(b.Stalled), b.StalledReason, b.ID} {
		e.str(s)
	}
	e.int(int64(b.Progress.Done))
	e.int(int64(b.Progress.Total))
	e.int(int64(b.Running))
	e.bool(b.Blocked)
	e.bool(!b.FinishedAt.IsZero())
	e.int(b.FinishedAt.UnixMilli())
}

func (e *encoder) spec(b *specBody) {
	e.str(b.ref.Kind)
	e.str(b.ref.Name)
	e.place(b.at)
	e.uint(uint64(len(b.problems)))
	for i := range b.problems {
		e.problem(&b.problems[i])
	}
	e.bool(b.object != nil)
	if b.object != nil {
		e.object(b.object)
	}
	e.references(b.refs)
}

func (e *encoder) object(o *schemas.Object) {
	e.str(o.Metadata.Name)
	e.table(o.Metadata.Labels)
	e.table(o.Metadata.Annotations)
	e.str(o.Path)
	e.str(o.Digest)
	e.bytes(o.Canonical())
	e.references(o.Refs)
}

func (e *encoder) references(refs []schemas.Reference) {
	e.uint(uint64(len(refs)))
	for _, r := range refs {
		e.str(r.To.Kind)
		e.str(r.To.Name)
		e.bool(r.Hard)
		e.uint(uint64(r.Line))
		e.uint(uint64(r.Column))
		e.field(r.Field)
	}
}

func (e *encoder) table(m map[string]string) {
	e.uint(uint64(len(m)))
	for k, v := range m {
		e.str(k)
		e.str(v)
	}
}

// field writes a path of names and indices, with the length of the whole in front.
func (e *encoder) field(field []any) {
	var sub encoder
	sub.uint(uint64(len(field)))
	for _, f := range field {
		switch f := f.(type) {
		case string:
			sub.b = append(sub.b, 0)
			sub.str(f)
		case int:
			sub.b = append(sub.b, 1)
			sub.int(int64(f))
		}
	}
	e.bytes(sub.b)
}

func (e *encoder) bytes(s []byte) { e.uint(uint64(len(s))); e.b = append(e.b, s...) }

func (e *encoder) int(n int64) { e.b = binary.AppendVarint(e.b, n) }

func (e *encoder) problem(p *schemas.Problem) {
	e.place(p.Place)
	for _, s := range []string{string(p.Severity), p.Code, p.Ref.Kind, p.Ref.Name, p.Field, p.Message, p.Suggestion,
		p.Source} {
		e.str(s)
	}
	e.uint(uint64(len(p.Related)))
	for _, r := range p.Related {
		e.place(r)
	}
	e.uint(uint64(len(p.Notes)))
	for _, n := range p.Notes {
		e.str(n)
	}
}

func (e *encoder) place(p schemas.Place) {
	e.str(p.Path)
	e.uint(uint64(p.Line))
	e.uint(uint64(p.Column))
}

func (e *encoder) uint(n uint64) { e.b = binary.AppendUvarint(e.b, n) }

func (e *encoder) input(path string, f *inputFile) {
	e.record(func() {
		e.str(path)
		e.stat(&f.stat)
		e.bool(f.racy)
		e.b = binary.LittleEndian.AppendUint64(e.b, f.rules)
		e.b = append(e.b, f.digest[:]...)
	})
}

func (e *encoder) bool(v bool) {
	if v {
		e.b = append(e.b, 1)
	} else {
		e.b = append(e.b, 0)
	}
}

func (e *encoder) str(s string) { e.uint(uint64(len(s))); e.b = append(e.b, s...) }

// The first byte of a block says what it holds.
const (
	blockSpecs   = 's' // kept in memory: objects point into it
	blockLedgers = 'l' // kept in memory: ledgers point into it
	blockStates  = 't'
	blockInputs  = 'i'
)

func (e *encoder) clarification(c *schemas.Clarification) {
	for _, s := range []string{c.ID, c.From, c.To, c.Topic, c.Status, c.Request} {
		e.str(s)
	}
	e.bool(c.Blocking)
	e.int(int64(c.Round))
	e.int(int64(c.MaxRounds))
	for _, t := range []schemas.Time{c.Created, c.StaleAfter, c.ResolvedAt} {
		e.time(t)
	}
	e.bool(c.Thread != nil)
	e.uint(uint64(len(c.Thread)))
	for i := range c.Thread {
		e.turn(&c.Thread[i])
	}
}

func (e *encoder) turn(t *schemas.ClarificationTurn) {
	e.int(int64(t.Round))
	e.str(t.From)
	e.str(t.Type)
	e.str(t.Body)
	e.time(t.Timestamp)
}

// time writes an instant in milliseconds.
func (e *encoder) time(t schemas.Time) {
	e.bool(!t.IsZero())
	if !t.IsZero() {
		e.int(t.UnixMilli())
	}
}

// ledger writes all records of a ledger, for memory and for the cache. They have half the size of the file, which matters
// for a tree with ten thousand ledgers, of most of which only the header is used.
func (e *encoder) ledger(records []schemas.Clarification) {
	e.uint(uint64(len(records)))
	for i := range records {
		e.clarification(&records[i])
	}
}

func (e *encoder) dormant(o *Dormant) {
	if o.coded != nil {
		e.b = append(e.b, o.coded...)
		return
	}
	e.str(o.Kind)
	e.str(o.Name)
	e.brief(&o.Brief)
	e.uint(o.path)
	e.refs(o.Refs)
}

func (e *encoder) refs(refs []schemas.Ref) {
	e.uint(uint64(len(refs)))
	for _, r := range refs {
		e.str(r.Kind)
		e.str(r.Name)
	}
}
