package share

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/proc"
	"reconcile.dev/reconcile/state/regular"
)

// sightingsPath is the file that records since when the claims of others have been unchanged. It may be lost: then they
// are watched again.
const sightingsPath = ".reconcile/claims.json"

// sightingsLimit is the maximum size of that file.
const sightingsLimit = 1 << 20

// sightings is the content of that file. Its times are durations since the machine's boot, which are independent of
// clock changes; Boot identifies the boot.
type sightings struct {
	Boot string     `json:"boot"`
	Seen []sighting `json:"seen"`
}

type sighting struct {
	Ref   string        `json:"ref"`
	Hash  string        `json:"hash"`
	Since time.Duration `json:"since"`
}

// restoreSightings restores the sightings of the previous run. If the file is unusable, nothing is restored.
func (s *Share) restoreSightings() {
	up, ok := uptime()
	fi, err := s.o.Store.Root().Lstat(sightingsPath)
	if !ok || err != nil || fi.Size() > sightingsLimit {
		return
	}
	data, err := regular.Read(s.o.Store.Root(), sightingsPath)
	var was sightings
	if err != nil || json.Unmarshal(data, &was) != nil || was.Boot == "" || was.Boot != proc.Self().Tag {
		return
	}
	s.savedSightings, s.firstSeen = data, map[string]time.Duration{}
	now := time.Now()
	before := make([]gitrepo.Sighting, len(was.Seen))
	for i, c := range was.Seen {
		s.firstSeen[c.Hash] = c.Since
		before[i] = gitrepo.Sighting{Ref: c.Ref, Hash: c.Hash, Since: now.Add(c.Since - up)}
	}
	s.remote.RestoreSightings(before)
}

// saveSightings saves the sightings for the next run, if they changed. Times are rounded up, since a claim must not be
// taken over too early.
func (s *Share) saveSightings() {
	up, ok := uptime()
	is := sightings{Boot: proc.Self().Tag, Seen: []sighting{}}
	if !ok || is.Boot == "" {
		return
	}
	now := time.Now()
	for _, c := range s.remote.Sightings() {
		since := s.firstSeen[c.Hash]
		if since == 0 {
			since = (up - now.Sub(c.Since)).Truncate(time.Second) + time.Second
		}
		is.Seen = append(is.Seen, sighting{c.Ref, c.Hash, since})
	}
	clear(s.firstSeen)
	for _, c := range is.Seen {
		s.firstSeen[c.Hash] = c.Since
	}
	data, err := json.Marshal(is)
	if err != nil || bytes.Equal(data, s.savedSightings) || len(is.Seen) == 0 && s.savedSightings == nil {
		return
	}
	if durable.Replace(s.o.Store.Root(), ".reconcile/tmp", sightingsPath, data) == nil { // otherwise it is watched again
		s.savedSightings = data
	}
}

// location distinguishes copies of a tree.
func (s *Share) location() (string, error) {
	dir, err := filepath.Abs(s.o.Dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", err
	}
	host, err := os.Hostname()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(host + "\x00" + dir))
	return hex.EncodeToString(sum[:16]), nil
}
