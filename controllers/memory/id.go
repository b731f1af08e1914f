package memory

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// suffixes is how many there are of the last part of an id: 36 to the power of 6.
const suffixes = 36 * 36 * 36 * 36 * 36 * 36

// NewID formats the id of an observation from its agent, its issue, its time and a digest of its source, its place and
// its content: obs-<agent>-<issue>-<ms>-<6 characters>. The time is in milliseconds since 1970, the source is the name
// of the Observation, and place is that among its entries. agent must be the name of an object, issue not negative. A
// time before 1970 counts as 1970.
func NewID(agent string, issue int, at time.Time, source string, place int, content string) string {
	h := sha256.New()
	h.Write([]byte(source + "\x00" + strconv.Itoa(place) + "\x00"))
	h.Write([]byte(content))
	return formatID(agent, issue, at.UnixMilli(), [sha256.Size]byte(h.Sum(nil)))
}

// mergedID returns the id of a merged observation: ids are those of the originals, sorted, and piece its place if
// they need several.
func mergedID(newest *schemas.Observation, ids []string, piece int) string {
	sum := sha256.Sum256([]byte(strings.Join(ids, "\n") + strings.Repeat("\n", piece)))
	agent, _, _, _ := ParseID(newest.ID) // other programs write the agent itself in other ways
	return formatID(agent, newest.IssueNumber, newest.Timestamp.UnixMilli(), sum)
}

func formatID(agent string, issue int, ms int64, sum [sha256.Size]byte) string {
	b := make([]byte, 0, 48)
	b = append(append(b, "obs-"...), agent...)
	b = strconv.AppendInt(append(b, '-'), int64(issue), 10)
	b = strconv.AppendInt(append(b, '-'), max(ms, 0), 10)
	rand := strconv.FormatUint(binary.BigEndian.Uint64(sum[:])%suffixes, 36)
	b = append(append(b, '-'), "000000"[len(rand):]...)
	return string(append(b, rand...))
}

// ParseID parses the id of an observation into the agent that learned it, the issue that it is about, and the time in
// milliseconds since 1970. It accepts exactly what [schemas.IsObservationID] does.
func ParseID(id string) (agent string, issue int, ms int64, ok bool) {
	rest, found := strings.CutPrefix(id, "obs-")
	if !found || len(id) > 120 {
		return "", 0, 0, false
	}
	rest, suffix := cutLast(rest)
	rest, millis := cutLast(rest)
	agent, number := cutLast(rest)
	ms, okMS := manifestDigits(millis, 15)
	n, okIssue := manifestDigits(number, 10)
	if !okMS || !okIssue || len(number) > 1 && number[0] == '0' || !isSuffix(suffix) || !isAgent(agent) {
		return "", 0, 0, false
	}
	return agent, int(n), ms, true
}

// cutLast cuts s around its last hyphen; before is "" if s has none.
func cutLast(s string) (before, after string) {
	i := strings.LastIndexByte(s, '-')
	return s[:max(i, 0)], s[i+1:]
}

func isAgent(s string) bool {
	if s == "" || len(s) > 63 || !isAlnum(s[0]) || !isAlnum(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if !isAlnum(s[i]) && s[i] != '.' && s[i] != '_' && s[i] != '-' {
			return false
		}
	}
	return true
}

func isAlnum(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' }

// compareIDs orders ids by the time in them, then as text: which of two is the newer one, for all that is decided by
// that.
func compareIDs(a, b string) int {
	_, _, x, _ := ParseID(a)
	_, _, y, _ := ParseID(b)
	if x != y {
		return int(min(max(x-y, -1), 1))
	}
	return strings.Compare(a, b)
}
