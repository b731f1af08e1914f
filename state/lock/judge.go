package lock

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// judge reports whether L or R may be removed by one who holds the guard: because its owner held the guard and is
// dead, or because nobody may hold a lock for so long.
func (a *attempt) judge(f file) (b body, free bool) {
	b = parseBody(f.content())
	return b, a.gone(b.id()) || timestampAged(b.Timestamp, a.o.Now(), a.o.Stale) && a.fileAged(f)
}

// removed notes whether others may have judged a lock to be abandoned before it was removed just now.
func (a *attempt) removed(b body) {
	a.aged = a.aged || timestampAged(b.Timestamp, a.o.Now(), a.o.hold())
}

// timestampAged reports whether a timestamp is older than stale, or says nothing because it is missing or lies in the
// future by more than clocks differ.
func timestampAged(t, now time.Time, stale time.Duration) bool {
	age := now.Sub(t)
	return t.IsZero() || age > stale || age < -stale
}

// fileAged reports whether f was not written to for longer than stale. The clock is that of the file system. When the
// file is from its future, the clock was set back, and what counts is how long we have known the file.
func (a *attempt) fileAged(f file) bool {
	age := a.clock.Sub(f.modified())
	if age >= -a.o.Stale {
		return age > a.o.Stale
	}
	return a.known(f) > a.o.Stale
}

// known is for how long f has been noticed, unchanged, by those who judge it. The first one notes it in the guard.
func (a *attempt) known(f file) time.Duration {
	now := a.o.Now().Round(0)
	key := fmt.Sprintf("%x-%d", sha256.Sum256(f.content()), f.modified().UnixNano())
	if noted, since, ok := strings.Cut(strings.TrimSpace(a.guard.note()), " "); ok && noted == key {
		ns, err := strconv.ParseInt(since, 10, 64)
		if known := now.Sub(time.Unix(0, ns)); err == nil && known >= 0 {
			return known
		}
	}
	a.guard.setNote(fmt.Sprintf("%s %d\n", key, now.UnixNano()))
	return 0
}
