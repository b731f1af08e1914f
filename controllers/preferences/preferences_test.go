package preferences

import (
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

func held(name, key, value, source, session string, day int) Held {
	return Held{name, &schemas.PreferenceSpec{Domain: "tools", Key: key, Value: value, Source: source, Session: session,
		At: schemas.NewTime(time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC))}}
}

// Whatever the order of the files, a person wins over what was inferred, the session over all, and the newer over the older.
func TestHolding(t *testing.T) {
	all := []Held{
		held("a", "python/linter", "ruff", schemas.PreferenceExplicit, "", 1),
		held("b", "python/linter", "pylint", schemas.PreferenceInferred, "s", 9),
		held("c", "python/linter", "flake8", schemas.PreferenceExplicit, "", 2),
		held("d", "go/linter", "staticcheck", schemas.PreferenceInferred, "", 1),
		held("e", "rust/linter", "x", schemas.PreferenceExplicit, "", 5),
		held("f", "rust/linter", "y", schemas.PreferenceImplicit, "s", 1),
	}
	for range 20 {
		for session, want := range map[string][]string{"": {"d", "c", "e"}, "s": {"d", "c", "f"}} {
			var got []string
			for _, h := range Holding(all, "tools", session) {
				got = append(got, h.Name)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("session %q: %v, want %v", session, got, want)
			}
		}
		all = append(all[1:], all[0])
	}
	if got := Holding(all, "style", ""); len(got) != 0 {
		t.Error(got)
	}
}
