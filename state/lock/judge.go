package lock

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// judge reports whether a holder of the guard may remove L or R: its owner held the guard and is dead, or it is older
// than a lock may be.
func (a *attempt) judge(f file) (b body, free bool) {
	b = parseBody(f.content())
	return b, a.gone(b.id()) || timestampAged(b.Timestamp, a.o.Now(), a.o.Stale) && a.fileAged(f)
}

// timestampAged reports whether a timestamp is older than stale, or is not usable because it is missing or in the future
// by more than the difference of clocks.
func timestampAged(t, now time.Time, stale time.Duration) bool {
	age := now.Sub(t)
	return t.IsZero() || age > stale || age < -stale
}

// fileAged reports whether f was not written for longer than stale, by the clock of the file system. If the modification
// time is in the future, the clock was set back, and the time since f was first noticed counts.
func (a *attempt) fileAged(f file) bool {
	age := a.clock.Sub(f.modified())
	if age >= -a.o.Stale {
		return age > a.o.Stale
	}
	return a.known(f) > a.o.Stale
}

// known returns how long f has been noticed unchanged by the processes that judged it. The first one records it in the
// guard.
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
