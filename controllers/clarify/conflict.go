package clarify

import (
	"bytes"
	"fmt"
	"slices"
)

// The lines with which git marks a conflict begin so. The part between base and between is that of the common ancestor.
const (
	markOurs    = "<<<<<<< "
	markBase    = "||||||| "
	markBetween = "======="
	markTheirs  = ">>>>>>> "
)

// Unite makes one ledger of what a git merge left: a text with conflict markers. Both sides have to be ledgers of the
// issue; the error is else [ErrNoLedger]. See [Merge].
func Unite(conflicted []byte, issue int) ([]byte, error) {
	ours, theirs, ok := conflictSides(conflicted)
	if !ok {
		return nil, fmt.Errorf("%w: it holds no whole conflict of a git merge", ErrNoLedger)
	}
	return Merge(ours, theirs, issue)
}

// conflictSides splits a text with conflict markers into its two sides; ok is false if markers are missing.
func conflictSides(text []byte) (ours, theirs []byte, ok bool) {
	part := "" // the mark that the present part began with
	for line := range bytes.Lines(text) {
		next, allowed := partAt(line, part)
		switch {
		case !allowed:
			return nil, nil, false
		case next != "":
			part, ok = next, true
		case part == "" || part == markTheirs:
			ours, theirs = append(ours, line...), append(theirs, line...)
		case part == markOurs:
			ours = append(ours, line...)
		case part == markBetween:
			theirs = append(theirs, line...)
		}
	}
	return ours, theirs, ok && part == markTheirs
}

// partAt returns the conflict mark of a line, "" for other lines; allowed is false if it may not follow the present part.
// In a ledger no other line begins so: every line of our JSON begins with a blank or a bracket.
func partAt(line []byte, part string) (mark string, allowed bool) {
	for _, m := range []struct {
		mark  string
		after []string
	}{
		{markOurs, []string{"", markTheirs}}, {markBase, []string{markOurs}},
		{markBetween, []string{markOurs, markBase}}, {markTheirs, []string{markBetween}},
	} {
		if bytes.HasPrefix(line, []byte(m.mark)) {
			return m.mark, slices.Contains(m.after, part)
		}
	}
	return "", true
}
