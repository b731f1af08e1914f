// Package spans computes with sets of moments.
package spans

import (
	"slices"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// Sets of moments, as spans. A set is in order if its spans are sorted, do not touch, and are not empty; only its last
// span may be open.

// Unite returns the union of spans, in order. Spans that end before they begin count for nothing.
func Unite(spans []schemas.Span) []schemas.Span {
	spans = slices.DeleteFunc(slices.Clone(spans), Empty)
	slices.SortFunc(spans, func(a, b schemas.Span) int { return a.From.Compare(b.From.Time) })
	var out []schemas.Span
	for _, s := range spans {
		n := len(out)
		if n == 0 || !out[n-1].To.IsZero() && s.From.After(out[n-1].To.Time) {
			out = append(out, s)
			continue
		}
		if last := &out[n-1]; !last.To.IsZero() && (s.To.IsZero() || s.To.After(last.To.Time)) {
			last.To = s.To
		}
	}
	return out
}

// Empty reports whether a span has no moment.
func Empty(s schemas.Span) bool { return !s.To.IsZero() && !s.To.After(s.From.Time) }

// Without returns what of a is not in the set b, which is in order.
func Without(a, b []schemas.Span) []schemas.Span {
	var out []schemas.Span
	for _, s := range a {
		open := true // whether something of s is left
		for _, cut := range b {
			if !cut.To.IsZero() && !cut.To.After(s.From.Time) {
				continue
			}
			if !s.To.IsZero() && !cut.From.Before(s.To.Time) {
				break
			}
			if cut.From.After(s.From.Time) {
				out = append(out, schemas.Span{From: s.From, To: cut.From})
			}
			if open = !cut.To.IsZero(); !open {
				break
			}
			s.From = cut.To
		}
		if open && !Empty(s) {
			out = append(out, s)
		}
	}
	return out
}

// Gaps are the times between the spans of a set in order.
func Gaps(set []schemas.Span) []schemas.Span {
	var out []schemas.Span
	for i := 1; i < len(set); i++ {
		out = append(out, schemas.Span{From: set[i-1].To, To: set[i].From})
	}
	return out
}

// Reached is the moment at which a set in order has lasted d; zero if it never does.
func Reached(set []schemas.Span, d time.Duration) time.Time {
	for _, s := range set {
		at := s.From.Add(d)
		if s.To.IsZero() || !at.After(s.To.Time) {
			return at
		}
		d -= s.To.Sub(s.From.Time)
	}
	return time.Time{}
}

// IsOpen reports whether the last span of a set in order has no end.
func IsOpen(set []schemas.Span) bool { return len(set) > 0 && set[len(set)-1].To.IsZero() }

// Sooner returns the earlier of two times; zero is never.
func Sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
