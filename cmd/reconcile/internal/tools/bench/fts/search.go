package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	_ "modernc.org/sqlite" // the driver

	"reconcile.dev/reconcile/vectors/lexical"
)

// searcher finds documents by their numbers, best first.
type searcher interface {
	search(ctx context.Context, query string, limit int) ([]int, error)
}

// ours is the index of this project.
type ours struct{ set *lexical.Set }

func newLexical(docs []lexical.Document) (*ours, error) {
	index, err := lexical.Build(docs)
	if err != nil {
		return nil, err
	}
	set, err := lexical.NewSet(lexical.Segment{Index: index})
	return &ours{set}, err
}

func (o *ours) search(_ context.Context, query string, limit int) ([]int, error) {
	hits, err := o.set.Search(query, limit, nil)
	out := make([]int, len(hits))
	for i, h := range hits {
		out[i] = h.Doc
	}
	return out, err
}

// fts is a table of FTS5.
type fts struct {
	db    *sql.DB
	query *sql.Stmt
}

// newFTS makes a table in memory. A title weighs as much as it does in our index.
func newFTS(ctx context.Context, docs []lexical.Document, tokenizer string) (*fts, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // each connection would have a memory of its own
	f := &fts{db: db}
	if err := f.fill(ctx, docs, tokenizer); err != nil {
		f.close()
		return nil, fmt.Errorf("fill FTS5: %w", err)
	}
	if f.query, err = db.PrepareContext(ctx, "SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT ?"); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *fts) fill(ctx context.Context, docs []lexical.Document, tokenizer string) error {
	create := "CREATE VIRTUAL TABLE t USING fts5(title, body, tokenize='" + tokenizer + "')"
	if _, err := f.db.ExecContext(ctx, create); err != nil {
		return err
	}
	tx, err := f.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // nothing is left to do after Commit
	insert, err := tx.PrepareContext(ctx, "INSERT INTO t(rowid, title, body) VALUES(?, ?, ?)")
	if err != nil {
		return err
	}
	for i, d := range docs {
		if _, err := insert.ExecContext(ctx, i, d.Title, d.Body); err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	for _, statement := range []string{
		"INSERT INTO t(t, rank) VALUES('rank', 'bm25(2.0, 1.0)')",
		"INSERT INTO t(t) VALUES('optimize')",
	} {
		if _, err := f.db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (f *fts) close() { f.db.Close() }

func (f *fts) search(ctx context.Context, query string, limit int) ([]int, error) {
	match := orQuery(query)
	if match == "" {
		return nil, nil
	}
	rows, err := f.query.QueryContext(ctx, match, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []int
	for rows.Next() {
		var id int
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		out = append(out, id)
	}
	return out, rows.Err()
}

// orQuery asks for any of the words that say something.
func orQuery(query string) string {
	var words []string
	for word := range strings.FieldsSeq(query) {
		if len(lexical.Terms(word)) > 0 {
			words = append(words, `"`+strings.ReplaceAll(word, `"`, `""`)+`"`)
		}
	}
	return strings.Join(words, " OR ")
}
