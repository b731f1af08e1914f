package memory

import "testing"

// TestSame: the threshold parts pairs that a person judged.
func TestSame(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"Chose per-issue JSON files for observation storage.", "chose per issue JSON files for the observation storage", true},
		{"The lock order is issue file first, then the manifest, as ADR-29 says.",
			"Lock order: the issue file first and then the manifest, as ADR-29 says", true},
		{"Fixed the rounding in report/report.go by computing in cents and dividing last.",
			"Fixed rounding in `report/report.go` by computing in cents, and dividing last", true},
		{"Use Postgres in production, not SQLite.", "Use SQLite in production, not Postgres.", false},
		{"The timeout of the build agents on the shared runners is 30 seconds by default.",
			"The timeout of the build agents on the shared runners is 60 seconds by default.", false},
		{"The adapter does not retry failed writes to the primary database on its own.",
			"The adapter does retry failed writes to the primary database on its own.", false},
		{"`max_conns` must be set before the pool of the adapter is opened.",
			"`min_conns` must be set before the pool of the adapter is opened.", false},
		{"Chose JSON files for observation storage.", "Chose JSON files for the ledger of clarifications.", false},
		{"数据库使用 PostgreSQL 而不是 SQLite", "数据库使用 PostgreSQL, 而不是 SQLite。", true},
		{"", "", false}, {"!", "!", false},
	} {
		if got := Same(c.a, c.b); got != c.want || got != Same(c.b, c.a) {
			t.Errorf("%q and %q: %t, similarity %.2f", c.a, c.b, got, Similar(c.a, c.b))
		}
	}
}
