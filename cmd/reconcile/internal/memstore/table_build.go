package memstore

import (
	"fmt"
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/sections"
	"reconcile.dev/reconcile/vectors/lexical"
)

// tableBuilder builds a table.
type tableBuilder struct {
	issues, rows, heap []byte
	words              []string
	places             map[string]int
	bare               bool
	docs               []lexical.Document // of the rows added from observations, unless bare
}

func (b *tableBuilder) word(s string) int {
	if i, ok := b.places[s]; ok {
		return i
	}
	if b.places == nil {
		b.places = map[string]int{}
	}
	if len(b.words) == 1<<16-1 {
		return len(b.words) // too many agents: the others have no name here
	}
	b.places[s] = len(b.words)
	b.words = append(b.words, s)
	return b.places[s]
}

func (b *tableBuilder) len() int { return len(b.rows) / rowSize }

// addFile adds an issue file with its observations.
func (b *tableBuilder) addFile(s source, f *schemas.MemoryFile) {
	s.first, s.rows = b.len(), len(f.Observations)
	at := len(b.heap)
	b.heap = appendTaken(b.heap, f)
	s.taken = span{at, len(b.heap) - at}
	b.issues = s.appendTo(b.issues)
	for i := range f.Observations {
		o := &f.Observations[i]
		at := len(b.heap)
		b.heap = appendBlob(b.heap, o)
		r := row{
			issue: o.IssueNumber, agent: b.word(o.Agent), category: b.word(o.Category), ms: o.Timestamp.UnixMilli(),
			tokens: o.Tokens, recalls: o.RecallCount, seen: o.SeenCount, superseded: o.SupersededBy != "",
			anchored: len(o.Anchors) > 0, merged: len(o.Compacts) > 0, blob: span{at, len(b.heap) - at},
		}
		if !o.VerifiedAt.IsZero() {
			r.verified = o.VerifiedAt.UnixMilli()
		}
		b.rows = r.appendTo(b.rows)
		if !b.bare {
			b.docs = append(b.docs, lexicalDocument(o))
		}
	}
}

// reserve allocates the size of the tables: growing step by step would take twice the memory.
func (b *tableBuilder) reserve(parts []part) {
	issues, rows, heap := 0, 0, 0
	for _, p := range parts {
		issues, rows, heap = issues+len(p.table.issues), rows+len(p.table.rows), heap+len(p.table.heap.Data)
	}
	b.issues, b.rows, b.heap = slices.Grow(b.issues, issues), slices.Grow(b.rows, rows), slices.Grow(b.heap, heap)
}

// copyFrom adds an issue file with its rows from another table.
func (b *tableBuilder) copyFrom(t *table, s source) error {
	from := s.first
	s.first = b.len()
	if err := b.copyPiece(t, &s.taken); err != nil {
		return err
	}
	b.issues = s.appendTo(b.issues)
	for i := range s.rows {
		r := t.row(from + i)
		if err := b.copyPiece(t, &r.blob); err != nil {
			return err
		}
		r.agent, r.category = b.word(t.word(r.agent)), b.word(t.word(r.category))
		b.rows = r.appendTo(b.rows)
	}
	return nil
}

func (b *tableBuilder) copyPiece(t *table, s *span) error {
	raw, err := t.piece(*s)
	s.at = len(b.heap)
	b.heap = append(b.heap, raw...)
	return err
}

// bytes returns the table with its lexical index; basis is the key of the table that it extends.
func (b *tableBuilder) bytes(lex []byte, basis uint64) []byte {
	var words sections.Encoder
	for _, w := range b.words {
		words.String(w)
	}
	return tableFormat.Encode(sections.Raw([]uint64{basis}), b.issues, b.rows, words.B, b.heap, lex).Bytes()
}

// tables returns a table of the added files, or nothing without any.
func (b *tableBuilder) tables() ([]*table, error) {
	if len(b.issues) == 0 {
		return nil, nil
	}
	t, err := b.table()
	return []*table{t}, err
}

// table returns a table of the added files, with its own lexical index unless it is bare.
func (b *tableBuilder) table() (*table, error) {
	if b.bare {
		return openTable(b.bytes(nil, 0))
	}
	lex, err := lexical.Build(b.docs)
	if err != nil {
		return nil, fmt.Errorf("index the memory: %w", err)
	}
	b.docs = nil
	return openTable(b.bytes(lex.Bytes(), 0))
}
