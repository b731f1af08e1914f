package state

import (
	"encoding/binary"
	"maps"
	"slices"

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
	bodyLedger // the header, then the records with a hash of their own, so that a reader may leave them
	bodyCheckpoint
)

// recordHeader is the size of a record's header: its length, and the hash of what has none of its own, four bytes each. With it
// a reader can skip a record, and read a single one.
const recordHeader = 4 + 4

// record writes a record after its header. write returns how many bytes at the end have a hash of their own.
func (e *encoder) record(write func() (hashed int)) {
	at := len(e.B)
	e.B = append(e.B, make([]byte, recordHeader)...)
	hashed := write()
	record := e.B[at+recordHeader:]
	binary.LittleEndian.PutUint32(e.B[at:], uint32(len(record)))
	binary.LittleEndian.PutUint32(e.B[at+4:], uint32(xxhash.Sum64(record[:len(record)-hashed])))
	e.records++
}

// startFile says that the next record is that of a file.
func (e *encoder) startFile(f *file) {
	e.files, e.starts = append(e.files, f), append(e.starts, len(e.B))
}

func (e *encoder) stat(s *disk.Stat) {
	e.Int(s.Size)
	e.Int(s.Mtime)
	e.Int(s.Ctime)
	e.Uint(s.Ino)
	e.Uint(uint64(s.Mode))
}

// file writes a file; data is its content, and packed its content without whitespace, if known.
func (e *encoder) file(f *file, data, packed []byte) {
	e.startFile(f)
	e.record(func() (hashed int) {
		e.String(f.path)
		e.B = append(e.B, byte(f.area))
		e.stat(&f.stat)
		e.Bool(f.racy)
		e.Bool(f.link)
		e.B = binary.LittleEndian.AppendUint64(e.B, f.sum)
		switch b := f.body.(type) {
		case *specBody:
			e.B = append(e.B, bodySpec)
			e.spec(b)
		case *damage:
			e.B = append(e.B, bodyDamage)
			e.String(b.text)
			e.Uint(uint64(b.line))
			e.Uint(uint64(b.column))
		case *Ledger:
			e.B = append(e.B, bodyLedger)
			e.Uint(uint64(b.Last))
			e.Uint(uint64(b.Open))
			e.Bool(b.Foreign)
			e.Bool(b.Doubled)
			e.rejected(b.Rejected)
			records := b.encoded()
			e.B = binary.LittleEndian.AppendUint64(e.B, xxhash.Sum64(records))
			e.Bytes(records)
			return len(records)
		case *schemas.Checkpoint:
			e.B = append(e.B, bodyCheckpoint)
			e.text(data, packed)
		case *lazyStatus:
			e.B = append(e.B, bodyStatus)
			e.brief(b.inBrief())
			e.text(data, packed)
		case *lazyRun:
			e.B = append(e.B, bodyRun, byte(b.has))
			e.text(data, packed)
		}
		return 0
	})
}

// rejected writes the rejected records.
func (e *encoder) rejected(list []RejectedRecord) {
	e.Uint(uint64(len(list)))
	for _, r := range list {
		e.Uint(uint64(r.Line))
		e.Uint(uint64(r.Number))
		e.String(r.ID)
		e.String(r.Reason)
	}
}

// text writes JSON without whitespace; packed is that text, if known.
func (e *encoder) text(data, packed []byte) {
	if packed == nil {
		e.packed = minify(e.packed[:0], data)
		packed = e.packed
	}
	e.Bytes(packed)
}

func (e *encoder) brief(b *schemas.Brief) {
	for _, s := range []string{b.Phase, b.ObservedDigest, string(b.Ready), string(b.Stalled), b.StalledReason, b.ID} {
		e.String(s)
	}
	e.Int(int64(b.Progress.Done))
	e.Int(int64(b.Progress.Total))
	e.Int(int64(b.Running))
	e.Bool(b.Blocked)
	e.Bool(!b.FinishedAt.IsZero())
	e.Int(b.FinishedAt.UnixMilli())
}

func (e *encoder) spec(b *specBody) {
	e.String(b.ref.Kind)
	e.String(b.ref.Name)
	e.place(b.at)
	e.Uint(uint64(len(b.problems)))
	for i := range b.problems {
		e.problem(&b.problems[i])
	}
	e.Bool(b.object != nil)
	if b.object != nil {
		e.object(b.object)
	}
	e.references(b.refs)
}

