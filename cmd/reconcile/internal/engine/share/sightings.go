package share

import (
	"bytes"
	"encoding/json"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/proc"
	"reconcile.dev/reconcile/state/regular"
)

// sightingsPath is where a tree keeps since when the claims of others have been as they are. It may be lost: then they are
// watched once more.
const sightingsPath = ".reconcile/claims.json"

// sightingsLimit is the size up to which that file is read.
const sightingsLimit = 1 << 20

// sightings is that file. Its times are durations since the machine was started, which no change of the clock touches; Boot
// tells that it is the same start of the same machine.
type sightings struct {
	Boot string     `json:"boot"`
	Seen []sighting `json:"seen"`
}

type sighting struct {
	Ref   string        `json:"ref"`
	Hash  string        `json:"hash"`
	Since time.Duration `json:"since"`
}

// recallSightings tells the remote what the run before this one saw. Whatever is wrong with it, there is nothing to recall then.
func (s *Share) recallSightings() {
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
	s.kept, s.firstSeen = data, map[string]time.Duration{}
	now := time.Now()
	before := make([]gitrepo.Sighting, len(was.Seen))
	for i, c := range was.Seen {
		s.firstSeen[c.Hash] = c.Since
		before[i] = gitrepo.Sighting{Ref: c.Ref, Hash: c.Hash, Since: now.Add(c.Since - up)}
	}
	s.remote.RestoreSightings(before)
}

// saveSightings keeps what was seen for the next run. What is there already is not written again. Times are rounded up: who
// takes a claim over must have waited for it.
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
	if err != nil || bytes.Equal(data, s.kept) || len(is.Seen) == 0 && s.kept == nil {
		return
	}
	if durable.Replace(s.o.Store.Root(), ".reconcile/tmp", sightingsPath, data) == nil { // else it is watched once more
		s.kept = data
	}
}
