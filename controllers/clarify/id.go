package clarify

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// FormatID formats the id of a clarification from its issue and sequence number: CLR-<issue>-<seq>, with three digits
// or more (decision 9). Issue 0 means no issue.
func FormatID(issue, seq int) string { return fmt.Sprintf("CLR-%d-%03d", issue, seq) }

// ParseID splits an id. ok is false for other text.
func ParseID(id string) (issue, seq int, ok bool) {
	if !schemas.IsClarificationID(id) {
		return 0, 0, false
	}
	first, second, _ := strings.Cut(strings.TrimPrefix(id, "CLR-"), "-")
	issue, err := strconv.Atoi(first)
	if err != nil {
		return 0, 0, false
	}
	seq, err = strconv.Atoi(second)
	return issue, seq, err == nil
}

// ReadID completes a word as people type it, in any case and without the zeros in front, to the id of a clarification:
// clr-42-1 is CLR-42-001.
func ReadID(word string) (id string, issue int, ok bool) {
	parts := strings.Split(strings.ToUpper(word), "-")
	if len(parts) != 3 || parts[2] == "" {
		return "", 0, false
	}
	for len(parts[2]) < 3 {
		parts[2] = "0" + parts[2]
	}
	id = strings.Join(parts, "-")
	issue, _, ok = ParseID(id)
	return id, issue, ok
}

// LastSeq returns the last and highest sequence number that the ids of an issue have, 0 if there are none. The next new
// question gets the one after it.
func LastSeq(issue int, ids ...string) int {
	last := 0
	for _, id := range ids {
		if of, seq, ok := ParseID(id); ok && of == issue {
			last = max(last, seq)
		}
	}
	return last
}

func (d *decider) nextSeq(node, key string) int {
	seq := 0
	for _, r := range d.input.Runs {
		if r.Node == node && r.NodeKey == key {
			seq = max(seq, r.Seq)
		}
	}
	return seq + 1
}

// highest is the highest number of an id of the issue that stands anywhere in a text, 0 for none. One after which no
// further one could be given counts as none.
func highest(text []byte, issue int) int {
	const most = 99_999_999 // ids have up to nine digits: enough are left
	last := 0
	for _, m := range regexp.MustCompile(`CLR-`+strconv.Itoa(issue)+`-([0-9]{1,9})`).FindAllSubmatch(text, -1) {
		if seq, err := strconv.Atoi(string(m[1])); err == nil && seq <= most {
			last = max(last, seq)
		}
	}
	return last
}
