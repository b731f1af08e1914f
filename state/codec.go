package state

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/schemas"
)

// The encoding of a file in the cache: numbers are varints; strings and lists have their length in front.

// The type of the body of a record.
const (
	bodySpec   = iota + 1
	bodyStatus // the brief, then the JSON without whitespace
	bodyRun    // the same for a record
	bodyDamage
	bodyLedger // the header, then the records
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

func (e *encoder) stat(s *stat) {
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

// text writes JSON without whitespace; packed is that text, if known.
func (e *encoder) text(data, packed []byte) {
	if packed == nil {
		e.packed = minify(e.packed[:0], data)
		packed = e.packed
	}
	e.bytes(packed)
}

func (e *encoder) brief(b *schemas.Brief) {
	for _, s := range []string{b.Phase, b.ObservedDigest, string(b.Ready), string(b.Stalled), b.StalledReason} {
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

func (e *encoder) input(path string, f *inputFile) {
	e.record(func() {
		e.str(path)
		e.stat(&f.stat)
		e.bool(f.racy)
		e.b = binary.LittleEndian.AppendUint64(e.b, f.rules)
		e.b = append(e.b, f.digest[:]...)
	})
}

// The first byte of a block says what it holds.
const (
	blockSpecs   = 's' // kept in memory: objects point into it
	blockLedgers = 'l' // kept in memory: ledgers point into it
	blockStates  = 't'
	blockInputs  = 'i'
)
