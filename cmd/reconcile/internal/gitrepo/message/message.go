// Package message writes the messages of reconcile's commits, and recognizes them.
package message

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"reconcile.dev/reconcile/schemas/shorten"
)

// Change is one object that a commit changes.
type Change struct {
	Object string // "dag/checks", "fact/edge-0123456789ab"
	// Note is the outcome in a few words ("4 of 4 nodes succeeded"); empty if only the status changed.
	Note string
	// Gone is set if the status was removed.
	Gone bool
	// Fact is set for a fact instead of an object: it was stated, or retracted if Gone. Facts have no status.
	Fact bool
}

// Trailer is one "Key: value" line at the end of a message.
type Trailer struct{ Key, Value string }

// Limits of a message: git's own advice for the subject, and a body that one can read.
const (
	subjectLimit = 50
	lineLimit    = 100
	bodyLimit    = 20
)

// New returns the message of a commit: a subject, a bullet for each of its changes, and trailers. It is a pure
// function of its arguments. The trailers name the input; Reconcile-Facts (if not 0) and Reconcile-Objects are
// appended.
func New(changes []Change, trailers ...Trailer) string {
	var b strings.Builder
	b.WriteString(subject(changes))
	b.WriteString("\n\n")
	for i, c := range changes {
		if i == bodyLimit {
			fmt.Fprintf(&b, "- and %d more\n", len(changes)-i)
			break
		}
		b.WriteString(Clip(bullet(c), lineLimit) + "\n")
	}
	if len(changes) > 0 {
		b.WriteString("\n")
	}
	for _, t := range trailers {
		fmt.Fprintf(&b, "%s: %s\n", oneLine(t.Key), oneLine(t.Value))
	}
	facts := factsAmong(changes)
	if len(facts) > 0 {
		fmt.Fprintf(&b, "Reconcile-Facts: %d\n", len(facts))
	}
	fmt.Fprintf(&b, "Reconcile-Objects: %d\n", len(changes)-len(facts))
	return b.String()
}

func factsAmong(changes []Change) []Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c Change) bool { return !c.Fact })
}

// subject summarizes the changes of the objects, or of the facts if there are no objects.
func subject(changes []Change) string {
	facts := factsAmong(changes)
	if len(facts) > 0 && len(facts) == len(changes) {
		return subjectOfFacts(facts)
	}
	return subjectOfObjects(slices.DeleteFunc(slices.Clone(changes), func(c Change) bool { return c.Fact }))
}

func subjectOfFacts(facts []Change) string {
	gone := 0
	for _, f := range facts {
		if f.Gone {
			gone++
		}
	}
	switch n := len(facts); {
	case n == 1 && gone == 1:
		return Clip("Take back "+facts[0].Object, subjectLimit)
	case n == 1:
		return Clip("State "+facts[0].Object, subjectLimit)
	case gone == n:
		return fmt.Sprintf("Take back %d facts", n)
	case gone > 0:
		return fmt.Sprintf("State %d and take back %d facts", n-gone, gone)
	default:
		return fmt.Sprintf("State %d facts", n)
	}
}

// subjectOfObjects returns the first form that fits: the outcome of the only object that has one, else a count.
func subjectOfObjects(changes []Change) string {
	var told []Change
	gone := 0
	for _, c := range changes {
		if c.Note != "" {
			told = append(told, c)
		}
		if c.Gone {
			gone++
		}
	}
	if len(told) == 1 {
		_, name, _ := strings.Cut(told[0].Object, "/")
		for _, s := range []string{"Record " + name + ": " + told[0].Note, "Record " + told[0].Object} {
			if s = oneLine(s); len([]rune(s)) <= subjectLimit {
				return s
			}
		}
	}
	switch n := len(changes); {
	case n == 0:
		return "Update recorded state"
	case gone == n && n > 1:
		return fmt.Sprintf("Remove status of %d objects", n)
	case n > 1:
		return fmt.Sprintf("Update status of %d objects", n)
	case gone == 1:
		return Clip("Remove status of "+changes[0].Object, subjectLimit)
	}
	return Clip("Update status of "+changes[0].Object, subjectLimit)
}

func bullet(c Change) string {
	switch {
	case c.Fact && c.Gone:
		return "- " + c.Object + ": taken back"
	case c.Fact:
		return "- " + c.Object + ": stated"
	case c.Note != "":
		return "- " + c.Object + ": " + c.Note
	case c.Gone:
		return "- " + c.Object + ": removed"
	}
	return "- " + c.Object
}

// Clip returns s as one line of at most n characters.
func Clip(s string, n int) string { return shorten.Text(oneLine(s), n) }

// oneLine removes line ends and control characters: a separate line could pass for a trailer.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "�"), func(r rune) bool {
		return unicode.IsControl(r) || unicode.IsSpace(r)
	}), " ")
}

// ByReconcile reports whether reconcile made a commit: its message ends in the line that those of [New] end in.
func ByReconcile(message string) bool {
	text := strings.TrimSpace(message)
	return strings.HasPrefix(text[strings.LastIndexByte(text, '\n')+1:], "Reconcile-Objects: ")
}