func (e *encoder) object(o *schemas.Object) {
	e.String(o.Metadata.Name)
	e.table(o.Metadata.Labels)
	e.table(o.Metadata.Annotations)
	e.String(o.Path)
	e.String(o.Digest)
	e.Bytes(o.Canonical())
	e.references(o.Refs)
}

func (e *encoder) references(refs []schemas.Reference) {
	e.Uint(uint64(len(refs)))
	for _, r := range refs {
		e.String(r.To.Kind)
		e.String(r.To.Name)
		e.Bool(r.Hard)
		e.Uint(uint64(r.Line))
		e.Uint(uint64(r.Column))
		e.field(r.Field)
	}
}

func (e *encoder) table(m map[string]string) {
	e.Uint(uint64(len(m)))
	for _, k := range slices.Sorted(maps.Keys(m)) { // the same bytes for the same content
		e.String(k)
		e.String(m[k])
	}
}

// field writes a path of names and indices, with the length of the whole in front.
func (e *encoder) field(field []any) {
	var sub encoder
	sub.Uint(uint64(len(field)))
	for _, f := range field {
		switch f := f.(type) {
		case string:
			sub.B = append(sub.B, 0)
			sub.String(f)
		case int:
			sub.B = append(sub.B, 1)
			sub.Int(int64(f))
		}
	}
	e.Bytes(sub.B)
}

func (e *encoder) problem(p *schemas.Problem) {
	e.place(p.Place)
	for _, s := range []string{string(p.Severity), p.Code, p.Ref.Kind, p.Ref.Name, p.Field, p.Message, p.Suggestion,
		p.Source} {
		e.String(s)
	}
	e.Uint(uint64(len(p.Related)))
	for _, r := range p.Related {
		e.place(r)
	}
	e.Uint(uint64(len(p.Notes)))
	for _, n := range p.Notes {
		e.String(n)
	}
}

func (e *encoder) place(p schemas.Place) {
	e.String(p.Path)
	e.Uint(uint64(p.Line))
	e.Uint(uint64(p.Column))
}

func (e *encoder) input(path string, f *inputFile) {
	e.record(func() int {
		e.String(path)
		e.stat(&f.stat)
		e.Bool(f.racy)
		e.B = binary.LittleEndian.AppendUint64(e.B, f.rules)
		e.B = append(e.B, f.digest[:]...)
		return 0
	})
}

// The first byte of a block says what it holds.
const (
	blockSpecs   = 's' // kept in memory: objects point into it
	blockLedgers = 'l' // kept in memory: ledgers point into it
	blockStates  = 't'
	blockInputs  = 'i'
)

func (e *encoder) clarification(c *schemas.Clarification) {
	for _, s := range []string{c.ID, c.From, c.To, c.Topic, c.Status, c.Request} {
		e.String(s)
	}
	e.Bool(c.Blocking)
	e.Int(int64(c.Round))
	e.Int(int64(c.MaxRounds))
	for _, t := range []schemas.Time{c.Created, c.StaleAfter, c.ResolvedAt} {
		e.time(t)
	}
	e.Bool(c.Thread != nil)
	e.Uint(uint64(len(c.Thread)))
	for i := range c.Thread {
		e.turn(&c.Thread[i])
	}
}

func (e *encoder) turn(t *schemas.ClarificationTurn) {
	e.Int(int64(t.Round))
	e.String(t.From)
	e.String(t.Type)
	e.String(t.Body)
	e.time(t.Timestamp)
}

// time writes an instant in milliseconds.
func (e *encoder) time(t schemas.Time) {
	e.Bool(!t.IsZero())
	if !t.IsZero() {
		e.Int(t.UnixMilli())
	}
}

// ledger writes all records of a ledger, for memory and for the cache. They have half the size of the file, which matters
// for a tree with ten thousand ledgers, of most of which only the header is used.
func (e *encoder) ledger(records []schemas.Clarification) {
	e.Uint(uint64(len(records)))
	for i := range records {
		e.clarification(&records[i])
	}
}

func (e *encoder) dormant(o *Dormant) {
	if o.coded != nil {
		e.B = append(e.B, o.coded...)
		return
	}
	e.String(o.Kind)
	e.String(o.Name)
	e.brief(&o.Brief)
	e.Uint(o.path)
	e.refs(o.Refs)
}

func (e *encoder) refs(refs []schemas.Ref) {
	e.Uint(uint64(len(refs)))
	for _, r := range refs {
		e.String(r.Kind)
		e.String(r.Name)
	}
}
