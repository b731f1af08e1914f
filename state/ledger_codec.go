package state

import (
	"strings"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// The form of a ledger's records in memory and in the cache: the encoding of the cache. It has half the size of the file,
// which matters for a tree with ten thousand ledgers, of most of which only the header is used.

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

// rejected reads what encoder.rejected wrote.
func (d *decoder) rejected() []RejectedRecord {
	var list []RejectedRecord
	for range d.count() {
		list = append(list, RejectedRecord{Line: int(d.uint()), Number: int(d.uint()), ID: strings.Clone(d.shared()),
			Reason: strings.Clone(d.shared())})
	}
	return list
}

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

// ledger writes all records of a ledger.
func (e *encoder) ledger(records []schemas.Clarification) {
	e.uint(uint64(len(records)))
	for i := range records {
		e.clarification(&records[i])
	}
}
