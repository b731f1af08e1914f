package schemas

import "bytes"

// The lines that git writes around the two sides of a conflict begin with these.
var conflictMarks = [3][]byte{[]byte("<<<<<<< "), []byte("======="), []byte(">>>>>>> ")}

// ConflictHint says what to do about a file that a merge left in conflict.
const ConflictHint = "\"git status\" lists what is in conflict: settle what stands between the markers, remove them, and \"git add\" the file"

// ConflictLine returns the line of the first conflict that a git merge left in a text; 0 if it has no conflict.
func ConflictLine(text []byte) int {
	first, next, n := 0, 0, 0
	for line := range bytes.Lines(text) {
		n++
		if !bytes.HasPrefix(line, conflictMarks[next]) {
			continue
		}
		if next == 0 {
			first = n
		}
		if next++; next == len(conflictMarks) {
			return first
		}
	}
	return 0
}

// conflict reports the markers instead of the problems that they cause in the text.
func (s *source) conflict(line int) {
	s.problems, s.unsaid = s.problems[:0], 0
	s.fail("merge-conflict", line, 1, "", "the file holds the conflict markers of a git merge").hint(ConflictHint)
}
